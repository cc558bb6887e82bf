//! Reads `output.log` by offsets of the output, around what the cap dropped, while it is being written.
//!
//! A reader takes no lock and is never shown bytes that stand at the wrong place. It reads first and asks
//! afterwards what became of the place it read from: a hole in the file (lseek(2)) was punched by the
//! writer, a gap in `status.json` was published before the writer wrote over it, and a file that ends
//! before the end of its gap was cut, which turned the copy of the tail into the tail.

use std::fs::File;
use std::os::unix::fs::FileExt;

use outlast_core::record::{Gap, MOST_OUTPUT, OutputState, StatusRecord, schema};
use outlast_core::request::LogCap;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::{load, name, understood};
use crate::dir::{Dir, FileError, Result};

/// File systems free whole blocks only; the hole in a growing log ends on a multiple of this.
pub(super) const BLOCK: u64 = 4096;

/// No cap is so small that output before this offset is dropped.
const ALWAYS_KEPT: u64 = LogCap::SMALLEST / 4;

/// A log open for reading.
#[derive(Debug)]
pub struct LogReader {
    dir: Dir,
    file: File,
    start: u64,
    gap: Option<Gap>,
    end: Option<u64>,
}

/// What stands at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadPiece {
    /// So many bytes were read; 0 at the end.
    Bytes(usize),
    /// The offset lies in what the cap dropped; the next byte that exists is at `offset + bytes`.
    Gap {
        /// Offset of the first byte that is missing.
        offset: u64,
        /// How many bytes are missing.
        bytes: u64,
    },
}

impl LogReader {
    /// Opens the log of a command directory. `start` and `gap` are from its status or supervisor.
    pub fn open(dir: &Dir, start: u64, gap: Option<Gap>) -> Result<LogReader> {
        let file = dir.open_file(name::LOG)?;
        Ok(LogReader { dir: dir.clone(), file, start, gap, end: None })
    }

    /// Takes over what is known by now: the gap, and that the output has at most so many bytes, which
    /// keeps the trailer out of what is read.
    pub fn update(&mut self, output: &OutputState) {
        self.gap = output.gap;
        self.end = Some(output.bytes);
    }

    /// What is missing, as far as this reader was told.
    pub fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// Bytes of output: as told by [`LogReader::update`], else as far as the file goes now.
    pub fn len(&self) -> Result<u64> {
        match self.end {
            Some(end) => Ok(end),
            None => self.written(),
        }
    }

    /// How far the output goes in the file, of which nothing else (a trailer) is there: that of a log that failed.
    pub fn written(&self) -> Result<u64> {
        let (missing, on_disk) = match self.gap {
            Some(gap) => (gap.bytes, self.on_disk(&gap)?),
            None => (0, 0),
        };
        Ok((self.file_length()? + missing).saturating_sub(self.start + on_disk))
    }

    fn file_length(&self) -> Result<u64> {
        self.file.metadata().map(|data| data.len()).map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &std::io::Error) -> FileError {
        FileError::io("read", self.dir.path_of(name::LOG), error)
    }

    /// Bytes that stand in the file in place of the gap. A file that is shorter than its gap was cut
    /// after the gap was told, and has the mark there.
    fn on_disk(&self, gap: &Gap) -> Result<u64> {
        if gap.on_disk == gap.bytes && self.file_length()? < self.start + gap.offset + gap.bytes {
            return Ok(mark_of(gap.bytes).len() as u64);
        }
        Ok(gap.on_disk)
    }

