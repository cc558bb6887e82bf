//! Looking at commands: resolve a name, one snapshot, the list.

use outlast_core::id::{CommandId, Resolved, Selector};
use outlast_core::record::{OutputState, Phase};
use outlast_core::request::{HOLD_BYTES, Streams};
use outlast_host::store::aliases;
use outlast_host::store::command::CommandDir;

use crate::error::{Error, Result};
use crate::output::Stored;
use crate::probe::{self, Probe};
use crate::session::Session;
use crate::settle::{self, Report, Standing};
use crate::snapshot::Snapshot;

/// A handle to one command of a session.
#[derive(Clone)]
pub struct Command {
    pub(crate) session: Session,
    pub(crate) id: CommandId,
}

/// A view of a command for machines: nothing in it comes from the command or its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The command.
    pub id: CommandId,
    /// `process`.
    pub kind: String,
    /// Where it is.
    pub phase: Phase,
    /// The word of its end.
    pub end: Option<&'static str>,
    /// Unix time of the start in milliseconds.
    pub started_at_ms: u64,
    /// Unix time of the demotion in milliseconds.
    pub demoted_at_ms: Option<u64>,
    /// Unix time of the end in milliseconds.
    pub ended_at_ms: Option<u64>,
    /// Whether its record is complete: false for lost and interrupted ones.
    pub complete: bool,
}

impl Session {
    /// The command of this name: `wrk_…`, alias `w3`, or unambiguous prefix. White space around it is
    /// ignored.
    pub async fn command(&self, selector: &str) -> Result<Command> {
        let unknown = || Error::Unknown { given: selector.trim().to_owned(), session: *self.id() };
        let dir = self.dir()?;
        let selector: Selector = selector.parse().map_err(|_| unknown())?;
        let known = match &selector {
            Selector::Full(id) => vec![(*id, None)],
            Selector::Alias(alias) => {
                aliases::resolve(dir.dir(), *alias)?.map(|id| (id, Some(*alias))).into_iter().collect()
            }
            Selector::Prefix(_) => dir.commands()?.into_iter().map(|id| (id, None)).collect(),
        };
        let id = match selector.resolve(known) {
            Resolved::One(id) => id,
            Resolved::Unknown => return Err(unknown()),
            Resolved::Ambiguous(matches) => {
                return Err(Error::Ambiguous { given: selector.to_string(), matches });
            }
        };
        if dir.command(id)?.is_some() {
            return Ok(Command { session: self.clone(), id });
        }
        Err(self.earlier(id).await?.unwrap_or_else(unknown))
    }

    /// The answer for a command of an earlier session of the same context.
    async fn earlier(&self, id: CommandId) -> Result<Option<Error>> {
        for session in self.predecessors().await? {
            if session.dir()?.command(id)?.is_none() {
                continue;
            }
            let snapshot = Command { session: session.clone(), id }.brief().await?;
            let known = match (&snapshot.end, snapshot.exit_code) {
                (None, _) => "it still runs".to_owned(),
                (Some(end), Some(code)) => format!("{} (exit code {code})", end.kind().replace('_', " ")),
                (Some(end), None) => format!("{}, and no exit code is known", end.kind()),
            };
            return Ok(Some(Error::EarlierSession { id, session: *session.id(), known }));
        }
        Ok(None)
    }

    /// The earlier sessions of the same context, newest first; none without a context.
    pub(crate) async fn predecessors(&self) -> Result<Vec<Session>> {
        let Some(own) = self.record().filter(|record| !record.context.is_empty()) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for id in self.runtime().state()?.list()?.into_iter().rev().filter(|id| *id < own.id) {
            let session = self.runtime().open_session(&id).await?;
            if session.record().is_some_and(|record| record.context == own.context) {
                found.push(session);
            }
        }
        Ok(found)
    }

    /// A handle to the command of this id, if it has records in this session.
    pub async fn get(&self, id: &CommandId) -> Result<Option<Command>> {
        let found = self.dir()?.command(*id)?;
        Ok(found.map(|_| Command { session: self.clone(), id: *id }))
    }

    /// Commands with records in start order, without output text: those that are not over (survivors
    /// and open capture count), or all. One whose records are damaged carries a note that says so.
    pub async fn list(&self, all: bool) -> Result<Vec<Snapshot>> {
        let Ok(dir) = self.dir() else { return Ok(Vec::new()) };
        let mut open = tokio::task::JoinSet::new();
        let mut snapshots = Vec::new();
        for id in dir.commands()? {
            let Some(command_dir) = dir.command(id)? else { continue };
            let held = command_dir.lease_is_held()?;
            if !held {
                if !all && command_dir.has_exit()? {
                    continue;
                }
                if let Ok(Some(exit)) = command_dir.exit() {
                    let output = exit.output;
                    let snapshot = Snapshot::of_exit(exit.record, output, Some(command_dir.log_path()));
                    snapshots.push(snapshot);
                    continue;
                }
            }
            // The others need an answer of somebody; all are asked at a time.
            let command = Command { session: self.clone(), id };
            open.spawn(async move { command.brief().await });
        }
        while let Some(answer) = open.join_next().await {
            let answer = answer.map_err(|error| Error::Unreachable(format!("a look at a command failed: {error}")))?;
            let snapshot = answer?;
            if all || snapshot.phase != Phase::Ended || snapshot.output.capturing || !snapshot.survivors.is_empty() {
                snapshots.push(snapshot);
            }
        }
        snapshots.sort_by_key(|snapshot| snapshot.id);
        Ok(snapshots)
    }

