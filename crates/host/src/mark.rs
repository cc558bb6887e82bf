//! Process marks: which process a stored pid meant, proven before anything is done to it.

use crate::proc::{self, ProcError};
use crate::{clock, sys::pidfd};
use outlast_core::record::ProcessMark;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::Signal;

/// Why nothing can be said about a mark.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// `/proc` did not answer.
    #[error(transparent)]
    Proc(#[from] ProcError),
    /// A process descriptor could not be had or used.
    #[error("pid {pid}: {errno}")]
    Pidfd {
        /// The process.
        pid: u32,
        /// The kernel's reason.
        errno: Errno,
    },
    /// The mark does not say in which boot its process ran, so it is of no process that could be found again.
    #[error("the mark of pid {pid} names no boot, so that nothing can be said of its process")]
    NoBoot {
        /// The process.
        pid: u32,
    },
}

/// The mark of process `pid` as it is now; nothing when there is none, or only a zombie is left of it.
pub fn mark_of(pid: u32) -> Result<Option<ProcessMark>, MarkError> {
    let failed = |errno| MarkError::Pidfd { pid, errno };
    let pidfd = match pidfd::open(pid) {
        Err(Errno::SRCH) => return Ok(None),
        pidfd => pidfd.map_err(failed)?,
    };
    mark_of_pidfd(pid, &pidfd)
}

/// The same for a process of which a descriptor is held: never a stranger with its number.
pub fn mark_of_pidfd(pid: u32, pidfd: &OwnedFd) -> Result<Option<ProcessMark>, MarkError> {
    let failed = |errno| MarkError::Pidfd { pid, errno };
    let handle = pidfd::handle(pidfd).map_err(failed)?;
    let Some(stat) = proc::stat(pid)?.filter(proc::Stat::is_live) else { return Ok(None) };
    // The facts above belong to that process only if it has not ended meanwhile.
    if has_ended(pidfd).map_err(failed)? {
        return Ok(None);
    }
    Ok(Some(ProcessMark {
        pid,
        start: stat.start,
        boot: clock::boot_id()?.to_owned(),
        handle: handle.map(|bytes| to_hex(&bytes)),
    }))
}

/// The mark of this process.
pub fn own() -> Result<ProcessMark, MarkError> {
    let pid = std::process::id();
    mark_of(pid)?.ok_or(MarkError::Pidfd { pid, errno: Errno::SRCH })
}

/// Whether the marked process still runs. A zombie does not.
pub fn is_alive(mark: &ProcessMark) -> Result<bool, MarkError> {
    let Some(pidfd) = open(mark)? else { return Ok(false) };
    has_ended(&pidfd).map(|ended| !ended).map_err(|errno| MarkError::Pidfd { pid: mark.pid, errno })
}

/// A descriptor of exactly the marked process, running or zombie; nothing once it was reaped, and nothing for a
/// mark of another boot.
///
/// A mark with a handle also opens a reaped process while the group that it led has a member, so that the
/// group can still be signalled ([`pidfd::signal_group`]): [`is_alive`] says whether the process itself runs.
pub fn open(mark: &ProcessMark) -> Result<Option<OwnedFd>, MarkError> {
    if mark.boot.is_empty() {
        return Err(MarkError::NoBoot { pid: mark.pid });
    }
    if mark.boot != clock::boot_id()? {
        return Ok(None);
    }
    if let Some(handle) = mark.handle.as_deref().and_then(from_hex) {
        match pidfd::open_handle(&handle) {
            Ok(pidfd) => return Ok(Some(pidfd)),
            Err(Errno::STALE) => return Ok(None),
            // Out of descriptors or memory is no answer about the process.
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                return Err(MarkError::Pidfd { pid: mark.pid, errno });
            }
            // Handles cannot be opened here: the number and the start time decide.
            Err(_) => {}
        }
    }
    let pidfd = match pidfd::open(mark.pid) {
        Err(Errno::SRCH) => return Ok(None),
        pidfd => pidfd.map_err(|errno| MarkError::Pidfd { pid: mark.pid, errno })?,
    };
    // Looked at after opening: had the number gone over to the marked process in between, that process would
    // have started after its own mark was made.
    let same = proc::stat(mark.pid)?.is_some_and(|stat| stat.start == mark.start);
    Ok(same.then_some(pidfd))
}

/// Sends `signal` to the marked process and to no other; `false` when it is gone.
pub fn signal_verified(mark: &ProcessMark, signal: Signal) -> Result<bool, MarkError> {
    let Some(pidfd) = open(mark)? else { return Ok(false) };
    match pidfd::signal(&pidfd, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(errno) => Err(MarkError::Pidfd { pid: mark.pid, errno }),
    }
}

/// A descriptor is readable once its process has ended, reaped or not (`pidfd_open(2)`).
fn has_ended(pidfd: &OwnedFd) -> Result<bool, Errno> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        match poll(&mut polled, Some(&now)) {
            Err(Errno::INTR) => {}
            ready => return ready.map(|count| count > 0),
        }
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_back() {
        let bytes = [0, 1, 0x7f, 0xff];
        assert_eq!(to_hex(&bytes), "00017fff");
        assert_eq!(from_hex("00017fff").as_deref(), Some(bytes.as_slice()));
        assert_eq!((from_hex("0g"), from_hex("é")), (None, None));
    }
}
