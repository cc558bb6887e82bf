//! Connections to keepers and supervisors, on tokio.

use std::os::fd::OwnedFd;

use outlast_host::dir::Dir;
use outlast_host::door::{self, DoorError};
use outlast_host::frame::{Channel, ChannelError, Frame, Stream};
use serde::Serialize;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};
use tokio::task::{AbortHandle, JoinHandle};

use crate::error::{Error, Result};
use crate::ready;

/// A framed connection that is waited on without a thread.
#[derive(Debug)]
pub(crate) struct Link {
    fd: AsyncFd<Channel>,
}

/// A connection, and the task that ends with the process behind it. Dropping it closes the one and ends the other.
#[derive(Debug)]
pub(crate) struct WatchedLink {
    pub(crate) link: Link,
    watch: AbortHandle,
}

impl WatchedLink {
    /// The connection to this process, none where it is gone already, and what ends when it is gone.
    pub(crate) fn new(link: Link, process: Option<OwnedFd>) -> Result<(WatchedLink, JoinHandle<()>)> {
        let process = process.map(|process| ready::register(process, Interest::READABLE)).transpose()?;
        let gone = tokio::spawn(async move {
            if let Some(process) = process {
                // This fails only where the whole runtime ends.
                let _ = process.readable().await;
            }
        });
        Ok((WatchedLink { link, watch: gone.abort_handle() }, gone))
    }

    /// Whether the process lives and has not closed its end, where nothing is ever said: what comes is its end. The
    /// connection alone does not tell, as what was forked a moment before the process was killed has a copy of its end.
    pub(crate) fn is_alive(&mut self) -> Result<bool> {
        Ok(!self.watch.is_finished() && self.link.is_quiet()?)
    }
}

impl Drop for WatchedLink {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Link {
    /// Takes a connected channel over.
    pub(crate) fn new(channel: Channel) -> Result<Link> {
        Ok(Link { fd: ready::register(channel, Interest::READABLE | Interest::WRITABLE)? })
    }

    /// Two ends: one for here, and the descriptor of the other one to hand to another process.
    pub(crate) fn pair() -> Result<(Link, OwnedFd)> {
        let (ours, theirs) = Channel::pair().map_err(channel_error)?;
        Ok((Link::new(ours)?, theirs.into_fd()))
    }

    /// Connects to a door; none where nobody listens behind it.
    pub(crate) fn connect(dir: &Dir, name: &str) -> Result<Option<Link>> {
        match door::connect(dir, name) {
            Ok(channel) => Link::new(channel).map(Some),
            Err(DoorError::Nobody(_)) => Ok(None),
            Err(error) => Err(door_error(error)),
        }
    }

    /// The process at the other end as the kernel knows it; 0 where it does not.
    pub(crate) fn peer_pid(&self) -> u32 {
        door::peer_pid(self.fd.get_ref()).ok().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
    }

    /// Sends a message. A peer that is gone is no error here: the next read says so, after what it said last.
    pub(crate) async fn send<T: Serialize>(&mut self, message: &T) -> Result<()> {
        self.send_with(message, Vec::new()).await
    }

    /// Sends a message with descriptors.
    pub(crate) async fn send_with<T: Serialize>(&mut self, message: &T, fds: Vec<OwnedFd>) -> Result<()> {
        unless_gone(self.fd.get_mut().send_json_with(message, fds))?;
        self.flush().await
    }

    /// Sends bytes for the command's standard input.
    pub(crate) async fn send_input(&mut self, bytes: &[u8]) -> Result<()> {
        for part in bytes.chunks(256 * 1024) {
            unless_gone(self.fd.get_mut().send_bytes(Stream::In, part))?;
            self.flush().await?;
        }
        Ok(())
    }

    /// Sends a piece of output.
    pub(crate) async fn send_bytes(&mut self, stream: Stream, bytes: &[u8]) -> Result<()> {
        unless_gone(self.fd.get_mut().send_bytes(stream, bytes))?;
        self.flush().await
    }

