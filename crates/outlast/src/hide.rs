//! What is not shown of commands: secrets are masked in whatever leaves the library.

mod woven;

use std::collections::HashMap;
use std::sync::Arc;

use outlast_core::id::CommandId;
use outlast_core::policy::LiveOutput;
use outlast_core::policy::redact::{CONTEXT, Counts, Edges, Redactor, Stream as Chunks, add_up};
use outlast_core::receipt::Change;
use outlast_core::record::{Discarded, ExitRecord, Phase, Survivor, TraceLine};
use outlast_core::request::{OsText, to_hex};
use outlast_core::tracking::Tracked;
use outlast_host::clock;
use outlast_host::store::trace;

use crate::error::Result;
use crate::output::{Stored, Stream};
use crate::redaction::Redaction;
use crate::session::Session;
use crate::snapshot::Snapshot;

use woven::Window;

/// Masks parts of outputs, and counts.
#[derive(Debug)]
pub(crate) struct Mask {
    pub(crate) redactor: Arc<Redactor>,
    /// Whether more output can come.
    pub(crate) open: bool,
    pub(crate) counts: Counts,
    /// What was looked at last of an output whose streams take turns.
    pub(crate) window: Option<Window>,
}

impl Mask {
    fn new(redactor: Arc<Redactor>, open: bool) -> Mask {
        Mask { redactor, open, counts: Counts::new(), window: None }
    }

    /// Masks an output that cannot be read around, in chunks as its streams took turns.
    pub(crate) fn cover_chunks<'a>(
        &mut self,
        chunks: impl Iterator<Item = (Stream, &'a [u8])>,
        cut_before: bool,
    ) -> Vec<u8> {
        let (mut bytes, mut parts) = (Vec::new(), Vec::new());
        for (stream, chunk) in chunks {
            parts.push((bytes.len()..bytes.len() + chunk.len(), stream));
            bytes.extend_from_slice(chunk);
        }
        let (all, edges) = (0..bytes.len(), Edges { cut_before, cut_after: self.open });
        add_up(&mut self.counts, woven::cover(&self.redactor, &mut bytes, &all, &parts, edges));
        bytes
    }

    /// Masks a part of an output that lies between these.
    pub(crate) fn cover(&mut self, before: &[u8], bytes: &mut [u8], after: &[u8], edges: Edges) {
        let mut all = [before, bytes, after].concat();
        let part = before.len()..before.len() + bytes.len();
        add_up(&mut self.counts, self.redactor.mask_part(&mut all, part.clone(), edges));
        bytes.copy_from_slice(&all[part]);
    }

    /// Masks a part of an output that cannot be read around.
    pub(crate) fn cover_alone(&mut self, bytes: &mut [u8], cut_before: bool) {
        let cut_after = self.open;
        self.cover(&[], bytes, &[], Edges { cut_before, cut_after });
    }
}

impl Stored {
    /// What stands before an offset, as much as can decide what is secret behind it.
    pub(crate) fn before(&self, offset: u64) -> Result<Vec<u8>> {
        let gap_end = self.log.gap().map_or(0, |gap| gap.offset + gap.bytes);
        let first = if gap_end <= offset { gap_end } else { 0 };
        let first = first.max(offset.saturating_sub(CONTEXT as u64));
        let before = self.range(first, offset)?;
        // What ends earlier, because the log failed there, is no neighbour.
        Ok(if before.len() as u64 == offset - first { before } else { Vec::new() })
    }

    /// Masks bytes that were read from this offset on, by what stands around them.
    pub(crate) fn mask(&self, mask: &mut Mask, offset: u64, stream: Stream, bytes: &mut [u8]) -> Result<()> {
        if let (Some(index), true) = (&self.index, self.separate) {
            return self.mask_woven(mask, index, (offset, stream), bytes);
        }
        let end = offset + bytes.len() as u64;
        let (before, after) = (self.before(offset)?, self.range(end, end + CONTEXT as u64)?);
        let cut_after = mask.open || end + (after.len() as u64) < self.output.bytes;
        let edges = Edges { cut_before: offset > before.len() as u64, cut_after };
        mask.cover(&before, bytes, &after, edges);
        Ok(())
    }
}

