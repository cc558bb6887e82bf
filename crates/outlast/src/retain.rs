//! What is kept of a state directory and what is removed from it: what retention decides is done here.

use std::path::PathBuf;

use outlast_core::id::{CommandId, EventId, SessionId};
use outlast_core::record::{PrunedRecord, TraceLine, schema};
use outlast_core::retention::{self, Limits, Log, Use, Why};
use outlast_core::units::format_size;
use outlast_host::clock;
use outlast_host::dir::FileError;
use outlast_host::lock::{self, Lock};
use outlast_host::store::command::CommandDir;
use outlast_host::store::removal::Vacated;
use outlast_host::store::session::SessionDir;
use outlast_host::store::state::State;
use outlast_host::store::{crumbs, name, trace};

use crate::error::{Error, Result};
use crate::owed::{Owed, use_of};
use crate::runtime::Runtime;

/// The time between two looks that nobody asked for, in milliseconds.
const EVERY_MS: u64 = 3_600_000;
/// The most commands that such a look looks at.
const MOST_COMMANDS: usize = 10_000;

/// What was removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Directories of sessions, logs, and what crashes had left: their paths.
    pub removed: Vec<PathBuf>,
    /// Bytes on disk that the logs among them took.
    pub freed: u64,
    /// What breaks a bound and stays, one line each with the reason.
    pub kept: Vec<String>,
}

impl Runtime {
    /// Keeps the state directory within bounds: sessions that are over and break a bound go with all of their files,
    /// and output of ended commands goes, oldest end first, until the rest is within its bound. What runs stays, and
    /// so does what somebody was not told of. It also clears what crashes left behind. With `dry_run` nothing is
    /// removed.
    pub async fn retain(&self, limits: &Limits, dry_run: bool) -> Result<Retained> {
        let state = self.state()?;
        let _lock = if dry_run { None } else { Some(Lock::acquire(state.root(), name::RETAIN_LOCK)?) };
        let now_ms = clock::unix_ms();
        let mut retained = Retained { removed: crumbs::clear(state, dry_run, now_ms)?, ..Retained::default() };
        Pass { runtime: self, state, limits, dry_run, now_ms, most: usize::MAX, retained: &mut retained }.run()?;
        Ok(retained)
    }

    /// The same for a front end that was not asked for it, after it has answered: at most once an hour, by one
    /// process at a time, without a look for what crashes left. None where it was not due. Until then it costs the
    /// read of one small file.
    pub async fn retain_if_due(&self, limits: &Limits) -> Result<Option<Retained>> {
        if self.records().is_err() || !is_due(self.state()?)? {
            return Ok(None);
        }
        let (runtime, limits) = (self.clone(), *limits);
        let look = tokio::task::spawn_blocking(move || runtime.look_if_due(&limits));
        look.await.map_err(|error| Error::Unreachable(format!("a look at what is kept failed: {error}")))?
    }

    fn look_if_due(&self, limits: &Limits) -> Result<Option<Retained>> {
        let state = self.state()?;
        let Some(lock) = Lock::try_acquire(state.root(), name::RETAIN_LOCK)? else { return Ok(None) };
        if !is_due(state)? {
            return Ok(None);
        }
        let now_ms = clock::unix_ms();
        // Written first: a look that fails is not repeated by every call of the next hour.
        lock.write_content(now_ms.to_string().as_bytes())?;
        let mut retained = Retained::default();
        Pass { runtime: self, state, limits, dry_run: false, now_ms, most: MOST_COMMANDS, retained: &mut retained }
            .run()?;
        Ok(Some(retained))
    }
}

fn is_due(state: &State) -> Result<bool, FileError> {
    let stored = lock::read_content(state.root(), name::RETAIN_LOCK)?;
    let last = stored.and_then(|text| std::str::from_utf8(&text).ok()?.parse::<u64>().ok()).unwrap_or(0);
    // A clock that was set back does not keep the next look away.
    Ok(clock::unix_ms().abs_diff(last) >= EVERY_MS)
}

/// One look at everything.
struct Pass<'a> {
    runtime: &'a Runtime,
    state: &'a State,
    limits: &'a Limits,
    dry_run: bool,
    now_ms: u64,
    /// Commands that may still be looked at.
    most: usize,
    retained: &'a mut Retained,
}

