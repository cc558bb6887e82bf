//! outlast's own standard input as a source of bytes, without a thread that waits for it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::io::Errno;
use tokio::io::Interest;

use crate::streams::{Watched, is_now};

/// Bytes read at once.
const STEP: usize = 64 * 1024;

/// Where input comes from; none once nothing more comes.
pub struct Input(Option<Watched>);

impl Input {
    /// Standard input; needs a runtime around it.
    pub fn new() -> io::Result<Input> {
        Watched::new(io::stdin(), Interest::READABLE).map(|stream| Input(Some(stream)))
    }

    /// No input at all.
    pub fn none() -> Input {
        Input(None)
    }

    /// The next bytes; empty once, at the end. Never comes back after that. Cancel-safe.
    pub async fn next(&mut self) -> io::Result<Vec<u8>> {
        let bytes = match &self.0 {
            None => std::future::pending().await,
            Some(Watched::Direct(fd)) => read(fd)?,
            Some(Watched::Polled(fd)) => loop {
                let mut ready = fd.readable().await?;
                if let Ok(result) = ready.try_io(|fd| read_if_there(fd.get_ref())) {
                    break result?;
                }
            },
        };
        if bytes.is_empty() {
            self.0 = None;
        }
        Ok(bytes)
    }
}

fn read_if_there(fd: &OwnedFd) -> io::Result<Vec<u8>> {
    if is_now(fd, PollFlags::IN)? { read(fd) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

fn read(fd: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; STEP];
    loop {
        match rustix::io::read(fd, &mut bytes) {
            Ok(count) => {
                bytes.truncate(count);
                return Ok(bytes);
            }
            Err(Errno::INTR) => {}
            // A terminal that is gone reads as an error (tty(4)); nothing more comes from it.
            Err(Errno::IO) => return Ok(Vec::new()),
            Err(errno) => return Err(errno.into()),
        }
    }
}