/// Masks output as it comes, each stream by itself.
pub(crate) struct Flow {
    redactor: Arc<Redactor>,
    streams: HashMap<Stream, Chunks>,
    pub(crate) counts: Counts,
}

impl Flow {
    /// From the start of an output, or behind these contexts of its streams; whether more is missing before that.
    pub(crate) fn after(redactor: Arc<Redactor>, contexts: Vec<(Stream, Vec<u8>, bool)>) -> Flow {
        let behind = |(stream, context, cut): (Stream, Vec<u8>, bool)| {
            let chunks = Chunks::after(&redactor, &context, cut);
            (stream, chunks)
        };
        let streams = contexts.into_iter().map(behind).collect();
        Flow { redactor, streams, counts: Counts::new() }
    }

    /// What can be shown of a stream once these bytes came, and how many bytes before them were held back till now.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) -> (Vec<u8>, usize) {
        let chunks = self.streams.entry(stream).or_default();
        let held = chunks.held();
        let (shown, counts) = chunks.push(&self.redactor, bytes);
        add_up(&mut self.counts, counts);
        (shown, held)
    }

    /// What was held back: of an output that is over, or before output that is missing.
    pub(crate) fn rest(&mut self, missing: bool) -> Vec<(Stream, Vec<u8>)> {
        let mut rest = Vec::new();
        for (stream, chunks) in &mut self.streams {
            let (bytes, counts) = if missing { chunks.cut() } else { chunks.finish(&self.redactor) };
            add_up(&mut self.counts, counts);
            rest.extend((!bytes.is_empty()).then_some((*stream, bytes)));
        }
        rest
    }
}

impl Redaction {
    /// The record of an end as it is shown to whoever observes.
    pub(crate) fn shown(&self, exit: &ExitRecord) -> ExitRecord {
        let mut exit = exit.clone();
        if let Some(redactor) = self.redactor() {
            mask_exit(&mut exit, &mut Mask::new(redactor, false));
        }
        exit
    }
}

impl Session {
    /// What masks secrets in what is shown; none where the policy does not ask for it. `open`: more output can come.
    pub(crate) fn mask(&self, open: bool) -> Option<Mask> {
        self.redactor().map(|redactor| Mask::new(redactor, open))
    }

    /// Takes out of a snapshot what the policies do not show. `stored`: where the output stands, if it does.
    pub(crate) fn hide(&self, snapshot: &mut Snapshot, stored: impl FnOnce() -> Result<Option<Stored>>) -> Result<()> {
        let output = &mut snapshot.output;
        if snapshot.phase != Phase::Ended && self.withholds() {
            output.withhold();
        }
        let Some(mut mask) = self.mask(output.capturing) else { return Ok(()) };
        if !output.tail.is_empty() {
            let (from, bytes) = (output.shown_from, &mut output.tail);
            match stored()? {
                Some(stored) => stored.mask(&mut mask, from, Stream::Merged, bytes)?,
                None => mask.cover_alone(bytes, from > 0),
            }
        }
        snapshot.mask(&mut mask);
        self.trace_redacted(snapshot.id, &mask.counts)
    }

    /// Whether the output of what runs is not shown.
    pub(crate) fn withholds(&self) -> bool {
        self.inner.runtime.inner.config.policy.live_output == LiveOutput::Withheld
    }

    pub(crate) fn redactor(&self) -> Option<Arc<Redactor>> {
        self.inner.runtime.inner.redaction.redactor()
    }

    /// Puts into the trace what was masked of a command, once for a command, by whoever masks first.
    pub(crate) fn trace_redacted(&self, id: CommandId, counts: &Counts) -> Result<()> {
        if counts.is_empty() || !self.has_records() || !self.inner.runtime.inner.redaction.is_first(id) {
            return Ok(());
        }
        let dir = self.dir()?;
        if trace::read(dir.dir())?.iter().any(|line| line.kind == REDACTED && line.id == Some(id)) {
            return Ok(());
        }
        self.trace_masked(id, counts)
    }

