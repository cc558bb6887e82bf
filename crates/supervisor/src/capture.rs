//! Drains the command's pipes: counts, holds, keeps the tail, and writes the log once there is one.

use std::os::fd::OwnedFd;

use outlast_core::policy::redact::Counts;
use outlast_core::record::OutputState;
use outlast_core::request::{LogCap, OverCap, Request};
use outlast_core::text::TEXT_BYTES;
use outlast_host::clock;
use outlast_host::dir::Dir;
use outlast_host::frame::Stream;
use outlast_host::store::index::{Entry, IndexWriter};
use outlast_host::store::log::LogWriter;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::veil::Veil;

/// Bytes asked of a pipe at once.
const READ_BYTES: usize = 64 * 1024;
/// Reads of one pipe before the other descriptors get their turn.
const READS_IN_TURN: usize = 32;
/// The pipe's size once it was found full (pipe(7); users may be refused it).
const WIDE_PIPE: usize = 1 << 20;
/// From this tail on what is in two wide pipes is little of it.
const WIDE_TAIL: u64 = 8 << 20;

/// What a turn of reading found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Bytes that came.
    pub bytes: usize,
    /// Everybody who held the other end closed it: nothing more comes.
    pub closed: bool,
}

struct Pipe {
    fd: OwnedFd,
    stream: Stream,
    wide: bool,
}

/// The output of one command.
pub struct Capture {
    pipes: [Option<Pipe>; 2],
    separate: bool,
    held: Vec<(Stream, Vec<u8>)>,
    hold: u64,
    forgotten: [u64; 2],
    tail: Vec<u8>,
    bytes: u64,
    log: Option<LogWriter>,
    index: Option<IndexWriter>,
    index_failure: Option<String>,
    cap: LogCap,
    over_cap: OverCap,
    veil: Option<Veil>,
    buffer: Vec<u8>,
}

impl Capture {
    /// Captures what comes out of `outputs`, of which there are two for separate streams, through a veil where one is given.
    pub fn new(request: &Request, outputs: Vec<OwnedFd>, veil: Option<Veil>) -> Capture {
        let separate = outputs.len() == 2;
        let mut pipes = [None, None];
        for (slot, (fd, stream)) in pipes.iter_mut().zip(outputs.into_iter().zip([Stream::Out, Stream::Err])) {
            *slot = Some(Pipe { fd, stream, wide: false });
        }
        Capture {
            pipes,
            separate,
            held: Vec::new(),
            hold: request.hold,
            forgotten: [0, 0],
            tail: Vec::new(),
            bytes: 0,
            log: None,
            index: None,
            index_failure: None,
            cap: request.cap,
            over_cap: request.over_cap,
            veil,
            buffer: Vec::new(),
        }
    }

    /// The pipes that are still open, with their numbers.
    pub fn open_pipes(&self) -> impl Iterator<Item = (usize, &OwnedFd)> {
        self.pipes.iter().enumerate().filter_map(|(number, pipe)| Some((number, &pipe.as_ref()?.fd)))
    }

    /// Whether something may still come.
    pub fn is_open(&self) -> bool {
        self.pipes.iter().any(Option::is_some)
    }

