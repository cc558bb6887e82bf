//! Parts of a command's output: its tail, and head and tail of each stream, from what is on disk.

use std::path::PathBuf;

use outlast_core::record::{Gap, OutputState, Unwritten};
use outlast_host::dir::if_there;
use outlast_host::frame;
use outlast_host::store::command::CommandDir;
use outlast_host::store::index::{self, Entry};
use outlast_host::store::reader::{LogReader, ReadPiece};

use crate::error::Result;

/// A stream of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Both in one, in the order in which the bytes came.
    Merged,
    /// Standard output alone.
    Stdout,
    /// Standard error alone.
    Stderr,
}

/// Why bytes of an output are not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// The log's cap dropped them.
    Capped,
    /// They could not be written to the log: a full disk, or the like.
    #[default]
    Unwritten,
    /// Their log is not there any more: it was pruned, or somebody removed it.
    Gone,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes as they came.
    Bytes {
        /// Offset of the first one in the output.
        offset: u64,
        /// Their stream.
        stream: Stream,
        /// Unix time at which they came in milliseconds, where that was kept.
        at_ms: Option<u64>,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Bytes that are not there.
    Gap {
        /// Why.
        why: Missing,
        /// Offset of the first one that is missing.
        offset: u64,
        /// How many are missing; the next byte there is has the offset `offset + bytes`.
        bytes: u64,
    },
}

/// The output as a snapshot shows it: its last bytes, and where the rest is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputView {
    /// The last bytes of the output, raw; empty in a list.
    pub tail: Vec<u8>,
    /// Bytes that came in all.
    pub bytes: u64,
    /// Offset in the output of the first byte of `tail`.
    pub shown_from: u64,
    /// Whether `tail` is less than all.
    pub truncated: bool,
    /// What the log's cap dropped.
    pub gap: Option<Gap>,
    /// What could not be written to the log.
    pub unwritten: Option<Unwritten>,
    /// The log; none for a command without records.
    pub log: Option<PathBuf>,
    /// Whether more can still be captured.
    pub capturing: bool,
    /// Whether there is text that the policy does not show now, so that `tail` is empty.
    pub withheld: bool,
}

/// The output of one stream as a reply shows it inline: head, tail and what is missing between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The stream.
    pub stream: Stream,
    /// Its first bytes; everything, where nothing is missing.
    pub head: Vec<u8>,
    /// Its last bytes; empty where nothing is missing.
    pub tail: Vec<u8>,
    /// Bytes missing between them.
    pub missing: u64,
}

/// How much is read at once.
pub(crate) const STEP: usize = 64 * 1024;

/// What of an output stands nowhere because its log failed, where the last `kept` bytes are kept elsewhere.
pub(crate) fn unwritten(dir: &CommandDir, output: &OutputState, kept: u64) -> Result<Option<Unwritten>> {
    if output.whole {
        return Ok(None);
    }
    match if_there(LogReader::open(dir.dir(), output.start, output.gap))? {
        Some(log) => unwritten_in(&log, output, kept),
        // A log begins with a heading: this one could not be made.
        None if output.start == 0 => Ok(missing(0, output.bytes.saturating_sub(kept))),
        None => Ok(None),
    }
}

/// The same of an output whose log is open.
pub(crate) fn unwritten_in(log: &LogReader, output: &OutputState, kept: u64) -> Result<Option<Unwritten>> {
    if output.whole {
        return Ok(None);
    }
    Ok(missing(log.written()?, output.bytes.saturating_sub(kept)))
}

fn missing(from: u64, to: u64) -> Option<Unwritten> {
    let bytes = to.checked_sub(from).filter(|bytes| *bytes > 0)?;
    Some(Unwritten { offset: from, bytes })
}

/// A log and what is known of its output.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) log: LogReader,
    pub(crate) output: OutputState,
    /// Where each part came from; only with separate streams or timestamps.
    pub(crate) index: Option<Vec<Entry>>,
    /// Whether the streams were captured apart.
    pub(crate) separate: bool,
}

