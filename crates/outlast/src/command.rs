//! One command: its handle, and how it stands now.

use outlast_core::ending::End;
use outlast_core::id::CommandId;
use outlast_core::record::{ExitRecord, OutputState, Phase, VerdictRecord};
use outlast_core::request::{HOLD_BYTES, Streams};
use outlast_host::dir::if_there;
use outlast_host::store::command::CommandDir;
use outlast_host::store::reader::LogReader;
use outlast_host::store::understood;

use crate::error::{Error, Result};
use crate::keeper::ANSWER_BOUND;
use crate::output::{Stored, unwritten};
use crate::probe::{self, Probe};
use crate::session::Session;
use crate::settle::{self, Report, Settled, Standing};
use crate::snapshot::Snapshot;
use crate::watch::Watch;

/// A handle to one command of a session.
#[derive(Clone, Debug)]
pub struct Command {
    pub(crate) session: Session,
    pub(crate) id: CommandId,
}

impl Command {
    /// Its id.
    pub fn id(&self) -> &CommandId {
        &self.id
    }

    /// Its session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Everything about it now, with the last 16 KiB of its output.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        self.look(true).await
    }

    /// Everything about it now but the text of its output.
    pub async fn brief(&self) -> Result<Snapshot> {
        self.look(false).await
    }

    pub(crate) fn dir(&self) -> Result<CommandDir> {
        let unknown = || Error::Unknown { given: self.id.to_string(), session: *self.session.id() };
        self.session.dir()?.command(self.id)?.ok_or_else(unknown)
    }

    pub(crate) async fn look(&self, with_text: bool) -> Result<Snapshot> {
        loop {
            let dir = self.dir()?;
            let shown = async {
                let mut snapshot = self.look_in(&dir, with_text).await?;
                self.session.hide(&mut snapshot, || self.stored(&dir))?;
                Ok(snapshot)
            };
            let snapshot = shown.await;
            // Of records that went to another file system meanwhile half may have been seen.
            if dir.moved()?.is_none() {
                return snapshot;
            }
        }
    }

    async fn look_in(&self, dir: &CommandDir, with_text: bool) -> Result<Snapshot> {
        let (standing, settled) = match settle::settle(&self.session, dir, Report::default()).await {
            Ok(settled) => settled,
            // Nobody can finish its record where nothing can be written; what there is is shown.
            Err(error) if error.is_unwritable() => {
                let note = format!("nobody watches it, and what became of it cannot be recorded: {error}");
                (Standing::Deferred(note), Settled::default())
            }
            // What is damaged is said, and what can be read is shown.
            Err(error @ Error::File(_)) if !error.is_unknown() => return self.damaged(dir, &error),
            Err(error) => return Err(error),
        };
        let mut snapshot = match standing {
            Standing::Ended(exit) => {
                let mut snapshot = ended_snapshot(dir, *exit, with_text)?;
                // Only survivors are news after the end: without any, whoever holds the lease writes the trailer.
                if !snapshot.survivors_at_end.is_empty() && dir.lease_is_held()? {
                    self.ask(dir, &mut snapshot, with_text).await?;
                }
                snapshot
            }
            Standing::Watched => self.watched(dir, with_text).await?,
            Standing::Lost(verdict) => {
                let snapshot = self.lost_snapshot(dir, &verdict)?;
                Snapshot { note: snapshot.note.clone().or(settled.note), ..snapshot }
            }
            Standing::Deferred(note) => {
                let mut snapshot = self.recorded_snapshot(dir)?;
                snapshot.phase = Phase::Stopping;
                snapshot.pid = None;
                snapshot.damaged = snapshot.note.take();
                snapshot.note = Some(note);
                snapshot
            }
        };
        if with_text && snapshot.phase == Phase::Ended {
            snapshot.changes = dir.receipts()?;
        }
        let may_have_text = snapshot.output.bytes > 0 || (snapshot.output.capturing && snapshot.quiet_ms.is_none());
        if with_text && snapshot.output.tail.is_empty() && may_have_text {
            self.show_tail(dir, &mut snapshot);
        }
        Ok(snapshot)
    }

    /// A command whose lease is held: by its supervisor, or for a moment by somebody who finishes its record.
    async fn watched(&self, dir: &CommandDir, with_text: bool) -> Result<Snapshot> {
        let mut snapshot = self.recorded_snapshot(dir)?;
        if self.ask(dir, &mut snapshot, with_text).await? {
            if snapshot.phase != Phase::Ended {
                return Ok(snapshot);
            }
            // It ended between the two looks: its end is recorded, before it is told.
            if let Some(exit) = dir.exit()? {
                let ended = Snapshot::of_exit(exit.record, OutputState::default(), Some(dir))?;
                return Ok(Snapshot { output: snapshot.output, survivors: snapshot.survivors, ..ended });
            }
        }
        // Watched before looking, so that no record between the look and the wait is missed.
        let mut watch = Watch::on(dir.dir())?;
        let recorded = async {
            loop {
                match settle::recorded(dir)? {
                    // Whoever moves it holds its lease for that time.
                    Some(Standing::Watched) | None if dir.moved()?.is_some() => return Ok(Standing::Watched),
                    Some(Standing::Watched) | None => watch.changed().await?,
                    Some(standing) => return Ok::<_, Error>(standing),
                }
            }
        };
        match tokio::time::timeout(ANSWER_BOUND, recorded).await {
            Ok(Ok(Standing::Ended(exit))) => return ended_snapshot(dir, *exit, with_text),
            Ok(Ok(Standing::Lost(verdict))) => return self.lost_snapshot(dir, &verdict),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(Standing::Watched | Standing::Deferred(_))) | Err(_) => {
                snapshot.phase = Phase::Stopping;
                snapshot.pid = None;
                snapshot.note = Some("its supervisor is gone and its end is being recorded".to_owned());
            }
        }
        Ok(snapshot)
    }

    /// Takes over what the supervisor says; false if there is none any more.
    async fn ask(&self, dir: &CommandDir, snapshot: &mut Snapshot, with_text: bool) -> Result<bool> {
        match probe::status(dir).await? {
            Probe::Live(status, tail) => {
                snapshot.output.unwritten = unwritten(dir, &status.output, tail.len() as u64)?;
                snapshot.refresh(*status);
                if with_text {
                    let from = snapshot.output.bytes.saturating_sub(tail.len() as u64);
                    snapshot.output.show(tail, from);
                }
                Ok(true)
            }
            Probe::Silent { note } => {
                snapshot.note = Some(note);
                Ok(true)
            }
            Probe::Nobody => Ok(false),
        }
    }

    fn recorded_snapshot(&self, dir: &CommandDir) -> Result<Snapshot> {
        let request = dir.request();
        let status = understood(dir.status())?;
        let damage = match &request {
            Ok(Some(_)) => None,
            Ok(None) => Some(format!("{} has no request.json", dir.path().display())),
            Err(error) => Some(error.to_string()),
        };
        let request = understood(request)?;
        let mut snapshot =
            Snapshot::of_open(self.id, *self.session.id(), request, status.as_ref(), Some(dir.log_path()));
        snapshot.note = damage;
        Ok(snapshot)
    }

    /// A command of which a verdict says that nobody knows how it ended.
    fn lost_snapshot(&self, dir: &CommandDir, verdict: &VerdictRecord) -> Result<Snapshot> {
        let mut snapshot = self.recorded_snapshot(dir)?;
        if let Some(status) = understood(dir.status())? {
            snapshot.output.bytes = settle::found_output(dir, &status)?.bytes;
        }
        snapshot.lose(verdict);
        snapshot.prune(dir)?;
        Ok(snapshot)
    }

    /// A command whose end is recorded and cannot be read.
    fn damaged(&self, dir: &CommandDir, error: &Error) -> Result<Snapshot> {
        let mut snapshot = self.recorded_snapshot(dir)?;
        snapshot.phase = Phase::Ended;
        snapshot.ok = Some(false);
        snapshot.pid = None;
        snapshot.output.capturing = false;
        snapshot.end = Some(End::Lost);
        snapshot.errors.push(error.to_string());
        snapshot.note = Some(error.to_string());
        snapshot.damaged = Some(error.to_string());
        Ok(snapshot)
    }

    fn show_tail(&self, dir: &CommandDir, snapshot: &mut Snapshot) {
        let shown = self.stored(dir).and_then(|stored| stored.map(|stored| stored.tail(HOLD_BYTES)).transpose());
        match shown {
            Ok(Some((tail, from))) => snapshot.output.show(tail, from),
            Ok(None) => {}
            Err(error) => snapshot.errors.push(error.to_string()),
        }
    }

    /// Its log with what its records say of it; none where there is no log.
    pub(crate) fn stored(&self, dir: &CommandDir) -> Result<Option<Stored>> {
        let separate = understood(dir.request())?.is_some_and(|record| record.request.streams == Streams::Separate);
        Stored::open(dir, self.recorded_output(dir)?, separate)
    }

    fn recorded_output(&self, dir: &CommandDir) -> Result<OutputState> {
        if let Some(exit) = dir.exit()? {
            return settle::final_output(dir, &exit);
        }
        let Some(status) = dir.status()? else {
            // Without a status nobody says where the output begins.
            let mut output = OutputState::default();
            if let Some(log) = if_there(LogReader::open(dir.dir(), output.start, output.gap))? {
                output.bytes = log.len()?;
            }
            return Ok(output);
        };
        let output = settle::found_output(dir, &status)?;
        Ok(output)
    }
}

/// A command whose end is recorded.
fn ended_snapshot(dir: &CommandDir, exit: ExitRecord, with_text: bool) -> Result<Snapshot> {
    let output = settle::final_output(dir, &exit)?;
    let kept = exit.kept_tail().filter(|_| with_text);
    let tracked = exit.tracked.clone().filter(|_| with_text);
    let mut snapshot = Snapshot { tracked, ..Snapshot::of_exit(exit, output, Some(dir))? };
    if let Some(tail) = kept {
        let from = snapshot.output.bytes.saturating_sub(tail.len() as u64);
        snapshot.output.show(tail, from);
    }
    snapshot.result = snapshot.result.filter(|_| with_text);
    Ok(snapshot)
}
