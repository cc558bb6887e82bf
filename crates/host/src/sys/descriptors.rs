//! Descriptors of the whole process: which stay open, and how many there may be.

use std::os::fd::RawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Closes every descriptor above 2 but those in `keep`.
///
/// For a process at its birth: nothing that owns another descriptor may be used or dropped afterwards, so
/// the caller has forgotten (`std::mem::forget`) whatever its parent left it.
pub fn close_all_but(keep: &mut [RawFd]) {
    keep.sort_unstable();
    let mut from = 3u32;
    for fd in keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).filter(|fd| *fd >= 3) {
        if fd > from {
            close_range(from, fd - 1);
        }
        from = from.max(fd + 1);
    }
    close_range(from, u32::MAX);
}

/// close_range(2), since Linux 5.9; before it, one by one up to the limit.
fn close_range(first: u32, last: u32) {
    // SAFETY: the caller of `close_all_but` gave up whatever owned these descriptors.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) } == 0 {
        return;
    }
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20).min(1 << 20);
    for fd in first..=last.min(u32::try_from(most).unwrap_or(u32::MAX)) {
        // SAFETY: as above; a number that is not open is refused by the kernel.
        unsafe { libc::close(fd.cast_signed()) };
    }
}

/// Raises the soft limit of open files to the hard one; gives the limit before.
pub fn raise_open_files() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    // A refusal leaves the limit as it is, and then fewer commands can run at once.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    before
}

/// Gives a child of a process that raised its limit the limit from before.
pub fn restore_open_files(before: Rlimit) {
    // Lowering a soft limit is always allowed (setrlimit(2)).
    let _ = setrlimit(Resource::Nofile, before);
}