    /// Reads what pipe `number` has, for a turn; `sink` is given each piece as it comes.
    ///
    /// No more than `room` bytes are taken from the pipe.
    pub fn read(&mut self, number: usize, room: u64, sink: &mut dyn FnMut(Stream, &[u8])) -> Found {
        let mut found = Found::default();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.reserve_exact(READ_BYTES);
        for _ in 0..READS_IN_TURN {
            let room = usize::try_from(room).unwrap_or(usize::MAX).saturating_sub(found.bytes);
            let Some(pipe) = self.pipes[number].as_mut().filter(|_| room > 0) else { break };
            buffer.clear();
            let read = if room < READ_BYTES {
                buffer.resize(room, 0);
                let read = rustix::io::read(&pipe.fd, &mut buffer[..]);
                buffer.truncate(read.unwrap_or(0));
                read
            } else {
                rustix::io::read(&pipe.fd, spare_capacity(&mut buffer))
            };
            match read {
                Ok(0) => found.closed = true,
                Ok(count) => {
                    found.bytes += count;
                    if self.cap.tail >= WIDE_TAIL {
                        widen(pipe, count);
                    }
                    let stream = pipe.stream;
                    match &mut self.veil {
                        None => self.pass(stream, &buffer, sink),
                        Some(veil) => {
                            let shown = veil.push(stream, &buffer);
                            self.pass(stream, &shown, sink);
                        }
                    }
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => {}
                // A pipe that cannot be read any more is over like one that was closed; a terminal that nobody holds
                // says so by an error (tty(4), EIO).
                Err(_) => found.closed = true,
            }
            break;
        }
        self.buffer = buffer;
        if found.closed {
            self.unveil(number, sink);
            self.pipes[number] = None;
        }
        found
    }

    /// Takes what the veil holds back of a pipe from which nothing more is read.
    pub fn unveil(&mut self, number: usize, sink: &mut dyn FnMut(Stream, &[u8])) {
        let (Some(pipe), Some(veil)) = (&self.pipes[number], &mut self.veil) else { return };
        let stream = pipe.stream;
        let rest = veil.rest(stream);
        self.pass(stream, &rest, sink);
    }

    /// How much was masked since this was asked last, by pattern.
    pub fn take_masked(&mut self) -> Counts {
        self.veil.as_mut().map(Veil::take_counts).unwrap_or_default()
    }

    fn pass(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn FnMut(Stream, &[u8])) {
        if !bytes.is_empty() {
            sink(stream, bytes);
            self.take(stream, bytes);
        }
    }

    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let offset = self.bytes;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        keep_tail(&mut self.tail, bytes);
        match &mut self.log {
            None => hold(&mut self.held, stream, bytes),
            Some(log) => {
                log.append(bytes);
                self.note(offset, stream, bytes.len());
            }
        }
    }

    fn note(&mut self, offset: u64, stream: Stream, length: usize) {
        let Some(index) = &mut self.index else { return };
        let length = u32::try_from(length).expect("a read, and what a veil held back before it, are some 80 KiB");
        if let Err(error) = index.append(Entry { offset, at_ms: clock::unix_ms(), length, stream }) {
            self.index_failure = Some(error.to_string());
            self.index = None;
        }
    }

    /// Writes what was held into a log in `dir`, and all that comes from now on. A log that cannot be
    /// made is a failure of the log and of nothing else.
    pub fn open_log(&mut self, dir: &Dir, line: &str) {
        let mut log =
            LogWriter::create(dir, line, self.cap).unwrap_or_else(|failure| LogWriter::failed(dir, self.cap, failure));
        if self.separate {
            match IndexWriter::create(dir) {
                Ok(index) => self.index = Some(index),
                Err(error) => self.index_failure = Some(error.to_string()),
            }
        }
        let mut offset = 0;
        let held = std::mem::take(&mut self.held);
        for (_, bytes) in &held {
            log.append(bytes);
        }
        self.log = Some(log);
        for (stream, bytes) in held {
            for piece in bytes.chunks(READ_BYTES) {
                self.note(offset, stream, piece.len());
                offset += piece.len() as u64;
            }
        }
    }

    /// How much more may come until the cap drops bytes behind offset `seen`. What may be in the pipes when the command
    /// ends, which is read then in any case, is left room for.
    pub fn room(&self, seen: u64) -> u64 {
        let in_pipes = (2 * WIDE_PIPE as u64).min(self.cap.tail / 2);
        (self.cap.head.max(seen) + self.cap.tail - in_pipes).saturating_sub(self.bytes)
    }

    /// Whether more is held than a log would keep.
    pub fn holds_more_than_a_log(&self) -> bool {
        self.held.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>() > self.cap.head + self.cap.tail
    }

