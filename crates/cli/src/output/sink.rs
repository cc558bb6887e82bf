//! Passes a command's bytes through as they come, without blocking whoever waits beside it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use outlast::Stream;
use rustix::event::PollFlags;
use rustix::io::Errno;
use tokio::io::Interest;

use super::own_line;
use crate::streams::{Watched, is_now};

/// Bytes written at once into something that can fill up. A pipe that polls as writable has room for at
/// least as many (pipe(7), `PIPE_BUF`), so that the write does not block although the descriptor may.
const STEP: usize = 4096;

/// What came of giving a sink some time.
#[derive(Debug)]
pub enum Progress {
    /// Some bytes were written.
    Wrote,
    /// Nobody reads any more, or nothing more can be written; the reason.
    Closed(io::Error),
}

/// Standard output and standard error as targets of a command's output.
pub struct Sink {
    out: Target,
    err: Target,
    queue: VecDeque<Chunk>,
    closed: bool,
}

/// Bytes that wait to be written.
struct Chunk {
    stream: Stream,
    bytes: Vec<u8>,
    done: usize,
    /// Whether it is a line of outlast's own beside the output.
    own: bool,
}

impl Sink {
    /// Takes copies of the two descriptors; needs a runtime around it.
    pub fn new() -> io::Result<Sink> {
        let (out, err) = (Target::new(io::stdout())?, Target::new(io::stderr())?);
        Ok(Sink { out, err, queue: VecDeque::new(), closed: false })
    }

    /// Whether somebody still reads.
    pub fn is_open(&self) -> bool {
        !self.closed
    }

    /// Whether everything is written.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes bytes to be written. They are dropped once nobody reads.
    pub fn push(&mut self, stream: Stream, bytes: Vec<u8>) {
        if !self.closed && !bytes.is_empty() {
            self.queue.push_back(Chunk { stream, bytes, done: 0, own: false });
        }
    }

    /// Says a line on standard error: at once where that has room, else behind what waits already. It is
    /// said also where nobody reads the output any more.
    pub fn say(&mut self, line: &str) {
        let bytes = own_line(line).into_bytes();
        let mut chunk = Chunk { stream: Stream::Stderr, bytes, done: 0, own: true };
        // Where standard error is closed nobody is left to be told.
        if !self.err.write_now(&mut chunk).unwrap_or(true) {
            self.queue.push_back(chunk);
        }
    }

    /// Writes what can be written at this instant and drops the rest of what waits.
    pub fn drain(&mut self) {
        for mut chunk in std::mem::take(&mut self.queue) {
            let target = if chunk.stream == Stream::Stderr { &self.err } else { &self.out };
            // The first one that does not go out whole is the last one, so that nothing is left out between.
            if !matches!(target.write_now(&mut chunk), Ok(true)) {
                return;
            }
        }
    }

    /// Writes a part of what is there; with nothing to write it waits until standard output is closed at
    /// the other end. Once that is known only lines of outlast's own are written. Cancel-safe.
    pub async fn progress(&mut self) -> Progress {
        let Some(chunk) = self.queue.front_mut() else {
            if self.closed {
                return std::future::pending().await;
            }
            self.out.hung_up().await;
            self.closed = true;
            return Progress::Closed(io::ErrorKind::BrokenPipe.into());
        };
        let target = if chunk.stream == Stream::Stderr { &self.err } else { &self.out };
        match target.write(&chunk.bytes[chunk.done..]).await {
            Ok(count) => {
                chunk.done += count;
                if chunk.done == chunk.bytes.len() {
                    self.queue.pop_front();
                }
                Progress::Wrote
            }
            // There is no third place in which a failure of standard error could be told.
            Err(_) if chunk.own => {
                self.queue.pop_front();
                Progress::Wrote
            }
            Err(error) => {
                self.closed = true;
                self.queue.retain(|chunk| chunk.own);
                Progress::Closed(error)
            }
        }
    }
}

/// One stream to write to.
struct Target(Watched);

impl Target {
    fn new(stream: impl AsFd) -> io::Result<Target> {
        Watched::new(stream, Interest::WRITABLE | Interest::ERROR).map(Target)
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let fd = match &self.0 {
            Watched::Direct(fd) => return write(fd, bytes),
            Watched::Polled(fd) => fd,
        };
        loop {
            let mut ready = fd.ready(Interest::WRITABLE | Interest::ERROR).await?;
            let tried = ready.try_io(|fd| {
                if !is_now(fd.get_ref(), PollFlags::OUT)? {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                write(fd.get_ref(), &bytes[..bytes.len().min(STEP)])
            });
            // Otherwise it would have blocked, and the readiness is cleared.
            if let Ok(result) = tried {
                return result;
            }
        }
    }

    /// Writes as much as goes out without blocking; false where something is left.
    fn write_now(&self, chunk: &mut Chunk) -> io::Result<bool> {
        let fd = match &self.0 {
            Watched::Direct(fd) => fd,
            Watched::Polled(fd) => fd.get_ref(),
        };
        while chunk.done < chunk.bytes.len() {
            if !is_now(fd, PollFlags::OUT)? {
                return Ok(false);
            }
            let rest = &chunk.bytes[chunk.done..];
            chunk.done += write(fd, &rest[..rest.len().min(STEP)])?;
        }
        Ok(true)
    }

    /// Waits until nobody can read any more; for ever where that cannot be known.
    async fn hung_up(&self) {
        let Watched::Polled(fd) = &self.0 else { return std::future::pending().await };
        loop {
            match fd.ready(Interest::ERROR).await {
                Ok(ready) if ready.ready().is_error() => return,
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => return std::future::pending().await,
            }
        }
    }
}

fn write(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::io::write(fd, bytes) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
