//! Waiting for commands: for their end, for output that matches, for quiet. Holds no thread, polls nothing.

use std::time::Duration;

use crate::deliver::Told;
use crate::error::Result;
use crate::inspect::Command;
use crate::snapshot::Snapshot;
use crate::session::Session;

/// What is waited for.
#[derive(Clone, Debug, Default)]
pub enum Until {
    /// The end.
    #[default]
    Exit,
    /// A line of output (its beginning included) that matches; what is there already counts.
    Output(regex::bytes::Regex),
    /// No byte of output for so long.
    Quiet(Duration),
}

/// How to wait.
#[derive(Clone, Debug, Default)]
pub struct WaitOptions {
    /// Whether the first one is enough.
    pub any: bool,
    /// The bound; none means no bound, zero looks once.
    pub timeout: Option<Duration>,
    /// What is waited for.
    pub until: Until,
    /// The consumer that is told the ends by this wait: committed for it before the wait returns.
    pub consumer: Option<String>,
}

/// Why a wait came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// What was waited for has come: the end, or the condition.
    Met,
    /// The command ended before the condition held.
    EndedBefore,
    /// The bound was reached.
    Bound,
    /// There was nothing to wait for.
    Nothing,
}

/// One command of a wait.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The command now.
    pub snapshot: Snapshot,
    /// Whether the condition held for this command.
    pub met: bool,
    /// What the ledger says, where its end was told to a consumer.
    pub told: Option<Told>,
}

/// How a wait came out.
#[derive(Clone, Debug)]
pub struct WaitReport {
    /// Why it came back.
    pub end: WaitEnd,
    /// How long it really waited.
    pub waited: Duration,
    /// Every command that was waited for, in the order given.
    pub commands: Vec<Waited>,
    /// Index in `commands` of the first for which it was met.
    pub first: Option<usize>,
}

impl Session {
    /// Waits for commands of this session or, by their full ids, of any other. No command means all
    /// that run. Cancel-safe: dropping it leaves nothing behind.
    pub async fn wait(&self, commands: &[Command], options: WaitOptions) -> Result<WaitReport> {
        todo!()
    }
}
