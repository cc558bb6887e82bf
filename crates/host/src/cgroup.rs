//! A cgroup of its own for a command, wherever a cgroup v2 tree is mounted: killed in one stroke, counted exactly.
//!
//! Files and their meaning: `Documentation/admin-guide/cgroup-v2.rst` of the kernel. A leaf without any
//! controller is worth having: `cgroup.kill` and `cgroup.events` are always there (Linux 5.14).

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::effect;
use crate::proc::{self, Stat};

/// Something could not be done to a cgroup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {errno}", path.display())]
pub struct CgroupError {
    /// The cgroup or the file in it.
    pub path: PathBuf,
    /// The kernel's reason.
    pub errno: Errno,
}

/// The cgroup v2 directory that this process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupParent {
    /// Its path below a mount that is in sight.
    pub path: PathBuf,
    /// Our pid namespace (`pid_namespaces(7)`): pids of another one mean other processes.
    pub pids: u64,
}

/// What the name of each leaf begins with.
const LEAF: &str = "outlast";

impl CgroupParent {
    /// The name of the leaf that the process `pid` makes.
    pub fn leaf_name(&self, pid: u32) -> String {
        format!("{LEAF}-{}-{pid}", self.pids)
    }

    /// Removes leaves whose maker is gone and in which nothing lives; how many there were. Who makes a leaf removes it,
    /// so these are of processes that were killed.
    pub fn remove_abandoned(&self) -> Result<usize, CgroupError> {
        let failed = |errno| CgroupError { path: self.path.clone(), errno };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(failed)?;
        let mut removed = 0;
        for entry in Dir::read_from(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_str().unwrap_or_default();
            // One that somebody else removes meanwhile is gone too.
            let is_abandoned = self.maker(name).is_some_and(is_gone);
            let leaf = is_abandoned.then(|| Leaf::open(&self.path.join(name)).ok()).flatten();
            removed += usize::from(leaf.is_some_and(|leaf| leaf.remove() == Ok(true)));
        }
        Ok(removed)
    }

    /// The process that made the leaf of this name.
    fn maker(&self, name: &str) -> Option<u32> {
        let pid =
            name.strip_prefix(LEAF)?.strip_prefix('-')?.strip_prefix(&self.pids.to_string())?.strip_prefix('-')?;
        pid.parse().ok()
    }
}

/// Whether no process of this pid runs. Of one that cannot be looked at nothing is known.
fn is_gone(pid: u32) -> bool {
    proc::stat(pid).is_ok_and(|stat| !stat.as_ref().is_some_and(Stat::is_live))
}

/// Where leaves could be made; nothing where no cgroup v2 tree is in sight. Whether they may be made there shows
/// [`Leaf::create`].
pub fn parent() -> Result<Option<CgroupParent>, CgroupError> {
    let read = |path: &str| {
        std::fs::read(path).map_err(|error| CgroupError {
            path: path.into(),
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })
    };
    let Some(path) = locate(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?) else { return Ok(None) };
    let own = Path::new("/proc/self/ns/pid");
    let pids = rustix::fs::stat(own).map_err(|errno| CgroupError { path: own.to_owned(), errno })?.st_ino;
    Ok(Some(CgroupParent { path, pids }))
}

/// Joins the mount of a cgroup2 file system (`proc_pid_mountinfo(5)`) and our place in it (`0::`, `cgroups(7)`).
fn locate(mountinfo: &[u8], own: &[u8]) -> Option<PathBuf> {
    let place = own.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    let place = Path::new(OsStr::from_bytes(place));
    mountinfo.split(|&byte| byte == b'\n').find_map(|line| {
        let fields: Vec<_> = line.split(|&byte| byte == b' ').collect();
        let dash = fields.iter().position(|&field| field == b"-")?;
        if fields.get(dash + 1) != Some(&b"cgroup2".as_slice()) {
            return None;
        }
        let root = PathBuf::from(decode_octal(fields.get(3)?));
        let mount = PathBuf::from(decode_octal(fields.get(4)?));
        // A mount of another part of the tree does not show our place.
        let below = place.strip_prefix(&root).ok()?;
        below.components().all(|part| part.as_os_str() != "..").then(|| mount.join(below))
    })
}

/// Space, tab, newline and backslash stand as `\040` and the like.
fn decode_octal(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| byte == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        let code = digits.and_then(|d| u8::try_from(d.iter().fold(0u32, |sum, d| sum * 8 + u32::from(d - b'0'))).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes)
}

