//! The end of a session: everything is stopped, what was discarded is reported, once.

use std::time::Duration;

use outlast_core::delivery::Subject;
use outlast_core::record::{ClosedRecord, Discarded, ExitRecord, TraceLine, schema};
use outlast_core::wire::FromKeeper;
use outlast_host::store::session::SessionDir;
use outlast_host::store::{aliases, ledger, trace};
use outlast_host::sys::pidfd;
use outlast_host::{clock, mark};
use rustix::process::Signal;

use super::Keeper;
use crate::context::fresh_event;

/// How long verified ends are waited for when nobody says, in milliseconds.
const END_BOUND_MS: u64 = 15_000;

/// An end of the session that is under way.
pub struct Closing {
    by: String,
    until: Duration,
    detached: bool,
    visitors: Vec<u32>,
    running: Vec<ExitRecord>,
    left: Vec<ExitRecord>,
}

impl Closing {
    /// When the wait for verified ends is over.
    pub fn until(&self) -> Duration {
        self.until
    }
}

impl Keeper {
    /// Stops everything of the session; detached commands too where that is asked.
    pub(super) fn begin_closing(&mut self, by: &str, visitor: Option<(u32, u64)>, detached: bool) {
        self.hear_tasks();
        let bound = Duration::from_millis(visitor.map_or(END_BOUND_MS, |(_, bound_ms)| bound_ms));
        let until = clock::monotonic() + bound;
        if let Some(closing) = &mut self.closing {
            closing.until = closing.until.min(until);
            closing.visitors.extend(visitor.map(|(number, _)| number));
        } else if self.closed && visitor.is_none() {
            return;
        } else {
            self.adopt_unreached();
            let unreached = self.end_unreached(detached);
            let busy = |meant: bool| {
                let charges = self.charges.values().filter(|charge| charge.is_running());
                let wanted = charges.filter(|charge| (detached || !charge.is_detached()) == meant);
                wanted.filter_map(|charge| charge.command().cloned()).collect()
            };
            let mut running: Vec<ExitRecord> = busy(true);
            running.extend(unreached);
            // What an earlier keeper's death left behind ends now, whoever was to write about it.
            self.strays_left = true;
            self.closing = Some(Closing {
                by: by.to_owned(),
                until,
                detached,
                visitors: visitor.map(|(number, _)| number).into_iter().collect(),
                running,
                left: busy(false),
            });
        }
        self.order_stop(Keeper::end_word(), detached);
        self.close_if_due();
    }

    /// Ends commands whose supervisors have no door, by the signal that says it without one. A supervisor is known by the
    /// mark in its lease, which it holds. The lease of a task is its owner's, who is nobody to be signalled.
    fn end_unreached(&mut self, detached: bool) -> Vec<ExitRecord> {
        let Some(session) = self.context.dir().cloned() else { return Vec::new() };
        let mut ended = Vec::new();
        self.unreached.retain(|id| {
            let Ok(Some(command)) = session.command(*id) else { return false };
            let request = command.request().ok().flatten().map(|request| request.record);
            let Some(request) =
                request.filter(|asked| !asked.is_task() && (detached || asked.request.ttl_ms().is_none()))
            else {
                return false;
            };
            let supervisor = command.lease_mark().ok().flatten().and_then(|mark| mark::open(&mark).ok().flatten());
            if let (Some(supervisor), Ok(true)) = (supervisor, command.lease_is_held()) {
                // One that has ended by now frees its lease.
                let _ = pidfd::signal(&supervisor, Signal::TERM);
            }
            let started = command.status().ok().flatten().map(|status| status.record.started_at_ms);
            let draft = ExitRecord::draft(&request.request, &request.program);
            let started_at_ms = started.unwrap_or(draft.started_at_ms);
            ended.push(ExitRecord { alias: Some(request.alias), started_at_ms, ..draft });
            true
        });
        ended
    }

    /// Forgets those that have ended.
    fn look_at_unreached(&mut self) {
        let Some(session) = self.context.dir() else { return };
        self.unreached.retain(|id| {
            let command = session.command(*id).ok().flatten();
            command.is_some_and(|command| command.lease_is_held().unwrap_or(true))
        });
    }

