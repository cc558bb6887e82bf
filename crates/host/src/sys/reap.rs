//! Looking at ended children without reaping them, and reaping them one by one.

use super::last_errno;
use crate::crash::point;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};

/// How a process ended, as `wait(2)` packs it into a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitStatus {
    /// The packed number: the exit code in bits 8 to 15, or the signal in bits 0 to 6 and the core flag in bit 7.
    pub raw: i32,
}

impl WaitStatus {
    /// The status packed in `raw`, or nothing when that number tells of a stopped or continued process.
    pub fn from_raw(raw: i32) -> Option<Self> {
        let status = Self { raw };
        (status.code().is_some() || status.signal().is_some()).then_some(status)
    }

    /// The exit code, when the process exited by itself.
    pub fn code(self) -> Option<i32> {
        (self.raw & 0x7f == 0).then_some((self.raw >> 8) & 0xff)
    }

    /// The number of the signal that ended the process, when one did.
    pub fn signal(self) -> Option<i32> {
        let signal = self.raw & 0x7f;
        (signal != 0 && signal != 0x7f).then_some(signal)
    }

    /// Whether the kernel wrote a core file.
    pub fn dumped_core(self) -> bool {
        self.signal().is_some() && self.raw & 0x80 != 0
    }

    /// Packs what `waitid(2)` tells in pieces.
    fn from_siginfo(code: i32, status: i32) -> Option<Self> {
        match code {
            libc::CLD_EXITED => Self::from_raw((status & 0xff) << 8),
            libc::CLD_KILLED => Self::from_raw(status & 0x7f),
            libc::CLD_DUMPED => Self::from_raw((status & 0x7f) | 0x80),
            _ => None,
        }
    }
}

/// One ended child that nobody has reaped yet, without reaping it, so that its pid still belongs to it.
///
/// Nothing is told when no child has ended, or when there is none at all: see [`has_children`].
pub fn peek_any() -> Result<Option<(u32, WaitStatus)>, Errno> {
    match wait_id(libc::P_ALL, 0, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) {
        Err(Errno::CHILD) => Ok(None),
        seen => seen,
    }
}

/// Reaps child `pid` when it has ended; nothing when it still runs, `ECHILD` when it is no child of ours.
pub fn reap(pid: u32) -> Result<Option<WaitStatus>, Errno> {
    point("reap", &"child");
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::CHILD)?;
    loop {
        match rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(None) => return Ok(None),
            Ok(Some((_, status))) => return Ok(WaitStatus::from_raw(status.as_raw())),
        }
    }
}

/// Whether this process has any child, running or ended. Adopted ones count too.
pub fn has_children() -> bool {
    wait_id(libc::P_ALL, 0, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) != Err(Errno::CHILD)
}

/// `waitid(2)` for ended processes only: `None` when `WNOHANG` was given and none has ended.
pub(super) fn wait_id(kind: libc::idtype_t, id: u32, options: i32) -> Result<Option<(u32, WaitStatus)>, Errno> {
    loop {
        // SAFETY: `siginfo_t` is plain data, for which all zeroes is a value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is a valid place for the answer and outlives the call.
        if unsafe { libc::waitid(kind, id, &mut info, options) } != 0 {
            match last_errno() {
                Errno::INTR => continue,
                error => return Err(error),
            }
        }
        // SAFETY: after success the kernel has filled the fields of SIGCHLD; when no process was found
        // they are the zeroes written above.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        let Some(pid) = u32::try_from(pid).ok().filter(|&pid| pid != 0) else { return Ok(None) };
        return Ok(WaitStatus::from_siginfo(info.si_code, status).map(|status| (pid, status)));
    }
}
