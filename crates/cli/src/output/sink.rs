//! Passes a command's bytes through as they come, without blocking whoever waits beside it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use outlast::Stream;
use rustix::event::PollFlags;
use rustix::io::Errno;
use tokio::io::Interest;

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
    queue: VecDeque<(Stream, Vec<u8>, usize)>,
    closed: bool,
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
            self.queue.push_back((stream, bytes, 0));
        }
    }

    /// Writes a part of what is there; with nothing to write it waits until standard output is closed at
    /// the other end. Never comes back once that is known. Cancel-safe.
    pub async fn progress(&mut self) -> Progress {
        if self.closed {
            return std::future::pending().await;
        }
        let Some((stream, bytes, done)) = self.queue.front_mut() else {
            self.out.hung_up().await;
            self.closed = true;
            return Progress::Closed(io::ErrorKind::BrokenPipe.into());
        };
        let target = if *stream == Stream::Stderr { &self.err } else { &self.out };
        match target.write(&bytes[*done..]).await {
            Ok(count) => {
                *done += count;
                if *done == bytes.len() {
                    self.queue.pop_front();
                }
                Progress::Wrote
            }
            Err(error) => {
                self.closed = true;
                self.queue.clear();
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
