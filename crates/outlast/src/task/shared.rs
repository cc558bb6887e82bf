//! What everybody knows of one task while this process lives: its records, its state, and where to ask.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::id::Alias;
use outlast_core::lifecycle::{Cause, KILL_BOUND};
use outlast_core::policy::redact::Redactor;
use outlast_core::receipt::{Change, Published, written};
use outlast_core::record::{ExitRecord, Phase, ProcessMark};
use outlast_core::request::{OsText, Request};
use outlast_core::wire::{LiveStatus, StopReport};
use outlast_host::clock;
use outlast_host::store::command::CommandDir;
use tokio::sync::{mpsc, watch};

use super::output::{Sink, State};
use super::request::TaskInput;
use crate::error::Result;
use crate::memory::Ended;
use crate::request::millis;
use crate::session::Session;

/// Beyond the grace and the bound after it, for the answer to a stop.
const ANSWER_SLACK: Duration = Duration::from_millis(200);
/// The longest input that is taken at once, in bytes.
pub(super) const INPUT_BYTES: usize = 1 << 20;

/// A stop, asked of the one who attends to the task.
#[derive(Debug)]
pub(super) struct Ask {
    /// Why.
    pub(super) cause: Cause,
    /// Between the raised stop and the drop of the body; none means the task's own.
    pub(super) grace: Option<Duration>,
}

/// One task.
pub(super) struct Shared {
    pub(super) session: Session,
    pub(super) kind: String,
    pub(super) request: Request,
    pub(super) program: OsText,
    pub(super) me: ProcessMark,
    pub(super) alias: Option<Alias>,
    pub(super) dir: Option<CommandDir>,
    pub(super) started_at_ms: u64,
    pub(super) started: Duration,
    pub(super) sink: Arc<Sink>,
    /// What it said it has changed; none once that is no more taken.
    pub(super) receipts: Mutex<Option<Published>>,
    pub(super) inbox: Mutex<Option<TaskInput>>,
    /// Whether the session's keeper has it in charge.
    pub(super) kept: watch::Sender<bool>,
    pub(super) asks: mpsc::UnboundedSender<Ask>,
    pub(super) errors: Mutex<Vec<String>>,
    /// How many wait for its end in this process.
    pub(super) waiting: AtomicUsize,
    pub(super) project: Option<String>,
    /// Masks secrets in what is stored, where that is asked for.
    pub(super) redactor: Option<Redactor>,
}

/// Somebody who waits for the end of a task, and for its text.
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Ended for Shared {
    fn text_bytes(&self) -> usize {
        let state = self.state();
        let said = state.exit.as_deref().map_or([None, None], |exit| [exit.result.as_ref(), exit.tail.as_ref()]);
        let kept = state.text.as_deref().and_then(|record| record.text.as_ref());
        self.sink.held() + said.into_iter().chain([kept]).flatten().map(String::len).sum::<usize>()
    }

    fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    fn forget_text(&self) {
        self.sink.forget();
        self.sink.state().send_modify(|state| {
            state.pruned_at_ms = Some(clock::unix_ms());
            if let Some(exit) = &mut state.exit {
                let exit = Arc::make_mut(exit);
                (exit.result, exit.tail) = (None, None);
            }
            // One that was withheld has no text, and stays withheld.
            state.text.take_if(|record| record.text.is_some());
        });
    }
}

