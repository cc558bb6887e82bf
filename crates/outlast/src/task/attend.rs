//! Attends to one task from its start to its end: the clock, its stop, its records.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_core::ending::{Clock, End, Fact};
use outlast_core::lifecycle::{Action, Cause, Event, Life};
use outlast_core::notice::{Bound, limit_sentence};
use outlast_core::record::{ExitRecord, Phase, StatusRecord, TextRecord, schema};
use outlast_core::request::to_hex;
use outlast_core::text::TEXT_BYTES;
use outlast_core::text::excerpt::{excerpt_text, head_and_tail};
use outlast_host::clock;
use outlast_host::store::records::Records;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::shared::{Ask, Shared};
use super::stack::Caught;
use crate::command::Command;
use crate::keeper::ANSWER_BOUND;
use crate::places::Place;
use crate::race::{self, First};
use crate::session::Session;
use crate::text_policy::Ruled;

/// The code of a task that ended in an error.
const ERROR: i32 = 1;
/// The code of a task that panicked, which is that of a program in Rust.
const PANICKED: i32 = 101;
/// What stands for a body that was dropped, because it did not heed its stop.
const DROPPED: i32 = 9;

/// The work of a task.
pub(super) type Body = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;
type Running = JoinHandle<Result<Result<String, String>, String>>;

/// What is needed to attend to a task.
pub(super) struct Attendant {
    pub(super) core: Arc<Shared>,
    pub(super) life: Life,
    pub(super) records: Option<Records>,
    pub(super) asks: mpsc::UnboundedReceiver<Ask>,
    pub(super) stop: watch::Sender<bool>,
    pub(super) door: Option<JoinHandle<()>>,
    pub(super) text: String,
    pub(super) limit: Option<String>,
    /// Freed last, when nothing of the task is left.
    pub(super) place: Option<Place>,
}

impl Attendant {
    /// From the start of the body to the end of all that belongs to it.
    pub(super) async fn attend(mut self, body: Body, started: oneshot::Sender<()>) {
        self.be_kept().await;
        let hub = self.core.session.hub().clone();
        hub.starting(&self.core.request, &self.core.kind).await;
        let mut body: Running = tokio::spawn(Caught(Box::pin(body)));
        hub.runs(&self.core.request, &self.core.kind, Some(self.core.me.pid));
        if self.records.is_some() {
            self.core.session.attend(self.core.request.id, self.core.request.consumer.clone(), None);
        }
        // Whoever started it may have gone away: it runs all the same.
        let _ = started.send(());
        let mut dropped = false;
        let ended = loop {
            let deadline = if dropped { None } else { self.life.deadline() };
            match within(deadline, race::first(&mut body, self.asks.recv())).await {
                Some(First::Left(ended)) => break ended,
                Some(First::Right(Some(Ask { cause, grace }))) => {
                    self.step(Event::Stop { cause, grace }, &body, &mut dropped)
                }
                Some(First::Right(None)) | None => self.step(Event::Tick, &body, &mut dropped),
            }
        };
        let fact = self.take_end(ended);
        for action in self.life.step(Event::LeaderReaped { fact, tree_left: false }, clock::monotonic()) {
            match action {
                Action::Record => self.record(),
                Action::Close => self.close(),
                Action::Demote(_) | Action::Signal | Action::Sweep => {}
            }
        }
    }