    /// Puts a line on what was masked of a command into the trace.
    pub(crate) fn trace_masked(&self, id: CommandId, counts: &Counts) -> Result<()> {
        if counts.is_empty() || !self.has_records() {
            return Ok(());
        }
        let dir = self.dir()?;
        let line = TraceLine {
            kind: REDACTED.to_owned(),
            event: self.runtime().new_event_id()?.to_string(),
            parent: self.record().map(|record| record.start_event.clone()),
            session: self.id().to_string(),
            at_ms: clock::unix_ms(),
            id: Some(id),
            redacted: Some(counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()),
            ..TraceLine::default()
        };
        Ok(trace::append(dir.dir(), &line, self.runtime().inner.config.durability)?)
    }
}

/// The type of the line that says what was masked.
const REDACTED: &str = "redacted";

impl Snapshot {
    /// Masks everything in it that came from whoever asked, but for the output.
    pub(crate) fn mask(&mut self, mask: &mut Mask) {
        words(&mut self.command, mask);
        word(&mut self.program, mask);
        word(&mut self.cwd, mask);
        let texts = self.label.iter_mut().chain(&mut self.errors).chain(&mut self.note).chain(&mut self.damaged);
        texts.chain(&mut self.result).chain(&mut self.limit).for_each(|text| line(text, mask));
        self.survivors.iter_mut().chain(&mut self.survivors_at_end).for_each(|one| name(one, mask));
        paths(&mut self.changes, mask);
        tracked(&mut self.tracked, mask);
    }
}

/// Masks everything in a record of an end that came from whoever asked, and the output that is kept in it.
pub(crate) fn mask_exit(exit: &mut ExitRecord, mask: &mut Mask) {
    words(&mut exit.command, mask);
    word(&mut exit.program, mask);
    word(&mut exit.cwd, mask);
    let texts = exit.label.iter_mut().chain(&mut exit.errors).chain(&mut exit.result);
    texts.chain(&mut exit.limit).for_each(|text| line(text, mask));
    exit.survivors.iter_mut().for_each(|one| name(one, mask));
    tracked(&mut exit.tracked, mask);
    if let Some(mut tail) = exit.kept_tail() {
        mask.cover_alone(&mut tail, true);
        exit.tail = Some(to_hex(&tail));
    }
}

/// Masks the same in the report on a discarded command.
pub(crate) fn mask_discarded(discarded: &mut Discarded, mask: &mut Mask) {
    words(&mut discarded.command, mask);
    word(&mut discarded.program, mask);
    discarded.label.iter_mut().for_each(|text| line(text, mask));
    if let Some(exit) = &mut discarded.exit {
        mask_exit(exit, mask);
    }
}

/// Masks what a command says it changed.
pub(crate) fn paths(changes: &mut [Change], mask: &mut Mask) {
    for change in changes {
        match change {
            Change::Write { paths } => words(paths, mask),
            Change::Opaque => {}
        }
    }
}

/// Masks which files changed.
fn tracked(tracked: &mut Option<Tracked>, mask: &mut Mask) {
    if let Some(tracked) = tracked {
        tracked.paths_mut().for_each(|path| word(path, mask));
        tracked.problem.iter_mut().for_each(|text| line(text, mask));
    }
}

fn words(words: &mut [OsText], mask: &mut Mask) {
    words.iter_mut().for_each(|one| word(one, mask));
}

pub(crate) fn word(word: &mut OsText, mask: &mut Mask) {
    mask.cover(&[], &mut word.0, &[], Edges::default());
}

pub(crate) fn line(text: &mut String, mask: &mut Mask) {
    cover_text(text, mask, Edges::default());
}

/// How long the kernel's name of a process is at most, in bytes; a longer one is cut.
const LONGEST_NAME: usize = 15;

/// Masks the name of a process.
pub(crate) fn name(process: &mut Survivor, mask: &mut Mask) {
    let cut_after = process.name.len() >= LONGEST_NAME;
    cover_text(&mut process.name, mask, Edges { cut_before: false, cut_after });
}

fn cover_text(text: &mut String, mask: &mut Mask, edges: Edges) {
    let mut bytes = std::mem::take(text).into_bytes();
    mask.cover(&[], &mut bytes, &[], edges);
    *text = String::from_utf8_lossy(&bytes).into_owned();
}
