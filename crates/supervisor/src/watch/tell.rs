//! Materialisation and demotion: records come to be, the trace gets its line, the caller its answer.

use std::os::fd::OwnedFd;
use std::time::Duration;

use outlast_core::ending::End;
use outlast_core::lifecycle::{Cause, Life};
use outlast_core::record::{ExitRecord, PROCESS, StatusRecord, TraceLine, schema};
use outlast_core::request::{Request, to_hex};
use outlast_core::wire::{DemotedBy, FromSupervisor, ToOwnKeeper};
use outlast_host::clock;
use outlast_host::store::records::{self, Unpublished};
use outlast_host::store::trace;

use super::{DOOR, Post, Watch};
use crate::context::fresh_event;
use crate::poll::Interest;

/// How long after a demotion a supervisor waits until it gives memory back, so that nobody waits for that.
const REST: Duration = Duration::from_millis(200);

/// The end that a cause leads to, as long as the kernel has not said what it did.
fn foreseen(cause: &Cause) -> End {
    match cause {
        Cause::Stop { by } => End::Stopped { by: by.clone(), fact: None },
        Cause::Clock(clock) => End::TimedOut { clock: *clock, fact: None },
        Cause::Resource(resource) => End::Limit { resource: *resource, fact: None },
        Cause::SessionEnd => End::Abandoned { fact: None },
    }
}

impl Post {
    /// The line of an end in the foreground, where the trace holds all ends. One that is told later has that line then.
    pub(super) fn trace_finished(&self, request: &Request, exit: &ExitRecord) {
        let Some((session, record)) = self.context.session.as_ref().filter(|_| request.trace_all) else { return };
        let line = TraceLine {
            kind: "finished".to_owned(),
            event: fresh_event().to_string(),
            parent: Some(request.turn.clone().unwrap_or_else(|| record.start_event.clone())),
            session: request.session.to_string(),
            at_ms: clock::unix_ms(),
            id: Some(request.id),
            ..TraceLine::default()
        };
        // Its caller has it; nobody is left here who could be told of a line that is missing.
        let _ = trace::append(session.dir(), &line.with_end(exit.clone()), record.durability);
    }
}