    async fn flush(&mut self) -> Result<()> {
        loop {
            match self.fd.get_mut().flush() {
                Ok(true) | Err(ChannelError::PeerGone) => return Ok(()),
                Ok(false) => {}
                Err(error) => return Err(channel_error(error)),
            }
            let mut ready = self.fd.writable_mut().await.map_err(wait_error)?;
            // A closure that reports "would block" clears the readiness, as an edge-triggered wait needs.
            let _ = ready.try_io(|fd| match fd.get_mut().flush() {
                Ok(false) => Err(std::io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            });
        }
    }

    /// The next frame; none when the peer closed its end. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.fd.get_mut().receive().map_err(channel_error)? {
                return Ok(Some(frame));
            }
            if self.fd.get_ref().is_eof() {
                return Ok(None);
            }
            // A send whose future was dropped half-way goes on here.
            if self.fd.get_ref().want_write() {
                self.send_or_receive().await?;
                continue;
            }
            let mut ready = self.fd.readable_mut().await.map_err(wait_error)?;
            let tried = ready.try_io(|fd| {
                let channel = fd.get_mut();
                match channel.receive() {
                    Ok(None) if !channel.is_eof() => Err(std::io::ErrorKind::WouldBlock.into()),
                    other => Ok(other),
                }
            });
            if let Ok(Ok(result)) = tried
                && let Some(frame) = result.map_err(channel_error)?
            {
                return Ok(Some(frame));
            }
        }
    }

    /// Waits until something that was queued could be sent, or something may have come.
    async fn send_or_receive(&mut self) -> Result<()> {
        let mut ready = self.fd.ready_mut(Interest::READABLE | Interest::WRITABLE).await.map_err(wait_error)?;
        if ready.ready().is_writable() {
            let flushed = ready.get_inner_mut().flush();
            if let Ok(false) = flushed {
                ready.clear_ready_matching(Ready::WRITABLE);
            }
            unless_gone(flushed.map(|_| ()))?;
        }
        // The next read finds out whether anything is there; if not, the readiness must not stay.
        ready.clear_ready_matching(Ready::READABLE);
        Ok(())
    }

    /// Whether nothing has come and the peer has not closed its end, without waiting.
    pub(crate) fn is_quiet(&mut self) -> Result<bool> {
        let channel = self.fd.get_mut();
        Ok(channel.receive().map_err(channel_error)?.is_none() && !channel.is_eof())
    }

    /// The next message; none when the peer closed its end. Bytes in its place break the protocol.
    pub(crate) async fn message<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>> {
        match self.next().await? {
            Some(frame) => frame.json().map(Some).map_err(channel_error),
            None => Ok(None),
        }
    }
}

fn unless_gone(result: Result<(), ChannelError>) -> Result<()> {
    match result {
        Ok(()) | Err(ChannelError::PeerGone) => Ok(()),
        Err(error) => Err(channel_error(error)),
    }
}

fn wait_error(error: std::io::Error) -> Error {
    Error::system("cannot wait for a socket", error)
}

pub(crate) fn channel_error(error: ChannelError) -> Error {
    Error::Protocol(error.to_string())
}

pub(crate) fn door_error(error: DoorError) -> Error {
    match error {
        DoorError::File(error) => Error::File(error),
        DoorError::Channel(error) => channel_error(error),
        other => Error::Unreachable(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use outlast_host::sys::pidfd;

    use super::*;

    /// A process that lives until its input ends, a watched connection to it, and the other end of that.
    fn watched() -> (Child, WatchedLink, JoinHandle<()>, OwnedFd) {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let (link, other) = Link::pair().expect("a connection");
        let process = pidfd::open(child.id()).expect("a descriptor of it");
        let (watched, gone) = WatchedLink::new(link, Some(process)).expect("a watch");
        (child, watched, gone, other)
    }

    fn end(mut child: Child) {
        drop(child.stdin.take());
        child.wait().expect("its end");
    }

    fn in_runtime(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test);
    }

    #[test]
    fn k9_a_connection_is_dead_with_its_process_also_where_another_one_holds_its_end() {
        in_runtime(async {
            let (child, mut watched, gone, held_elsewhere) = watched();
            assert!(watched.is_alive().expect("a look"));
            end(child);
            gone.await.expect("nobody ended the watch");
            assert!(!watched.is_alive().expect("a look"));
            drop(held_elsewhere);
        });
    }

    #[test]
    fn a_connection_that_is_given_up_ends_its_watch() {
        in_runtime(async {
            let (child, watched, gone, _other) = watched();
            drop(watched);
            assert!(gone.await.expect_err("it did not wait for the process").is_cancelled());
            end(child);
        });
    }
}
