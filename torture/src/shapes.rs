//! The commands of a storm: what each does, and how it ends if nobody does anything to it.

/// One kind of command.
#[derive(Debug)]
pub struct Shape {
    /// What a story calls it.
    pub name: &'static str,
    /// Options of `run` that belong to it.
    pub options: &'static [&'static str],
    /// The shell text between the lines of evidence.
    pub body: &'static str,
    /// How it ends by itself.
    pub own_end: OwnEnd,
    /// What it prints, where all of it is known.
    pub output: Option<fn() -> Vec<u8>>,
    /// The cap of its log in bytes, where its output breaks it.
    pub cap: Option<usize>,
}

/// How a command ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnEnd {
    /// With this exit code, soon.
    Soon(i64),
    /// With this exit code once it was sent a line.
    OnceSent(i64),
    /// Never.
    Never,
}

impl OwnEnd {
    /// Its exit code, if it ever has one.
    pub fn code(self) -> Option<i64> {
        match self {
            OwnEnd::Soon(code) | OwnEnd::OnceSent(code) => Some(code),
            OwnEnd::Never => None,
        }
    }
}

impl Shape {
    /// The whole shell line. `ran.LABEL` gets a line with leader and supervisor when it begins, `done.LABEL` one just
    /// before it exits: what it knows of itself, whatever outlast says.
    pub fn line(&self, label: &str) -> String {
        let begin = format!("echo $$ $PPID >>ran.{label}; {}", self.body);
        match self.own_end.code() {
            Some(code) => format!("{begin}; echo >>done.{label}; exit {code}"),
            None => begin,
        }
    }
}

const fn shape(name: &'static str, body: &'static str, own_end: OwnEnd) -> Shape {
    Shape { name, options: &[], body, own_end, output: None, cap: None }
}

const fn printing(name: &'static str, body: &'static str, code: i64, output: fn() -> Vec<u8>) -> Shape {
    Shape { output: Some(output), ..shape(name, body, OwnEnd::Soon(code)) }
}

/// All kinds.
pub const SHAPES: &[Shape] = &[
    printing("quick", "true", 0, Vec::new),
    printing("fails", "echo out", 3, || b"out\n".to_vec()),
    printing("short", "echo a; sleep .15; echo b", 0, || b"a\nb\n".to_vec()),
    printing("loud", "seq 1 20000", 5, || numbers(20_000)),
    Shape {
        options: &["--max-log", "64KiB"],
        cap: Some(64 << 10),
        ..printing("capped", "seq 1 60000", 0, || numbers(60_000))
    },
    shape("endless", "echo up; exec sleep 300", OwnEnd::Never),
    shape("strays", "setsid sleep 301 & exec sleep 300", OwnEnd::Never),
    shape("stubborn", "trap '' TERM; while :; do sleep .05; done", OwnEnd::Never),
    printing("daemon", "(setsid sh -c 'sleep 302' >/dev/null 2>&1 &); echo started", 4, || b"started\n".to_vec()),
    printing("holder", "sleep 303 & echo kept", 2, || b"kept\n".to_vec()),
    printing("burst", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep .1 & done; wait; echo burst", 0, || {
        b"burst\n".to_vec()
    }),
    shape(
        "scatter",
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (setsid sleep 304 &); done; exec sleep 300",
        OwnEnd::Never,
    ),
    Shape {
        options: &["--stdin"],
        output: Some(|| b"got word\n".to_vec()),
        ..shape("reader", "read line; echo got $line", OwnEnd::OnceSent(8))
    },
    Shape { options: &["--pty"], ..printing("terminal", "echo a; sleep .05; echo b", 6, || b"a\r\nb\r\n".to_vec()) },
    Shape { options: &["--pty"], ..shape("prompt", "printf '? '; exec sleep 300", OwnEnd::Never) },
];

fn numbers(last: u32) -> Vec<u8> {
    (1..=last).map(|number| format!("{number}\n")).collect::<String>().into_bytes()
}
