//! One epoll instance with typed tokens (epoll(7)).

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token that the descriptor was added with.
    pub token: u64,
    /// There is something to read, or the peer hung up.
    pub readable: bool,
    /// There is room to write, or the peer hung up.
    pub writable: bool,
}

/// What to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Only that there is something to read.
    Read,
    /// Only that there is room to write.
    Write,
    /// Both.
    Both,
    /// Neither; hang-ups are told all the same.
    Neither,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Interest::Read => epoll::EventFlags::IN,
            Interest::Write => epoll::EventFlags::OUT,
            Interest::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
            Interest::Neither => epoll::EventFlags::empty(),
        }
    }
}

/// The set of watched descriptors.
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poll {
    /// An empty set.
    pub fn new() -> Result<Poll, Errno> {
        Ok(Poll { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, events: Vec::with_capacity(64) })
    }

    /// Watches `fd` under `token` from now on.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), interest.flags())
    }

    /// Changes what is told of `fd`.
    pub fn set(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<(), Errno> {
        epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token), interest.flags())
    }

    /// Watches `fd` no longer. One that was never watched is no error.
    pub fn remove(&self, fd: impl AsFd) -> Result<(), Errno> {
        match epoll::delete(&self.epoll, fd) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// Waits until something is ready or the time is over; none waits for ever.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Vec<Ready>, Errno> {
        let timeout = timeout.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let gone = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let ready = self.events.drain(..).map(|event| {
            let (flags, data) = (event.flags, event.data);
            Ready {
                token: data.u64(),
                readable: flags.intersects(epoll::EventFlags::IN | gone),
                writable: flags.intersects(epoll::EventFlags::OUT | gone),
            }
        });
        Ok(ready.collect())
    }
}