    /// The content-free view, newest first. A damaged record is an error that names the command.
    pub async fn entries(&self) -> Result<Vec<Entry>> {
        let Ok(dir) = self.dir() else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        for id in dir.commands()?.into_iter().rev() {
            let snapshot = Command { session: self.clone(), id }.look(false).await?;
            if let Some(damage) = &snapshot.note
                && snapshot.end.is_none()
                && snapshot.phase == Phase::Ended
            {
                return Err(Error::Damaged { id, reason: damage.clone() });
            }
            entries.push(Entry {
                id,
                kind: snapshot.kind,
                phase: snapshot.phase,
                end: snapshot.end.as_ref().map(outlast_core::ending::End::kind),
                started_at_ms: snapshot.started_at_ms,
                demoted_at_ms: snapshot.demoted_at_ms,
                ended_at_ms: snapshot.ended_at_ms,
                complete: snapshot.report.is_none(),
            });
        }
        Ok(entries)
    }

    /// Commands whose end is not recorded: running and stopping.
    pub async fn running(&self) -> Result<Vec<Command>> {
        let listed = self.list(false).await?;
        let open = listed.into_iter().filter(|snapshot| snapshot.phase != Phase::Ended);
        Ok(open.map(|snapshot| Command { session: self.clone(), id: snapshot.id }).collect())
    }
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

    async fn look(&self, with_text: bool) -> Result<Snapshot> {
        let dir = self.dir()?;
        let standing = match settle::settle(&self.session, &dir, Report::default()).await {
            Ok((standing, _)) => standing,
            // What cannot be read is said, and what can be read is shown.
            Err(error) => return Ok(self.damaged(&dir, &error)),
        };
        let mut snapshot = match standing {
            Standing::Ended(exit) => {
                let output = settle::final_output(&dir, &exit);
                let mut snapshot = Snapshot::of_exit(*exit, output, Some(dir.log_path()));
                if dir.lease_is_held()? {
                    self.ask(&dir, &mut snapshot, with_text).await?;
                }
                snapshot
            }
            Standing::Watched => {
                let mut snapshot = self.from_records(&dir);
                if !self.ask(&dir, &mut snapshot, with_text).await? {
                    // It ended between the two looks: its end is recorded now.
                    if let Some(exit) = dir.exit()? {
                        let output = settle::final_output(&dir, &exit);
                        snapshot = Snapshot::of_exit(exit.record, output, Some(dir.log_path()));
                    }
                }
                snapshot
            }
            Standing::Lost(verdict) => {
                let mut snapshot = self.from_records(&dir);
                snapshot.lose(&verdict);
                snapshot
            }
            Standing::Deferred(note) => {
                let mut snapshot = self.from_records(&dir);
                snapshot.phase = Phase::Stopping;
                snapshot.pid = None;
                snapshot.note = Some(note);
                snapshot
            }
        };
        if with_text && snapshot.output.tail.is_empty() && snapshot.output.bytes > 0 {
            self.show_tail(&dir, &mut snapshot);
        }
        Ok(snapshot)
    }

    /// Takes over what the supervisor says; false if there is none any more.
    async fn ask(&self, dir: &CommandDir, snapshot: &mut Snapshot, with_text: bool) -> Result<bool> {
        match probe::status(dir).await? {
            Probe::Live(status, tail) => {
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

    fn from_records(&self, dir: &CommandDir) -> Snapshot {
        let request = dir.request();
        let status = dir.status().ok().flatten().map(|loaded| loaded.record);
        let damage = request.as_ref().err().map(ToString::to_string);
        let request = request.ok().flatten().map(|loaded| loaded.record);
        let mut snapshot =
            Snapshot::of_open(self.id, *self.session.id(), request, status.as_ref(), Some(dir.log_path()));
        snapshot.note = damage;
        snapshot
    }

    /// A command whose end is recorded and cannot be read.
    fn damaged(&self, dir: &CommandDir, error: &Error) -> Snapshot {
        let mut snapshot = self.from_records(dir);
        snapshot.phase = Phase::Ended;
        snapshot.ok = Some(false);
        snapshot.pid = None;
        snapshot.output.capturing = false;
        snapshot.errors.push(error.to_string());
        snapshot.note = Some(error.to_string());
        snapshot
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
        let separate = matches!(dir.request(), Ok(Some(record)) if record.request.streams == Streams::Separate);
        Stored::open(dir, self.recorded_output(dir)?, separate)
    }

    fn recorded_output(&self, dir: &CommandDir) -> Result<OutputState> {
        if let Some(exit) = dir.exit()? {
            return Ok(settle::final_output(dir, &exit));
        }
        let status = dir.status()?.map(|status| status.record);
        let mut output = status.as_ref().map(|status| status.output).unwrap_or_default();
        if status.is_none_or(|status| status.capturing) {
            // Nobody closed the log, so there is no trailer: the file says how much came.
            let log = outlast_host::store::reader::LogReader::open(dir.dir(), output.start, output.gap)?;
            output.bytes = log.len()?;
        }
        Ok(output)
    }
}
