//! Changes in a directory, told by the kernel (inotify(7)).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use outlast_host::dir::Dir;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::{Error, Result};
use crate::ready;

/// A watch on the names in directories and on files in them that are closed.
pub(crate) struct Watch {
    fd: AsyncFd<OwnedFd>,
}

impl Watch {
    /// Watches from now on; what was there before is looked at after this returned.
    pub(crate) fn on(dir: &Dir) -> Result<Watch> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|errno| Error::system("cannot watch directories (fs.inotify.max_user_instances)", errno))?;
        let watch = Watch { fd: ready::register(fd, Interest::READABLE)? };
        watch.add(dir)?;
        Ok(watch)
    }

    /// Watches one more directory.
    pub(crate) fn add(&self, dir: &Dir) -> Result<()> {
        let changes = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE_SELF;
        let path = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
        inotify::add_watch(self.fd.get_ref(), path, changes)
            .map(|_| ())
            .map_err(|errno| Error::system(format!("cannot watch {}", dir.path().display()), errno))
    }

    /// Waits for a change since the last call. Several changes may count as one.
    pub(crate) async fn changed(&mut self) -> Result<()> {
        loop {
            let mut ready = self.fd.readable_mut().await.map_err(|e| Error::system("cannot wait", e))?;
            let drained = ready.try_io(|fd| drain(fd.get_ref()));
            match drained {
                Ok(result) => return result.map_err(|e| Error::system("cannot read a watch", e)),
                Err(_would_block) => {}
            }
        }
    }
}

/// Takes every event that is there; an error when there was none.
fn drain(fd: &OwnedFd) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(fd, &mut space);
    let mut any = false;
    loop {
        match reader.next() {
            Ok(_) => any = true,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if any => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
}
