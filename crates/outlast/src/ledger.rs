//! The ledger of a session: claims, commits, and the trace line of each commit.

use outlast_core::delivery::{CommitOutcome, Heard, LeaseOutcome, Subject, Via};
use outlast_core::id::{Alias, CommandId};
use outlast_core::record::{ProcessMark, TraceLine};
use outlast_host::store::ledger::LockedLedger;
use outlast_host::store::session::SessionDir;
use outlast_host::store::{aliases, trace};
use outlast_host::{clock, mark};

use crate::error::{Error, Result};
use crate::session::{Session, is_alive};

/// Names one claim of this process: pid, start time, boot id and an id of its own.
pub(crate) fn new_claim(session: &Session) -> Result<String> {
    let own = mark::own().map_err(|error| Error::Unreachable(format!("cannot identify this process: {error}")))?;
    Ok(format!("{} {} {} {}", own.pid, own.start, own.boot, session.runtime().new_event_id()?))
}

/// The process that made a claim. What cannot be read is nobody's claim.
fn claimant(claim: &str) -> Option<ProcessMark> {
    let mut parts = claim.split(' ');
    let mut next = || parts.next();
    let (pid, start, boot) = (next()?, next()?, next()?);
    Some(ProcessMark { pid: pid.parse().ok()?, start: start.parse().ok()?, boot: boot.to_owned(), handle: None })
}

/// Asks the ledger something that depends on which claimants live. Where that cannot be known of one nothing is
/// decided, and the error is told.
fn decide<T>(ask: impl FnOnce(&dyn Fn(&str) -> bool) -> T) -> Result<T> {
    let failed = std::cell::RefCell::new(None);
    let lives = |claim: &str| {
        let alive = claimant(claim).map_or(Ok(false), |mark| is_alive(&mark));
        alive.unwrap_or_else(|error| {
            failed.replace(Some(error));
            true
        })
    };
    let decided = ask(&lives);
    failed.into_inner().map_or(Ok(decided), Err)
}

fn open(dir: &SessionDir) -> Result<LockedLedger> {
    Ok(LockedLedger::open(dir.dir(), dir.durability())?)
}

/// Claims the telling of an end.
pub(crate) fn lease(dir: &SessionDir, consumer: &str, subject: Subject, claim: &str) -> Result<LeaseOutcome> {
    let mut locked = open(dir)?;
    let outcome = decide(|lives| locked.ledger.lease(consumer, subject, claim, clock::unix_ms(), lives))?;
    if matches!(outcome, LeaseOutcome::Taken { .. }) {
        locked.write()?;
    }
    Ok(outcome)
}

/// Gives a claim back.
pub(crate) fn release(dir: &SessionDir, consumer: &str, id: CommandId, claim: &str) -> Result<()> {
    let mut locked = open(dir)?;
    locked.ledger.release(consumer, id, claim);
    Ok(locked.write()?)
}

/// Takes the receipts of a command for good; false where that was done before.
pub(crate) fn take_receipts(dir: &SessionDir, consumer: &str, id: CommandId) -> Result<bool> {
    let mut locked = open(dir)?;
    // One that cannot be looked at now is there.
    let kept = |id| !matches!(dir.command(id), Ok(None));
    let taken = locked.ledger.take_receipts(consumer, id, kept);
    if taken {
        locked.write()?;
    }
    Ok(taken)
}

/// A consumer has heard so far of lines that match; false where somebody else told them meanwhile.
pub(crate) fn hear(dir: &SessionDir, consumer: &str, id: CommandId, from: u64, heard: Heard) -> Result<bool> {
    let mut locked = open(dir)?;
    // One that cannot be looked at now runs.
    let runs = |id| dir.command(id).map_or(true, |command| command.is_some_and(|one| !one.has_exit().unwrap_or(false)));
    let ours = locked.ledger.hear(consumer, id, from, heard, runs);
    if ours {
        locked.write()?;
    }
    Ok(ours)
}

