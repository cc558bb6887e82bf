//! Writes `output.log`: header, output at its true offsets, trailer; keeps head and tail under a cap.
//!
//! Output byte `o` stands at `start + o` of the file. When more came than the cap keeps, the middle is
//! punched out of the file, so offsets stay true and the producer is never held up. At the very end the
//! tail is moved down behind a mark, so that people find no hole in the file. Readers need no lock for
//! any of this: the order of steps is in [`LogWriter::finish`], their part in [`super::reader`].

use std::fs::File;
use std::os::unix::fs::FileExt;

use outlast_core::record::{Gap, OutputState};
use outlast_core::request::LogCap;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::name;
use super::reader::{BLOCK, mark_of, survey};
use crate::dir::{Dir, FileError, Result};
use crate::effect;

/// How much of the end is kept in memory where the file system cannot punch holes, in bytes.
const MEMORY_TAIL: usize = 16 * 1024;
const COPY_STEP: usize = 64 * 1024;

type Punch = fn(&File, u64, u64) -> std::result::Result<(), Errno>;

/// The one writer of a log.
///
/// A write that fails closes the log for good: the first failure is kept, later output is counted
/// and not written, and no trailer follows, so that a reader never sees a log with a silent hole.
#[derive(Debug)]
pub struct LogWriter {
    dir: Dir,
    file: Option<File>,
    start: u64,
    cap: LogCap,
    bytes: u64,
    kept: Kept,
    failure: Option<FileError>,
    punch: Punch,
}

/// What is kept of the output.
#[derive(Debug)]
enum Kept {
    /// Everything but a hole from the first block after the cap's head up to this output offset (no
    /// hole if not above it).
    Hole { end: u64 },
    /// The first so many bytes in the file, and the last bytes in memory.
    Beginning { bytes: u64, tail: Vec<u8> },
    /// Nothing more comes. The gap is final and goes by the cap; the file is as it was.
    Trimmed { hole_end: u64, gap: Option<Gap> },
    /// The file has its final form.
    Final { gap: Option<Gap> },
}

impl LogWriter {
    /// Makes the log and writes its header; `line` is the command line as people read it.
    pub fn create(dir: &Dir, line: &str, cap: LogCap) -> Result<LogWriter> {
        LogWriter::create_with(dir, line, cap, punch_hole)
    }

    fn create_with(dir: &Dir, line: &str, cap: LogCap, punch: Punch) -> Result<LogWriter> {
        let file = dir.create_new(name::LOG)?;
        let header = format!("Command: {line}\n\n");
        if let Err(error) = write(&file, header.as_bytes(), 0) {
            // The first failure is the one to tell; half a heading is no log, and takes room that the other
            // records need.
            let _ = dir.remove_file(name::LOG);
            return Err(FileError::io("write", dir.path_of(name::LOG), &error));
        }
        Ok(LogWriter {
            dir: dir.clone(),
            file: Some(file),
            start: header.len() as u64,
            cap,
            bytes: 0,
            kept: Kept::Hole { end: 0 },
            failure: None,
            punch,
        })
    }

    /// A log that could not be made: it counts, and tells this failure.
    pub fn failed(dir: &Dir, cap: LogCap, failure: FileError) -> LogWriter {
        LogWriter {
            dir: dir.clone(),
            file: None,
            start: 0,
            cap,
            bytes: 0,
            kept: Kept::Final { gap: None },
            failure: Some(failure),
            punch: punch_hole,
        }
    }

    /// Opens the log of a dead writer, to finish it. `known` is its last status; see [`survey`].
    pub fn reopen(dir: &Dir, known: &OutputState, cap: LogCap) -> Result<LogWriter> {
        let found = survey(dir, known, cap)?;
        let kept = match found.gap {
            Some(gap) if gap.on_disk < gap.bytes => Kept::Final { gap: Some(gap) },
            Some(gap) => Kept::Hole { end: gap.offset + gap.bytes },
            None => Kept::Hole { end: 0 },
        };
        Ok(LogWriter {
            dir: dir.clone(),
            file: Some(dir.open_rw(name::LOG)?),
            start: found.start,
            cap,
            bytes: found.bytes,
            kept,
            failure: None,
            punch: punch_hole,
        })
    }

    /// Adds output. It is counted in any case; what became of the file is in [`LogWriter::failure`].
    pub fn append(&mut self, output: &[u8]) {
        let at = self.bytes;
        self.bytes = at.saturating_add(output.len() as u64);
        let Some(file) = &self.file else { return };
        match &mut self.kept {
            Kept::Hole { .. } => {
                let written = write(file, output, self.start.saturating_add(at));
                match written {
                    Ok(()) => self.hold_to_cap(),
                    Err(e) => self.fail(FileError::io("write", self.path(), &e)),
                }
            }
            Kept::Beginning { tail, .. } => keep_last(tail, output),
            Kept::Trimmed { .. } | Kept::Final { .. } => {}
        }
    }