    /// True if there is no output.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads output from `offset` on, up to the gap or the end; an offset past the end reads nothing.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<ReadPiece> {
        let mut gap = self.gap;
        loop {
            let piece = self.read_around(gap, offset, buffer)?;
            let ReadPiece::Bytes(count) = piece else { return Ok(piece) };
            if offset + count as u64 <= ALWAYS_KEPT {
                return Ok(piece);
            }
            // Holes first: the writer fills one only after it published the gap.
            let end_of = |gap: Option<Gap>| gap.map_or(0, |gap| gap.offset + gap.bytes);
            let before_hole = if end_of(gap) <= offset { self.before_hole(offset, count)? } else { piece };
            // A status that cannot be understood has no news, and its error is told by whoever reads it.
            let status: Option<StatusRecord> = understood(load(&self.dir, name::STATUS, schema::STATUS))?;
            match status {
                Some(status) if end_of(status.output.gap) > end_of(gap) => gap = status.output.gap,
                // Nothing is punched any more; what looks like a hole is output that is all zeros.
                Some(status) if !status.capturing => return Ok(piece),
                Some(_) | None => return Ok(before_hole),
            }
        }
    }

    fn read_around(&self, gap: Option<Gap>, offset: u64, buffer: &mut [u8]) -> Result<ReadPiece> {
        let limit = self.end.unwrap_or(u64::MAX);
        let Some(gap) = gap else { return self.read_file(self.start.saturating_add(offset), limit, offset, buffer) };
        let after = gap.offset.saturating_add(gap.bytes);
        if offset < gap.offset {
            return self.read_file(self.start + offset, limit.min(gap.offset), offset, buffer);
        }
        if offset < after {
            let gap = ReadPiece::Gap { offset: gap.offset, bytes: gap.bytes };
            return Ok(if offset < limit { gap } else { ReadPiece::Bytes(0) });
        }
        loop {
            let on_disk = self.on_disk(&gap)?;
            let position = (self.start + on_disk).saturating_add(offset - gap.bytes);
            let piece = self.read_file(position, limit, offset, buffer)?;
            // The file can be cut once.
            if self.on_disk(&gap)? == on_disk {
                return Ok(piece);
            }
        }
    }

    fn read_file(&self, position: u64, limit: u64, offset: u64, buffer: &mut [u8]) -> Result<ReadPiece> {
        let room = usize::try_from(limit.saturating_sub(offset)).unwrap_or(usize::MAX);
        // No file goes so far, and the kernel refuses to look there instead of finding nothing.
        let wanted = if position <= 2 * MOST_OUTPUT { room.min(buffer.len()) } else { 0 };
        let mut done = 0;
        while done < wanted {
            match self.file.read_at(&mut buffer[done..wanted], position.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed(&e)),
            }
        }
        Ok(ReadPiece::Bytes(done))
    }

    /// What is left of a read from a file that is still written once holes are taken out of it.
    fn before_hole(&self, offset: u64, count: usize) -> Result<ReadPiece> {
        let from = self.start.saturating_add(offset);
        let seek = |to| match rustix::fs::seek(&self.file, to) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NXIO | Errno::INVAL) => Ok(None),
            Err(e) => Err(FileError::os("read", self.dir.path_of(name::LOG), e)),
        };
        let Some(hole) = seek(SeekFrom::Hole(from))? else { return Ok(ReadPiece::Bytes(count)) };
        let before = hole.saturating_sub(from);
        match seek(SeekFrom::Data(hole))? {
            Some(data) if before == 0 => Ok(ReadPiece::Gap { offset, bytes: data - from }),
            Some(_) => Ok(ReadPiece::Bytes(count.min(usize::try_from(before).unwrap_or(count)))),
            // The end of the file counts as a hole too.
            None => Ok(ReadPiece::Bytes(count)),
        }
    }
}

/// What stands in a finished log in place of the bytes that the cap dropped.
pub(super) fn mark_of(missing: u64) -> Vec<u8> {
    format!("\n[outlast: {missing} bytes not kept]\n").into_bytes()
}

/// What is in the log of a writer that is dead and did not finish it. `known` is its last status.
///
/// How much came and where the hole ends is read off the file (lseek(2), `SEEK_HOLE`); bytes that the
/// dead writer had received and not written are not known.
pub fn survey(dir: &Dir, known: &OutputState, cap: LogCap) -> Result<OutputState> {
    let mut reader = LogReader::open(dir, known.start, known.gap)?;
    if let Some(gap) = known.gap {
        let on_disk = reader.on_disk(&gap)?;
        if on_disk < gap.bytes {
            return Ok(OutputState { gap: Some(Gap { on_disk, ..gap }), ..*known });
        }
    }
    let length = reader.file_length()?;
    let bytes = length.saturating_sub(known.start);
    if bytes > known.bytes && reader.has_trailer_at(known.bytes)? {
        return Ok(*known);
    }
    reader.gap = None;
    if bytes > cap.head.saturating_add(cap.tail) {
        let inside = (known.start + cap.head).next_multiple_of(BLOCK);
        let end =
            last_hole_end(&reader.file, inside).map_err(|e| FileError::os("look at", dir.path_of(name::LOG), e))?;
        // From the head on, because a writer that died while it finished wrote over what follows it.
        reader.gap = end.map(|end| {
            let bytes = end - known.start - cap.head;
            Gap { offset: cap.head, bytes, on_disk: bytes }
        });
    }
    Ok(OutputState { bytes, gap: reader.gap, ..*known })
}

impl LogReader {
    /// True if nothing but a trailer stands in the file behind so many bytes of output.
    fn has_trailer_at(&self, bytes: u64) -> Result<bool> {
        let mut rest = [0; 64];
        let ReadPiece::Bytes(count) = self.read_file(self.start + bytes, u64::MAX, bytes, &mut rest)? else {
            return Ok(false);
        };
        let number = rest[..count].strip_prefix(b"\n\nExit code: ").and_then(|rest| rest.strip_suffix(b"\n"));
        Ok(number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit)))
    }
}

/// The end of the last hole at or after `from`. It is the last one that counts, because a writer that
/// died while it closed the hole had filled the beginning of it with a copy of the tail.
fn last_hole_end(file: &File, from: u64) -> std::result::Result<Option<u64>, Errno> {
    let (mut at, mut end) = (from, None);
    loop {
        // The end of the file counts as a hole without data behind it.
        let next =
            rustix::fs::seek(file, SeekFrom::Hole(at)).and_then(|hole| rustix::fs::seek(file, SeekFrom::Data(hole)));
        match next {
            Ok(data) => {
                end = Some(data);
                at = data;
            }
            Err(Errno::NXIO | Errno::INVAL) => return Ok(end),
            Err(e) => return Err(e),
        }
    }
}
