//! Frames over a non-blocking stream socket: JSON messages, bytes of output, and descriptors.
//!
//! A frame is the length of its payload (u32, little endian), one byte of kind, and the payload. The
//! low half of the kind byte is the kind (0 JSON, 1 merged or standard output, 2 standard error, 3
//! input), the high half is how many descriptors belong to the frame; they ride on its first byte.
//! Nothing here blocks or waits, so the same channel serves an epoll loop and an async runtime.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

mod name;

use crate::effect;
use name::FrameName;

/// The longest payload of a frame, in bytes.
pub const MAX_PAYLOAD: usize = 16 << 20;
/// The most descriptors that wait to be claimed by frames.
pub const MAX_FDS: usize = 16;

const HEADER: usize = 5;
const RECEIVE_STEP: usize = 4 * 1024;
const RECEIVE_STEP_MOST: usize = 64 * 1024;
const JOIN_BELOW: usize = 64 * 1024;

/// Which bytes a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, or both where they share one pipe.
    Out,
    /// Standard error.
    Err,
    /// Standard input.
    In,
}

/// What a frame says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A message; [`Frame::json`] decodes it.
    Json(Vec<u8>),
    /// Raw bytes.
    Bytes {
        /// Where they come from or go to.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// One received frame and the descriptors that rode on it.
#[derive(Debug)]
pub struct Frame {
    /// What it says.
    pub body: Body,
    /// Its descriptors, close-on-exec.
    pub fds: Vec<OwnedFd>,
}

impl Frame {
    /// Decodes the message of a JSON frame; bytes in its place break the protocol.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ChannelError> {
        match &self.body {
            Body::Json(text) => serde_json::from_slice(text).map_err(ChannelError::Message),
            Body::Bytes { .. } => Err(ChannelError::Protocol("bytes where a message was due")),
        }
    }
}

