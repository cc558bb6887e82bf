//! Signal dispositions and masks, and signals read from a descriptor.

use super::last_errno;
use rustix::fd::{AsFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::Signal;
use std::mem::MaybeUninit;

/// Blocks `signals` in this thread and gives a descriptor from which they are read instead.
///
/// The descriptor does not block and is closed on exec (`signalfd(2)`). Signals that are ignored never
/// arrive there, so call [`reset_all`] first.
pub fn block_and_signalfd(signals: &[Signal]) -> Result<OwnedFd, Errno> {
    let mut set = empty_set();
    for signal in signals {
        // SAFETY: `set` is an initialised set; an impossible signal number is refused with EINVAL.
        if unsafe { libc::sigaddset(&mut set, signal.as_raw()) } != 0 {
            return Err(last_errno());
        }
    }
    change_mask(libc::SIG_BLOCK, &set)?;
    // SAFETY: `set` is initialised and -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just made this descriptor and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The numbers of the signals that wait at a descriptor of [`block_and_signalfd`]; none when there are none.
pub fn read_signalfd(fd: impl AsFd) -> Result<Vec<u32>, Errno> {
    /// Size of `struct signalfd_siginfo`, whose first field is the signal number (`signalfd(2)`).
    const RECORD: usize = 128;
    let mut numbers = Vec::new();
    let mut buffer = [0u8; 8 * RECORD];
    loop {
        match rustix::io::read(&fd, &mut buffer) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(numbers),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(length) => {
                let records = buffer[..length].chunks_exact(RECORD);
                numbers.extend(records.filter_map(|record| record.first_chunk()).map(|&n| u32::from_ne_bytes(n)));
            }
        }
    }
}

/// Ignores `signal` from now on; a program executed later inherits that.
pub fn ignore(signal: Signal) -> Result<(), Errno> {
    // SAFETY: SIG_IGN installs no code of ours.
    let result = unsafe { libc::signal(signal.as_raw(), libc::SIG_IGN) };
    if result == libc::SIG_ERR { Err(last_errno()) } else { Ok(()) }
}

/// Gives every signal its default disposition and blocks none in this thread.
///
/// An ignored SIGCHLD is inherited through exec and would make every wait fail with `ECHILD`.
pub fn reset_all() -> Result<(), Errno> {
    reset_dispositions();
    unblock_all()
}

/// Gives every signal its default disposition. Async-signal-safe.
pub(super) fn reset_dispositions() {
    /// The kernel's own `struct sigaction`, large enough for every architecture: all zeroes is
    /// SIG_DFL without flags and with an empty mask.
    const DEFAULT: [u64; 8] = [0; 8];
    for number in 1..=64i32 {
        // SAFETY: the kernel reads its struct from `DEFAULT`, which is longer, and writes nothing as the
        // old action is null. The raw call is used because libc refuses the two signals it keeps for
        // itself. It fails for KILL and STOP only, which have no other disposition than the default.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                number,
                DEFAULT.as_ptr(),
                std::ptr::null_mut::<u64>(),
                size_of::<u64>(),
            )
        };
    }
}

/// All signals blocked in this thread for as long as this value lives; then the mask is as it was before.
pub(super) struct AllBlocked {
    before: libc::sigset_t,
}

impl AllBlocked {
    pub(super) fn new() -> Result<Self, Errno> {
        let mut set = empty_set();
        // SAFETY: `set` is a valid set.
        unsafe { libc::sigfillset(&mut set) };
        Ok(Self { before: change_mask(libc::SIG_BLOCK, &set)? })
    }
}

impl Drop for AllBlocked {
    fn drop(&mut self) {
        change_mask(libc::SIG_SETMASK, &self.before).expect("a mask that the kernel gave is one that it takes");
    }
}

/// Blocks nothing in this thread any more. Async-signal-safe.
pub(super) fn unblock_all() -> Result<(), Errno> {
    change_mask(libc::SIG_SETMASK, &empty_set()).map(drop)
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the whole set and cannot fail with a valid pointer.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Changes the mask of this thread; gives the mask before.
fn change_mask(how: i32, set: &libc::sigset_t) -> Result<libc::sigset_t, Errno> {
    let mut before = empty_set();
    // SAFETY: both sets are initialised and outlive the call.
    let error = unsafe { libc::pthread_sigmask(how, set, &mut before) };
    if error == 0 { Ok(before) } else { Err(Errno::from_raw_os_error(error)) }
}
