//! Reading a range of the output, in bounded memory.

use std::fs::File;

use outlast_core::record::{ExitRecord, OutputState, Phase};
use outlast_core::request::LogCap;
use outlast_core::units::format_time;
use outlast_host::dir::if_there;
use outlast_host::frame;
use outlast_host::store::command::CommandDir;
use outlast_host::store::index::Entry;
use outlast_host::store::name;
use outlast_host::store::reader::ReadPiece;
use outlast_host::store::understood;

use crate::command::Command;
use crate::error::{Error, Result};
use crate::hide::Mask;
use crate::output::{Missing, Piece, STEP, Stored, Stream};
use crate::probe::{self, Probe};
use crate::snapshot::pruned_at;
use outlast_core::policy::redact::Edges;

/// Which part of the output to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Where to begin, in offsets of the output; past the end is the end.
    pub offset: u64,
    /// How many bytes at most, counted in offsets of the output.
    pub bytes: Option<u64>,
    /// Only the last so many lines of the range.
    pub tail_lines: Option<u64>,
    /// Only the first so many lines of the range.
    pub head_lines: Option<u64>,
    /// Only this stream; refused where the streams were not captured apart.
    pub stream: Option<Stream>,
}

/// A read of a range of the output, piece by piece, in bounded memory.
#[derive(Debug, Default)]
pub struct Reading {
    pub(crate) stored: Option<Stored>,
    pub(crate) next: u64,
    pub(crate) end: u64,
    only: Option<frame::Stream>,
    lines_left: Option<u64>,
    problem: Option<String>,
    note: Option<String>,
    /// What was kept of the end of an output whose log failed.
    kept: Option<KeptTail>,
    /// Why what is in neither of both is missing.
    missing: Missing,
    /// Whether what the log does not have yet may still become readable, because whoever reads waits for that.
    pub(crate) waits: bool,
    /// While output is captured the cap may drop what is being read.
    dropping: Option<Dropping>,
    /// Whether more can be captured.
    open: bool,
    /// Whether there is output that is not shown as long as the command runs.
    withheld: bool,
    /// What masks secrets in it.
    hidden: Option<Hidden>,
}

/// What masks secrets in the output of a command.
#[derive(Debug)]
struct Hidden {
    mask: Mask,
    command: Command,
}

/// The last bytes of an output whose log could not be written, out of its exit record.
#[derive(Debug)]
struct KeptTail {
    from: u64,
    bytes: Vec<u8>,
}

impl KeptTail {
    /// None for a log that is whole, or of which nothing was kept.
    fn of(exit: &ExitRecord) -> Option<KeptTail> {
        let bytes = exit.kept_tail().filter(|bytes| !bytes.is_empty())?;
        Some(KeptTail { from: exit.output.bytes.saturating_sub(bytes.len() as u64), bytes })
    }

    /// What there is of it before an offset.
    fn before(&self, offset: u64) -> &[u8] {
        let length = usize::try_from(offset.saturating_sub(self.from)).unwrap_or(usize::MAX);
        &self.bytes[..length.min(self.bytes.len())]
    }

    /// What there is of it from an offset on.
    fn rest(&self, offset: u64) -> &[u8] {
        let skipped = usize::try_from(offset.saturating_sub(self.from)).unwrap_or(usize::MAX);
        self.bytes.get(skipped..).unwrap_or_default()
    }
}

/// What tells whether bytes that were read may have been dropped meanwhile.
#[derive(Debug)]
struct Dropping {
    dir: CommandDir,
    cap: LogCap,
    file: File,
}

impl Command {
    /// Reads a range of its output, as far as the policies show it.
    pub async fn read(&self, options: ReadOptions) -> Result<Reading> {
        let mut reading = self.read_raw(options).await?;
        if self.session.withholds() && self.brief().await?.phase != Phase::Ended {
            reading.withheld = reading.next < reading.end;
            reading.end = reading.next;
        }
        reading.hidden = self.session.mask(reading.open).map(|mask| Hidden { mask, command: self.clone() });
        Ok(reading)
    }

    /// The same with everything that came.
    async fn read_raw(&self, options: ReadOptions) -> Result<Reading> {
        loop {
            let dir = self.dir()?;
            let reading = self.read_in(&dir, options).await;
            // Of records that went to another file system meanwhile half may have been seen.
            if dir.moved()?.is_none() {
                return reading;
            }
        }
    }