    /// The session's keeper takes it in charge before its work begins, so that the session cannot end without it.
    async fn be_kept(&self) {
        if self.records.is_none() {
            return;
        }
        let mut kept = self.core.kept.subscribe();
        let in_charge = async {
            self.core.give_in_charge().await?;
            let _ = kept.wait_for(|kept| *kept).await;
            Ok::<_, crate::error::Error>(())
        };
        match tokio::time::timeout(ANSWER_BOUND, in_charge).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.core.hold_against(format!("no keeper has it in charge: {error}")),
            Err(_) => self.core.hold_against("no keeper has it in charge: it did not answer".to_owned()),
        }
    }

    fn step(&mut self, event: Event, body: &Running, dropped: &mut bool) {
        let now = clock::monotonic();
        let state = self.core.state();
        // Output since the last look puts off the end of the idle time.
        if now.saturating_sub(state.last_output) < self.life.quiet(now) {
            self.life.step(Event::Output, state.last_output);
        }
        for action in self.life.step(event, now) {
            match action {
                Action::Signal => {
                    self.stop.send_replace(true);
                    self.count();
                }
                Action::Sweep if !*dropped => {
                    *dropped = true;
                    self.stop.send_replace(true);
                    self.count();
                    body.abort();
                }
                Action::Sweep | Action::Demote(_) | Action::Record | Action::Close => {}
            }
        }
        self.note_limit();
        self.tell_phase();
    }

    fn count(&self) {
        self.core.sink.state().send_modify(|state| state.signals += 1);
    }

    fn note_limit(&mut self) {
        let ms = |ms: Option<u64>| Duration::from_millis(ms.unwrap_or(0));
        let limits = &self.core.request.limits;
        let bound = match self.life.cause() {
            Some(Cause::Clock(Clock::Wall)) => Bound::Wall(ms(limits.wall_ms)),
            Some(Cause::Clock(Clock::Idle)) => Bound::Idle(ms(limits.idle_ms)),
            _ => return,
        };
        self.limit.get_or_insert_with(|| limit_sentence(bound));
    }

    /// Says that it is stopping, as soon as it is.
    fn tell_phase(&mut self) {
        let phase = self.life.phase();
        if self.core.state().phase == phase {
            return;
        }
        let by = match self.life.cause() {
            Some(Cause::Stop { by }) => Some(by.clone()),
            _ => None,
        };
        self.core.sink.state().send_modify(|state| (state.phase, state.stopping_by) = (phase, by));
        self.publish(true);
    }

    /// What the body left: its text, and its end in the terms of a process.
    fn take_end(&mut self, ended: Result<Result<Result<String, String>, String>, tokio::task::JoinError>) -> Fact {
        let (text, fact) = match ended {
            Ok(Ok(Ok(text))) => (text, Fact::Exited(0)),
            Ok(Ok(Err(text))) => (text, Fact::Exited(ERROR)),
            Ok(Err(panicked)) => (panicked, Fact::Exited(PANICKED)),
            // Its body was dropped: nobody knows what it would have said.
            Err(_) => (String::new(), Fact::Signaled(DROPPED)),
        };
        self.text = text;
        fact
    }

    /// The end, in its record before anybody is told.
    pub(super) fn record(&mut self) {
        let end = self.life.end(None).unwrap_or(End::Interrupted);
        self.record_as(end);
    }

    pub(super) fn record_as(&mut self, end: End) {
        let changes = self.core.close_receipts();
        let text = std::mem::take(&mut self.text);
        let core = Arc::clone(&self.core);
        let rule = &core.session.runtime().inner.text_rule;
        let ruled = if text.is_empty() { None } else { rule.look(core.project.as_deref(), &text) };
        let (result, kept) = match ruled {
            Some(ruled) => (None, rule.keep(ruled, |ruled| self.keep_text(ruled))),
            None => (core.sink.close(text, false).map(|text| bounded(text, &core.session)), None),
        };
        let mut exit = self.final_record(end);
        exit.result = result;
        if let Some(records) = &mut self.records
            && let Err(error) = records.write_exit(&exit)
        {
            let error = format!("the end could not be recorded: {error}");
            exit.errors.push(error.clone());
            self.core.hold_against(error);
        }
        if let Err(error) = self.core.session.trace_masked(self.core.request.id, &self.core.sink.masked()) {
            self.core.hold_against(format!("the trace has no line of what was masked: {error}"));
        }
        // Dropped before anybody is told, so that nobody can send to a task of which he knows the end.
        let _ = catch_unwind(AssertUnwindSafe(|| self.core.close_input()));
        let exit = Arc::new(exit);
        let told = Arc::clone(&exit);
        self.core.sink.state().send_modify(move |state| {
            (state.phase, state.stopping_by, state.exit) = (Phase::Ended, None, Some(told));
            (state.changes, state.text) = (changes, kept);
        });
        self.core.session.hub().ended(&exit);
    }

    /// Keeps what the text policy has let through of the final text, which is no output then: in its record, or where it has
    /// none it is given back.
    fn keep_text(&self, ruled: Ruled) -> Option<Arc<TextRecord>> {
        let core = &self.core;
        let text = core.sink.close(ruled.text.unwrap_or_default(), true).map(|text| bounded(text, &core.session));
        let record = TextRecord {
            schema: schema::TEXT.to_owned(),
            id: core.request.id,
            revision: 0,
            text,
            notice: ruled.notice,
        };
        let Some(dir) = &core.dir else { return Some(Arc::new(record)) };
        if let Err(error) = dir.write_text(&record) {
            core.hold_against(format!("its final text could not be kept: {error}"));
        }
        let command = Command { session: core.session.clone(), id: core.request.id };
        if let Some(why) = ruled.why
            && let Err(error) = core.session.trace_text(&command, why)
        {
            core.hold_against(format!("the trace has no line of its final text: {error}"));
        }
        None
    }

    fn final_record(&self, end: End) -> ExitRecord {
        let core = &self.core;
        let now = clock::monotonic();
        let draft = core.draft();
        let failed = core.sink.failure().is_some();
        ExitRecord {
            end,
            limit: self.limit.clone(),
            ended_at_ms: clock::unix_ms(),
            duration_ms: crate::request::millis(now.saturating_sub(core.started)),
            tail: failed.then(|| to_hex(&core.sink.tail())),
            ..draft
        }
    }

    /// The log gets its trailer, the door goes, and the place is free.
    pub(super) fn close(&mut self) {
        let number = self.core.state().exit.as_deref().and_then(|exit| exit.end.exit_code());
        let gap = self.core.sink.finish(None).gap;
        if gap.is_some() {
            // Readers must know the gap before the tail is moved over it.
            self.publish(true);
        }
        let output = self.core.sink.finish(Some(number));
        self.publish(false);
        if let Some(mut records) = self.records.take() {
            records.give_back();
            records.close_door();
        }
        if let Some(door) = self.door.take() {
            door.abort();
        }
        self.place = None;
        let texts = &self.core.session.runtime().inner.texts;
        let core: Weak<Shared> = Arc::downgrade(&self.core);
        texts.add(core, clock::monotonic());
        texts.look(clock::monotonic());
        self.core.sink.state().send_modify(|state| (state.output, state.over) = (output, true));
    }

    /// Replaces `status.json`.
    pub(super) fn publish(&self, capturing: bool) {
        let Some(records) = &self.records else { return };
        if let Err(error) = records.write_status(&status(&self.core, capturing)) {
            self.core.hold_against(error);
        }
    }
}