    /// Forgets what is held, for good, but for the last `keep` bytes: no log can be made of the rest any more.
    pub fn forget_held(&mut self, keep: u64) {
        let mut beyond = self.held.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>().saturating_sub(keep);
        let mut emptied = 0;
        for (stream, bytes) in &mut self.held {
            let count = usize::try_from(beyond).unwrap_or(usize::MAX).min(bytes.len());
            if count == 0 {
                break;
            }
            beyond -= count as u64;
            self.forgotten[usize::from(*stream == Stream::Err)] += count as u64;
            bytes.drain(..count);
            emptied += usize::from(bytes.is_empty());
        }
        self.held.drain(..emptied);
    }

    /// How much of each stream is neither held nor in a log.
    pub fn forgotten(&self) -> [u64; 2] {
        self.forgotten
    }

    /// Whether something that came is neither held nor in a log.
    pub fn forgot(&self) -> bool {
        self.forgotten != [0, 0]
    }

    /// Whether more is held than may be.
    pub fn overflows(&self) -> bool {
        self.log.is_none() && [Stream::Out, Stream::Err].into_iter().any(|stream| self.held_of(stream) > self.hold)
    }

    fn held_of(&self, stream: Stream) -> u64 {
        self.held.iter().filter(|(of, _)| *of == stream).map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Whether the log's cap is reached and the policy is to stop.
    pub fn must_stop(&self) -> bool {
        self.over_cap == OverCap::Stop && self.bytes > self.cap.head + self.cap.tail
    }

    /// What is held, in the order in which it came.
    pub fn held(&self) -> &[(Stream, Vec<u8>)] {
        &self.held
    }

    /// The last bytes that came.
    pub fn tail(&self) -> &[u8] {
        &self.tail[self.tail.len().saturating_sub(TEXT_BYTES)..]
    }

    /// The state of the output.
    pub fn output(&self) -> OutputState {
        match &self.log {
            Some(log) => log.output(),
            None => OutputState { start: 0, bytes: self.bytes, gap: None, whole: true },
        }
    }

    /// What went wrong with log and index.
    pub fn failures(&self) -> Vec<String> {
        let log = self.log.as_ref().and_then(LogWriter::failure).map(ToString::to_string);
        log.into_iter().chain(self.index_failure.clone()).collect()
    }

    /// Trims the log to its cap. The state to publish before [`Capture::finish`].
    pub fn close(&mut self) -> OutputState {
        (0..self.pipes.len()).for_each(|number| self.unveil(number, &mut |_, _| {}));
        self.pipes = [None, None];
        if let Some(log) = &mut self.log {
            log.close();
        }
        self.output()
    }

    /// Writes the trailer. Nothing more is captured.
    pub fn finish(&mut self, number: Option<i32>) -> OutputState {
        match &mut self.log {
            Some(log) => log.finish(number),
            None => self.output(),
        }
    }
}

/// A pipe that is found full gets room, so that the producer waits less.
fn widen(pipe: &mut Pipe, count: usize) {
    if count == READ_BYTES && !pipe.wide {
        pipe.wide = true;
        // Refused to users who have many wide pipes (pipe-user-pages-soft): then it stays as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe.fd, WIDE_PIPE);
    }
}

fn hold(held: &mut Vec<(Stream, Vec<u8>)>, stream: Stream, bytes: &[u8]) {
    match held.last_mut() {
        Some((last, text)) if *last == stream => text.extend_from_slice(bytes),
        _ => held.push((stream, bytes.to_vec())),
    }
}

/// Keeps the last `TEXT_BYTES` of what came; the vector holds up to twice that between two cuts.
fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    let fresh = &bytes[bytes.len().saturating_sub(TEXT_BYTES)..];
    if tail.len() + fresh.len() > 2 * TEXT_BYTES {
        let keep = TEXT_BYTES.saturating_sub(fresh.len()).min(tail.len());
        tail.drain(..tail.len() - keep);
    }
    tail.extend_from_slice(fresh);
}
