//! The standard streams as descriptors that can be waited for beside other things.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A copy of a standard stream. The description behind it is shared with whoever else has it, so that it
/// is never made non-blocking; what is done with it is done after the kernel said that it will not block.
pub enum Watched {
    /// A pipe, a socket or a terminal.
    Polled(AsyncFd<OwnedFd>),
    /// A file, which is always ready.
    Direct(OwnedFd),
}

impl Watched {
    /// Watches a copy of this stream; needs a runtime around it.
    #[expect(
        deprecated,
        reason = "the safe constructor is deprecated because a foreign type may lie about its descriptor; an \
                  `OwnedFd` owns its own, and this crate has no unsafe code"
    )]
    pub fn new(stream: impl AsFd, interest: Interest) -> io::Result<Watched> {
        let fd = stream.as_fd().try_clone_to_owned()?;
        // epoll refuses what is always ready (epoll_ctl(2), EPERM) and hands the descriptor back.
        Ok(match AsyncFd::try_with_interest(fd, interest) {
            Ok(fd) => Watched::Polled(fd),
            Err(refused) => Watched::Direct(refused.into_parts().0),
        })
    }
}

/// Whether any of these is so at this moment. A hang-up counts: what is done next then says what is wrong.
pub fn is_now(fd: &OwnedFd, flags: PollFlags) -> io::Result<bool> {
    let mut polled = [PollFd::new(fd, flags)];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
