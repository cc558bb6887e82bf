//! Telling ends exactly once to each consumer: lease, show, commit.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::delivery::{CommitOutcome, LeaseOutcome, Subject, Via};
use outlast_core::id::{Alias, CommandId};
use outlast_core::names::{NameField, check_name};
use outlast_core::origin::{Origin, Provenance};
use outlast_core::push::{Push, Reach};
use outlast_core::record::{ClosedRecord, Phase};
use outlast_host::store::session::SessionDir;
use outlast_host::store::{aliases, ledger as stored};

use crate::command::Command;
use crate::error::{Error, Result};
use crate::ledger;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::watch::Watch;

/// Ends of a session whose report nobody was there to read.
const UNHEARD: [&str; 3] = ["anchor_gone", "owner_gone", "terminated"];

/// What a commit found in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// This was the delivery.
    Now,
    /// It was delivered before, by this way where the ledger still has it.
    Before {
        /// The delivery that consumed it.
        via: Option<Via>,
    },
    /// Somebody who lives is telling it at this moment.
    Elsewhere,
    /// It is no completion: it ended in the foreground, or has not ended.
    NotDue,
    /// It was told by this delivery, which could not be recorded: it will be told again.
    Unrecorded {
        /// Why it could not be recorded.
        reason: String,
    },
}

/// An end that a consumer has not been told of.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The command, without output text.
    pub snapshot: Snapshot,
    /// Whether an earlier lease on it was given up or died.
    pub redelivered: bool,
    /// The conversation of who started it: the context of its session. Where that is empty the session is
    /// the whole conversation.
    pub context: String,
}

impl Completion {
    /// Of origin `completion`, and trusted as far as who asked for the command.
    pub fn provenance(&self) -> Provenance {
        Provenance::derive(Origin::Completion, Some(self.snapshot.trust))
    }

    pub(crate) fn new(snapshot: Snapshot, redelivered: bool, session: &Session) -> Completion {
        let context = session.record().map(|record| record.context.clone()).unwrap_or_default();
        Completion { snapshot, redelivered, context }
    }
}

/// A leased completion. Dropping it without a commit offers it again.
pub struct CompletionGuard {
    completion: Completion,
    session: Session,
    consumer: String,
    claim: String,
    open: bool,
}

impl CompletionGuard {
    pub(crate) fn new(completion: Completion, session: Session, consumer: &str, claim: String) -> CompletionGuard {
        CompletionGuard { completion, session, consumer: consumer.to_owned(), claim, open: true }
    }

    /// What there is to tell.
    pub fn completion(&self) -> &Completion {
        &self.completion
    }

    /// Says that it was told, by this delivery.
    pub async fn commit(mut self, via: Via) -> Result<Told> {
        let told = ledger::commit(&self.session, &self.consumer, self.subject(), via, Some(&self.claim))?;
        self.open = false;
        Ok(outcome(told))
    }

    fn subject(&self) -> Subject {
        Subject { id: self.completion.snapshot.id, alias: self.completion.snapshot.alias }
    }
}

impl Drop for CompletionGuard {
    /// Gives the claim back. Where that fails it is free when this process ends.
    fn drop(&mut self) {
        if self.open
            && let Ok(dir) = self.session.dir()
        {
            let _ = ledger::release(dir, &self.consumer, self.completion.snapshot.id, &self.claim);
        }
    }
}

impl Session {
    /// What this consumer has not been told, by id. Those of earlier sessions of the same context, and of child sessions
    /// that are gone, are among them. Changes nothing.
    pub async fn pending(&self, consumer: &str) -> Result<Vec<Completion>> {
        let mut pending = Vec::new();
        for (session, id, redelivered) in self.due(consumer).await? {
            let snapshot = Command { session: session.clone(), id }.brief().await?;
            pending.push(Completion::new(snapshot, redelivered, &session));
        }
        Ok(pending)
    }

