//! Changes in a directory, told by the kernel (inotify(7)).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use outlast_host::dir::Dir;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::{Error, Result};
use crate::ready;

/// How long is waited for a change that nobody tells, where the kernel gives this user no more watches.
const PAUSE: Duration = Duration::from_millis(50);

/// A watch on the names in directories and on files in them that are closed.
pub(crate) struct Watch {
    /// None where the kernel gives no more: many programs of one user share a small number of them.
    fd: Option<AsyncFd<OwnedFd>>,
}

impl Watch {
    /// Watches from now on; what was there before is looked at after this returned.
    pub(crate) fn on(dir: &Dir) -> Result<Watch> {
        let fd = match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(fd) => fd,
            Err(Errno::MFILE) => return Ok(Watch { fd: None }),
            Err(errno) => return Err(Error::system("cannot watch directories", errno)),
        };
        let mut watch = Watch { fd: Some(ready::register(fd, Interest::READABLE)?) };
        watch.add(dir)?;
        Ok(watch)
    }

    /// Watches one more directory.
    pub(crate) fn add(&mut self, dir: &Dir) -> Result<()> {
        let Some(fd) = &self.fd else { return Ok(()) };
        let changes = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE_SELF;
        let path = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
        match inotify::add_watch(fd.get_ref(), path, changes) {
            Ok(_) => {}
            Err(Errno::NOSPC) => self.fd = None,
            Err(errno) => return Err(Error::system(format!("cannot watch {}", dir.path().display()), errno)),
        }
        Ok(())
    }

    /// Waits for a change since the last call. Several changes may count as one, and none.
    pub(crate) async fn changed(&mut self) -> Result<()> {
        let Some(fd) = &mut self.fd else {
            pause().await;
            return Ok(());
        };
        loop {
            let mut ready = fd.readable_mut().await.map_err(|e| Error::system("cannot wait", e))?;
            let drained = ready.try_io(|fd| drain(fd.get_ref()));
            match drained {
                Ok(result) => return result.map_err(|e| Error::system("cannot read a watch", e)),
                Err(_would_block) => {}
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "nobody tells of what is waited for here")]
async fn pause() {
    tokio::time::sleep(PAUSE).await;
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
