//! The commands that are run while somebody is killed, and how each may end by itself.

/// One kind of command.
pub struct Shape {
    pub name: &'static str,
    /// Options of its own.
    pub options: &'static [&'static str],
    /// The shell line.
    pub line: &'static str,
    /// The exit code that it ends with by itself; none where it would go on.
    pub code: Option<i64>,
    /// The output that it has when it ended by itself, where that is worth a look.
    pub output: Option<fn() -> Vec<u8>>,
}

/// All kinds.
pub const SHAPES: [Shape; 10] = [
    Shape { name: "true", options: &[], line: "exec true", code: Some(0), output: None },
    Shape { name: "fails", options: &[], line: "echo out; exit 3", code: Some(3), output: Some(|| b"out\n".to_vec()) },
    Shape {
        name: "short",
        options: &[],
        line: "echo a; sleep .15; echo b",
        code: Some(0),
        output: Some(|| b"a\nb\n".to_vec()),
    },
    Shape { name: "loud", options: &[], line: "seq 1 20000; exit 5", code: Some(5), output: Some(numbers) },
    Shape { name: "endless", options: &[], line: "echo up; exec sleep 300", code: None, output: None },
    Shape { name: "strays", options: &[], line: "setsid sleep 301 & exec sleep 300", code: None, output: None },
    Shape {
        name: "stubborn",
        options: &[],
        line: "trap '' TERM; while :; do sleep .05; done",
        code: None,
        output: None,
    },
    Shape {
        name: "daemon",
        options: &[],
        line: "(setsid sh -c 'sleep 302' >/dev/null 2>&1 &); echo started; exit 4",
        code: Some(4),
        output: Some(|| b"started\n".to_vec()),
    },
    Shape {
        name: "terminal",
        options: &["--pty"],
        line: "echo a; sleep .05; echo b; exit 6",
        code: Some(6),
        output: Some(|| b"a\r\nb\r\n".to_vec()),
    },
    Shape { name: "prompt", options: &["--pty"], line: "printf '? '; exec sleep 300", code: None, output: None },
];

fn numbers() -> Vec<u8> {
    crate::support::seq(1, 20000).into_bytes()
}