impl Stored {
    /// Opens the log; none where there is none.
    pub(crate) fn open(dir: &CommandDir, output: OutputState, separate: bool) -> Result<Option<Stored>> {
        let Some(mut log) = if_there(LogReader::open(dir.dir(), output.start, output.gap))? else { return Ok(None) };
        log.update(&output);
        let index = index::read_index(dir.dir())?;
        Ok(Some(Stored { log, output, index, separate }))
    }

    /// Takes over what is known by now, the index included.
    pub(crate) fn update(&mut self, dir: &CommandDir, output: OutputState) -> Result<()> {
        self.output = output;
        self.log.update(&output);
        if self.index.is_some() {
            self.index = index::read_index(dir.dir())?;
        }
        Ok(())
    }

    /// The last bytes of the output, at most so many, and the offset of the first one. Bytes before a
    /// gap are left out, so that the piece is contiguous.
    pub(crate) fn tail(&self, most: u64) -> Result<(Vec<u8>, u64)> {
        let end = self.log.len()?;
        let mut from = end.saturating_sub(most);
        if let Some(gap) = self.log.gap() {
            from = from.max((gap.offset + gap.bytes).min(end));
        }
        Ok((self.range(from, end)?, from))
    }

    /// The bytes from one offset to another, as far as they are there, up to the first gap.
    pub(crate) fn range(&self, from: u64, to: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
        let count = match self.log.read_at(from, &mut bytes)? {
            ReadPiece::Bytes(count) => count,
            ReadPiece::Gap { .. } => 0,
        };
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Head and tail of each stream, together at most so many bytes for each, and the offset of the tail.
    pub(crate) fn excerpts(&self, most: u64) -> Result<Vec<(Excerpt, u64)>> {
        match &self.index {
            Some(index) if self.separate => {
                [(Stream::Stdout, frame::Stream::Out), (Stream::Stderr, frame::Stream::Err)]
                    .into_iter()
                    .map(|(stream, wire)| self.stream_excerpt(index, stream, wire, most))
                    .collect()
            }
            _ => Ok(vec![self.merged_excerpt(most)?]),
        }
    }

    fn merged_excerpt(&self, most: u64) -> Result<(Excerpt, u64)> {
        let all = self.log.len()?;
        if all <= most {
            let head = self.range(0, all)?;
            return Ok((Excerpt { stream: Stream::Merged, head, tail: Vec::new(), missing: 0 }, all));
        }
        let head = self.range(0, most / 2)?;
        let (tail, from) = self.tail(most - most / 2)?;
        let missing = all - head.len() as u64 - tail.len() as u64;
        Ok((Excerpt { stream: Stream::Merged, head, tail, missing }, from))
    }

    fn stream_excerpt(
        &self,
        index: &[Entry],
        stream: Stream,
        wire: frame::Stream,
        most: u64,
    ) -> Result<(Excerpt, u64)> {
        let of_stream = || index.iter().filter(|entry| entry.stream == wire);
        let all: u64 = of_stream().map(|entry| u64::from(entry.length)).sum();
        let read = |from: u64, count: u64| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            index::read_stream(&self.log, index, wire, from, count).map(|(bytes, _)| bytes)
        };
        if all <= most {
            return Ok((Excerpt { stream, head: read(0, all)?, tail: Vec::new(), missing: 0 }, 0));
        }
        let head = read(0, most / 2)?;
        let wanted = most - most / 2;
        let mut held = 0;
        let from = of_stream().rev().find_map(|entry| {
            held += u64::from(entry.length);
            (held >= wanted).then(|| entry.offset + held - wanted)
        });
        let from = from.unwrap_or(0);
        let tail = read(from, wanted)?;
        let missing = all.saturating_sub(head.len() as u64 + tail.len() as u64);
        Ok((Excerpt { stream, head, tail, missing }, from))
    }
}
