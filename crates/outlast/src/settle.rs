//! Finishes the record of a command that nobody watches any more.

use std::time::Duration;

use outlast_core::ending::{End, Fact};
use outlast_core::id::{CommandId, ReportId, SessionId};
use outlast_core::lifecycle;
use outlast_core::record::{
    ExitRecord, Leftover, OutputState, Ownership, RequestRecord, StatusRecord, TraceLine, VerdictRecord, schema,
};
use outlast_core::request::{OsText, Request, line_of};
use outlast_core::wire::{FromKeeper, ToKeeper};
use outlast_host::dir::if_there;
use outlast_host::lock::Lock;
use outlast_host::store::command::CommandDir;
use outlast_host::store::reader::LogReader;
use outlast_host::store::{trace, understood};
use outlast_host::sys::pidfd;
use outlast_host::sys::reap::WaitStatus;
use outlast_host::{clock, mark, proc};
use rustix::process::Signal;

use crate::error::{Error, Result};
use crate::keeper;
use crate::ready;
use crate::session::Session;
use crate::watch::Watch;

/// Environment variable that names the command to everything it starts.
pub(crate) const WORK_ID: &str = "OUTLAST_WORK_ID";
/// How long a killed leftover may take to be gone.
const LEFTOVER_BOUND: Duration = Duration::from_secs(2);

/// How a command stands by its records.
pub(crate) enum Standing {
    /// A supervisor holds its lease and no end is recorded.
    Watched,
    /// Its end is recorded.
    Ended(Box<ExitRecord>),
    /// Nobody knows its end, and that is recorded.
    Lost(Box<VerdictRecord>),
    /// Nobody watches it and its end is not recorded yet; the text says who must do that.
    Deferred(String),
}

/// What a look did about a command that nobody watches any more.
#[derive(Default)]
pub(crate) struct Settled {
    /// Whether it wrote the verdict.
    pub(crate) written: bool,
    /// What went wrong beside the verdict, which stands.
    pub(crate) note: Option<String>,
}

/// On whose behalf verdicts are written.
#[derive(Clone, Copy, Default)]
pub(crate) struct Report {
    /// The report that names them; a verdict without one gets one of its own.
    pub(crate) id: Option<ReportId>,
    /// The session that looks.
    pub(crate) by: Option<SessionId>,
    /// Whether no other owner has to be asked: the caller holds `owner.lock` of the command's session, or its owner was
    /// given time.
    pub(crate) past_owner: bool,
}

/// What is known by the records alone; nothing is changed. None: nobody watches it and no end is there.
pub(crate) fn recorded(dir: &CommandDir) -> Result<Option<Standing>> {
    if let Some(exit) = dir.exit()? {
        return Ok(Some(Standing::Ended(Box::new(exit.record))));
    }
    if dir.lease_is_held()? {
        return Ok(Some(Standing::Watched));
    }
    // An end is written before the lease is freed, so this second look is the one that counts.
    if let Some(exit) = dir.exit()? {
        return Ok(Some(Standing::Ended(Box::new(exit.record))));
    }
    Ok(dir.verdict()?.map(|verdict| Standing::Lost(Box::new(verdict.record))))
}

/// How a command stands; where nobody watches it and no end is recorded, that is put right first: by
/// its keeper, which knows the end, else by a verdict.
pub(crate) async fn settle(session: &Session, dir: &CommandDir, report: Report) -> Result<(Standing, Settled)> {
    loop {
        if let Some(standing) = recorded(dir)? {
            if is_unheard(&standing) && is_told_later(dir)? {
                continue;
            }
            return Ok((standing, Settled::default()));
        }
        // What has neither is no command of ours: nothing is written beside it.
        if understood(dir.request())?.is_none() && understood(dir.status())?.is_none() {
            let note = format!("{} holds no records that can be understood", dir.path().display());
            return Ok((Standing::Deferred(note), Settled::default()));
        }
        match keeper::ask(session.dir()?.dir(), &ToKeeper::Fate { id: dir.id() }, keeper::ANSWER_BOUND).await {
            Ok(Some(FromKeeper::Fate { known: true, .. })) if dir.has_exit()? => continue,
            Ok(Some(FromKeeper::Fate { known: true, .. })) => {
                let note = "its keeper is about to record its end".to_owned();
                return Ok((Standing::Deferred(note), Settled::default()));
            }
            Ok(_) => {}
            Err(error) if error.is_unknown() => return Err(error),
            Err(error) => return Ok((Standing::Deferred(error.to_string()), Settled::default())),
        }
        let held = report.past_owner || session.is_owned_here();
        let owner = if held { None } else { Some(owner_lock(session).await?) };
        if let Some(None) = owner {
            let note = "its end is not recorded; the owner of its session will do that".to_owned();
            return Ok((Standing::Deferred(note), Settled::default()));
        }
        // Taken by somebody else meanwhile: look again.
        let Some(_lease) = dir.try_lease_unsigned()? else { continue };
        if recorded_under_lease(dir)? {
            continue;
        }
        if let Some(exit) = known_here(session, dir).await? {
            dir.write_exit(&exit, None)?;
            return Ok((Standing::Ended(Box::new(exit)), Settled::default()));
        }
        let verdict = write_verdict(session, dir, report).await?;
        // The verdict is the record; a trace that cannot be written does not undo it.
        let note = trace_lost(session, &verdict).err().map(|error| format!("it is not in the trace: {error}"));
        return Ok((Standing::Lost(Box::new(verdict)), Settled { written: true, note }));
    }
}