    /// Reports the end once nothing is left to wait for, or the bound is over.
    pub(super) fn close_if_due(&mut self) {
        if self.closing.is_some() {
            self.look_at_unreached();
        }
        let Some(closing) = &self.closing else { return };
        let detached = closing.detached;
        let busy = self.charges.values().any(|charge| charge.is_busy() && (detached || !charge.is_detached()));
        let waiting = busy || self.strays_left || !self.vacant.is_empty() || !self.unreached.is_empty();
        if waiting && clock::monotonic() < closing.until {
            return;
        }
        let Some(closing) = self.closing.take() else { return };
        let report = self.report(&closing);
        // An end that could not be recorded has not happened: it can be asked for again.
        self.closed = report.is_ok();
        let answer = match report {
            Ok(report) => FromKeeper::Closed { report: Box::new(report) },
            Err(reason) => FromKeeper::Failed { reason },
        };
        for number in closing.visitors {
            self.say(number, &answer);
        }
    }

    fn report(&mut self, closing: &Closing) -> Result<ClosedRecord, String> {
        let Some((session, record)) = self.context.session.clone() else {
            return Ok(self.closed_record(closing, Vec::new()));
        };
        if let Ok(Some(closed)) = session.closed() {
            return Ok(closed.record);
        }
        let unwinding: Vec<_> = self
            .charges
            .values()
            .filter(|charge| charge.is_running())
            .filter_map(|charge| charge.command())
            .map(|draft| draft.id)
            .chain(self.unreached.iter().copied())
            .collect();
        let mut commands: Vec<Discarded> = Vec::new();
        for draft in &closing.running {
            let state = if unwinding.contains(&draft.id) { "unwinding" } else { "running" };
            commands.push(discarded(draft, state, None));
        }
        commands.extend(closing.left.iter().map(|draft| discarded(draft, "detached", None)));
        commands.extend(untold(&session, &commands));
        commands.sort_by_key(|command| command.id);
        let report = self.closed_record(closing, commands);
        // Ending twice is the same as once: the first report stands.
        if let Err(error) = session.write_closed(&report)
            && !error.is_taken()
        {
            return Err(format!("its commands were ended, and that cannot be recorded: {error}; then end it again"));
        }
        for command in report.commands.iter().filter(|command| command.state != "detached") {
            let line = abandoned_line(&report, command, &record.start_event);
            // The report is in closed.json; the trace is for people.
            let _ = trace::append(session.dir(), &line, record.durability);
        }
        Ok(report)
    }

    fn closed_record(&self, closing: &Closing, commands: Vec<Discarded>) -> ClosedRecord {
        let unknown = outlast_core::id::SessionId::from_parts(0, 0, 0);
        ClosedRecord {
            schema: schema::CLOSED.to_owned(),
            session: self.context.dir().map_or(unknown, SessionDir::id),
            by: closing.by.clone(),
            at_ms: clock::unix_ms(),
            commands,
        }
    }
}

/// Demoted commands that had ended and that the consumer who started them was not told of.
fn untold(session: &SessionDir, known: &[Discarded]) -> Vec<Discarded> {
    let told = ledger::read(session.dir()).unwrap_or_default();
    let mut found = Vec::new();
    for (alias, id) in aliases::all(session.dir()).unwrap_or_default() {
        if known.iter().any(|command| command.id == id) {
            continue;
        }
        let exit = session.command(id).ok().flatten().and_then(|command| command.exit().ok().flatten());
        let Some(exit) = exit.map(|exit| exit.record).filter(ExitRecord::is_news) else { continue };
        if !told.is_told(&exit.consumer, Subject { id, alias: Some(alias) }) {
            found.push(discarded(&exit, "ended", Some(exit.clone())));
        }
    }
    found
}

fn discarded(draft: &ExitRecord, state: &str, exit: Option<ExitRecord>) -> Discarded {
    let now = clock::unix_ms();
    Discarded {
        id: draft.id,
        alias: draft.alias,
        kind: draft.kind.clone(),
        program: draft.program.clone(),
        command: draft.command.clone(),
        label: draft.label.clone(),
        running_ms: exit.as_ref().map_or_else(|| now.saturating_sub(draft.started_at_ms), |exit| exit.duration_ms),
        state: state.to_owned(),
        exit: exit.map(Box::new),
    }
}

fn abandoned_line(report: &ClosedRecord, command: &Discarded, parent: &str) -> TraceLine {
    let exit = command.exit.as_deref();
    TraceLine {
        kind: "abandoned".to_owned(),
        event: fresh_event().to_string(),
        parent: Some(parent.to_owned()),
        session: report.session.to_string(),
        at_ms: report.at_ms,
        id: Some(command.id),
        program: Some(command.program.lossy()),
        command: Some(outlast_core::request::line_of(&command.command)),
        running_ms: Some(command.running_ms),
        exit_code: exit.and_then(|exit| exit.end.exit_code()),
        log: exit.map(|exit| format!("work/{}/output.log", exit.id)),
        bytes: exit.map(|exit| exit.output.bytes),
        detail: Some(command.state.clone()),
        ..TraceLine::default()
    }
}
