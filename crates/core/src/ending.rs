//! How a command ended: an enum that owns its facts, and the numbers it is rendered as.

use serde::{Deserialize, Serialize};

/// What the kernel said about a reaped leader (wait(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// It called exit with this code, 0 to 255.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
}

impl Fact {
    /// The shell's number for it: the code, else 128 + signal.
    pub fn number(self) -> i32 {
        match self {
            Fact::Exited(code) => code,
            Fact::Signaled(signal) => 128 + signal,
        }
    }
}

/// The clock that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `--limit`: the time since the start.
    Wall,
    /// `--idle-limit`: the time since the last byte of output.
    Idle,
    /// The time to live of a detached command.
    Ttl,
}

/// The resource whose bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Memory of the whole tree.
    Memory,
    /// Number of processes of the tree.
    Pids,
    /// Size of a file (SIGXFSZ).
    FileSize,
    /// Processor time (SIGXCPU).
    Cpu,
    /// Bytes of output, where the policy is to stop at the cap.
    Output,
}

/// `by` of a command that was stopped because its owner vanished and no other came.
pub const BY_OWNER_GONE: &str = "owner_gone";
/// `by` of a command whose supervisor was killed.
pub const BY_SUPERVISOR_LOST: &str = "supervisor_lost";
/// `by` of a command that its session's end discarded.
pub const BY_SESSION_END: &str = "session_end";

/// How a command ended. Stored and shown in one shape, [`EndObject`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "EndObject", try_from = "EndObject")]
pub enum End {
    /// By itself, with a code.
    Exited {
        /// 0 to 255.
        code: i32,
    },
    /// By a signal that was not ours.
    Signaled {
        /// Number of the signal.
        signal: i32,
    },
    /// Stopped because a clock ran out.
    TimedOut {
        /// Which clock.
        clock: Clock,
        /// What the kernel said of the leader.
        fact: Option<Fact>,
    },
    /// Stopped by somebody.
    Stopped {
        /// The consumer who asked, or one of the `BY_` words.
        by: String,
        /// What the kernel said of the leader.
        fact: Option<Fact>,
    },
    /// Ended because a resource bound was reached.
    Limit {
        /// Which bound.
        resource: Resource,
        /// What the kernel said of the leader.
        fact: Option<Fact>,
    },
    /// Never started.
    SpawnFailed {
        /// The step that failed: `exec`, `cwd`, …
        step: String,
        /// Name of the error: `ENOENT`, …
        errno: String,
    },
    /// Discarded by the end of its session.
    Abandoned {
        /// What the kernel said of the leader.
        fact: Option<Fact>,
    },
    /// Nobody can know: its supervisor vanished without an exit record.
    Lost,
    /// An in-process task whose owner died.
    Interrupted,
}

impl End {
    /// What the kernel said, where anybody heard it.
    pub fn fact(&self) -> Option<Fact> {
        match self {
            End::Exited { code } => Some(Fact::Exited(*code)),
            End::Signaled { signal } => Some(Fact::Signaled(*signal)),
            End::TimedOut { fact, .. }
            | End::Stopped { fact, .. }
            | End::Limit { fact, .. }
            | End::Abandoned { fact } => *fact,
            End::SpawnFailed { .. } | End::Lost | End::Interrupted => None,
        }
    }

    /// The number that the command line ends with; none where no number is known.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            End::TimedOut { .. } => Some(124),
            End::SpawnFailed { step, errno } => Some(if step == "exec" && errno == "ENOENT" { 127 } else { 126 }),
            End::Lost | End::Interrupted => None,
            End::Exited { .. }
            | End::Signaled { .. }
            | End::Stopped { .. }
            | End::Limit { .. }
            | End::Abandoned { .. } => self.fact().map(Fact::number),
        }
    }

    /// Whether this end is the one that counts as `ok`; record errors are held against it elsewhere.
    pub fn is_clean(&self) -> bool {
        *self == End::Exited { code: 0 }
    }

    /// The word of the kind, as it stands in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            End::Exited { .. } => "exited",
            End::Signaled { .. } => "signaled",
            End::TimedOut { .. } => "timed_out",
            End::Stopped { .. } => "stopped",
            End::Limit { .. } => "limit",
            End::SpawnFailed { .. } => "spawn_failed",
            End::Abandoned { .. } => "abandoned",
            End::Lost => "lost",
            End::Interrupted => "interrupted",
        }
    }
}

/// The JSON shape of an end: every key is always there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndObject {
    /// The word of the kind.
    pub kind: String,
    /// The exit code that the kernel reported.
    pub code: Option<i32>,
    /// The signal that the kernel reported, its name without SIG.
    pub signal: Option<String>,
    /// What exactly: `wall`, `memory`, `exec: ENOENT`, …
    pub detail: Option<String>,
    /// Who stopped it.
    pub by: Option<String>,
}

impl From<End> for EndObject {
    fn from(end: End) -> Self {
        let (code, signal) = match end.fact() {
            Some(Fact::Exited(code)) => (Some(code), None),
            Some(Fact::Signaled(signal)) => (None, Some(signal_name(signal))),
            None => (None, None),
        };
        let detail = match &end {
            End::TimedOut { clock, .. } => Some(clock_word(*clock).to_owned()),
            End::Limit { resource, .. } => Some(resource_word(*resource).to_owned()),
            End::SpawnFailed { step, errno } => Some(format!("{step}: {errno}")),
            _ => None,
        };
        let kind = end.kind().to_owned();
        let by = match end {
            End::Stopped { by, .. } => Some(by),
            End::Abandoned { .. } => Some(BY_SESSION_END.to_owned()),
            _ => None,
        };
        EndObject { kind, code, signal, detail, by }
    }
}

impl TryFrom<EndObject> for End {
    type Error = String;

