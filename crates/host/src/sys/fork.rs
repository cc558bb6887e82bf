//! A copy of this process that goes on without exec.

use super::last_errno;
use super::pidfd;
use crate::crash::{become_role, point};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// Which of the two processes this is after [`fork`].
#[derive(Debug)]
pub enum Forked {
    /// The one that called, which must reap `pid`.
    Parent {
        /// The child.
        pid: u32,
        /// A descriptor of the child, closed on exec.
        pidfd: OwnedFd,
    },
    /// The new one. It shares all open descriptions, locks included, with its parent.
    Child,
}

/// Copies this process for another role, that of the child. It must have one thread only, because the copy has only the calling one and
/// would wait for ever for a lock that another one held. With more threads it is refused with `EDEADLK`.
///
/// The child keeps dispositions, mask and descriptors; a pending PDEATHSIG and subreaper are cleared.
/// SIGCHLD must not be ignored, or the child could be gone before its descriptor is made.
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
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match pid {
        0 => {
            become_role(role);
            Ok(Forked::Child)
        }
        pid if pid > 0 => {
            point("forked", &role);
            let pid = pid as u32;
            match pidfd::open(pid) {
                Ok(pidfd) => Ok(Forked::Parent { pid, pidfd }),
                Err(error) => Err(undo(pid).err().unwrap_or(error)),
            }
        }
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

/// Ends and reaps the child that no descriptor could be had for.
pub(super) fn undo(pid: u32) -> Result<(), Errno> {
    let child = Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)?;
    // The number is still the child's, which nobody else can reap.
    point("signal", &pidfd::Named(Signal::KILL));
    rustix::process::kill_process(child, Signal::KILL)?;
    rustix::process::waitpid(Some(child), WaitOptions::empty()).map(drop)
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
