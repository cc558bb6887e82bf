//! Writes and reads `output.idx`: which stream each part of the output came from, and when.
//!
//! The file is 24 bytes of heading (`outlast.index/1` padded with zeros) and records of 24 bytes, all
//! numbers little endian: offset in the output (u64), Unix time in milliseconds (u64), length (u32),
//! stream (u8: 1 standard output, 2 standard error), 3 bytes zero. Half a record at the end is no record, and neither is one of
//! an offset that no output has.

use std::fs::File;

use outlast_core::record::MOST_OUTPUT;

use super::name;
use super::reader::{LogReader, ReadPiece};
use crate::dir::{Dir, FileError, Result, if_there};
use crate::effect;
use crate::frame::Stream;

const RECORD: usize = 24;
const HEADING: &[u8; 15] = b"outlast.index/1";

/// A part of the output that came at once from one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Offset of its first byte in the output.
    pub offset: u64,
    /// Unix time in milliseconds at which it came.
    pub at_ms: u64,
    /// Its length in bytes.
    pub length: u32,
    /// Where it came from.
    pub stream: Stream,
}

/// The one writer of an index.
#[derive(Debug)]
pub struct IndexWriter {
    file: File,
    dir: Dir,
    position: u64,
    last: Option<Entry>,
}

impl IndexWriter {
    /// Makes the index.
    pub fn create(dir: &Dir) -> Result<IndexWriter> {
        let file = dir.create_new(name::INDEX)?;
        let mut heading = [0; RECORD];
        heading[..HEADING.len()].copy_from_slice(HEADING);
        effect::write_at(name::INDEX, &file, &heading, 0)
            .map_err(|e| FileError::io("write", dir.path_of(name::INDEX), &e))?;
        Ok(IndexWriter { file, dir: dir.clone(), position: 0, last: None })
    }

    /// Adds a part; parts must come in the order of their offsets. A part that continues the last one
    /// (same stream, same millisecond) makes that one longer.
    pub fn append(&mut self, entry: Entry) -> Result<()> {
        let merged = self.last.and_then(|last| {
            let continues = last.stream == entry.stream
                && last.at_ms == entry.at_ms
                && last.offset + u64::from(last.length) == entry.offset;
            let length = last.length.checked_add(entry.length)?;
            continues.then_some(Entry { length, ..last })
        });
        if merged.is_none() {
            self.position += RECORD as u64;
        }
        let entry = merged.unwrap_or(entry);
        self.last = Some(entry);
        effect::write_at(name::INDEX, &self.file, &encode(&entry), self.position)
            .map_err(|e| FileError::io("write", self.dir.path_of(name::INDEX), &e))
    }
}

/// All entries in the order of their offsets; `None` if the command has no index.
pub fn read_index(dir: &Dir) -> Result<Option<Vec<Entry>>> {
    let Some(file) = if_there(dir.open_file(name::INDEX))? else { return Ok(None) };
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut &file, &mut bytes)
        .map_err(|e| FileError::io("read", dir.path_of(name::INDEX), &e))?;
    let mut records = bytes.chunks_exact(RECORD);
    if !records.next().is_some_and(|heading| heading.starts_with(HEADING)) {
        let why = "it does not begin with its heading".to_owned();
        return Err(FileError::damaged("understand", dir.path_of(name::INDEX), why));
    }
    Ok(Some(records.filter_map(decode).collect()))
}

/// Reads up to `most` bytes of one stream from this offset of the output on, and tells the offset from
/// which to go on. What the cap dropped is stepped over.
pub fn read_stream(
    log: &LogReader,
    index: &[Entry],
    stream: Stream,
    offset: u64,
    most: usize,
) -> Result<(Vec<u8>, u64)> {
    let mut text = Vec::new();
    let mut next = offset;
    let first = index.partition_point(|entry| entry.offset + u64::from(entry.length) <= offset);
    for entry in &index[first..] {
        let end = entry.offset + u64::from(entry.length);
        next = next.max(entry.offset);
        while next < end && entry.stream == stream {
            let room = most - text.len();
            if room == 0 {
                return Ok((text, next));
            }
            let mut part = vec![0; usize::try_from(end - next).unwrap_or(room).min(room)];
            match log.read_at(next, &mut part)? {
                ReadPiece::Bytes(0) => return Ok((text, next)),
                ReadPiece::Bytes(count) => {
                    text.extend_from_slice(&part[..count]);
                    next += count as u64;
                }
                ReadPiece::Gap { offset, bytes } => next = (offset + bytes).min(end),
            }
        }
        // The entries of a damaged index may be in any order; whoever goes on from here must get on.
        next = next.max(end);
    }
    Ok((text, next))
}

fn encode(entry: &Entry) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(&entry.offset.to_le_bytes());
    bytes[8..16].copy_from_slice(&entry.at_ms.to_le_bytes());
    bytes[16..20].copy_from_slice(&entry.length.to_le_bytes());
    bytes[20] = if entry.stream == Stream::Err { 2 } else { 1 };
    bytes
}

fn decode(bytes: &[u8]) -> Option<Entry> {
    let (offset, rest) = bytes.split_first_chunk::<8>()?;
    let (at_ms, rest) = rest.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let offset = u64::from_le_bytes(*offset);
    (offset <= MOST_OUTPUT).then_some(Entry {
        offset,
        at_ms: u64::from_le_bytes(*at_ms),
        length: u32::from_le_bytes(*length),
        stream: if rest.first() == Some(&2) { Stream::Err } else { Stream::Out },
    })
}
