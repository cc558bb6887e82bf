//! What an operator decides about the server, and where it stands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use outlast_core::id::SessionId;

use crate::config::Bounds;
use crate::host::Surroundings;

/// The grace of a run that asks for none.
pub const GRACE: Duration = Duration::from_secs(45);

/// The longest grace: Claude Code moves a call to its own background after 120 s.
pub const LONGEST_GRACE: Duration = Duration::from_secs(110);

/// Where the session comes from.
#[derive(Clone, Debug)]
pub enum Place {
    /// It is the session of the agent host around this process.
    Host(Surroundings),
    /// It is this one, whoever calls.
    Named(SessionId),
    /// It is the server's own, which is found again by this context after a restart; a call may name another one.
    Own {
        /// The context.
        context: String,
    },
}

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the session comes from.
    pub place: Place,
    /// The environment that commands inherit, already made ready for them.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory of a command that names none.
    pub cwd: PathBuf,
    /// The soft limit of open files that commands get; none where this process has not raised its own.
    pub open_files: Option<u64>,
    /// The operator's bounds.
    pub bounds: Bounds,
    /// The longest call that the client allows, where the operator knows better than the table.
    pub longest_call: Option<Duration>,
    /// Whether commands stay in the foreground: no grace, no background start, no tools but `run`.
    pub foreground_only: bool,
}

impl Settings {
    /// The grace of a run that asks for this one: never longer than clients wait.
    pub fn grace(&self, asked: Option<Duration>) -> Option<Duration> {
        let grace = asked.or(self.bounds.grace).unwrap_or(GRACE).min(LONGEST_GRACE);
        (!self.foreground_only).then_some(grace)
    }
}

impl Settings {
    /// A server with a session of its own, everything else at its default.
    pub fn own(context: &str, cwd: PathBuf, environment: Vec<(OsString, OsString)>) -> Settings {
        Settings {
            place: Place::Own { context: context.to_owned() },
            environment,
            cwd,
            open_files: None,
            bounds: Bounds::default(),
            longest_call: None,
            foreground_only: false,
        }
    }
}