    /// Takes what is pending for this consumer, so that nobody else tells it meanwhile: for a reply to who
    /// asked what is pending. What nobody asked for is taken with [`Session::lease_pushed`].
    pub async fn lease(&self, consumer: &str) -> Result<Vec<CompletionGuard>> {
        self.lease_where(consumer, |_| true).await
    }

    /// As [`Session::lease`], for who tells what nobody asked for: only what this host can receive, in a form
    /// that is pushed. The rest stays pending.
    pub async fn lease_pushed(&self, consumer: &str, reach: Reach) -> Result<Vec<CompletionGuard>> {
        self.lease_where(consumer, |one| reach.push(one.delivery) != Push::Never).await
    }

    async fn lease_where(&self, consumer: &str, wanted: impl Fn(&Snapshot) -> bool) -> Result<Vec<CompletionGuard>> {
        let mut guards = Vec::new();
        for (session, id, _) in self.due(consumer).await? {
            let snapshot = Command { session: session.clone(), id }.brief().await?;
            if !wanted(&snapshot) {
                continue;
            }
            let subject = Subject { id, alias: snapshot.alias };
            let claim = ledger::new_claim(&session)?;
            if let LeaseOutcome::Taken { redelivered } = ledger::lease(session.dir()?, consumer, subject, &claim)? {
                let completion = Completion::new(snapshot, redelivered, &session);
                guards.push(CompletionGuard::new(completion, session, consumer, claim));
            }
        }
        Ok(guards)
    }

    /// Says that a reply told this consumer the end of this command, of this session, an earlier one of its context or
    /// a child that is gone.
    pub async fn commit(&self, consumer: &str, id: &CommandId, via: Via) -> Result<Told> {
        check_consumer(consumer)?;
        let mut family = vec![self.clone()];
        if self.dir()?.command(*id)?.is_none() {
            family = self.predecessors().await?;
            family.extend(self.inherited().await?);
        }
        for session in family {
            if session.dir()?.command(*id)?.is_none() {
                continue;
            }
            let snapshot = Command { session: session.clone(), id: *id }.brief().await?;
            if !is_due(&snapshot) {
                return Ok(Told::NotDue);
            }
            let subject = Subject { id: *id, alias: snapshot.alias };
            return match ledger::commit(&session, consumer, subject, via, None) {
                Ok(told) => Ok(outcome(told)),
                Err(error) if error.is_unwritable() => Ok(Told::Unrecorded { reason: error.to_string() }),
                Err(error) => Err(error),
            };
        }
        Err(Error::Unknown { given: id.to_string(), session: *self.id() })
    }

    /// Waits until something is pending that wakes this consumer, then leases it: what was started with
    /// [`Delivery::Task`](crate::Delivery::Task), which is the default. It is for hosts that can wake an
    /// idle consumer. Cancel-safe.
    pub async fn completions(&self, consumer: &str) -> Result<Vec<CompletionGuard>> {
        let dir = self.dir()?;
        loop {
            // Watched before looking, so that no end between the look and the wait is missed.
            let mut watch = Watch::on(dir.dir())?;
            watch_ends(&mut watch, dir)?;
            // Of a child also that it goes: its owner's lock is closed then, or its end is written.
            for child in self.children().await? {
                watch.add(child.dir()?.dir())?;
                watch_ends(&mut watch, child.dir()?)?;
            }
            let reach = Reach { queue: true, wake: true };
            let guards = self.lease_where(consumer, |one| reach.push(one.delivery) == Push::Wakes).await?;
            if !guards.is_empty() {
                return Ok(guards);
            }
            watch.changed().await?;
        }
    }

    /// The ends that this consumer was not told of, in the order of their ids.
    async fn due(&self, consumer: &str) -> Result<Vec<(Session, CommandId, bool)>> {
        check_consumer(consumer)?;
        let mut family = self.predecessors().await?;
        family.reverse();
        family.push(self.clone());
        let mut due = Vec::new();
        for session in family {
            let found = session.due_here(consumer, true).await?;
            due.extend(found.into_iter().map(|(id, redelivered)| (session.clone(), id, redelivered)));
        }
        // What the report of a child's end said was said to the child.
        for child in self.inherited().await? {
            let found = child.due_here(consumer, false).await?;
            due.extend(found.into_iter().map(|(id, redelivered)| (child.clone(), id, redelivered)));
        }
        due.sort_by_key(|(_, id, _)| *id);
        Ok(due)
    }