    fn hold_to_cap(&mut self) {
        let step = (self.cap.tail / 4).clamp(64 * 1024, 1024 * 1024);
        let Kept::Hole { end } = self.kept else { return };
        let Some(wanted) = self.bytes.checked_sub(self.cap.tail) else { return };
        if wanted < end.max(self.cap.head).saturating_add(step) {
            return;
        }
        match self.punch(end, wanted) {
            Ok(end) => self.kept = Kept::Hole { end },
            Err(_) if end > 0 => {}
            // No holes here: from now on only the last bytes are kept, in memory.
            Err(_) => self.kept = Kept::Beginning { bytes: self.bytes, tail: Vec::new() },
        }
    }

    /// Where the hole begins, in output offsets: with a block, so that the head stays whole.
    fn hole_start(&self) -> u64 {
        (self.start + self.cap.head).next_multiple_of(BLOCK) - self.start
    }

    /// Makes the hole that ends at `end` reach up to the last block before `wanted`, and tells where it
    /// ends now. Holes are whole blocks, so that [`survey`] and readers can tell them from output.
    fn punch(&self, end: u64, wanted: u64) -> std::result::Result<u64, Errno> {
        let from = self.start + self.hole_start().max(end);
        let to = (self.start + wanted) / BLOCK * BLOCK;
        let Some(file) = &self.file else { return Ok(end) };
        if to <= from {
            return Ok(end);
        }
        (self.punch)(file, from, to - from).map(|()| to - self.start)
    }

    /// What is in the file stays as it is, and so does what was dropped of it: the cap drops nothing of what is not there.
    fn fail(&mut self, failure: FileError) {
        self.failure.get_or_insert(failure);
        self.file = None;
        self.kept = match &self.kept {
            // The beginning is all there is, and it has no end that could be told from a hole.
            Kept::Beginning { .. } => Kept::Final { gap: None },
            Kept::Hole { .. } | Kept::Trimmed { .. } | Kept::Final { .. } => Kept::Final { gap: self.gap() },
        };
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path_of(name::LOG)
    }

    /// The first write failure: the log is closed since then.
    pub fn failure(&self) -> Option<&FileError> {
        self.failure.as_ref()
    }

    /// Bytes that came, whether or not they are in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What is missing from the file now.
    pub fn gap(&self) -> Option<Gap> {
        let hole = |offset: u64, end: u64| {
            let bytes = end.checked_sub(offset).filter(|&bytes| bytes > 0)?;
            Some(Gap { offset, bytes, on_disk: bytes })
        };
        match &self.kept {
            Kept::Hole { end } => hole(self.hole_start(), *end),
            Kept::Beginning { bytes, .. } => hole(*bytes, self.bytes).map(|gap| Gap { on_disk: 0, ..gap }),
            Kept::Trimmed { gap, .. } | Kept::Final { gap } => *gap,
        }
    }

    /// The state of the output as records and replies hold it.
    pub fn output(&self) -> OutputState {
        OutputState { start: self.start, bytes: self.bytes, gap: self.gap(), whole: self.failure.is_none() }
    }

    /// Ends the capture: from now on the gap is final and exactly what the cap drops.
    ///
    /// The bytes that readers know of are still where they were. Publish [`LogWriter::output`] in
    /// `status.json` before [`LogWriter::finish`] changes that.
    pub fn close(&mut self) {
        match &mut self.kept {
            Kept::Hole { end } => {
                let dropped = self.bytes.saturating_sub(self.cap.head.saturating_add(self.cap.tail));
                let gap = Gap { offset: self.cap.head, bytes: dropped, on_disk: dropped };
                self.kept = Kept::Trimmed { hole_end: *end, gap: (dropped > 0).then_some(gap) };
            }
            Kept::Beginning { bytes, tail } => {
                let (bytes, tail) = (*bytes, std::mem::take(tail));
                match self.add_tail(bytes, &tail) {
                    Ok(gap) => self.kept = Kept::Final { gap },
                    Err(failure) => self.fail(failure),
                }
            }
            Kept::Trimmed { .. } | Kept::Final { .. } => {}
        }
    }

    /// Writes what is in the file to the disk (`durability = "power"`).
    pub fn sync(&mut self) {
        if let Some(file) = &self.file
            && let Err(e) = effect::sync_data(name::LOG, file)
        {
            self.fail(FileError::os("sync", self.path(), e));
        }
    }

