//! Waits on tokio until a descriptor is ready.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use outlast_host::sys::pidfd;
use outlast_host::sys::reap::WaitStatus;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::{Error, Result};

/// Registers a descriptor with the runtime this is called in.
#[expect(
    deprecated,
    reason = "the safe constructor is deprecated because a foreign type may lie about its descriptor; \
              the types here own theirs for as long as they live, and this crate has no unsafe code"
)]
pub(crate) fn register<T: AsRawFd + AsFd>(inner: T, interest: Interest) -> Result<AsyncFd<T>> {
    AsyncFd::with_interest(inner, interest).map_err(|error| Error::system("cannot wait for a descriptor", error))
}

/// Waits until a process has ended and tells how, where the kernel can tell (Linux 6.15).
pub(crate) async fn process_end(process: OwnedFd) -> Result<Option<WaitStatus>> {
    let process = register(process, Interest::READABLE)?;
    loop {
        // Readable once it is a zombie; the status can be read once it was reaped, which is a hang-up.
        let mut ready = process.readable().await.map_err(|e| Error::system("cannot wait for a process", e))?;
        let status = pidfd::exit_status(process.get_ref()).map_err(|e| Error::system("cannot ask for an exit", e))?;
        if status.is_some() || ready.ready().is_read_closed() {
            return Ok(status);
        }
        ready.clear_ready();
    }
}

/// Waits until a process has ended, reaped or not.
pub(crate) async fn process_gone(process: OwnedFd) -> Result<()> {
    let process = register(process, Interest::READABLE)?;
    let ready = process.readable().await;
    ready.map(|_| ()).map_err(|e| Error::system("cannot wait for a process", e))
}