    /// What is due of this session alone; with `reports` not what the report of its end has told.
    async fn due_here(&self, consumer: &str, reports: bool) -> Result<Vec<(CommandId, bool)>> {
        let Some(dir) = self.dir_if_any()? else { return Ok(Vec::new()) };
        if dir.is_given_up()? {
            return Ok(Vec::new());
        }
        let ledger = stored::read(dir.dir())?;
        let told = ledger.consumers.get(consumer);
        let through = told.map_or(0, |told| told.through);
        let reported = if reports { reported_at_the_end(dir)? } else { BTreeSet::new() };
        let names: BTreeMap<CommandId, Alias> =
            aliases::all(dir.dir())?.into_iter().map(|(alias, id)| (id, alias)).collect();
        let mut ended = Vec::new();
        for id in dir.commands()? {
            let alias = names.get(&id).copied();
            if alias.is_some_and(|alias| alias.0 <= through) || reported.contains(&id) {
                continue;
            }
            let subject = Subject { id, alias };
            if !ledger.is_told(consumer, subject) && self.is_due(dir, id).await? {
                ended.push(subject);
            }
        }
        let redelivered = |id: &CommandId| {
            told.and_then(|told| told.leases.get(id)).is_some_and(|lease| lease.redelivered || lease.holder.is_none())
        };
        let pending = ledger.pending(consumer, &ended);
        Ok(pending.into_iter().map(|id| (id, redelivered(&id))).collect())
    }

    async fn is_due(&self, dir: &SessionDir, id: CommandId) -> Result<bool> {
        let Some(command) = dir.command(id)? else { return Ok(false) };
        match command.exit() {
            Ok(Some(exit)) if exit.demoted || !exit.is_news() => Ok(exit.demoted),
            // Nobody watches it, or nobody can read its end: the full look says which. One whose caller is about to say
            // that it was shown the end is told by that.
            Ok(_) if command.lease_is_held()? => Ok(false),
            Ok(_) | Err(_) => Ok(is_due(&Command { session: self.clone(), id }.brief().await?)),
        }
    }
}

/// Watches for commands that appear in a session, and for the ends of those that run.
fn watch_ends(watch: &mut Watch, dir: &SessionDir) -> Result<()> {
    watch.add(&dir.dir().sub(outlast_host::store::name::WORK)?)?;
    for id in dir.commands()? {
        if let Some(command) = dir.command(id)?
            && !command.has_exit()?
        {
            watch.add(command.dir())?;
        }
    }
    Ok(())
}

/// Whether an end has to be told.
pub(crate) fn is_due(snapshot: &Snapshot) -> bool {
    snapshot.phase == Phase::Ended && (snapshot.demoted || snapshot.report.is_some())
}

/// Commands that the report of the session's end has told of. One that nobody was there to read told
/// of none: those of an anchor or an owner that went away.
pub(crate) fn reported_at_the_end(dir: &SessionDir) -> Result<BTreeSet<CommandId>> {
    let closed = dir.closed()?.map(|closed| closed.record);
    let heard = |closed: &ClosedRecord| !UNHEARD.contains(&closed.by.as_str());
    Ok(closed.filter(heard).map(|closed| closed.commands.iter().map(|one| one.id).collect()).unwrap_or_default())
}

fn outcome(outcome: CommitOutcome) -> Told {
    match outcome {
        CommitOutcome::Committed => Told::Now,
        CommitOutcome::HeldBy(_) => Told::Elsewhere,
        CommitOutcome::AlreadyTold { via } => Told::Before { via },
    }
}

pub(crate) fn check_consumer(consumer: &str) -> Result<()> {
    check_name(NameField::Consumer, consumer).map_err(|error| Error::Usage(error.to_string()))
}
