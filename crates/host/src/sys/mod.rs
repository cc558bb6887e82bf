//! The only `unsafe` code of the project: kernel calls that rustix does not offer, each behind a safe function.
//!
//! Modules are listed in reading order; a module uses only those above it.

pub mod reap;
pub mod pidfd;
pub mod signals;
pub mod prctl;
pub mod spawn;
pub mod fork;
pub mod descriptors;
pub mod memory;
pub mod closed;

use rustix::io::Errno;

/// The result of the kernel call that was just made, as the kernel's own error number.
fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
