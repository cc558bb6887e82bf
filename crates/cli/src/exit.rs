//! The one table of exit codes, and the failures that end a call with one of them.

use std::io;

use outlast::{Error, ErrorKind};
use outlast_core::ending::End;

/// Done; for a command, its own code 0.
pub const DONE: u8 = 0;
/// Not all are ok, the condition was not met, or something is still alive.
pub const NOT_ALL: u8 = 1;
/// The arguments cannot be understood.
pub const USAGE: u8 = 2;
/// Nothing of that name is known.
pub const UNKNOWN: u8 = 3;
/// A policy, a cap or a state forbids it.
pub const REFUSED: u8 = 4;
/// Nobody knows what became of the command (`EX_UNAVAILABLE` of sysexits.h).
pub const LOST: u8 = 69;
/// outlast itself failed (`EX_SOFTWARE`).
pub const INTERNAL: u8 = 70;
/// The command was demoted and still runs (`EX_TEMPFAIL`).
pub const DEMOTED: u8 = 75;
/// A limit ended the command, or the time of a wait was up; as timeout(1) has it.
pub const TIMED_OUT: u8 = 124;
/// The command was found and could not be started; as shells have it.
pub const CANNOT_START: u8 = 126;
/// The command was not found; as shells have it.
pub const NOT_FOUND: u8 = 127;
/// INT ended a waiting call of outlast itself.
pub const INTERRUPTED: u8 = 130;

/// The table for people, as the help shows it.
pub const TABLE: &str = "\
Exit codes:
  0    done; for run, and wait on one id: the command's own code 0, which one
       that was stopped may have, too: the text and --json say so
  1    wait: not all are ok, or --until was not met; stop: something is alive
  2    usage     3  unknown id  4  refused by a policy, a cap or a state
  69   nobody knows what became of the command     70  outlast itself failed
  75   run: the command moved to the background and still runs
  124  a limit ended the command; wait: the time was up
  126  cannot be started     127  not found     128+N  ended by signal N
  130  INT ended a waiting call; the command is untouched
  else the command's own code; --json tells all of them apart";

/// The number for the end of a command.
pub fn of_end(end: &End) -> u8 {
    let shown = |number: Option<i32>| number.and_then(|number| u8::try_from(number).ok()).unwrap_or(LOST);
    match end {
        End::TimedOut { .. } => TIMED_OUT,
        End::SpawnFailed { step, errno } if step == "exec" && errno == "ENOENT" => NOT_FOUND,
        End::SpawnFailed { .. } => CANNOT_START,
        End::Lost | End::Interrupted => LOST,
        End::Exited { .. } | End::Signaled { .. } | End::Stopped { .. } | End::Limit { .. } | End::Abandoned { .. } => {
            shown(end.exit_code())
        }
    }
}

/// Why a call did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The arguments make no sense; what is wrong with them.
    Usage(String),
    /// The library's own error.
    Runtime(Error),
    /// It was refused here; what happened and what to do.
    Refused(String),
    /// Nothing of that name is known; the name and where it was looked for.
    Unknown(String),
    /// Standard output, a file or the system failed.
    System(String, io::Error),
}

impl Failure {
    /// The same, with what became of the call before it.
    pub fn behind(self, what: &str) -> Failure {
        match self {
            Failure::Usage(text) => Failure::Usage(format!("{what}; {text}")),
            Failure::Runtime(error) => Failure::Runtime(error),
            Failure::Refused(text) => Failure::Refused(format!("{what}; {text}")),
            Failure::Unknown(text) => Failure::Unknown(format!("{what}; {text}")),
            Failure::System(text, error) => Failure::System(format!("{what}; {text}"), error),
        }
    }

    /// The same, with what to do where it was refused.
    pub fn followed(self, what: &str) -> Failure {
        match self {
            Failure::Refused(text) => Failure::Refused(format!("{text}; {what}")),
            other => other,
        }
    }