impl Shared {
    /// Keeps its text in memory as long as the answer is held.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.waiting)
    }

    /// How it stands now.
    pub(super) fn state(&self) -> State {
        self.sink.state().borrow().clone()
    }

    /// Everything held against its records so far.
    pub(super) fn all_errors(&self) -> Vec<String> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        errors.into_iter().chain(self.sink.failure()).collect()
    }

    pub(super) fn hold_against(&self, error: String) {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    }

    /// The exit record as far as it is known.
    pub(super) fn draft(&self) -> ExitRecord {
        ExitRecord {
            kind: self.kind.clone(),
            alias: self.alias,
            demoted: true,
            demoted_at_ms: Some(self.started_at_ms),
            started_at_ms: self.started_at_ms,
            errors: self.all_errors(),
            output: self.sink.output(),
            containment: "owner".to_owned(),
            recorded_by: "owner".to_owned(),
            ..ExitRecord::draft(&self.request, &self.program)
        }
    }

    /// What is known of it now.
    pub(super) fn live(&self, state: &State) -> LiveStatus {
        let now = clock::monotonic();
        LiveStatus {
            id: self.request.id,
            alias: self.alias,
            phase: state.phase,
            leader: None,
            supervisor: self.me.clone(),
            elapsed_ms: millis(now.saturating_sub(self.started)),
            output: state.output,
            survivors: Vec::new(),
            errors: self.all_errors(),
            stopping_by: state.stopping_by.clone(),
            demoted_at_ms: Some(self.started_at_ms),
            stdin_open: self.inbox().is_some(),
            quiet_ms: millis(now.saturating_sub(state.last_output)),
            exit: state.exit.as_deref().cloned().map(Box::new),
        }
    }

    /// Asks for its stop, and waits until nothing of it is left or the bound is over.
    pub(super) async fn stop(&self, by: String, grace: Option<Duration>) -> StopReport {
        let before = self.state();
        if before.exit.is_some() {
            return StopReport { already_ended: true, verified: true, ..StopReport::default() };
        }
        let bound = grace.unwrap_or(Duration::from_millis(self.request.stop_grace_ms)) + KILL_BOUND + ANSWER_SLACK;
        // Where nobody attends to it any more it is over, which is what is waited for.
        let _ = self.asks.send(Ask { cause: Cause::Stop { by }, grace });
        let mut state = self.sink.state().subscribe();
        let verified =
            tokio::time::timeout(bound, state.wait_for(|state| state.over)).await.is_ok_and(|over| over.is_ok());
        let signals = self.state().signals - before.signals;
        StopReport { signals, verified, ..StopReport::default() }
    }

    /// Hands input to the task; with `close` it takes no more afterwards. Why not, if so.
    pub(super) fn input(&self, bytes: Vec<u8>, close: bool) -> Option<String> {
        let id = self.request.id;
        let state = self.state();
        if state.phase == Phase::Ended {
            return Some(format!("{id} has ended"));
        }
        let Some(inbox) = self.inbox() else {
            return Some(match self.request.stdin {
                outlast_core::request::Stdin::Null => format!("{id} takes no input"),
                outlast_core::request::Stdin::Open | outlast_core::request::Stdin::Terminal(_) => {
                    format!("the input of {id} is closed")
                }
            });
        };
        if close {
            self.close_input();
        }
        if bytes.is_empty() {
            return None;
        }
        if bytes.len() > INPUT_BYTES {
            return Some(format!("{id} takes at most {INPUT_BYTES} bytes at once"));
        }
        // Called with no lock held: what it does is its own affair.
        let taken = catch_unwind(AssertUnwindSafe(|| inbox(bytes)));
        taken.err().map(|_| format!("the task {id} panicked over it"))
    }

    /// Takes what the task says it changed. Why not, if so.
    pub(super) fn receipt(&self, paths: Vec<OsText>) -> Option<String> {
        let mut receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        let id = self.request.id;
        let Some(published) = receipts.as_mut() else { return Some(format!("{id} has ended")) };
        if paths.is_empty() {
            return None;
        }
        let paths = match &self.redactor {
            Some(redactor) => paths.iter().map(|path| redactor.word(path)).collect(),
            None => paths,
        };
        let dir = self.dir.as_ref();
        let store = dir.map(|dir| |line: &_| dir.append_receipt(line).map_err(|error| error.to_string()));
        published.take(id, paths, store).err()
    }

    /// Takes no more receipts: what is recorded is all. Those that are in no records are returned.
    pub(super) fn close_receipts(&self) -> Vec<Change> {
        let mut receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        written(receipts.take().unwrap_or_default().held)
    }

    /// Takes no more input.
    pub(super) fn close_input(&self) {
        // Dropped after the lock is free.
        let _inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn inbox(&self) -> Option<TaskInput> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives it into the charge of the session's keeper, which ends it with the session.
    pub(super) async fn give_in_charge(&self) -> Result<()> {
        if let Some(mut link) = self.session.owner_link().await? {
            link.send(&outlast_core::wire::ToKeeper::Task { id: self.request.id }).await?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Task({})", self.request.id)
    }
}
