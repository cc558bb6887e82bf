//! A copy of this process that goes on without exec.

use super::last_errno;
use crate::crash::{become_role, point};
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::io::Errno;

/// An argument of clone(2) that is absent, in the width of a register.
const NONE: libc::c_long = 0;

/// Which of the two processes this is after [`fork`].
#[derive(Debug)]
pub enum Forked {
    /// The one that called, which must reap `pid`.
    Parent {
        /// The child. It is this process's to reap, so until then [`pidfd::open`](super::pidfd::open) opens this
        /// very process.
        pid: u32,
    },
    /// The new one. It shares all open descriptions, locks included, with its parent.
    Child,
}

/// Copies this process for another role, that of the child. It must have one thread only, because the copy has only the calling one and
/// would wait for ever for a lock that another one held. With more threads it is refused with `EDEADLK`.
///
/// The child keeps dispositions, mask and descriptors; a pending PDEATHSIG and subreaper are cleared. An error means
/// that there never was a child: nothing is needed for one that could be missing once it runs.
pub fn fork(role: &'static str) -> Result<Forked, Errno> {
    if thread_count()? != 1 {
        return Err(Errno::DEADLK);
    }
    point("fork", &role);
    // The plain system call: the C library's fork would write to its own data in the child, and eight pages
    // of each supervisor would no longer be shared with its keeper. Its locks need no repair without other
    // threads, and its notion of the thread's id is not used by anything here.
    // SAFETY: there is no other thread, as was just counted and as no one else can start one, so the
    // child's memory is in the state that the caller sees. Without a stack the child goes on with a copy of
    // this one (clone(2)); all other arguments are absent.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(libc::SIGCHLD), NONE, NONE, NONE, NONE) };
    match pid {
        0 => {
            become_role(role);
            Ok(Forked::Child)
        }
        pid if pid > 0 => {
            point("forked", &role);
            Ok(Forked::Parent { pid: pid as u32 })
        }
        _ => Err(last_errno()),
    }
}

/// Copies this process and opens the copy in one step, so that there is no child where there is no descriptor left
/// (`CLONE_PIDFD`, clone(2), Linux 5.2). None in the child.
///
/// # Safety
///
/// Unless this process has one thread only, the child must keep to async-signal-safe calls.
pub(super) unsafe fn fork_with_pidfd() -> Result<Option<(u32, OwnedFd)>, Errno> {
    let mut number: i32 = -1;
    let flags = libc::c_long::from(libc::CLONE_PIDFD | libc::SIGCHLD);
    // SAFETY: as in `fork`; the kernel writes the number of the descriptor where the id of a thread would go.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, NONE, &raw mut number, NONE, NONE) };
    match pid {
        0 => Ok(None),
        // SAFETY: on success the kernel wrote there the number of a descriptor that nobody else knows of.
        pid if pid > 0 => Ok(Some((pid as u32, unsafe { OwnedFd::from_raw_fd(number) }))),
        _ => Err(last_errno()),
    }
}

/// Goes on as a child of nobody in a session of its own, so that no sweep of the caller's tree finds it.
///
/// The process that called ends with code 0; only the copy returns. The conditions of [`fork`] hold.
pub fn detach(role: &'static str) -> Result<(), Errno> {
    match fork(role)? {
        Forked::Parent { .. } => exit_now(0),
        // The copy leads no process group yet, so this cannot fail with EPERM.
        Forked::Child => rustix::process::setsid().map(drop),
    }
}

/// Ends this process with `code`, without destructors and exit handlers, which belong to the process it was
/// forked from.
pub fn exit_now(code: i32) -> ! {
    point("exit", &"");
    // SAFETY: `_exit` takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// The number of threads of this process: `/proc/self/task` counts them in its links, as other directories
/// count subdirectories.
fn thread_count() -> Result<u64, Errno> {
    let task = rustix::fs::stat(c"/proc/self/task")?;
    Ok((task.st_nlink as u64).saturating_sub(2))
}
