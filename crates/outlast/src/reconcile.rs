//! What became of the commands of an earlier session, said once.

use outlast_core::delivery::Subject;
use outlast_core::ending::{BY_OWNER_GONE, BY_SESSION_END, End};
use outlast_core::id::{CommandId, SessionId};
use outlast_core::origin::Trust;
use outlast_core::reconcile::{ExitFound, Fate, Found, OwnerLock, fate};
use outlast_core::record::ExitRecord;
use outlast_host::store::command::CommandDir;
use outlast_host::store::{contexts, ledger, understood};

use crate::command::Command;
use crate::deliver::{check_consumer, reported_at_the_end};
use crate::error::{Error, Result};
use crate::open::SessionOptions;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::settle::{self, Report, Standing};
use crate::snapshot::Snapshot;

/// Which session to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predecessor {
    /// This one.
    Session(SessionId),
    /// The last one of this context; there may be none.
    Context(String),
}

/// What became of the commands of one session, each in exactly one group, by id.
#[derive(Clone, Debug, Default)]
pub struct ReconcileReport {
    /// The session that was looked at; none where there was none.
    pub session: Option<SessionId>,
    /// The id of the report of lost work; none where nothing was lost.
    pub report: Option<String>,
    /// Ended while nobody was there to be told.
    pub ended: Vec<Snapshot>,
    /// Ended because their owner or session went.
    pub killed: Vec<Snapshot>,
    /// Nobody knows, or its owner died over a task: newly found by this reconciliation.
    pub lost: Vec<Snapshot>,
    /// Still running.
    pub running: Vec<Snapshot>,
    /// Could not be decided now, one line each; the next resume tries again.
    pub deferred: Vec<String>,
    /// The lowest trust over the lost work.
    pub trust: Option<Trust>,
    /// What went wrong on the way, one line each.
    pub notes: Vec<String>,
}

impl ReconcileReport {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.killed.is_empty() && self.lost.is_empty() && self.running.is_empty()
    }
}

impl Runtime {
    /// Makes a session that follows an earlier one, in its context, and says what became of that one's
    /// commands, as far as this consumer was not told. Whatever is wrong with the earlier one is a note,
    /// not an error. Nothing is committed: what is told here stays pending until it is.
    pub async fn resume(
        &self,
        predecessor: &Predecessor,
        options: SessionOptions,
        consumer: &str,
    ) -> Result<(Session, ReconcileReport)> {
        check_consumer(consumer)?;
        let (earlier, context) = match predecessor {
            Predecessor::Session(id) => {
                let context = self.open_session(id).await?.record().map(|record| record.context.clone());
                (Some(*id), context.unwrap_or_default())
            }
            Predecessor::Context(key) => (self.last_of_context(key).await?, key.clone()),
        };
        let session = self.create_session(SessionOptions { context, ..options }).await?;
        let report = match earlier {
            Some(earlier) => self.reconcile_or_note(earlier, session.id(), consumer).await,
            None => ReconcileReport::default(),
        };
        Ok((session, report))
    }

    /// The session of the agent host that is this process: found, or made on first use, and owned by this process
    /// unless another owner lives. A fresh one follows the last session of its context, of whose commands is said
    /// what became; an empty context has none. Where no records can be made it is nowhere on disk.
    pub async fn attach_session(
        &self,
        host_pid: u32,
        context: &str,
        consumer: &str,
    ) -> Result<(Session, ReconcileReport)> {
        check_consumer(consumer)?;
        if self.records().is_err() {
            return Ok((self.session_nowhere()?, ReconcileReport::default()));
        }
        let earlier = if context.is_empty() { None } else { self.last_of_context(context).await? };
        let (session, made) = self.host_session(host_pid, context).await?;
        match earlier.filter(|earlier| made && earlier != session.id()) {
            Some(earlier) => {
                let report = self.reconcile_or_note(earlier, session.id(), consumer).await;
                Ok((session, report))
            }
            None => Ok((session, ReconcileReport::default())),
        }
    }