/// Makes an end told and writes its line in the trace.
pub(crate) fn commit(
    session: &Session,
    consumer: &str,
    subject: Subject,
    via: Via,
    claim: Option<&str>,
) -> Result<CommitOutcome> {
    let dir = session.dir()?;
    let mut locked = open(dir)?;
    let outcome = decide(|lives| locked.ledger.commit(consumer, subject, via, clock::unix_ms(), claim, lives))?;
    if outcome == CommitOutcome::Committed {
        locked.write()?;
        trace_commits(session, Some((consumer, subject.id)))?;
    }
    Ok(outcome)
}

/// Writes the trace line of every commit that has none, the one just made and those whose committer
/// died in between, and lets the ledger forget what it can.
fn trace_commits(session: &Session, fresh: Option<(&str, CommandId)>) -> Result<()> {
    let dir = session.dir()?;
    let mut locked = open(dir)?;
    let untraced: Vec<(String, CommandId, Via, u64)> = locked
        .ledger
        .untraced()
        .map(|open| (open.consumer.to_owned(), open.id, open.commit.via, open.commit.at_ms))
        .collect();
    for (consumer, id, via, at_ms) in untraced {
        let is_fresh = fresh == Some((consumer.as_str(), id));
        if is_fresh || !is_traced(dir, &consumer, id)? {
            let line = TraceLine { at_ms, ..completed(session, &consumer, id, via)? };
            trace::append(dir.dir(), &line, dir.durability())?;
        }
        locked.ledger.mark_traced(&consumer, id);
        let through = locked.ledger.consumers.get(&consumer).map_or(0, |told| told.through);
        let known = passable(dir, &locked, &consumer, through)?;
        locked.ledger.compact(&consumer, &known);
    }
    Ok(locked.write()?)
}

fn is_traced(dir: &SessionDir, consumer: &str, id: CommandId) -> Result<bool> {
    let lines = trace::read(dir.dir())?;
    Ok(lines
        .iter()
        .any(|line| line.kind == "completed" && line.id == Some(id) && line.consumer.as_deref() == Some(consumer)))
}

fn completed(session: &Session, consumer: &str, id: CommandId, via: Via) -> Result<TraceLine> {
    let dir = session.dir()?;
    let exit = match dir.command(id)? {
        Some(command) => command.exit()?.map(|exit| exit.record),
        None => None,
    };
    let via = serde_json::to_value(via).ok().and_then(|word| word.as_str().map(str::to_owned));
    let line = TraceLine {
        kind: "completed".to_owned(),
        event: session.runtime().new_event_id()?.to_string(),
        parent: session.record().map(|record| record.start_event.clone()),
        session: session.id().to_string(),
        id: Some(id),
        consumer: Some(consumer.to_owned()),
        delivered_via: via,
        ..TraceLine::default()
    };
    Ok(match exit {
        Some(exit) => TraceLine { log: Some(format!("work/{id}/output.log")), ..line.with_end(exit) },
        None => line,
    })
}

/// The aliases above the watermark, up to the first whose command still has to be told.
fn passable(
    dir: &SessionDir,
    locked: &LockedLedger,
    consumer: &str,
    through: u32,
) -> Result<Vec<(Alias, CommandId, bool)>> {
    let told = locked.ledger.consumers.get(consumer);
    let mut known = Vec::new();
    for (alias, id) in aliases::above(dir.dir(), Alias(through))? {
        if told.is_some_and(|told| told.commits.contains_key(&id)) {
            known.push((alias, id, true));
            continue;
        }
        // An alias is given before its command can be found, and an end in the foreground becomes a
        // completion as long as its supervisor can still find its caller gone: both are asked first.
        let being_made = dir.is_being_made(id)?;
        let never_due = match dir.command(id)? {
            Some(command) => !command.lease_is_held()? && command.exit()?.is_some_and(|exit| !exit.is_news()),
            None => !being_made,
        };
        if !never_due {
            break;
        }
        known.push((alias, id, false));
    }
    Ok(known)
}