/// One command's cgroup. It stays when this value is dropped: see [`Leaf::remove`].
#[derive(Debug)]
pub struct Leaf {
    directory: OwnedFd,
    path: PathBuf,
}

impl Leaf {
    /// Makes cgroup `name` below our own; the name is one path component that nobody uses yet.
    pub fn create(parent: &CgroupParent, name: &str) -> Result<Self, CgroupError> {
        let path = parent.path.join(name);
        let failed = |errno| CgroupError { path: path.clone(), errno };
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(failed(Errno::INVAL));
        }
        effect::make_dir_at(name, &path, Mode::from_raw_mode(0o755)).map_err(failed)?;
        Self::open(&path)
    }

    /// The leaf at `path`, which another process made.
    pub fn open(path: &Path) -> Result<Self, CgroupError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| CgroupError { path: path.to_owned(), errno })?;
        Ok(Self { directory, path: path.to_owned() })
    }

    /// Its directory, for [`crate::sys::spawn::LeaderPlan::cgroup`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Its path, for [`Leaf::open`] by another process.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends SIGKILL to every process in it, those being forked included; `ENOENT` before Linux 5.14.
    pub fn kill(&self) -> Result<(), CgroupError> {
        self.write("cgroup.kill", "1")
    }

    /// Whether it or a cgroup below has a process that is not a zombie.
    pub fn populated(&self) -> Result<bool, CgroupError> {
        let value = self.flat_value("cgroup.events", "populated")?;
        value.map(|count| count != 0).ok_or_else(|| self.failed("cgroup.events", Errno::ILSEQ))
    }

    /// A descriptor that polls `POLLPRI` whenever [`Leaf::populated`] may have changed (and at first).
    pub fn events(&self) -> Result<OwnedFd, CgroupError> {
        self.open_file("cgroup.events", OFlags::RDONLY)
    }

    /// Whether the leaf has controller `name`, such as `memory` or `pids`.
    pub fn has_controller(&self, name: &str) -> Result<bool, CgroupError> {
        Ok(self.controllers()?.iter().any(|have| have == name))
    }

    /// The controllers that the leaf has; often none.
    pub fn controllers(&self) -> Result<Vec<String>, CgroupError> {
        let text = self.read("cgroup.controllers")?;
        Ok(text.unwrap_or_default().split_whitespace().map(str::to_owned).collect())
    }

    /// Bounds the memory of the tree, in bytes; `ENOENT` without the memory controller.
    pub fn set_memory_max(&self, bytes: u64) -> Result<(), CgroupError> {
        self.write("memory.max", &bytes.to_string())
    }

    /// Bounds the number of tasks (processes and threads) of the tree; `ENOENT` without the pids controller.
    pub fn set_pids_max(&self, tasks: u64) -> Result<(), CgroupError> {
        self.write("pids.max", &tasks.to_string())
    }

    /// Bounds the processor time of the tree, in percent of one processor; `ENOENT` without the cpu controller.
    pub fn set_cpu_max(&self, percent: u64) -> Result<(), CgroupError> {
        // Of a period of 100 ms, in microseconds.
        self.write("cpu.max", &format!("{} 100000", percent.saturating_mul(1000)))
    }

    /// Bounds what the tree reads from a disk ([`disks`]), and what it writes to it, in bytes a second; `ENOENT` without the
    /// io controller.
    pub fn set_io_max(&self, disk: &str, rate: u64) -> Result<(), CgroupError> {
        self.write("io.max", &format!("{disk} rbps={rate} wbps={rate}"))
    }

    /// How many of its processes the kernel killed for want of memory; nothing without the memory controller.
    pub fn memory_events(&self) -> Result<Option<u64>, CgroupError> {
        self.flat_value("memory.events", "oom_kill")
    }

    /// How often a fork in it was refused by its bound; nothing without the pids controller.
    pub fn pids_events(&self) -> Result<Option<u64>, CgroupError> {
        self.flat_value("pids.events", "max")
    }

    /// Removes the leaf and the cgroups made below it; `false` while something in it is still ending.
    ///
    /// Right after a kill the kernel may need some milliseconds to let go, so the caller tries again later.
    pub fn remove(&self) -> Result<bool, CgroupError> {
        let removed =
            remove_below(self.fd()).and_then(|()| effect::remove(rustix::fs::CWD, &self.path, AtFlags::REMOVEDIR));
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::BUSY) => Ok(false),
            Err(errno) => Err(CgroupError { path: self.path.clone(), errno }),
        }
    }

    /// The number after `key` in a file of `key value` lines; nothing when the leaf has no such file.
    fn flat_value(&self, file: &str, key: &str) -> Result<Option<u64>, CgroupError> {
        let Some(text) = self.read(file)? else { return Ok(None) };
        let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs.find(|(name, _)| *name == key).and_then(|(_, value)| value.trim().parse().ok()))
    }

    fn read(&self, file: &str) -> Result<Option<String>, CgroupError> {
        let fd = match self.open_file(file, OFlags::RDONLY) {
            Err(error) if error.errno == Errno::NOENT => return Ok(None),
            fd => fd?,
        };
        let mut bytes = vec![0; 4096];
        let length = rustix::io::read(fd, &mut bytes).map_err(|errno| self.failed(file, errno))?;
        bytes.truncate(length);
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn write(&self, file: &str, value: &str) -> Result<(), CgroupError> {
        let fd = self.open_file(file, OFlags::WRONLY)?;
        effect::write(file, fd, value.as_bytes()).map(drop).map_err(|errno| self.failed(file, errno))
    }

    fn open_file(&self, file: &str, mode: OFlags) -> Result<OwnedFd, CgroupError> {
        rustix::fs::openat(self.fd(), file, mode | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| self.failed(file, errno))
    }

    fn failed(&self, file: &str, errno: Errno) -> CgroupError {
        CgroupError { path: self.path.join(file), errno }
    }
}

