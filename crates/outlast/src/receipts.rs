//! What commands changed: leased as a copy, consumed once by each consumer.

use std::path::PathBuf;

use outlast_core::id::CommandId;
use outlast_core::receipt::Change;
use outlast_core::record::Phase;
use outlast_host::store::ledger as stored;

use crate::command::Command;
use crate::deliver::{check_consumer, is_due};
use crate::error::{Error, Result};
use crate::hide;
use crate::ledger;
use crate::session::Session;
use crate::snapshot::Snapshot;

/// What one command said it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipts {
    /// The command.
    pub id: CommandId,
    /// The directory that its paths belong to: the working directory of the command.
    pub root: PathBuf,
    /// What was changed; empty where nothing is known to have been, or where it was consumed.
    pub changes: Vec<Change>,
}

/// A look at the receipts of a command, which consumes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptLease {
    /// It is unknown, runs, or is being stopped: what it has published is not all of it, and not shown.
    NotReady,
    /// It has ended: this is all.
    Ready(Receipts),
}

/// What came of consuming receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consumed {
    /// They are consumed by this.
    Now,
    /// They were consumed before, or told with an end in the foreground.
    Before,
    /// The command said nothing of a change.
    Nothing,
    /// The command has not ended, or is unknown: nothing was done.
    NotReady,
    /// That cannot be recorded, so they are offered again.
    Unrecorded {
        /// Why it could not be recorded.
        reason: String,
    },
}

impl Session {
    /// What a command of this session, or of an earlier one of its context, has changed. A copy: only
    /// [`Session::commit_receipts`] consumes it.
    pub async fn lease_receipts(&self, consumer: &str, id: &CommandId) -> Result<ReceiptLease> {
        check_consumer(consumer)?;
        let Some((session, snapshot)) = self.ended(*id).await? else { return Ok(ReceiptLease::NotReady) };
        Ok(ReceiptLease::Ready(session.receipts_of(consumer, &snapshot)?))
    }

    /// The receipts that this consumer has not consumed, in the order of their commands: of those that ended in the
    /// background and said that they changed something. To be asked for anew at each turn; it changes nothing.
    pub async fn pending_receipts(&self, consumer: &str) -> Result<Vec<Receipts>> {
        check_consumer(consumer)?;
        let mut family = self.predecessors().await?;
        family.reverse();
        family.push(self.clone());
        let mut pending = Vec::new();
        for session in family {
            let Some(dir) = session.dir_if_any()? else { continue };
            for id in dir.commands()? {
                if !dir.command(id)?.is_some_and(|command| command.has_receipts().unwrap_or(true)) {
                    continue;
                }
                let snapshot = Command { session: session.clone(), id }.brief().await?;
                if snapshot.phase == Phase::Ended {
                    pending.push(session.receipts_of(consumer, &snapshot)?);
                }
            }
        }
        pending.retain(|receipts| !receipts.changes.is_empty());
        Ok(pending)
    }

    /// Consumes the receipts of a command for good, for this consumer. Any number of times.
    pub async fn commit_receipts(&self, consumer: &str, id: &CommandId) -> Result<Consumed> {
        check_consumer(consumer)?;
        let Some((session, snapshot)) = self.ended(*id).await? else { return Ok(Consumed::NotReady) };
        let dir = session.dir()?;
        if !dir.command(*id)?.map_or(Ok(false), |command| command.has_receipts())? {
            return Ok(Consumed::Nothing);
        }
        if !is_due(&snapshot) {
            return Ok(Consumed::Before);
        }
        match ledger::take_receipts(dir, consumer, *id) {
            Ok(true) => Ok(Consumed::Now),
            Ok(false) => Ok(Consumed::Before),
            // Whatever is wrong with the ledger: it does not say that they were consumed.
            Err(Error::File(error)) => Ok(Consumed::Unrecorded { reason: error.to_string() }),
            Err(error) => Err(error),
        }
    }

    /// The command and its session, where it has ended.
    async fn ended(&self, id: CommandId) -> Result<Option<(Session, Snapshot)>> {
        let Some(session) = self.session_of(id).await? else { return Ok(None) };
        let snapshot = Command { session: session.clone(), id }.brief().await?;
        Ok((snapshot.phase == Phase::Ended).then_some((session, snapshot)))
    }

    fn receipts_of(&self, consumer: &str, snapshot: &Snapshot) -> Result<Receipts> {
        let dir = self.dir()?;
        let consumed = !is_due(snapshot) || stored::read(dir.dir())?.has_receipts(consumer, snapshot.id);
        let mut changes = match dir.command(snapshot.id)? {
            Some(command) if !consumed => command.receipts()?,
            Some(_) | None => Vec::new(),
        };
        if let Some(mut mask) = self.mask(false) {
            hide::paths(&mut changes, &mut mask);
        }
        Ok(Receipts { id: snapshot.id, root: PathBuf::from(snapshot.cwd.to_os()), changes })
    }
}
