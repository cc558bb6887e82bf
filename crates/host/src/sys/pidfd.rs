//! Process file descriptors: signals that cannot hit a stranger, exits of non-children, and lasting identity.

use super::last_errno;
use super::reap::{WaitStatus, wait_id};
use crate::crash::point;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

/// A descriptor of process `pid`, closed on exec; `ESRCH` when there is no such process (`pidfd_open(2)`, Linux 5.3).
pub fn open(pid: u32) -> Result<OwnedFd, Errno> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        // The number is that of a thread which is not the first of its process.
        Err(Errno::INVAL | Errno::NOENT) => Err(Errno::SRCH),
        result => result,
    }
}

/// A signal as people know it, for the crash point before it is sent.
pub(super) struct Named(pub(super) Signal);

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&outlast_core::ending::signal_name(self.0.as_raw()))
    }
}

/// Sends `signal` to the process alone; `ESRCH` once it was reaped.
pub fn signal(pidfd: impl AsFd, signal: Signal) -> Result<(), Errno> {
    point("signal", &Named(signal));
    rustix::process::pidfd_send_signal(pidfd, signal)
}

/// Sends `signal` to every member of the process group that this process leads, also after it was reaped.
///
/// `ESRCH` when the group is empty, `EINVAL` before Linux 6.9. Success means that one member was
/// signalled at least, never that all were: look afterwards.
pub fn signal_group(pidfd: impl AsFd, signal: Signal) -> Result<(), Errno> {
    point("signal-group", &Named(signal));
    send_to_group(pidfd, signal.as_raw())
}

/// Whether the process group that this process leads has no member left, not even an unreaped one.
///
/// `EINVAL` before Linux 6.9.
pub fn group_is_empty(pidfd: impl AsFd) -> Result<bool, Errno> {
    match send_to_group(pidfd, 0) {
        Err(Errno::SRCH) => Ok(true),
        // A member that may not be signalled is a member.
        Ok(()) | Err(Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

fn send_to_group(pidfd: impl AsFd, signal: i32) -> Result<(), Errno> {
    /// `PIDFD_SIGNAL_PROCESS_GROUP` of `linux/pidfd.h`.
    const PROCESS_GROUP: u32 = 1 << 2;
    let fd = pidfd.as_fd().as_raw_fd();
    // SAFETY: the call takes numbers and a null pointer, which stands for "fill in siginfo as kill does".
    let result = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, std::ptr::null::<libc::siginfo_t>(), PROCESS_GROUP)
    };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Waits until the process, which must be our child, has ended, and reaps it. Blocks.
pub fn wait_exit(pidfd: impl AsFd) -> Result<WaitStatus, Errno> {
    let id = pidfd.as_fd().as_raw_fd().unsigned_abs();
    let ended = wait_id(libc::P_PIDFD, id, libc::WEXITED)?;
    ended.map(|(_, status)| status).ok_or(Errno::CHILD)
}

/// `struct pidfd_info` of `linux/pidfd.h`, as Linux 6.16 knows it; older kernels fill a shorter part.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pids: [u32; 3],
    credentials: [u32; 8],
    exit_code: i32,
    coredump: [u32; 2],
}

/// How the process ended, asked by anyone who holds a descriptor, parent or not.
///
/// Nothing while it runs or is unreaped (an unreaped one polls `POLLIN` without `POLLHUP`; its status is in
/// [`crate::proc::zombie_status`]), and nothing where the kernel cannot tell (before Linux 6.15).
pub fn exit_status(pidfd: impl AsFd) -> Result<Option<WaitStatus>, Errno> {
    /// `_IOWR(0xFF, 11, struct pidfd_info)` with the 72 bytes above.
    const GET_INFO: u64 = 0xC048_FF0B;
    /// `PIDFD_INFO_EXIT`: asks for the exit status, and says that it is there.
    const INFO_EXIT: u64 = 1 << 3;
    const { assert!(size_of::<PidfdInfo>() == 72) };

    let mut info = PidfdInfo { mask: INFO_EXIT, ..PidfdInfo::default() };
    let fd = pidfd.as_fd().as_raw_fd();
    // SAFETY: the request number says 72 bytes, which `info` has and which outlive the call; the
    // kernel writes no more than that.
    if unsafe { libc::ioctl(fd, GET_INFO as _, &mut info) } != 0 {
        return match last_errno() {
            // No such request before 6.13, a shorter struct before 6.15, and nothing kept of the reaped.
            Errno::NOTTY | Errno::INVAL | Errno::SRCH => Ok(None),
            error => Err(error),
        };
    }
    Ok(if info.mask & INFO_EXIT == 0 { None } else { WaitStatus::from_raw(info.exit_code) })
}

/// Room for the longest handle that the kernel makes (`MAX_HANDLE_SZ`).
const HANDLE_ROOM: usize = 128;

/// `struct file_handle` with room for its bytes.
#[repr(C)]
struct FileHandle {
    bytes: u32,
    kind: i32,
    data: [u8; HANDLE_ROOM],
}

/// The bytes that name this process for as long as the machine is up: never given to another one.
///
/// They are the handle's type (4 bytes, little endian) and its content. Nothing before Linux 6.14.
pub fn handle(pidfd: impl AsFd) -> Result<Option<Vec<u8>>, Errno> {
    let mut handle = FileHandle { bytes: HANDLE_ROOM as u32, kind: 0, data: [0; HANDLE_ROOM] };
    let mut mount = 0i32;
    let fd = pidfd.as_fd().as_raw_fd();
    // SAFETY: the path is a C string, `handle` is laid out as `struct file_handle` followed by the
    // room that its first field tells, and all three outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            fd,
            c"".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    if result != 0 {
        return match last_errno() {
            Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL => Ok(None),
            error => Err(error),
        };
    }
    let content = handle.data.get(..handle.bytes as usize).ok_or(Errno::OVERFLOW)?;
    Ok(Some([&handle.kind.to_le_bytes(), content].concat()))
}

/// A descriptor of the very process that `handle` was made of.
///
/// `ESTALE` once it was reaped and its number is free, or when it is out of sight of our pid namespace. As long
/// as the group or session that it led has a member, its number is not free: then the descriptor of a reaped
/// process is given, which polls as ended and still serves [`signal_group`]. Any other error means that
/// handles cannot be opened here.
pub fn open_handle(handle: &[u8]) -> Result<OwnedFd, Errno> {
    /// `FD_PIDFS_ROOT` of `linux/fcntl.h` (Linux 6.17).
    const PIDFS_ROOT: i32 = -10002;
    let (kind, content) = handle.split_first_chunk::<4>().ok_or(Errno::INVAL)?;
    let mut room = FileHandle { bytes: content.len() as u32, kind: i32::from_le_bytes(*kind), data: [0; HANDLE_ROOM] };
    room.data.get_mut(..content.len()).ok_or(Errno::INVAL)?.copy_from_slice(content);
    match open_by_handle(PIDFS_ROOT, &mut room) {
        // Before 6.17 any descriptor of the same file system has to stand for its root.
        Err(Errno::BADF) => {
            let own = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
            open_by_handle(own.as_raw_fd(), &mut room)
        }
        result => result,
    }
}

fn open_by_handle(mount: i32, handle: &mut FileHandle) -> Result<OwnedFd, Errno> {
    // SAFETY: `handle` is laid out as `struct file_handle` with as many bytes as its first field
    // tells, and outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount, handle as *mut FileHandle, libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just made this descriptor and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
