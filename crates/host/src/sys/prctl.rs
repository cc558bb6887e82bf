//! What this process asks the kernel about itself: to be a subreaper, and to bear a name.

use rustix::io::Errno;
use std::ffi::CString;

/// Makes orphaned descendants fall to this process instead of PID 1 (`PR_SET_CHILD_SUBREAPER`).
///
/// Only a process that reaps everything may be one; a library must never make its host one. It is not
/// inherited by children.
pub fn set_child_subreaper() -> Result<(), Errno> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Names this thread, as `ps` shows it; the kernel keeps the first 15 bytes (`PR_SET_NAME`).
pub fn set_name(name: &str) -> Result<(), Errno> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    rustix::thread::set_name(&name)
}
