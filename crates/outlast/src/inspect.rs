//! The commands of a session: found by name, and listed.

use outlast_core::id::{CommandId, Resolved, Selector};
use outlast_core::record::Phase;
use outlast_host::store::session::SessionDir;
use outlast_host::store::{aliases, contexts};

use crate::command::Command;
use crate::error::{Error, Result};
use crate::race;
use crate::session::Session;
use crate::snapshot::Snapshot;

/// The most threads that read records at a time, and the fewest records that are worth another one.
const MOST_THREADS: usize = 4;
const FEWEST_FOR_A_THREAD: usize = 256;

/// A view of a command for machines: nothing in it comes from the command or its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The command.
    pub id: CommandId,
    /// `process`, or the kind of a task.
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

    /// As [`Session::command`], and a whole id may be one of an earlier session of the same context: such a command
    /// can be read and waited for, not acted on.
    pub async fn command_to_read(&self, selector: &str) -> Result<Command> {
        match self.command(selector).await {
            Err(Error::EarlierSession { id, session, .. }) => {
                Ok(Command { session: self.runtime().open_session(&session).await?, id })
            }
            found => found,
        }
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
            let pruned = if snapshot.pruned_at_ms.is_some() { "; its output was pruned" } else { "" };
            return Ok(Some(Error::EarlierSession { id, session: *session.id(), known: known + pruned }));
        }
        Ok(None)
    }

    /// The earlier sessions of the same context, newest first; none without a context.
    pub(crate) async fn predecessors(&self) -> Result<Vec<Session>> {
        let Some(own) = self.record().filter(|record| !record.context.is_empty()) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for id in contexts::list(self.runtime().state()?, &own.context)?.into_iter().rev().filter(|id| *id < own.id) {
            let session = match self.runtime().open_session(&id).await {
                Ok(session) => session,
                // Its creator died before it was made.
                Err(Error::UnknownSession { .. }) => continue,
                Err(error) => return Err(error),
            };
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
    /// and open capture count), or all. One whose records are damaged carries a note that says so; one that
    /// cannot be looked at now fails the call, so that it never passes for one that is not there.
    pub async fn list(&self, all: bool) -> Result<Vec<Snapshot>> {
        let Some(dir) = self.dir_if_any()? else { return Ok(Vec::new()) };
        let ids = dir.commands()?;
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST_THREADS));
        let share = ids.len().div_ceil(threads).max(FEWEST_FOR_A_THREAD);
        let scans = ids.chunks(share).map(|ids| {
            let (dir, ids) = (dir.clone(), ids.to_vec());
            tokio::task::spawn_blocking(move || scan(&dir, &ids, all))
        });
        let (mut snapshots, mut open) = (Vec::new(), Vec::new());
        for scanned in race::all(scans.collect::<Vec<_>>()).await {
            let (ended, rest) =
                scanned.map_err(|error| Error::Unreachable(format!("a look at commands failed: {error}")))??;
            snapshots.extend(ended.into_iter().map(|mut snapshot| {
                if let Some(mut mask) = self.mask(false) {
                    snapshot.mask(&mut mask);
                }
                snapshot
            }));
            open.extend(rest.into_iter().map(|id| Command { session: self.clone(), id }));
        }
        // The others need an answer of somebody; all are asked at a time.
        for answer in race::all(open.iter().map(Command::brief)).await {
            let snapshot = answer?;
            if snapshot.damaged.is_some() && snapshot.end.is_none() {
                // No command was ever recorded there; `doctor` names it.
                continue;
            }
            if all || snapshot.phase != Phase::Ended || snapshot.output.capturing || !snapshot.survivors.is_empty() {
                snapshots.push(snapshot);
            }
        }
        snapshots.sort_by_key(|snapshot| snapshot.id);
        Ok(snapshots)
    }

    /// The content-free view, newest first. A damaged record is an error that names the command.
    pub async fn entries(&self) -> Result<Vec<Entry>> {
        let Some(dir) = self.dir_if_any()? else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        for id in dir.commands()?.into_iter().rev() {
            let snapshot = Command { session: self.clone(), id }.look(false).await?;
            if let Some(reason) = snapshot.damaged {
                return Err(Error::Damaged { id, reason });
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

/// Commands that are over, by their exit record alone (none of them unless `all`), and the ids of those
/// that somebody has to be asked about.
fn scan(dir: &SessionDir, ids: &[CommandId], all: bool) -> Result<(Vec<Snapshot>, Vec<CommandId>)> {
    let (mut ended, mut open) = (Vec::new(), Vec::new());
    for id in ids {
        // One that was removed meanwhile is none.
        let Some(command) = dir.command(*id)? else { continue };
        if !all && command.has_exit()? && !command.lease_is_held()? {
            continue;
        }
        match command.exit() {
            // Where nobody was left behind nothing can come any more.
            Ok(Some(exit)) if exit.survivors.is_empty() => {
                if !all {
                    continue;
                }
                let output = exit.output;
                ended.push(Snapshot::of_exit(exit.record, output, Some(&command))?);
            }
            Err(error) if error.is_unknown() => return Err(error.into()),
            Ok(_) | Err(_) => open.push(*id),
        }
    }
    Ok((ended, open))
}