    /// The exit code that it ends the call with.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => USAGE,
            Failure::Refused(_) => REFUSED,
            Failure::Unknown(_) => UNKNOWN,
            // Nobody reads any more, and what was asked for has been done.
            Failure::System(_, error) if error.kind() == io::ErrorKind::BrokenPipe => DONE,
            Failure::System(..) => INTERNAL,
            Failure::Runtime(error) => match error.kind() {
                ErrorKind::Usage => USAGE,
                ErrorKind::Unknown => UNKNOWN,
                ErrorKind::Refused => REFUSED,
                ErrorKind::Cancelled | ErrorKind::Internal => INTERNAL,
            },
        }
    }

    /// What a person is told; nothing where nobody is left to be told.
    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Usage(text) | Failure::Refused(text) => Some(text.clone()),
            Failure::Unknown(text) => Some(format!("unknown: {text}")),
            Failure::System(_, error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Failure::System(what, error) => Some(format!("{what}: {error}")),
            Failure::Runtime(error) => Some(of_runtime(error)),
        }
    }
}

/// Ids that a refusal by the cap names.
const CAP_IDS: usize = 8;

fn of_runtime(error: &Error) -> String {
    match error {
        Error::Cap { reason, running } => {
            let shown: Vec<String> = running.iter().take(CAP_IDS).map(ToString::to_string).collect();
            let more = match running.len().saturating_sub(CAP_IDS) {
                0 => String::new(),
                more => format!(" and {more} more (`outlast ps`)"),
            };
            if shown.is_empty() { reason.clone() } else { format!("{reason}; running: {}{more}", shown.join(", ")) }
        }
        Error::OthersWait { id, others } => {
            format!("{others} others wait for {id}, so it was not stopped; --force stops it for all of them")
        }
        error if error.kind() == ErrorKind::Unknown => format!("unknown: {error}"),
        error => error.to_string(),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Runtime(error)
    }
}

/// What a verb answers: the exit code, or why it did not do it.
pub type Answer = Result<u8, Failure>;

#[cfg(test)]
mod tests {
    use outlast_core::ending::{Clock, Fact, Resource};

    use super::*;

    fn spawn_failed(step: &str, errno: &str) -> End {
        End::SpawnFailed { step: step.into(), errno: errno.into() }
    }

    /// Covers: U5
    #[test]
    fn u5_one_number_for_each_kind_of_end() {
        let term = Some(Fact::Signaled(15));
        for (end, code) in [
            (End::Exited { code: 0 }, 0),
            (End::Exited { code: 255 }, 255),
            (End::Signaled { signal: 9 }, 137),
            (End::TimedOut { clock: Clock::Idle, fact: term }, 124),
            (End::Stopped { by: "model".into(), fact: term }, 143),
            (End::Stopped { by: "model".into(), fact: None }, 69),
            (End::Limit { resource: Resource::Memory, fact: Some(Fact::Signaled(9)) }, 137),
            (spawn_failed("exec", "ENOENT"), 127),
            (spawn_failed("exec", "EACCES"), 126),
            (spawn_failed("cwd", "ENOENT"), 126),
            (End::Abandoned { fact: term }, 143),
            (End::Lost, 69),
            (End::Interrupted, 69),
        ] {
            assert_eq!(of_end(&end), code, "{end:?}");
            // The number in JSON is the same one, where there is one.
            if let Some(shown) = end.exit_code() {
                assert_eq!(shown, i32::from(code), "{end:?}");
            }
        }
    }

    /// Covers: U5
    #[test]
    fn u5_failures_of_outlast_have_their_own_numbers() {
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        for (failure, code) in [
            (Failure::Usage("x".into()), 2),
            (Failure::Unknown("w9".into()), 3),
            (Failure::Refused("x".into()), 4),
            (Failure::Runtime(Error::Refused("x".into())), 4),
            (Failure::Runtime(Error::Cap { reason: "x".into(), running: vec![] }), 4),
            (Failure::Runtime(Error::Usage("x".into())), 2),
            (Failure::Runtime(Error::Unreachable("x".into())), 70),
            (Failure::System("x".into(), full), 70),
            (Failure::System("x".into(), broken), 0),
        ] {
            assert_eq!(failure.code(), code, "{failure:?}");
            assert_eq!(failure.message().is_none(), code == 0, "{failure:?}");
        }
    }

    #[test]
    fn the_table_has_every_number() {
        for code in [NOT_ALL, USAGE, UNKNOWN, REFUSED, LOST, INTERNAL, DEMOTED, TIMED_OUT, CANNOT_START, INTERRUPTED] {
            let found = TABLE.split_whitespace().any(|word| word == code.to_string());
            assert!(found, "{code}");
        }
        assert!(TABLE.lines().all(|line| line.chars().count() <= 80), "the table is too wide");
    }
}