impl Watch<'_> {
    /// Moves the command to the background, or says why it stays.
    pub(super) fn demote(&mut self, by: DemotedBy) {
        if self.records.is_some() {
            self.demoted(by);
            return;
        }
        match self.build() {
            Ok(unpublished) => self.publish(unpublished, Some(by)),
            Err(reason) => self.stay(reason),
        }
    }

    /// More came than is held: the log takes it.
    pub(super) fn overflow(&mut self) {
        match self.build() {
            Ok(unpublished) => self.publish(unpublished, None),
            Err(reason) => {
                // Without records nothing can be dropped silently: it goes on being held, and is said. Where none can be
                // made any more, those who were passed it need no more of it, and the others get the end.
                if !self.capture.forgot() && !self.errors.contains(&reason) {
                    self.errors.push(reason);
                }
                let passed = !self.callers.is_empty() && self.callers.iter().all(|caller| caller.follows);
                let hopeless = self.post.context.dir().is_none() || self.capture.holds_more_than_a_log();
                if self.exit.is_none() && hopeless {
                    self.capture.forget_held(if passed { 0 } else { 2 * self.request.hold });
                }
            }
        }
    }

    fn build(&mut self) -> Result<Unpublished, String> {
        if self.capture.forgot() {
            return Err("there was no place for a log, and what came before is not kept any more".into());
        }
        let Some(session) = self.post.context.dir() else {
            return Err("there is no session directory to put records in".into());
        };
        let built = records::build(session, PROCESS, &self.request, &self.program, &self.post.me);
        self.unmade |= built.is_err();
        built
    }

    /// No records will be made any more: what there is of them goes.
    pub(super) fn give_up_records(&mut self) {
        if self.told && self.records.is_none() && std::mem::take(&mut self.unmade) {
            self.post.context.dir().into_iter().for_each(|session| session.remove_unmade(self.request.id));
        }
    }

    /// Writes log and status, puts the records in place and tells it; with `by` as a demotion.
    pub(super) fn publish(&mut self, unpublished: Unpublished, by: Option<DemotedBy>) {
        let dir = unpublished.dir().clone();
        if by.is_some() {
            self.demoted_at_ms = Some(clock::unix_ms());
        }
        self.capture.open_log(dir.dir(), &self.request.line());
        self.store_receipts(&dir);
        if let Err(error) = dir.write_status(&self.status(true)) {
            self.errors.push(error.to_string());
        }
        match unpublished.publish() {
            Ok(records) => {
                if let Err(error) = self.post.poll.add(&records.door, DOOR, Interest::Read) {
                    self.errors.push(format!("nobody can knock at {}: {error}", records.dir.path().display()));
                }
                let told = FromSupervisor::Materialised { alias: records.alias, output: self.capture.output() };
                self.records = Some(records);
                self.forget_receipts();
                self.say_readers(&told);
            }
            Err(reason) => {
                self.unmade = true;
                self.errors.push(reason.clone());
                self.demoted_at_ms = None;
                self.stay(reason);
                return;
            }
        }
        match by {
            Some(by) => self.demoted(by),
            None => self.tell_draft(),
        }
    }

    /// The line in the trace, then the keeper; the caller whose reason it was is told after this. Whoever has
    /// the id finds all of it.
    fn demoted(&mut self, by: DemotedBy) {
        self.demoted_at_ms.get_or_insert_with(clock::unix_ms);
        self.trace_demotion(by);
        self.publish_status(true);
        self.tell_draft();
        // It waits from here on, maybe for days; but first its callers are told.
        self.rest_at = Some(clock::monotonic() + REST);
    }

    fn trace_demotion(&mut self, by: DemotedBy) {
        let Some((session, record)) = &self.post.context.session else { return };
        let line = TraceLine {
            kind: "demoted".to_owned(),
            event: fresh_event().to_string(),
            parent: Some(self.request.turn.clone().unwrap_or_else(|| record.start_event.clone())),
            session: self.request.session.to_string(),
            at_ms: clock::unix_ms(),
            id: Some(self.request.id),
            program: Some(self.program.lossy()),
            command: Some(self.request.line()),
            grace_ms: match by {
                DemotedBy::Background => Some(0),
                DemotedBy::Grace | DemotedBy::Asked | DemotedBy::CallerGone => self.request.grace_ms,
            },
            detail: serde_json::to_value(by).ok().and_then(|word| word.as_str().map(str::to_owned)),
            ..TraceLine::default()
        };
        if let Err(error) = trace::append(session.dir(), &line, record.durability) {
            let line = TraceLine { kind: "unrecorded".to_owned(), event: fresh_event().to_string(), ..line };
            // The records are what a reconciler reads: the line is for people, and its failure is told.
            let _ = trace::append(session.dir(), &line, record.durability);
            self.errors.push(format!("the trace has no line of this demotion: {error}"));
        }
    }

    /// Says in the trace what was masked before it was stored. It has no text of it, and no reader sees any.
    pub(super) fn trace_masked(&mut self) {
        let counts = self.capture.take_masked();
        let Some((session, record)) = self.post.context.session.as_ref().filter(|_| !counts.is_empty()) else { return };
        let line = TraceLine {
            kind: "redacted".to_owned(),
            event: fresh_event().to_string(),
            parent: Some(record.start_event.clone()),
            session: self.request.session.to_string(),
            at_ms: clock::unix_ms(),
            id: Some(self.request.id),
            redacted: Some(counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()),
            ..TraceLine::default()
        };
        if let Err(error) = trace::append(session.dir(), &line, record.durability) {
            self.errors.push(format!("the trace has no line of what was masked: {error}"));
        }
    }

    /// Whether the end of this command is a completion.
    pub(super) fn is_demoted(&self) -> bool {
        self.demoted_at_ms.is_some()
    }

    /// Everything held against the records so far.
    pub(super) fn all_errors(&self) -> Vec<String> {
        self.errors.iter().cloned().chain(self.capture.failures()).collect()
    }

    /// The exit record as far as it is known.
    pub(super) fn draft_now(&self) -> ExitRecord {
        let mut exit = ExitRecord::draft(&self.request, &self.program);
        exit.containment = self.containment().to_owned();
        exit.alias = self.records.as_ref().map(|records| records.alias);
        exit.demoted = self.is_demoted();
        exit.started_at_ms = self.started_at_ms;
        exit.demoted_at_ms = self.demoted_at_ms;
        exit.errors = self.all_errors();
        exit.output = self.capture.output();
        exit.tail = (!exit.output.whole).then(|| to_hex(self.capture.tail()));
        exit.leader = Some(self.leader.clone());
        exit.limit = self.limit.clone();
        exit.end = self.life.cause().map_or(End::Lost, foreseen);
        exit.limits_kept_by = self.limits_kept_by();
        exit
    }

    /// Who keeps the bounds on memory and processes.
    fn limits_kept_by(&self) -> Option<String> {
        let limits = &self.request.limits;
        let any = limits.memory.is_some() || limits.pids.is_some();
        any.then(|| if self.sampler.is_some() { "sampling" } else { "kernel" }.to_owned())
    }

    /// How the tree is held together.
    pub(super) fn containment(&self) -> &'static str {
        if self.post.cage.is_some() { "cgroup" } else { "subreaper" }
    }

    /// Tells the keeper what it needs to finish the record should this process vanish.
    pub(super) fn tell_draft(&mut self) {
        self.tell_draft_with(None);
    }

    /// As `tell_draft`, for the first time: with a descriptor of the leader, from which the keeper learns
    /// the end even if this process reaps it and dies before it can say so.
    pub(super) fn introduce(&mut self) {
        // Without a descriptor to spare the keeper knows what it reaps itself.
        let leader = rustix::io::fcntl_dupfd_cloexec(&self.pidfd, 3).ok();
        self.tell_draft_with(leader);
    }

    fn tell_draft_with(&mut self, leader: Option<OwnedFd>) {
        let message = ToOwnKeeper::Changed { draft: Box::new(self.draft_now()), materialised: self.records.is_some() };
        self.post.tell_keeper(&message, leader);
    }

    /// The status as it is now.
    fn status(&self, capturing: bool) -> StatusRecord {
        StatusRecord {
            schema: schema::STATUS.to_owned(),
            id: self.request.id,
            phase: Life::phase(&self.life),
            leader: Some(self.leader.clone()),
            supervisor: self.post.me.clone(),
            started_at_ms: self.started_at_ms,
            demoted_at_ms: self.demoted_at_ms,
            containment: self.containment().to_owned(),
            output: self.capture.output(),
            capturing,
            limits_kept_by: self.limits_kept_by(),
            errors: self.all_errors(),
            joinable: self.joinable,
        }
    }

    /// Replaces `status.json`, where there is one.
    pub(super) fn publish_status(&mut self, capturing: bool) {
        let status = self.status(capturing);
        if let Some(records) = &self.records
            && let Err(error) = records.write_status(&status)
            && !self.errors.contains(&error)
        {
            self.errors.push(error);
        }
    }
}