    /// The open session of this context, whatever process was there before, or a fresh one that follows the last one of
    /// it; owned by this process unless another owner lives. It has no anchor: it lives as long as it has an owner.
    pub async fn attach_context(&self, context: &str, consumer: &str) -> Result<(Session, ReconcileReport)> {
        check_consumer(consumer)?;
        if self.records().is_err() {
            return Ok((self.session_nowhere()?, ReconcileReport::default()));
        }
        if let Some(last) = self.last_of_context(context).await? {
            match self.own_if_free(&last).await {
                Ok(session) => return Ok((session, ReconcileReport::default())),
                Err(Error::SessionClosed { .. } | Error::AnchorGone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let options = SessionOptions { context: context.to_owned(), ..SessionOptions::default() };
        self.resume(&Predecessor::Context(context.to_owned()), options, consumer).await
    }

    async fn reconcile_or_note(&self, earlier: SessionId, by: &SessionId, consumer: &str) -> ReconcileReport {
        match self.reconcile(&earlier, Some(by), consumer).await {
            Ok(report) => report,
            Err(error) => ReconcileReport {
                session: Some(earlier),
                notes: vec![format!("session {earlier} could not be reconciled: {error}")],
                ..ReconcileReport::default()
            },
        }
    }

    async fn last_of_context(&self, key: &str) -> Result<Option<SessionId>> {
        if key.is_empty() {
            return Err(Error::Usage("an empty context has no earlier session".to_owned()));
        }
        for id in contexts::list(self.state()?, key)?.into_iter().rev() {
            match self.open_session(&id).await {
                Ok(session) if session.record().is_some_and(|record| record.context == key) => return Ok(Some(id)),
                Err(error) if error.is_unknown() => return Err(error),
                // One that is damaged is not known to be of this context.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Says what became of the commands of a session, and finishes those that nobody can finish any
    /// more. `by` is the session on whose behalf.
    pub async fn reconcile(
        &self,
        session: &SessionId,
        by: Option<&SessionId>,
        consumer: &str,
    ) -> Result<ReconcileReport> {
        check_consumer(consumer)?;
        let session = self.open_session(session).await?;
        let dir = session.dir()?;
        // Held to the end: whoever repairs a record is the only one who may.
        let lock = if session.is_owned_here() { None } else { dir.try_owner_lock()? };
        let owned = session.is_owned_here() || lock.is_some();
        let mut pass = Pass {
            ledger: ledger::read(dir.dir())?,
            reported: reported_at_the_end(dir)?,
            keeper_alive: dir.has_keeper()?,
            owner_lock: if owned { OwnerLock::Ours } else { OwnerLock::NotOurs },
            repair: Report { id: Some(self.new_report_id()?), by: by.copied(), past_owner: lock.is_some() },
            report: ReconcileReport { session: Some(*session.id()), ..ReconcileReport::default() },
            consumer,
            session: &session,
        };
        for id in dir.commands()? {
            if let Err(error) = pass.look(id).await {
                pass.report.notes.push(format!("{id}: {error}"));
                pass.report.deferred.push(format!("{id}: its records could not be read or finished"));
            }
        }
        Ok(pass.report)
    }
}

/// One look at all commands of a session.
struct Pass<'a> {
    session: &'a Session,
    consumer: &'a str,
    ledger: outlast_core::delivery::Ledger,
    reported: std::collections::BTreeSet<CommandId>,
    keeper_alive: bool,
    owner_lock: OwnerLock,
    repair: Report,
    report: ReconcileReport,
}

impl Pass<'_> {
    async fn look(&mut self, id: CommandId) -> Result<()> {
        let Some(dir) = self.session.dir()?.command(id)? else { return Ok(()) };
        let decided = fate(self.found(&dir)?);
        if matches!(decided, Fate::Accounted) {
            return Ok(());
        }
        if matches!(decided, Fate::Deferred | Fate::Lost | Fate::Interrupted) {
            return self.repair(&dir).await;
        }
        let snapshot = self.snapshot(id).await?;
        match decided {
            Fate::Running => self.report.running.push(snapshot),
            Fate::EndedWhileAway => self.report.ended.push(snapshot),
            Fate::KilledWithOwner => self.report.killed.push(snapshot),
            Fate::Accounted | Fate::Deferred | Fate::Lost | Fate::Interrupted => {}
        }
        Ok(())
    }

    /// Lets its keeper or a verdict finish its record, as far as that may be done here.
    async fn repair(&mut self, dir: &CommandDir) -> Result<()> {
        let (standing, settled) = settle::settle(self.session, dir, self.repair).await?;
        self.report.notes.extend(settled.note.map(|note| format!("{}: {note}", dir.id())));
        match standing {
            Standing::Lost(verdict) if settled.written => {
                let snapshot = self.snapshot(dir.id()).await?;
                self.report.trust = self.report.trust.into_iter().chain([snapshot.trust]).min();
                self.report.report = Some(verdict.report.clone());
                self.report.lost.push(snapshot);
            }
            // Another reconciler was faster, and tells it.
            Standing::Lost(_) => {}
            Standing::Ended(exit) => {
                let snapshot = self.snapshot(dir.id()).await?;
                match class(&exit) {
                    _ if self.is_accounted(&exit) => {}
                    ExitFound::ByItself => self.report.ended.push(snapshot),
                    ExitFound::WithItsOwner => self.report.killed.push(snapshot),
                }
            }
            Standing::Watched => {
                let snapshot = self.snapshot(dir.id()).await?;
                self.report.running.push(snapshot);
            }
            Standing::Deferred(note) => self.report.deferred.push(format!("{}: {note}", dir.id())),
        }
        Ok(())
    }

    fn found(&self, dir: &CommandDir) -> Result<Found> {
        let lease_held = dir.lease_is_held()?;
        let exit = dir.exit()?.map(|exit| exit.record);
        Ok(Found {
            accounted: exit.as_ref().is_some_and(|exit| self.is_accounted(exit)),
            exit: exit.as_ref().map(class),
            verdict: dir.verdict()?.is_some(),
            lease_held,
            task: understood(dir.request())?.is_some_and(|request| request.is_task()),
            keeper_alive: self.keeper_alive,
            owner_lock: self.owner_lock,
        })
    }

    /// Whether nothing of this end is left to tell: it ended in the foreground, the consumer was told, or
    /// the report of the session's end names it.
    fn is_accounted(&self, exit: &ExitRecord) -> bool {
        let subject = Subject { id: exit.id, alias: exit.alias };
        !exit.is_news() || self.reported.contains(&exit.id) || self.ledger.is_told(self.consumer, subject)
    }

    async fn snapshot(&self, id: CommandId) -> Result<Snapshot> {
        Command { session: self.session.clone(), id }.brief().await
    }
}

fn class(exit: &ExitRecord) -> ExitFound {
    match &exit.end {
        End::Abandoned { .. } => ExitFound::WithItsOwner,
        End::Stopped { by, .. } if by == BY_OWNER_GONE || by == BY_SESSION_END => ExitFound::WithItsOwner,
        _ => ExitFound::ByItself,
    }
}
