//! What happens to a command in the foreground, as its caller hears it.

use std::time::Duration;

use outlast_core::id::Alias;
use outlast_core::record::ProcessMark;
use outlast_core::wire::DemotedBy;

use crate::command::Command;
use crate::finished::Finished;
use crate::output::Stream;

/// What a demotion says.
#[derive(Clone, Debug)]
pub struct Demotion {
    /// The handle from now on.
    pub command: Command,
    /// Its number.
    pub alias: Alias,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// Why.
    pub by: DemotedBy,
    /// Record errors so far.
    pub errors: Vec<String>,
    /// Whether its caller joined it when it was there already.
    pub joined: bool,
    /// What the policies made of its start, one line each.
    pub remarks: Vec<String>,
}

/// What happens to a command in the foreground.
#[derive(Debug)]
pub enum RunEvent {
    /// The leader runs.
    Started {
        /// The leader.
        leader: ProcessMark,
        /// Unix time in milliseconds.
        at_ms: u64,
    },
    /// Output came; only for a request with `follow`.
    Output {
        /// Its stream.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Output was dropped by the log's cap before it could be passed on.
    OutputGap {
        /// How many bytes.
        bytes: u64,
    },
    /// It runs in the background from now on; no event follows.
    Demoted(Demotion),
    /// What was sent into its standard input was written there, or why not.
    InputTaken {
        /// Why it was not delivered, if so.
        refused: Option<String>,
    },
    /// It could not be demoted because records cannot be made; it goes on in the foreground.
    NotDemoted {
        /// What happened and to which path.
        reason: String,
    },
    /// It ended, and all its output was passed on; no event follows.
    Ended(Box<Finished>),
}

/// How far a command in the foreground is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How long it has been waited for.
    pub elapsed: Duration,
    /// How long that can take at most: its grace; none where it has none.
    pub total: Option<Duration>,
    /// The first 60 characters of its command line.
    pub label: String,
}

/// Characters of a command line that progress shows.
pub(crate) const LABEL_CHARACTERS: usize = 60;