    fn try_from(object: EndObject) -> Result<Self, String> {
        let fact = match (object.code, &object.signal) {
            (Some(code), _) => Some(Fact::Exited(code)),
            (None, Some(name)) => {
                Some(Fact::Signaled(signal_number(name).ok_or_else(|| format!("unknown signal {name}"))?))
            }
            (None, None) => None,
        };
        let detail = object.detail.as_deref().unwrap_or("");
        Ok(match (object.kind.as_str(), fact) {
            ("exited", Some(Fact::Exited(code))) => End::Exited { code },
            ("signaled", Some(Fact::Signaled(signal))) => End::Signaled { signal },
            ("timed_out", fact) => End::TimedOut { clock: clock_from(detail)?, fact },
            ("stopped", fact) => End::Stopped { by: object.by.unwrap_or_default(), fact },
            ("limit", fact) => End::Limit { resource: resource_from(detail)?, fact },
            ("spawn_failed", _) => {
                let (step, errno) = detail.split_once(": ").unwrap_or((detail, ""));
                End::SpawnFailed { step: step.to_owned(), errno: errno.to_owned() }
            }
            ("abandoned", fact) => End::Abandoned { fact },
            ("lost", _) => End::Lost,
            ("interrupted", _) => End::Interrupted,
            (kind, _) => return Err(format!("an end of kind {kind:?} without its facts")),
        })
    }
}

/// The word of a clock in `detail`.
pub fn clock_word(clock: Clock) -> &'static str {
    match clock {
        Clock::Wall => "wall",
        Clock::Idle => "idle",
        Clock::Ttl => "ttl",
    }
}

fn clock_from(word: &str) -> Result<Clock, String> {
    [Clock::Wall, Clock::Idle, Clock::Ttl]
        .into_iter()
        .find(|clock| clock_word(*clock) == word)
        .ok_or_else(|| format!("unknown clock {word:?}"))
}

/// The word of a resource in `detail`.
pub fn resource_word(resource: Resource) -> &'static str {
    match resource {
        Resource::Memory => "memory",
        Resource::Pids => "pids",
        Resource::FileSize => "file_size",
        Resource::Cpu => "cpu",
        Resource::Output => "output",
    }
}

fn resource_from(word: &str) -> Result<Resource, String> {
    [Resource::Memory, Resource::Pids, Resource::FileSize, Resource::Cpu, Resource::Output]
        .into_iter()
        .find(|resource| resource_word(*resource) == word)
        .ok_or_else(|| format!("unknown resource {word:?}"))
}

/// Names of signals 1 to 31 without SIG (signal(7), the numbers of x86 and ARM).
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

/// The name of a signal without SIG; real-time signals are `RTMIN+n` counted from 34 (signal(7)).
pub fn signal_name(number: i32) -> String {
    match usize::try_from(number - 1).ok().and_then(|index| SIGNALS.get(index)) {
        Some(name) => (*name).to_owned(),
        None => format!("RTMIN+{}", number - 34),
    }
}

/// The number of a signal given as `TERM`, `SIGTERM`, `RTMIN+1` or a number, in any letter case.
pub fn signal_number(text: &str) -> Option<i32> {
    let upper = text.trim().to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Ok(number) = name.parse::<i32>() {
        return (1..=64).contains(&number).then_some(number);
    }
    if let Some(offset) = name.strip_prefix("RTMIN+") {
        return offset.parse::<i32>().ok().map(|n| n + 34).filter(|n| (34..=64).contains(n));
    }
    let index = SIGNALS.iter().position(|known| *known == name)?;
    i32::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<(End, Option<i32>, &'static str)> {
        let term = Some(Fact::Signaled(15));
        vec![
            (End::Exited { code: 137 }, Some(137), "exited"),
            (End::Signaled { signal: 9 }, Some(137), "signaled"),
            (End::TimedOut { clock: Clock::Wall, fact: Some(Fact::Exited(0)) }, Some(124), "timed_out"),
            (End::Stopped { by: "model".into(), fact: term }, Some(143), "stopped"),
            (End::Limit { resource: Resource::Memory, fact: Some(Fact::Signaled(9)) }, Some(137), "limit"),
            (End::SpawnFailed { step: "exec".into(), errno: "ENOENT".into() }, Some(127), "spawn_failed"),
            (End::SpawnFailed { step: "cwd".into(), errno: "ENOENT".into() }, Some(126), "spawn_failed"),
            (End::Abandoned { fact: term }, Some(143), "abandoned"),
            (End::Lost, None, "lost"),
            (End::Interrupted, None, "interrupted"),
        ]
    }

    /// Covers: P6, D4, U5
    #[test]
    fn p6_facts_first_then_the_number() {
        for (end, number, kind) in all() {
            assert_eq!(end.exit_code(), number, "{end:?}");
            assert_eq!(end.kind(), kind);
            let json = serde_json::to_string(&end).expect("an end is plain data");
            assert_eq!(serde_json::from_str::<End>(&json).expect("its own shape"), end, "{json}");
        }
    }

    /// Covers: D5
    #[test]
    fn d5_only_exit_zero_is_clean() {
        assert!(End::Exited { code: 0 }.is_clean());
        assert!(!End::TimedOut { clock: Clock::Wall, fact: Some(Fact::Exited(0)) }.is_clean());
        assert!(!End::Exited { code: 1 }.is_clean());
    }

    #[test]
    fn signals_have_names_both_ways() {
        for number in 1..=64 {
            if number != 32 && number != 33 {
                assert_eq!(signal_number(&signal_name(number)), Some(number));
            }
        }
        assert_eq!(signal_number("sigterm"), Some(15));
        assert_eq!(signal_number("0"), None);
        assert_eq!(signal_number("NOPE"), None);
    }
}