    async fn read_in(&self, dir: &CommandDir, options: ReadOptions) -> Result<Reading> {
        let (live, note) = match probe::status(dir).await? {
            Probe::Live(status, _) => (Some(status.output), None),
            Probe::Silent { note } => (None, Some(note)),
            Probe::Nobody => (None, None),
        };
        let mut reading = Reading { note, ..self.open_reading(dir, live, options.stream)? };
        let all = reading.end;
        reading.next = options.offset.min(all);
        reading.end = options.bytes.map_or(all, |count| reading.next.saturating_add(count).min(all));
        reading.lines_left = options.head_lines;
        if let Some(lines) = options.tail_lines {
            reading.next = reading.last_lines(lines)?;
        }
        let errors: Vec<String> = record_errors(dir)?.into_iter().chain(reading.problem.take()).collect();
        reading.problem = (!errors.is_empty()).then(|| errors.join("; "));
        Ok(reading)
    }

    /// The offset at which its last so many lines begin, for a follow that starts near the end.
    pub async fn tail_offset(&self, lines: u64) -> Result<u64> {
        let options = ReadOptions { tail_lines: Some(lines), ..ReadOptions::default() };
        Ok(self.read(options).await?.next_offset())
    }

    /// A read from this offset on that is told how far it may go.
    pub(crate) fn reading_from(&self, offset: u64, output: OutputState) -> Result<Reading> {
        let mut reading = match self.open_reading(&self.dir()?, Some(output), None) {
            Ok(reading) => reading,
            // A log that cannot be read is told with the end; the command goes on.
            Err(error) => Reading { problem: Some(error.to_string()), ..Reading::default() },
        };
        reading.next = offset;
        // What the log lacks is told once the end says what was kept.
        reading.waits = true;
        Ok(reading)
    }

    pub(crate) fn open_reading(
        &self,
        dir: &CommandDir,
        live: Option<OutputState>,
        stream: Option<Stream>,
    ) -> Result<Reading> {
        let mut reading = Reading { stored: self.stored(dir)?, ..Reading::default() };
        if dir.lease_is_held()? {
            reading.open = true;
            reading.dropping = dropping(dir)?;
        }
        if let Some(exit) = understood(dir.exit())? {
            reading.kept = KeptTail::of(&exit);
            reading.end = exit.output.bytes;
        }
        if reading.stored.is_none() {
            let was_there = understood(dir.exit())?.is_none_or(|exit| exit.output.start > 0);
            reading.missing = if was_there { Missing::Gone } else { Missing::Unwritten };
            reading.problem = Some(match (pruned_at(dir)?, &reading.kept) {
                (Some(at_ms), _) => pruned_words(at_ms),
                (None, Some(kept)) => {
                    format!("it has no log; the last {} bytes of its output were kept", kept.bytes.len())
                }
                (None, None) => "it has no log; no output of it is kept".to_owned(),
            });
        }
        if let Some(stored) = &mut reading.stored {
            if let Some(output) = live {
                stored.update(dir, output)?;
            }
            reading.end = stored.output.bytes;
        }
        let separate = reading.stored.as_ref().is_none_or(|stored| stored.separate);
        reading.only = match stream {
            None | Some(Stream::Merged) => None,
            Some(_) if !separate => {
                return Err(Error::Refused(format!(
                    "{} was not started with separate streams, so one of them cannot be read alone",
                    self.id
                )));
            }
            Some(Stream::Stdout) => Some(frame::Stream::Out),
            Some(Stream::Stderr) => Some(frame::Stream::Err),
        };
        Ok(reading)
    }
}

/// That the output of a command was pruned, and when.
fn pruned_words(at_ms: u64) -> String {
    format!("its output was pruned on {}; how it ended is still known", format_time(at_ms))
}

/// What is held against the records of a command. Damaged records are told by a status.
fn record_errors(dir: &CommandDir) -> Result<Vec<String>> {
    let errors = match understood(dir.exit())? {
        Some(exit) => Some(exit.errors),
        None => understood(dir.status())?.map(|status| status.errors),
    };
    Ok(errors.unwrap_or_default())
}

