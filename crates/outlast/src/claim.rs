//! Claiming the telling of one end, so that a reply tells it once and says so where it was told before.

use outlast_core::delivery::{LeaseOutcome, Subject, Via};
use outlast_core::id::CommandId;

use crate::command::Command;
use crate::deliver::{Completion, CompletionGuard, check_consumer, is_due};
use crate::error::{Error, Result};
use crate::ledger;
use crate::session::Session;

/// What came of claiming the telling of an end.
pub enum Claim {
    /// It is told by whoever holds this, once that is committed.
    Ours(Box<CompletionGuard>),
    /// It was told before, by this way where the ledger still has it.
    Before {
        /// The delivery that consumed it.
        via: Option<Via>,
    },
    /// Somebody who lives is telling it at this moment.
    Elsewhere,
    /// It is no completion: it ended in the foreground, or has not ended.
    NotDue,
    /// That it is told cannot be recorded, so it will be told again.
    Unrecorded {
        /// Why not.
        reason: String,
    },
}

impl Session {
    /// Claims the telling of the end of one command, of this session or an earlier one of its context, for this
    /// consumer. Nothing is told before the guard is committed; dropping it offers the end again.
    pub async fn claim(&self, consumer: &str, id: &CommandId) -> Result<Claim> {
        check_consumer(consumer)?;
        let Some(session) = self.session_of(*id).await? else {
            return Err(Error::Unknown { given: id.to_string(), session: *self.id() });
        };
        let snapshot = Command { session: session.clone(), id: *id }.brief().await?;
        if !is_due(&snapshot) {
            return Ok(Claim::NotDue);
        }
        let subject = Subject { id: *id, alias: snapshot.alias };
        let claim = ledger::new_claim(&session)?;
        match ledger::lease(session.dir()?, consumer, subject, &claim) {
            Ok(LeaseOutcome::Taken { redelivered }) => {
                let completion = Completion::new(snapshot, redelivered, &session);
                Ok(Claim::Ours(Box::new(CompletionGuard::new(completion, session, consumer, claim))))
            }
            Ok(LeaseOutcome::HeldBy(_)) => Ok(Claim::Elsewhere),
            Ok(LeaseOutcome::AlreadyTold { via }) => Ok(Claim::Before { via }),
            Err(error) if error.is_unwritable() => Ok(Claim::Unrecorded { reason: error.to_string() }),
            Err(error) => Err(error),
        }
    }

    /// The session that has the records of a command: this one, an earlier one of its context, or a child that is gone.
    pub(crate) async fn session_of(&self, id: CommandId) -> Result<Option<Session>> {
        if self.dir()?.command(id)?.is_some() {
            return Ok(Some(self.clone()));
        }
        for session in self.predecessors().await?.into_iter().chain(self.inherited().await?) {
            if session.dir()?.command(id)?.is_some() {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }
}
