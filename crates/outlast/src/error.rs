//! Everything that can go wrong, with what happened, to which path or process, and what to do.

use std::path::PathBuf;

use outlast_core::id::{CommandId, SessionId};
use outlast_host::dir::FileError;

/// What kind of failure it is; the command line makes its exit code of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The call makes no sense as it was made.
    Usage,
    /// Nothing of that name is known.
    Unknown,
    /// A rule, a cap or a policy forbids it.
    Refused,
    /// The caller raised its cancel before anything was started.
    Cancelled,
    /// The fault is not the caller's.
    Internal,
}

/// A call that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A prefix that fits more than one command.
    #[error("{given} fits {} commands: {}; give more of the id", matches.len(), list(matches))]
    Ambiguous {
        /// The prefix as it was given.
        given: String,
        /// The commands that it fits.
        matches: Vec<CommandId>,
    },
    /// No command of that name in the session.
    #[error("no command {given} in session {session}; `ps -a` lists what there is")]
    Unknown {
        /// The name as it was given.
        given: String,
        /// Where it was looked for.
        session: SessionId,
    },
    /// No command of that id in any session of the state directory.
    #[error("no command {given} in any session of {}", state_dir.display())]
    UnknownAnywhere {
        /// The id as it was given.
        given: String,
        /// Where it was looked for.
        state_dir: PathBuf,
    },
    /// No session of that name in the state directory.
    #[error("no session {given} in {}", state_dir.display())]
    UnknownSession {
        /// The name as it was given.
        given: String,
        /// Where it was looked for.
        state_dir: PathBuf,
    },
    /// A command of an earlier session of the same context: it can be read, not acted on.
    #[error("{id} belongs to an earlier session ({session}): {known}")]
    EarlierSession {
        /// The command.
        id: CommandId,
        /// Its session.
        session: SessionId,
        /// What is known of it, in words.
        known: String,
    },
    /// The session was ended.
    #[error("session {session} was ended by {by}; start or resume another one")]
    SessionClosed {
        /// The session.
        session: SessionId,
        /// Who ended it.
        by: String,
    },
    /// The process that bounds the session is gone.
    #[error("the process {pid} that session {session} was anchored on is gone; start or resume another session")]
    AnchorGone {
        /// The session.
        session: SessionId,
        /// The anchor.
        pid: u32,
    },
    /// Another process owns the session.
    #[error("session {session} is owned by {holder}; it can be adopted once that process is gone")]
    Owned {
        /// The session.
        session: SessionId,
        /// The owner as far as it is known.
        holder: String,
    },
    /// The cap on running commands is reached.
    #[error("{reason}")]
    Cap {
        /// What happened and what to do.
        reason: String,
        /// What runs.
        running: Vec<CommandId>,
    },
    /// Records cannot be made and the call needs them.
    #[error("{0}")]
    NoRecords(String),
    /// A stop that would end the command for others who wait for it, and that was not forced; nothing was done.
    #[error("{others} others wait for {id}, so it was not stopped; with force it is stopped for all of them")]
    OthersWait {
        /// The command.
        id: CommandId,
        /// How many, without the one who asked.
        others: u32,
    },
    /// Refused by a rule; the text says which.
    #[error("{0}")]
    Refused(String),
    /// The cancel was raised before the command was started; nothing ran.
    #[error("cancelled before the command was started; nothing ran")]
    Cancelled,
    /// A command that was declared to run to its end here was moved to the background all the same.
    #[error("{id} was moved to the background although its caller cannot be told of its end; it still runs")]
    DemotedUnasked {
        /// The command.
        id: CommandId,
    },
    /// A keeper or supervisor could not be started or reached.
    #[error("{0}")]
    Unreachable(String),
    /// A process did not answer within its bound.
    #[error(
        "{what} did not answer within {bound_ms} ms; if process {pid} is stopped, `kill -CONT {pid}` lets it go on"
    )]
    Silent {
        /// What was asked, in words.
        what: String,
        /// The process.
        pid: u32,
        /// The bound in milliseconds.
        bound_ms: u64,
    },
    /// An answer that makes no sense: the other side is of another version, or broken.
    #[error("{0}")]
    Protocol(String),
    /// Records of a command that cannot be understood.
    #[error("the records of {id} are damaged: {reason}")]
    Damaged {
        /// The command.
        id: CommandId,
        /// What is wrong, with the path.
        reason: String,
    },
    /// A file of the state directory.
    #[error(transparent)]
    File(#[from] FileError),
    /// The system refused something that has no path.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Usage(_) | Error::Ambiguous { .. } => ErrorKind::Usage,
            Error::Unknown { .. } | Error::UnknownAnywhere { .. } | Error::UnknownSession { .. } => ErrorKind::Unknown,
            Error::EarlierSession { .. }
            | Error::SessionClosed { .. }
            | Error::AnchorGone { .. }
            | Error::Owned { .. }
            | Error::Cap { .. }
            | Error::NoRecords(_)
            | Error::OthersWait { .. }
            | Error::Refused(_) => ErrorKind::Refused,
            Error::Cancelled => ErrorKind::Cancelled,
            Error::DemotedUnasked { .. }
            | Error::Unreachable(_)
            | Error::Silent { .. }
            | Error::Protocol(_)
            | Error::Damaged { .. }
            | Error::File(_)
            | Error::System { .. } => ErrorKind::Internal,
        }
    }

    /// Whether it says nothing about what was asked for, because that could not be looked at now: it must never
    /// pass for an absence, an end or a damage.
    pub(crate) fn is_unknown(&self) -> bool {
        match self {
            Error::File(error) => error.is_unknown(),
            Error::System { .. } => true,
            _ => false,
        }
    }

    /// Whether it is that nothing can be written there now.
    pub(crate) fn is_unwritable(&self) -> bool {
        matches!(self, Error::File(error) if error.is_unwritable())
    }

    pub(crate) fn system(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Error::System { what: what.into(), source: source.into() }
    }
}

/// At most so many ids are named.
const MOST_IDS: usize = 8;

fn list(ids: &[CommandId]) -> String {
    let named: Vec<String> = ids.iter().take(MOST_IDS).map(ToString::to_string).collect();
    let more = match ids.len().saturating_sub(MOST_IDS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
