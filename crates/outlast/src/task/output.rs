//! What a task writes: into its log at once, with the end of it in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_core::policy::redact::{Counts, Edges, Redactor, Stream as Chunks, add_up};
use outlast_core::receipt::Change;
use outlast_core::record::{ExitRecord, OutputState, Phase, TextRecord};
use outlast_core::text::TEXT_BYTES;
use outlast_host::clock;
use outlast_host::store::log::LogWriter;
use tokio::sync::watch;

/// The most of a task's output that is held in memory, in bytes.
const HELD_BYTES: usize = 64 * 1024;

/// How a task stands, for everybody who waits for something of it.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) output: OutputState,
    /// When the last byte came, by the monotonic clock.
    pub(super) last_output: Duration,
    pub(super) stopping_by: Option<String>,
    /// How often its stop was raised or forced.
    pub(super) signals: u32,
    pub(super) exit: Option<Arc<ExitRecord>>,
    /// What it said it has changed, where that is in no records; known with the end.
    pub(super) changes: Vec<Change>,
    /// The final text as it was kept under a text policy, where that is in no records; known with the end.
    pub(super) text: Option<Arc<TextRecord>>,
    /// Nothing more comes: the log is closed and its records are complete.
    pub(super) over: bool,
    /// When its text went from memory, Unix time in milliseconds.
    pub(super) pruned_at_ms: Option<u64>,
}

/// Where the output of one task goes.
#[derive(Debug)]
pub(super) struct Sink {
    inner: Mutex<Inner>,
    state: watch::Sender<State>,
}

#[derive(Debug)]
struct Inner {
    log: Option<LogWriter>,
    held: Vec<u8>,
    bytes: u64,
    closed: bool,
    /// What masks secrets before anything is stored, where that is asked for.
    veil: Option<Veil>,
}

#[derive(Debug)]
struct Veil {
    redactor: Redactor,
    chunks: Chunks,
    counts: Counts,
}

impl Sink {
    /// Writes into this log; without one only the end of the output is kept, in memory. With a redactor nothing that it masks is kept.
    pub(super) fn new(log: Option<LogWriter>, redactor: Option<Redactor>) -> Sink {
        let veil = redactor.map(|redactor| Veil { redactor, chunks: Chunks::default(), counts: Counts::new() });
        let inner = Inner { log, held: Vec::new(), bytes: 0, closed: false, veil };
        let state = State {
            phase: Phase::Running,
            output: inner.output(),
            last_output: clock::monotonic(),
            stopping_by: None,
            signals: 0,
            exit: None,
            changes: Vec::new(),
            text: None,
            over: false,
            pruned_at_ms: None,
        };
        Sink { inner: Mutex::new(inner), state: watch::Sender::new(state) }
    }

    /// What others wait on.
    pub(super) fn state(&self) -> &watch::Sender<State> {
        &self.state
    }

    /// Adds output; an error once the task has ended.
    pub(super) fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut inner = self.inner();
        if inner.closed {
            return Err(std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the task has ended"));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        match inner.veiled(bytes) {
            Some(shown) => inner.add(&shown),
            None => inner.add(bytes),
        }
        let output = inner.output();
        self.state.send_modify(|state| (state.output, state.last_output) = (output, clock::monotonic()));
        Ok(())
    }

    /// Takes no more output. The text is the output where there was none and it is not to stay apart; else it is given back.
    pub(super) fn close(&self, text: String, apart: bool) -> Option<String> {
        let mut inner = self.inner();
        inner.closed = true;
        let text = inner.unveil(text);
        let rest = if inner.bytes == 0 && !apart {
            inner.add(text.as_bytes());
            None
        } else {
            (!text.is_empty()).then_some(text)
        };
        let output = inner.output();
        self.state.send_modify(|state| state.output = output);
        rest
    }

    /// How much was masked before it was stored, by pattern.
    pub(super) fn masked(&self) -> Counts {
        self.inner().veil.as_ref().map(|veil| veil.counts.clone()).unwrap_or_default()
    }

    /// Brings the log into its final form; with `number` the trailer too.
    pub(super) fn finish(&self, number: Option<Option<i32>>) -> OutputState {
        let mut inner = self.inner();
        if let Some(log) = &mut inner.log {
            match number {
                None => log.close(),
                Some(number) => drop(log.finish(number)),
            }
        }
        if number.is_some() && inner.failure().is_none() && inner.log.is_some() {
            inner.held = Vec::new();
        }
        inner.output()
    }

    /// The state of the output.
    pub(super) fn output(&self) -> OutputState {
        self.inner().output()
    }

    /// The last bytes, at most as many as a text shows.
    pub(super) fn tail(&self) -> Vec<u8> {
        let inner = self.inner();
        inner.held[inner.held.len().saturating_sub(TEXT_BYTES)..].to_vec()
    }

    /// Bytes held in memory now.
    pub(super) fn held(&self) -> usize {
        self.inner().held.len()
    }

    /// Lets go of them.
    pub(super) fn forget(&self) {
        self.inner().held = Vec::new();
    }

    /// What is wrong with the log.
    pub(super) fn failure(&self) -> Option<String> {
        self.inner().failure()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        keep_last(&mut self.held, bytes);
        if let Some(log) = &mut self.log
            && !bytes.is_empty()
        {
            log.append(bytes);
        }
    }

    /// What can be stored once these bytes came; none where they are stored as they are.
    fn veiled(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let veil = self.veil.as_mut()?;
        let (shown, counts) = veil.chunks.push(&veil.redactor, bytes);
        add_up(&mut veil.counts, counts);
        Some(shown)
    }

    /// Stores what the veil held back, and gives the text as it may be stored.
    fn unveil(&mut self, text: String) -> String {
        let Some(veil) = &mut self.veil else { return text };
        let (rest, counts) = veil.chunks.finish(&veil.redactor);
        add_up(&mut veil.counts, counts);
        let mut text = text.into_bytes();
        let counts = veil.redactor.mask(&mut text, Edges::default());
        add_up(&mut veil.counts, counts);
        self.add(&rest);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn output(&self) -> OutputState {
        match &self.log {
            Some(log) => log.output(),
            None => OutputState { start: 0, bytes: self.bytes, gap: None, whole: self.bytes <= self.held.len() as u64 },
        }
    }

    fn failure(&self) -> Option<String> {
        self.log.as_ref().and_then(LogWriter::failure).map(ToString::to_string)
    }
}

fn keep_last(held: &mut Vec<u8>, bytes: &[u8]) {
    let fresh = &bytes[bytes.len().saturating_sub(HELD_BYTES)..];
    let over = (held.len() + fresh.len()).saturating_sub(HELD_BYTES);
    held.drain(..over.min(held.len()));
    held.extend_from_slice(fresh);
}