/// A text of at most as many bytes as is shown of any, with a mark where something is missing. Its secrets are masked
/// before it is cut, where that is the policy: half of one could not be known for one any more.
fn bounded(text: String, session: &Session) -> String {
    if text.len() <= TEXT_BYTES {
        return text;
    }
    let text = session.redactor().map_or(text.clone(), |redactor| redactor.text(&text));
    let (head, tail) = head_and_tail(text.len() as u64, TEXT_BYTES);
    let part = |range: std::ops::Range<u64>| &text.as_bytes()[range.start as usize..range.end as usize];
    excerpt_text(text.len() as u64, part(head), part(tail))
}

/// The status as it is now.
pub(super) fn status(core: &Shared, capturing: bool) -> StatusRecord {
    StatusRecord {
        schema: schema::STATUS.to_owned(),
        id: core.request.id,
        phase: core.state().phase,
        leader: None,
        supervisor: core.me.clone(),
        started_at_ms: core.started_at_ms,
        demoted_at_ms: Some(core.started_at_ms),
        containment: "owner".to_owned(),
        output: core.sink.output(),
        capturing,
        limits_kept_by: None,
        errors: core.all_errors(),
        joinable: None,
    }
}

/// Waits for something until a time of the monotonic clock; none when that has come.
async fn within<T>(until: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => tokio::time::timeout(until.saturating_sub(clock::monotonic()), future).await.ok(),
        None => Some(future.await),
    }
}