impl Reading {
    /// The next piece; none at the end of the range. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Piece>> {
        loop {
            let before = (self.next, self.lines_left);
            let Some(piece) = self.step()? else { return Ok(None) };
            let after = std::mem::replace(&mut self.next, before.0);
            let lines_after = std::mem::replace(&mut self.lines_left, before.1);
            let valid = match &piece {
                Piece::Bytes { offset, bytes, .. } => self.is_still_there(*offset, bytes.len() as u64).await?,
                Piece::Gap { .. } => true,
            };
            if valid {
                (self.next, self.lines_left) = (after, lines_after);
                return self.hide(piece).map(Some);
            }
        }
    }

    fn hide(&mut self, mut piece: Piece) -> Result<Piece> {
        let (Some(hidden), Piece::Bytes { offset, stream, bytes, .. }) = (&mut self.hidden, &mut piece) else {
            return Ok(piece);
        };
        match &self.stored {
            Some(stored) if self.kept.as_ref().is_none_or(|kept| *offset < kept.from) => {
                stored.mask(&mut hidden.mask, *offset, *stream, bytes)?;
            }
            _ => {
                let kept = self.kept.as_ref();
                let before = kept.map_or(&[][..], |kept| kept.before(*offset));
                let after = kept.map_or(&[][..], |kept| kept.rest(*offset + bytes.len() as u64));
                let edges = Edges { cut_before: *offset > before.len() as u64, cut_after: self.open };
                hidden.mask.cover(before, bytes, after, edges);
            }
        }
        let counts = std::mem::take(&mut hidden.mask.counts);
        hidden.command.session.trace_redacted(hidden.command.id, &counts)?;
        Ok(piece)
    }

    /// Whether there is output that the policies do not show now.
    pub fn withheld(&self) -> bool {
        self.withheld
    }

    /// Whether bytes that were just read were not dropped by the cap while they were read. Where they
    /// may have been, the supervisor is asked what it dropped, and the gap is taken over.
    async fn is_still_there(&mut self, offset: u64, length: u64) -> Result<bool> {
        let (Some(dropping), Some(stored)) = (&self.dropping, &mut self.stored) else { return Ok(true) };
        let written = dropping.file.metadata().map_or(u64::MAX, |meta| meta.len()).saturating_sub(stored.output.start);
        if offset + length <= dropping.cap.head || written <= offset.saturating_add(dropping.cap.tail) {
            return Ok(true);
        }
        let Probe::Live(status, _) = probe::status(&dropping.dir).await? else { return Ok(true) };
        let Some(gap) = status.output.gap else { return Ok(true) };
        let known = OutputState { gap: Some(gap), ..stored.output };
        stored.update(&dropping.dir, known)?;
        Ok(offset >= gap.offset + gap.bytes || offset + length <= gap.offset)
    }

    /// The offset at which a later read finds what is new.
    pub fn next_offset(&self) -> u64 {
        self.next
    }

    /// Whatever is wrong with the records, as one line.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// What a reader should know beside it: that the supervisor of the command does not answer.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// What is on disk.
    pub(crate) fn stored(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }

    /// Takes over how far the output goes by now.
    pub(crate) fn grow(&mut self, dir: &CommandDir, output: OutputState) -> Result<()> {
        if let Some(stored) = &mut self.stored {
            stored.update(dir, output)?;
            self.end = output.bytes;
        }
        Ok(())
    }

    /// Takes over what the record of the end keeps of an output whose log failed.
    pub(crate) fn keep(&mut self, exit: &ExitRecord) {
        self.kept = KeptTail::of(exit);
    }

    /// Takes over what another read found on disk, and goes on where this one is.
    pub(crate) fn take_over(&mut self, fresh: Reading) {
        (self.stored, self.end, self.dropping) = (fresh.stored, fresh.end, fresh.dropping);
        (self.kept, self.missing, self.problem) = (fresh.kept, fresh.missing, fresh.problem);
    }

    fn step(&mut self) -> Result<Option<Piece>> {
        loop {
            if self.next >= self.end || self.lines_left == Some(0) {
                return Ok(None);
            }
            // What was kept stands in for a log that failed, from where it begins.
            let kept_from = self.kept.as_ref().map_or(u64::MAX, |kept| kept.from);
            let Some(stored) = self.stored.as_ref().filter(|_| self.next < kept_from) else {
                return Ok(self.step_kept());
            };
            let room = usize::try_from(self.end.min(kept_from) - self.next).unwrap_or(STEP).min(STEP);
            let part = stored.index.as_deref().map(|index| entry_at(index, self.next));
            let (room, part) = match part {
                None => (room, None),
                // The index is written after the log: what it does not cover yet comes later.
                Some(None) => return Ok(self.step_kept()),
                Some(Some(entry)) => {
                    let entry_end = entry.offset + u64::from(entry.length);
                    if self.only.is_some_and(|only| only != entry.stream) {
                        self.next = entry_end.min(self.end);
                        continue;
                    }
                    (room.min(usize::try_from(entry_end - self.next).unwrap_or(room)), Some(entry))
                }
            };
            let mut bytes = vec![0; room];
            match stored.log.read_at(self.next, &mut bytes)? {
                ReadPiece::Gap { offset, bytes } => {
                    let after = offset + bytes;
                    self.next = after;
                    return Ok(Some(Piece::Gap { why: Missing::Capped, offset, bytes }));
                }
                ReadPiece::Bytes(0) if self.kept.is_none() && !stored.output.whole && !self.waits => {
                    let (offset, bytes) = (self.next, self.end - self.next);
                    self.next = self.end;
                    return Ok(Some(Piece::Gap { why: Missing::Unwritten, offset, bytes }));
                }
                ReadPiece::Bytes(0) => return Ok(self.step_kept()),
                ReadPiece::Bytes(count) => bytes.truncate(count),
            }
            self.cut_lines(&mut bytes);
            let offset = self.next;
            self.next += bytes.len() as u64;
            let stream = match part {
                Some(entry) if self.is_separate() => stream_of(entry.stream),
                _ => Stream::Merged,
            };
            return Ok(Some(Piece::Bytes { offset, stream, at_ms: part.map(|entry| entry.at_ms), bytes }));
        }
    }

    /// What follows where the log ends too early: what is missing up to the kept bytes, then those. Which stream
    /// they came from is not kept.
    fn step_kept(&mut self) -> Option<Piece> {
        let kept = self.kept.as_ref()?;
        let offset = self.next;
        let until = if self.only.is_some() { self.end } else { kept.from.min(self.end) };
        if offset < until {
            self.next = until;
            return Some(Piece::Gap { why: self.missing, offset, bytes: until - offset });
        }
        let room = usize::try_from(self.end - offset).unwrap_or(STEP).min(STEP);
        let mut bytes: Vec<u8> = kept.rest(offset).iter().copied().take(room).collect();
        if bytes.is_empty() {
            return None;
        }
        self.cut_lines(&mut bytes);
        self.next += bytes.len() as u64;
        Some(Piece::Bytes { offset, stream: Stream::Merged, at_ms: None, bytes })
    }

    fn is_separate(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.separate)
    }

    /// Cuts a piece after the last line that is wanted.
    fn cut_lines(&mut self, bytes: &mut Vec<u8>) {
        let Some(left) = &mut self.lines_left else { return };
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let mut cut = None;
        for end in ends {
            *left -= 1;
            if *left == 0 {
                cut = Some(end);
                break;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut);
        }
    }

    /// Where the last so many lines of the range begin, looked for from its end.
    fn last_lines(&mut self, lines: u64) -> Result<u64> {
        let (from, end) = (self.next, self.end);
        let mut left = lines;
        let mut to = end;
        let mut last = None;
        let mut found = if lines == 0 { Some(end) } else { None };
        while found.is_none() && to > from {
            let window = from.max(to.saturating_sub(STEP as u64));
            let (starts, last_here) = self.line_starts(window, to)?;
            last = last.or(last_here);
            // A line break that nothing of the stream follows begins no line.
            for start in starts.into_iter().rev().filter(|start| Some(*start) <= last) {
                left -= 1;
                if left == 0 {
                    found = Some(start);
                    break;
                }
            }
            to = window;
        }
        (self.next, self.end) = (from, end);
        Ok(found.unwrap_or(from))
    }

    /// Where lines begin that follow a line break between these offsets, in order, and the last byte there.
    fn line_starts(&mut self, from: u64, to: u64) -> Result<(Vec<u64>, Option<u64>)> {
        (self.next, self.end) = (from, to);
        let (mut starts, mut last) = (Vec::new(), None);
        while let Some(piece) = self.step()? {
            if let Piece::Bytes { offset, bytes, .. } = piece {
                starts.extend((offset..).zip(&bytes).filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1));
                last = (offset + bytes.len() as u64).checked_sub(1).or(last);
            }
        }
        Ok((starts, last))
    }
}

/// None where the records do not say: then nothing is known to be dropped.
fn dropping(dir: &CommandDir) -> Result<Option<Dropping>> {
    let Some(asked) = understood(dir.request())? else { return Ok(None) };
    let Some(file) = if_there(dir.dir().open_file(name::LOG))? else { return Ok(None) };
    Ok(Some(Dropping { dir: dir.clone(), cap: asked.request.cap, file }))
}

/// The part of the output that an offset lies in.
fn entry_at(index: &[Entry], offset: u64) -> Option<Entry> {
    let at = index.partition_point(|entry| entry.offset + u64::from(entry.length) <= offset);
    index.get(at).copied().filter(|entry| entry.offset <= offset)
}

fn stream_of(stream: frame::Stream) -> Stream {
    if stream == frame::Stream::Err { Stream::Stderr } else { Stream::Stdout }
}