impl Pass<'_> {
    fn run(&mut self) -> Result<()> {
        self.given_up()?;
        if let Some(bounds) = self.limits.sessions {
            let mut all = Vec::new();
            for id in self.state.list()? {
                if let Some(session) = self.state.session(id)? {
                    all.push((id, use_of(&session, self.now_ms)?));
                }
            }
            for (id, why) in retention::sessions_beyond(&all, bounds, self.now_ms) {
                self.session(id, why)?;
            }
        }
        self.logs()
    }

    /// Finishes the removal of sessions whose destruction broke off.
    fn given_up(&mut self) -> Result<()> {
        for id in self.state.list()? {
            let Some(session) = self.state.session(id)?.filter(|session| matches!(session.is_given_up(), Ok(true)))
            else {
                continue;
            };
            let path = session.path().to_owned();
            // What is still in use is for a later look.
            if use_of(&session, self.now_ms)? == Use::Over {
                let vacated = if self.dry_run { None } else { Vacated::take(session)? };
                let is_free = self.dry_run || vacated.is_some();
                if let Some(vacated) = vacated {
                    vacated.remove(self.state)?;
                }
                self.retained.removed.extend(is_free.then_some(path));
            }
        }
        Ok(())
    }

    /// Removes one session, unless somebody uses it after all or was not told of something in it.
    fn session(&mut self, id: SessionId, why: Why) -> Result<()> {
        let Some(session) = self.state.session(id)? else { return Ok(()) };
        let path = session.path().to_owned();
        if !self.limits.untold {
            let why = match self.owed(&session, Use::Over)? {
                Ok(owed) if owed.is_anything_owed(&session)? => {
                    "somebody was not told of an end in it, or an end of it is not known".to_owned()
                }
                Ok(_) => String::new(),
                Err(damage) => damage,
            };
            if !why.is_empty() {
                self.retained.kept.push(format!("session {id} stays: {why}"));
                return Ok(());
            }
        }
        if !self.dry_run {
            let Some(vacated) = Vacated::take(session)? else {
                self.retained.kept.push(format!("session {id} stays: it is in use"));
                return Ok(());
            };
            let line = TraceLine { detail: Some(why.word().to_owned()), ..self.line("removed", id)? };
            trace::append(self.state.root(), &line, vacated.session().durability())?;
            vacated.remove(self.state)?;
        }
        self.retained.removed.push(path);
        Ok(())
    }

    /// Who was told of what in a session, or why that cannot be understood, which must not keep the rest from its bounds.
    fn owed(&self, session: &SessionDir, used: Use) -> Result<std::result::Result<Owed, String>> {
        match Owed::of(session, used) {
            Ok(owed) => Ok(Ok(owed)),
            Err(error) if error.is_unknown() => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Removes the oldest output beyond the bound.
    fn logs(&mut self) -> Result<()> {
        // What is there is measured first: only above the bound it matters who was told what.
        let mut logs = Vec::new();
        for id in self.state.list()? {
            let Some(session) = self.state.session(id)? else { continue };
            for id in session.commands()?.into_iter().take(self.most) {
                self.most -= 1;
                if let Some(command) = session.command(id)? {
                    logs.push(Log { session: session.id(), id, bytes: command.output_bytes()?, ended_at_ms: None });
                }
            }
        }
        if logs.iter().map(|log| log.bytes).sum::<u64>() <= self.limits.log_bytes.get() {
            return Ok(());
        }
        for of_session in logs.chunk_by_mut(|one, next| one.session == next.session) {
            let Some(session) = of_session.first().map(|log| self.state.session(log.session)).transpose()?.flatten()
            else {
                continue;
            };
            let used = use_of(&session, self.now_ms)?;
            let owed = match self.owed(&session, used)? {
                Ok(owed) => owed,
                Err(damage) => {
                    self.retained.kept.push(format!("the output of session {} stays: {damage}", session.id()));
                    continue;
                }
            };
            for log in of_session {
                let anyway = self.limits.untold && used == Use::Over;
                log.ended_at_ms = owed.ended_and_told(&session, log.id, anyway)?;
            }
        }
        let beyond = retention::logs_beyond(&logs, self.limits.log_bytes);
        let left = logs.iter().map(|log| log.bytes).sum::<u64>() - beyond.iter().map(|log| log.bytes).sum::<u64>();
        for log in &beyond {
            self.prune(log)?;
        }
        if left > self.limits.log_bytes.get() {
            let [left, most] = [left, self.limits.log_bytes.get()].map(format_size);
            self.retained.kept.push(format!(
                "{left} of output stay, above the bound of {most}: of commands that run, or whose end somebody was not \
                 told of"
            ));
        }
        Ok(())
    }

    fn prune(&mut self, log: &Log) -> Result<()> {
        let Some(session) = self.state.session(log.session)? else { return Ok(()) };
        let Some(command) = session.command(log.id)? else { return Ok(()) };
        if !self.dry_run {
            // Whoever moves it holds the lease; what was moved away meanwhile is for the next look.
            let lease = command.try_lease_unsigned()?.filter(|_| matches!(command.moved(), Ok(None)));
            let Some(_lease) = lease else {
                self.retained.kept.push(format!("the output of {} stays: it is in use", log.id));
                return Ok(());
            };
            command.prune(&PrunedRecord {
                schema: schema::PRUNED.to_owned(),
                id: log.id,
                at_ms: self.now_ms,
                freed: log.bytes,
            })?;
            self.trace_pruned(&session, &command, log)?;
        }
        self.retained.freed += log.bytes;
        self.retained.removed.push(command.log_path());
        Ok(())
    }

    fn trace_pruned(&self, session: &SessionDir, command: &CommandDir, log: &Log) -> Result<()> {
        let id: Option<CommandId> = Some(command.id());
        let line = TraceLine { id, bytes: Some(log.bytes), ..self.line("pruned", log.session)? };
        Ok(trace::append(session.dir(), &line, session.durability())?)
    }

    fn line(&self, kind: &str, session: SessionId) -> Result<TraceLine> {
        let event: EventId = self.runtime.new_event_id()?;
        Ok(TraceLine {
            kind: kind.to_owned(),
            event: event.to_string(),
            session: session.to_string(),
            at_ms: self.now_ms,
            ..TraceLine::default()
        })
    }
}
