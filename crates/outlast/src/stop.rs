//! Acting on commands: stop, signal, input.

use std::time::Duration;

use outlast_core::record::Survivor;

use crate::error::Result;
use crate::inspect::Command;
use crate::snapshot::Snapshot;
use crate::session::Session;

/// How to stop.
#[derive(Clone, Debug, Default)]
pub struct StopOptions {
    /// The consumer who asks.
    pub by: String,
    /// The time between the first signal and KILL; none means the command's own.
    pub grace: Option<Duration>,
    /// The first signal in place of TERM.
    pub signal: Option<i32>,
}

/// What a stop did, verified.
#[derive(Clone, Debug)]
pub struct StopOutcome {
    /// The command after the stop.
    pub snapshot: Snapshot,
    /// Rounds of signals sent to the tree.
    pub signals: u32,
    /// Whether it had ended before.
    pub already_ended: bool,
    /// Whether nothing of the tree is left.
    pub verified: bool,
    /// Survivors of an ended command that this stop ended.
    pub ended_survivors: Vec<Survivor>,
    /// What is still alive.
    pub alive: Vec<Survivor>,
    /// What else there is to say.
    pub note: Option<String>,
}

impl Command {
    /// Stops the whole tree and answers when that is verified or its bound is over.
    pub async fn stop(&self, options: StopOptions) -> Result<StopOutcome> {
        todo!()
    }

    /// Sends one signal to the command's group; not a stop.
    pub async fn signal(&self, signal: i32) -> Result<()> {
        todo!()
    }

    /// Writes bytes into the command's standard input; refused where that is not open.
    pub async fn send(&self, bytes: &[u8]) -> Result<()> {
        todo!()
    }

    /// Closes the command's standard input once what was sent before is written.
    pub async fn close_input(&self) -> Result<()> {
        todo!()
    }
}

impl Session {
    /// Stops every command of the session and every survivor, detached ones only if asked.
    pub async fn stop_all(&self, options: StopOptions, detached: bool) -> Result<Vec<StopOutcome>> {
        todo!()
    }
}