    /// Moves the tail down behind a mark, where that is safe, and tells the gap as it is then.
    fn close_hole(&self, hole_end: u64, gap: Gap) -> Result<Gap> {
        let Some(file) = &self.file else { return Ok(gap) };
        let end = self.punch(hole_end, gap.offset + gap.bytes).unwrap_or(hole_end);
        let room = end.saturating_sub(gap.offset);
        let (mark, at) = (mark_of(gap.bytes), self.start + gap.offset);
        let length = mark.len() as u64;
        // Blocks must stay empty between the copy and the old tail, for `survey` to see where it began.
        if length + self.cap.tail + 2 * BLOCK <= room {
            let copied =
                copy_down(file, at + gap.bytes, at + length, self.cap.tail).and_then(|()| write(file, &mark, at));
            return match copied {
                Ok(()) => Ok(Gap { on_disk: length, ..gap }),
                // A full disk is no reason to lose the tail: what was copied is taken out again.
                Err(_) => self.punch(0, end).map(|_| gap).map_err(|e| FileError::os("trim", self.path(), e)),
            };
        }
        // The tail would overwrite itself on its way, and a death in the middle would lose it. The hole
        // stays, with the mark at its beginning where that fits.
        if length <= room {
            write(file, &mark, at).map_err(|e| FileError::io("write", self.path(), &e))?;
        }
        Ok(gap)
    }

    fn add_tail(&self, kept: u64, tail: &[u8]) -> Result<Option<Gap>> {
        let Some(file) = &self.file else { return Ok(self.gap()) };
        let missing = self.bytes - kept - tail.len() as u64;
        let mark = if missing > 0 { mark_of(missing) } else { Vec::new() };
        let text = [&mark[..], tail].concat();
        if let Err(error) = write(file, &text, self.start + kept) {
            // Half a mark is no output. Where that cannot be taken out either, the failure is told all the same.
            let _ = effect::set_len(name::LOG, file, self.start + kept);
            return Err(FileError::io("write", self.path(), &error));
        }
        let gap = Gap { offset: kept, bytes: missing, on_disk: mark.len() as u64 };
        Ok((missing > 0).then_some(gap))
    }

    /// Gives the file its final form and writes the trailer; a command whose end has no number gets
    /// none. Tells the final state; `whole` is false after a failure ([`LogWriter::failure`]).
    ///
    /// First the gap is published, then the tail is copied down over bytes that nobody may read any
    /// more, then the file is cut: with that the copy becomes the tail, in one step.
    pub fn finish(&mut self, number: Option<i32>) -> OutputState {
        self.close();
        if let Kept::Trimmed { hole_end, gap } = self.kept {
            match gap.map(|gap| self.close_hole(hole_end, gap)).transpose() {
                Ok(gap) => self.kept = Kept::Final { gap },
                Err(failure) => self.fail(failure),
            }
        }
        let state = self.output();
        if let Some(file) = self.file.take()
            && let Err(e) = end_file(&file, &state, number)
        {
            self.fail(FileError::io("write", self.path(), &e));
        }
        self.output()
    }
}

fn end_file(file: &File, state: &OutputState, number: Option<i32>) -> std::io::Result<()> {
    let (missing, on_disk) = state.gap.map_or((0, 0), |gap| (gap.bytes, gap.on_disk));
    let end = state.start + state.bytes - missing + on_disk;
    effect::set_len(name::LOG, file, end)?;
    match number {
        Some(number) => write(file, format!("\n\nExit code: {number}\n").as_bytes(), end),
        None => Ok(()),
    }
}

fn write(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    effect::write_at(name::LOG, file, bytes, offset)
}

fn keep_last(tail: &mut Vec<u8>, output: &[u8]) {
    let fresh = &output[output.len().saturating_sub(MEMORY_TAIL)..];
    let excess = (tail.len() + fresh.len()).saturating_sub(MEMORY_TAIL);
    tail.drain(..excess);
    tail.extend_from_slice(fresh);
}

fn copy_down(file: &File, mut from: u64, mut to: u64, mut length: u64) -> std::io::Result<()> {
    let mut buffer = vec![0; COPY_STEP];
    while length > 0 {
        let step = usize::try_from(length).map_or(COPY_STEP, |n| n.min(COPY_STEP));
        file.read_exact_at(&mut buffer[..step], from)?;
        write(file, &buffer[..step], to)?;
        from += step as u64;
        to += step as u64;
        length -= step as u64;
    }
    Ok(())
}

fn punch_hole(file: &File, offset: u64, length: u64) -> std::result::Result<(), Errno> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    loop {
        match effect::allocate(name::LOG, file, flags, offset, length) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;