/// Makes the end a completion, unless somebody is there who can still hear that it was shown, or nothing can be written.
fn is_told_later(dir: &CommandDir) -> Result<bool> {
    let amended = dir.try_lease_unsigned().and_then(|lease| lease.map(|_lease| dir.tell_later()).transpose());
    match amended.map_err(Error::from) {
        Ok(amended) => Ok(amended.is_some()),
        Err(error) if error.is_unwritable() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether it ended in the foreground and its caller has not said that it was shown the end.
fn is_unheard(standing: &Standing) -> bool {
    matches!(standing, Standing::Ended(exit) if exit.is_news() && !exit.demoted)
}

/// The lock of the session's owner; none while it has one. A session of one-shot calls has no owner: who
/// holds the lock there finishes records, and is waited for.
async fn owner_lock(session: &Session) -> Result<Option<Lock>> {
    let dir = session.dir()?;
    let mut wanted = dir.want_owner_lock();
    if let Some(lock) = wanted.try_take()? {
        return Ok(Some(lock));
    }
    if session.record().is_none_or(|record| record.ownership != Ownership::OneShot) {
        return Ok(None);
    }
    let freed = async {
        let mut watch = Watch::on(dir.dir())?;
        loop {
            if let Some(lock) = wanted.try_take()? {
                return Ok(Some(lock));
            }
            watch.changed().await?;
        }
    };
    tokio::time::timeout(keeper::ANSWER_BOUND, freed).await.unwrap_or(Ok(None))
}

fn recorded_under_lease(dir: &CommandDir) -> Result<bool> {
    Ok(dir.has_exit()? || dir.verdict()?.is_some())
}

/// The end as the kernel tells it to this process, where it holds a descriptor of the leader. What else
/// the command left is ended first, as for a verdict. The caller holds the lease.
async fn known_here(session: &Session, dir: &CommandDir) -> Result<Option<ExitRecord>> {
    let (Some(leader), Some(asked), Some(status)) = (session.leader_of(dir.id())?, dir.request()?, dir.status()?)
    else {
        return Ok(None);
    };
    let Ok(ended) = tokio::time::timeout(LEFTOVER_BOUND, ready::process_end(leader)).await else { return Ok(None) };
    let Some(fact) = ended?.and_then(fact_of) else { return Ok(None) };
    end_leftovers(dir.id()).await?;
    let exit = lost_watchers(&asked.record.request, lifecycle::end_without_supervisor(Some(fact)));
    with_records(dir, exit, asked.record, status.record).map(Some)
}

/// An exit record with what the command's other records say.
pub(crate) fn with_records(
    dir: &CommandDir,
    mut exit: ExitRecord,
    asked: RequestRecord,
    status: StatusRecord,
) -> Result<ExitRecord> {
    let output = found_output(dir, &status)?;
    if status.capturing {
        exit.errors.push(UNWATCHED.to_owned());
    }
    Ok(ExitRecord {
        alias: Some(asked.alias),
        program: asked.program,
        demoted: status.demoted_at_ms.is_some(),
        started_at_ms: status.started_at_ms,
        demoted_at_ms: status.demoted_at_ms,
        duration_ms: exit.ended_at_ms.saturating_sub(status.started_at_ms),
        errors: exit.errors.into_iter().chain(status.errors).collect(),
        output,
        containment: status.containment,
        limits_kept_by: status.limits_kept_by,
        leader: status.leader,
        ..exit
    })
}

/// Said of a log that nobody closed.
const UNWATCHED: &str = "supervisor and keeper were killed: what was in the pipes then is not in the log";

/// The output as far as records and log tell: where nobody closed the log, there is no trailer in it and the file says
/// how much came.
pub(crate) fn found_output(dir: &CommandDir, status: &StatusRecord) -> Result<OutputState> {
    let mut output = status.output;
    if status.capturing
        && let Some(log) = if_there(LogReader::open(dir.dir(), output.start, output.gap))?
    {
        output.bytes = output.bytes.max(log.len()?);
        output.whole = false;
    }
    Ok(output)
}

/// What the kernel said, as a fact.
pub(crate) fn fact_of(status: WaitStatus) -> Option<Fact> {
    status.code().map(Fact::Exited).or_else(|| status.signal().map(Fact::Signaled))
}

/// The exit record of a command whose watchers are gone, as far as its request tells it.
pub(crate) fn lost_watchers(request: &Request, end: End) -> ExitRecord {
    let program = request.argv.first().cloned().unwrap_or_else(|| OsText(Vec::new()));
    let now = clock::unix_ms();
    ExitRecord {
        end,
        started_at_ms: now,
        ended_at_ms: now,
        recorded_by: "runtime".to_owned(),
        told: false,
        ..ExitRecord::draft(request, &program)
    }
}

/// Writes that nobody knows the end, or that the owner of a task died, after ending what the command left. The caller holds the lease.
async fn write_verdict(session: &Session, dir: &CommandDir, report: Report) -> Result<VerdictRecord> {
    let runtime = session.runtime();
    let request = understood(dir.request())?;
    let status = understood(dir.status())?;
    let task = request.as_ref().is_some_and(RequestRecord::is_task);
    let (program, command) = match request {
        Some(record) => (record.program, record.request.argv),
        None => (OsText(Vec::new()), Vec::new()),
    };
    let id = match report.id {
        Some(id) => id,
        None => runtime.new_report_id()?,
    };
    let this_boot =
        clock::boot_id().map_err(|error| Error::Unreachable(format!("cannot tell which boot this is: {error}")))?;
    let same_boot = status.as_ref().is_none_or(|status| status.supervisor.boot == this_boot);
    let verdict = VerdictRecord {
        schema: schema::VERDICT.to_owned(),
        session: *session.id(),
        id: dir.id(),
        verdict: if task { "interrupted" } else { "lost" }.to_owned(),
        program,
        command,
        demoted_at_ms: status.as_ref().and_then(|status| status.demoted_at_ms),
        reconciled_by: report.by.filter(|by| by != session.id()),
        report: id.to_string(),
        at_ms: clock::unix_ms(),
        leftovers: if same_boot { end_leftovers(dir.id()).await? } else { Vec::new() },
    };
    dir.write_verdict(&verdict)?;
    Ok(verdict)
}

fn trace_lost(session: &Session, verdict: &VerdictRecord) -> Result<()> {
    let dir = session.dir()?;
    let line = TraceLine {
        kind: verdict.verdict.clone(),
        event: session.runtime().new_event_id()?.to_string(),
        parent: session.record().map(|record| record.start_event.clone()),
        session: verdict.session.to_string(),
        at_ms: verdict.at_ms,
        id: Some(verdict.id),
        program: Some(verdict.program.lossy()),
        command: Some(line_of(&verdict.command)),
        report: Some(verdict.report.clone()),
        ..TraceLine::default()
    };
    Ok(trace::append(dir.dir(), &line, dir.durability())?)
}

/// Ends every process that carries the command's id in its environment, and says what was done.
pub(crate) async fn end_leftovers(id: CommandId) -> Result<Vec<Leftover>> {
    let id = id.to_string();
    let mut leftovers = Vec::new();
    let failed =
        |error: &dyn std::fmt::Display| Error::Unreachable(format!("cannot look for processes of {id}: {error}"));
    for found in proc::find_by_environ(WORK_ID, &id).map_err(|error| failed(&error))? {
        if !found.is_live() || found.pid == std::process::id() {
            continue;
        }
        let result = end_process(found.pid, found.start, &id).await;
        let (done, why) = match result {
            Ok(()) => ("ended".to_owned(), None),
            Err(why) => ("left".to_owned(), Some(why)),
        };
        leftovers.push(Leftover { pid: found.pid, name: found.comm, done, why });
    }
    Ok(leftovers)
}

/// Kills exactly the process that was found, after the proof was repeated on a descriptor of it.
pub(crate) async fn end_process(pid: u32, start: u64, id: &str) -> Result<(), String> {
    let found = mark::mark_of(pid).map_err(|error| error.to_string())?;
    let Some(found) = found.filter(|mark| mark.start == start) else { return Ok(()) };
    let Some(process) = mark::open(&found).map_err(|error| error.to_string())? else { return Ok(()) };
    if !proc::environ_has(pid, WORK_ID, id).map_err(|error| error.to_string())? {
        return Err("it is not proven to belong to the command any more".to_owned());
    }
    match pidfd::signal(&process, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(errno) => return Err(std::io::Error::from(errno).to_string()),
    }
    match tokio::time::timeout(LEFTOVER_BOUND, ready::process_gone(process)).await {
        Ok(gone) => gone.map_err(|error| error.to_string()),
        Err(_) => Err(format!("it did not end within {} s of KILL", LEFTOVER_BOUND.as_secs())),
    }
}

/// The final state of the output: as of the close of capture where that is known, else as of the end.
pub(crate) fn final_output(dir: &CommandDir, exit: &ExitRecord) -> Result<OutputState> {
    let closed = understood(dir.status())?.filter(|status| !status.capturing);
    Ok(closed.map_or(exit.output, |status| status.output))
}