/// The numbers (`8:0`) of the disks of this host, as far as they can be seen.
#[must_use]
pub fn disks() -> Vec<String> {
    let Ok(disks) = std::fs::read_dir("/sys/block") else { return Vec::new() };
    let number = |disk: std::fs::DirEntry| std::fs::read_to_string(disk.path().join("dev")).ok();
    disks.flatten().filter_map(number).map(|number| number.trim().to_owned()).collect()
}

/// Removes the cgroups below `directory`, the deepest first. The kernel bounds how deep they can be.
fn remove_below(directory: BorrowedFd<'_>) -> Result<(), Errno> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if entry.file_type() != FileType::Directory || matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        remove_below(below.as_fd())?;
        effect::remove(directory, Path::new(OsStr::from_bytes(name.to_bytes())), AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_place_is_found_below_any_cgroup2_mount() {
        let hybrid = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw shared:9 - cgroup2 cgroup2 rw\n";
        let part = "41 31 0:38 /user /c rw - cgroup2 none rw\n";
        for (mountinfo, own, want) in [
            (hybrid, "1:cpu:/x\n0::/\n", Some("/sys/fs/cgroup/uni fied/")),
            (hybrid, "0::/a/b\n", Some("/sys/fs/cgroup/uni fied/a/b")),
            (hybrid, "1:cpu:/x\n", None),
            (hybrid, "0::/../other\n", None),
            (part, "0::/user/a\n", Some("/c/a")),
            (part, "0::/system/a\n", None),
            ("", "0::/\n", None),
        ] {
            assert_eq!(locate(mountinfo.as_bytes(), own.as_bytes()), want.map(PathBuf::from), "{own}");
        }
    }

    #[test]
    fn only_octal_escapes_are_decoded() {
        for (field, want) in
            [("a\\040b", "a b"), ("\\134", "\\"), ("a\\04", "a\\04"), ("\\999", "\\999"), ("\\777", "\\777")]
        {
            assert_eq!(decode_octal(field.as_bytes()), OsString::from(want));
        }
    }

    #[test]
    fn only_makers_of_our_pid_namespace_are_known() {
        let parent = CgroupParent { path: "/nowhere".into(), pids: 42 };
        assert_eq!(parent.maker(&parent.leaf_name(7)), Some(7));
        for name in ["outlast-7", "outlast-43-7", "outlast-42-", "outlast-42-x", "other-42-7", ""] {
            assert_eq!(parent.maker(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_is_one_component() {
        let parent = CgroupParent { path: "/nowhere".into(), pids: 1 };
        for name in ["", ".", "..", "a/b", "/a"] {
            assert_eq!(Leaf::create(&parent, name).expect_err("refused").errno, Errno::INVAL);
        }
    }
}
