//! What became of the commands of an earlier session, said once.

use outlast_core::id::SessionId;

use crate::error::Result;
use crate::snapshot::Snapshot;
use crate::runtime::Runtime;
use crate::session::{Session, SessionOptions};

/// Which session to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predecessor {
    /// This one.
    Session(SessionId),
    /// The last one of this context.
    Context(String),
}

/// What became of the commands of one session, each in exactly one group, by id.
#[derive(Clone, Debug, Default)]
pub struct ReconcileReport {
    /// The session that was looked at.
    pub session: Option<SessionId>,
    /// The id of the report of lost work; none where nothing was lost.
    pub report: Option<String>,
    /// Ended while nobody was there to be told.
    pub ended: Vec<Snapshot>,
    /// Ended because their owner or session went.
    pub killed: Vec<Snapshot>,
    /// Nobody knows: newly found by this reconciliation.
    pub lost: Vec<Snapshot>,
    /// Still running.
    pub running: Vec<Snapshot>,
    /// Could not be decided now; the next resume tries again.
    pub deferred: Vec<String>,
    /// The lowest trust over the lost work.
    pub trust: Option<String>,
    /// What went wrong on the way, one line each.
    pub notes: Vec<String>,
}

impl Runtime {
    /// Makes a session that follows an earlier one, and says what became of that one's commands.
    /// Whatever is wrong with the earlier one is a note, not an error.
    pub async fn resume(
        &self,
        predecessor: &Predecessor,
        options: SessionOptions,
        consumer: &str,
    ) -> Result<(Session, ReconcileReport)> {
        todo!()
    }

    /// Says what became of the commands of a session, and finishes those that nobody can finish any
    /// more. `by` is the session on whose behalf.
    pub async fn reconcile(
        &self,
        session: &SessionId,
        by: Option<&SessionId>,
        consumer: &str,
    ) -> Result<ReconcileReport> {
        todo!()
    }
}
