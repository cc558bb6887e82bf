//! Finds the file that a program's name means, as a shell would.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Where programs are sought when there is no PATH (`execvp(3)`).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file to execute for `name`, relative to `cwd` when it is relative.
///
/// A name with a slash is taken as it is, and whether it can be executed shows at the exec. Any other is sought
/// in the directories of `path`, of which an empty one is `cwd`. `ENOENT` when none has it, `EACCES` when
/// one has it but it may not be executed, as `execvp(3)` tells them apart.
pub fn resolve_program(name: &OsStr, path: Option<&OsStr>, cwd: impl AsFd) -> Result<PathBuf, Errno> {
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    if name.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut reason = Errno::NOENT;
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    for directory in path.as_bytes().split(|&byte| byte == b':') {
        let directory = if directory.is_empty() { b".".as_slice() } else { directory };
        let candidate = Path::new(OsStr::from_bytes(directory)).join(name);
        match check_executable(&candidate, cwd.as_fd()) {
            Ok(()) => return Ok(candidate),
            Err(Errno::ACCESS) => reason = Errno::ACCESS,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::NODEV | Errno::TIMEDOUT) => {}
            Err(error) => return Err(error),
        }
    }
    Err(reason)
}

fn check_executable(file: &Path, cwd: BorrowedFd<'_>) -> Result<(), Errno> {
    let kind = FileType::from_raw_mode(rustix::fs::statat(cwd, file, AtFlags::empty())?.st_mode);
    if kind != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    rustix::fs::accessat(cwd, file, Access::EXEC_OK, AtFlags::EACCESS)
}

/// The program as records name it: the canonical absolute path of what was found on PATH, else `name` as invoked.
///
/// `resolved` is what [`resolve_program`] gave, if it found anything.
pub fn recorded_program(name: &OsStr, resolved: Option<&Path>, cwd: impl AsFd) -> PathBuf {
    let on_path = resolved.filter(|_| !name.as_bytes().contains(&b'/'));
    on_path.and_then(|file| canonical(file, cwd.as_fd()).ok()).unwrap_or_else(|| PathBuf::from(name))
}

/// The kernel's own name of the file, all links followed.
fn canonical(file: &Path, cwd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let fd = rustix::fs::openat(cwd, file, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let name = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(name.into_bytes())))
}
