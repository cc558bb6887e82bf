//! How the commands of a session came out, in numbers.

use outlast_core::ending::End;
use outlast_core::record::Phase;

use crate::error::Result;
use crate::hub::Failures;
use crate::observe::Outturn;
use crate::session::Session;
use crate::snapshot::Snapshot;

/// The commands of a session that have records, each counted once, whoever waited for it. One that ended in the
/// foreground leaves no records and is in none of these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Those that run, and those that are being stopped.
    pub running: u64,
    /// Those that ended with success.
    pub ok: u64,
    /// Those that were stopped, or ended with their session, whatever they made of that.
    pub stopped: u64,
    /// Those that came to nothing.
    pub failures: Failures,
    /// Those of which nobody knows how they ended: lost and interrupted ones.
    pub unknown: u64,
}

impl Totals {
    /// All commands.
    pub fn commands(&self) -> u64 {
        self.running + self.ok + self.stopped + self.failures.timeouts + self.failures.commands + self.unknown
    }

    fn add(&mut self, snapshot: &Snapshot) {
        match (&snapshot.phase, &snapshot.end) {
            (Phase::Ended, Some(End::Lost | End::Interrupted) | None) => self.unknown += 1,
            (Phase::Ended, Some(end)) => match Outturn::of(end, snapshot.ok == Some(true)) {
                Outturn::Ended => self.ok += 1,
                Outturn::Stopped => self.stopped += 1,
                Outturn::Failed => self.failures.add(end),
            },
            _ => self.running += 1,
        }
    }
}

impl Session {
    /// Counts its commands by how they came out.
    pub async fn totals(&self) -> Result<Totals> {
        let mut totals = Totals::default();
        self.list(true).await?.iter().for_each(|snapshot| totals.add(snapshot));
        Ok(totals)
    }
}