/// Why a channel cannot go on, or a message cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The peer closed its end; what was queued for it is dropped.
    #[error("the peer is gone")]
    PeerGone,
    /// The peer does not speak this protocol: close the channel.
    #[error("the peer broke the protocol: {0}")]
    Protocol(&'static str),
    /// A message that is not the one expected here.
    #[error("a message cannot be understood: {0}")]
    Message(#[source] serde_json::Error),
    /// The kernel said no.
    #[error("cannot {0}: {error}", error = std::io::Error::from(*.1))]
    Os(&'static str, Errno),
}

/// A connected stream socket that speaks frames.
#[derive(Debug)]
pub struct Channel {
    fd: OwnedFd,
    received: Vec<u8>,
    received_fds: VecDeque<OwnedFd>,
    /// Whether the kernel had no room for descriptors of the last frame that brought some.
    lost_fds: bool,
    outgoing: VecDeque<Chunk>,
    queued: usize,
    eof: bool,
}

#[derive(Debug)]
struct Chunk {
    /// Of its first frame.
    name: FrameName,
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<OwnedFd>,
}

impl Channel {
    /// Two connected channels; close-on-exec and non-blocking.
    pub fn pair() -> Result<(Channel, Channel), ChannelError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (a, b) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|e| ChannelError::Os("make a socket pair", e))?;
        Ok((Channel::of(a), Channel::of(b)))
    }

    /// A channel on a connected stream socket that came from elsewhere (standard input, a frame).
    pub fn from_fd(fd: OwnedFd) -> Result<Channel, ChannelError> {
        let failed = |e| ChannelError::Os("set a socket up", e);
        let flags = rustix::fs::fcntl_getfl(&fd).map_err(failed)?;
        rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK).map_err(failed)?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).map_err(failed)?;
        Ok(Channel::of(fd))
    }

    fn of(fd: OwnedFd) -> Channel {
        Channel {
            fd,
            received: Vec::new(),
            received_fds: VecDeque::new(),
            lost_fds: false,
            outgoing: VecDeque::new(),
            queued: 0,
            eof: false,
        }
    }

    /// Ends the conversation on both sides: the peer sees that this end is gone.
    pub fn shut(&self) {
        // Of a peer that is gone already nothing is left to shut.
        let _ = effect::shut("channel", &self.fd);
    }

    /// The socket itself, to hand it to another process. Queued and received bytes are dropped.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Queues a message and sends what the socket takes now.
    pub fn send_json<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), ChannelError> {
        self.send_json_with(message, Vec::new())
    }

    /// Queues a message with descriptors (at most 15) and sends what the socket takes now.
    ///
    /// The descriptors are closed here once they were sent.
    pub fn send_json_with<T: Serialize + ?Sized>(
        &mut self,
        message: &T,
        fds: Vec<OwnedFd>,
    ) -> Result<(), ChannelError> {
        let payload = serde_json::to_vec(message).map_err(ChannelError::Message)?;
        self.queue(0, &payload, fds, || FrameName::of_message(message, &payload))?;
        self.flush().map(|_| ())
    }

    /// Queues bytes and sends what the socket takes now. At most [`MAX_PAYLOAD`] at once.
    ///
    /// The queue grows by what is not taken: look at [`Channel::queued`] before sending more.
    pub fn send_bytes(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), ChannelError> {
        let kind = match stream {
            Stream::Out => 1,
            Stream::Err => 2,
            Stream::In => 3,
        };
        self.queue(kind, bytes, Vec::new(), || FrameName::of_bytes(stream))?;
        self.flush().map(|_| ())
    }

    fn queue(
        &mut self,
        kind: u8,
        payload: &[u8],
        fds: Vec<OwnedFd>,
        name: impl FnOnce() -> FrameName,
    ) -> Result<(), ChannelError> {
        let count = u8::try_from(fds.len()).ok().filter(|&n| n < 16);
        let count = count.ok_or(ChannelError::Protocol("more than 15 descriptors on a frame"))?;
        let length = u32::try_from(payload.len()).ok().filter(|&n| n as usize <= MAX_PAYLOAD);
        let length = length.ok_or(ChannelError::Protocol("a frame of more than 16 MiB"))?;
        self.queued += HEADER + payload.len();
        let kind = kind | count << 4;
        if fds.is_empty()
            && let Some(last) = self.outgoing.back_mut()
            && last.bytes.len() < JOIN_BELOW
        {
            push_frame(&mut last.bytes, length, kind, payload);
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        push_frame(&mut bytes, length, kind, payload);
        self.outgoing.push_back(Chunk { name: name(), bytes, sent: 0, fds });
        Ok(())
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// True if something waits to be sent: watch the socket for writing, then [`Channel::flush`].
    pub fn want_write(&self) -> bool {
        self.queued > 0
    }

    /// Sends what the socket takes now; true when nothing waits any more.
    pub fn flush(&mut self) -> Result<bool, ChannelError> {
        while let Some(chunk) = self.outgoing.front_mut() {
            match send_chunk(&self.fd, chunk) {
                Ok(count) => {
                    chunk.fds.clear();
                    chunk.sent += count;
                    self.queued -= count;
                    if chunk.sent == chunk.bytes.len() {
                        self.outgoing.pop_front();
                    }
                }
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    self.outgoing.clear();
                    self.queued = 0;
                    return Err(ChannelError::PeerGone);
                }
                Err(e) => return Err(ChannelError::Os("send", e)),
            }
        }
        Ok(true)
    }

    /// The next whole frame; `None` when there is none now ([`Channel::is_eof`] tells whether there
    /// will be more).
    pub fn receive(&mut self) -> Result<Option<Frame>, ChannelError> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(Some(frame));
            }
            if self.eof || !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// True when the peer closed its end and every whole frame was taken. Half a frame counts for
    /// nothing: a peer that died in the middle of a word has gone away like any other.
    pub fn is_eof(&self) -> bool {
        self.eof
    }

    fn take_frame(&mut self) -> Result<Option<Frame>, ChannelError> {
        let Some((header, rest)) = self.received.split_first_chunk::<HEADER>() else { return Ok(None) };
        let [a, b, c, d, kind] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_PAYLOAD {
            return Err(ChannelError::Protocol("a frame of more than 16 MiB"));
        }
        if kind & 0x0f > 3 {
            return Err(ChannelError::Protocol("an unknown kind of frame"));
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let mut count = usize::from(kind >> 4);
        if count > self.received_fds.len() {
            // A process that has no descriptor left hears the message all the same; what could not be taken is closed.
            if !std::mem::take(&mut self.lost_fds) {
                return Err(ChannelError::Protocol("a frame without its descriptors"));
            }
            count = self.received_fds.len();
        }
        let payload = payload.to_vec();
        let fds = self.received_fds.drain(..count).collect();
        self.received.drain(..HEADER + length);
        if self.received.is_empty() && self.received.capacity() > RECEIVE_STEP_MOST {
            self.received = Vec::new();
        }
        let body = match kind & 0x0f {
            0 => Body::Json(payload),
            1 => Body::Bytes { stream: Stream::Out, bytes: payload },
            2 => Body::Bytes { stream: Stream::Err, bytes: payload },
            _ => Body::Bytes { stream: Stream::In, bytes: payload },
        };
        Ok(Some(Frame { body, fds }))
    }

    /// How much to take from the socket at once: what the frame in hand still lacks, within bounds, so
    /// that a channel with nothing but small messages stays small.
    fn step(&self) -> usize {
        let length = self.received.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        (HEADER + length).saturating_sub(self.received.len()).clamp(RECEIVE_STEP, RECEIVE_STEP_MOST)
    }

    /// Takes bytes from the socket; false when there are none now or never again.
    fn fill(&mut self) -> Result<bool, ChannelError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let held = self.received.len();
        self.received.resize(held + self.step(), 0);
        let result = loop {
            let mut slices = [IoSliceMut::new(&mut self.received[held..])];
            match net::recvmsg(&self.fd, &mut slices, &mut control, flags) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        self.received.truncate(held + result.as_ref().map_or(0, |message| message.bytes));
        let message = match result {
            Ok(message) => message,
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::CONNRESET) => {
                self.eof = true;
                return Ok(false);
            }
            Err(e) => return Err(ChannelError::Os("receive", e)),
        };
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = part {
                self.received_fds.extend(fds);
            }
        }
        if self.received_fds.len() > MAX_FDS {
            return Err(ChannelError::Protocol("descriptors that no frame claims"));
        }
        self.lost_fds |= message.flags.contains(ReturnFlags::CTRUNC);
        self.eof = message.bytes == 0;
        Ok(!self.eof)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl std::os::fd::AsRawFd for Channel {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        std::os::fd::AsRawFd::as_raw_fd(&self.fd)
    }
}

fn push_frame(bytes: &mut Vec<u8>, length: u32, kind: u8, payload: &[u8]) {
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(payload);
}

fn send_chunk(socket: &OwnedFd, chunk: &Chunk) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = chunk.fds.iter().map(AsFd::as_fd).collect();
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Errno::TOOBIG);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    effect::send(&chunk.name, socket.as_fd(), &chunk.bytes[chunk.sent..], &mut control, flags)
}

#[cfg(test)]
mod tests;
