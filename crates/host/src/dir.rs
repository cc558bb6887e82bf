//! Opens, creates, reads and removes files beneath an open directory, never through a link.
//!
//! Every name is one segment that is opened with `O_NOFOLLOW` from a descriptor that is already
//! open, so a path cannot be redirected by a link planted before or after the directory was opened.

use std::borrow::Cow;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, Access, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::effect;

mod error;
mod facts;
#[cfg(test)]
pub(crate) mod tests;

pub use error::{FileCause, FileError};

/// Mode of every directory that outlast makes.
pub const DIR_MODE: u32 = 0o700;
/// Mode of every file and socket that outlast makes.
pub const FILE_MODE: u32 = 0o600;
/// The bits of a mode that let others in.
const LOOSE: u32 = 0o077;
/// What a state directory is known by.
const STATE_NAMES: [&[u8]; 2] = [b"sessions", b"by-anchor"];

/// An open directory and the path by which people know it.
///
/// Clones share the descriptor. The path is for messages only; no access goes through it.
#[derive(Clone, Debug)]
pub struct Dir {
    fd: Arc<OwnedFd>,
    label: PathBuf,
    looser: Looser,
}

/// What becomes of the mode of a thing that is there already and is looser than it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looser {
    /// It is tightened when it is opened.
    Tightened,
    /// It stays: whoever only looks changes nothing.
    Kept,
}

/// The result of a file operation.
pub type Result<T> = std::result::Result<T, FileError>;

impl Dir {
    /// Opens the state directory and makes it, with missing parents, if it is not there.
    ///
    /// Links above it are followed, it must not be one itself. A looser mode is tightened to 0700
    /// before anything is written. Refused: a link, something else than a directory, a directory of
    /// another user, one with the sticky bit, which is shared by its nature (`/tmp`), and one with a looser
    /// mode that others may be using: that is neither empty nor a state directory.
    pub fn open_state_root(path: &Path) -> Result<Dir> {
        let (parent, name, label) = split_root(path)?;
        let parent_dir = open_parent(&parent, true)?.ok_or_else(|| FileError::os("open", parent, Errno::NOENT))?;
        make_dir(parent_dir.as_fd(), &name, &label)?;
        Dir::open_root_in(parent_dir.as_fd(), &name, label, Looser::Tightened)
    }

    /// Opens the state directory if it exists, by the same rules, and makes nothing. No mode of anything
    /// beneath it is changed either, unless it is made or written there.
    pub fn find_state_root(path: &Path) -> Result<Option<Dir>> {
        let (parent, name, label) = split_root(path)?;
        let Some(parent_dir) = open_parent(&parent, false)? else { return Ok(None) };
        if_there(Dir::open_root_in(parent_dir.as_fd(), &name, label, Looser::Kept))
    }

    /// Opens a directory of the user's that is no state directory. Its mode stays as it is, what is opened in it is
    /// tightened. Refused: a link, and a directory of another user.
    pub fn open_place(path: &Path) -> Result<Dir> {
        let (parent, name, label) = split_root(path)?;
        let parent_dir = open_parent(&parent, false)?.ok_or_else(|| FileError::os("open", &label, Errno::NOENT))?;
        Ok(Dir::open_untouched(parent_dir.as_fd(), &name, label, Looser::Tightened)?.0)
    }

    fn open_root_in(parent: BorrowedFd<'_>, name: &str, label: PathBuf, looser: Looser) -> Result<Dir> {
        let stat = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| FileError::os("open", &label, e))?;
        if FileType::from_raw_mode(stat.st_mode).is_dir() && stat.st_mode & 0o1000 != 0 {
            let why = "it is a shared directory (sticky bit); name a directory of your own";
            return Err(FileError::refused("open", label, why));
        }
        let (root, stat) = Dir::open_untouched(parent, name, label, looser)?;
        if looser == Looser::Tightened && stat.st_mode & LOOSE != 0 {
            root.check_may_be_tightened()?;
            root.tighten(&stat)?;
        }
        Ok(root)
    }

    /// A directory that others may be using must not be closed to them.
    fn check_may_be_tightened(&self) -> Result<()> {
        let (mut empty, mut ours) = (true, false);
        self.each_name(|name| {
            empty = false;
            ours |= STATE_NAMES.contains(&name.to_bytes());
        })?;
        if empty || ours {
            return Ok(());
        }
        let why = "it is neither empty nor a state directory of outlast; choose another";
        Err(FileError::refused("use", &self.label, why))
    }

    fn open_in(parent: BorrowedFd<'_>, name: &str, label: PathBuf, looser: Looser) -> Result<Dir> {
        let (dir, stat) = Dir::open_untouched(parent, name, label, looser)?;
        if looser == Looser::Tightened && stat.st_mode & LOOSE != 0 {
            dir.tighten(&stat)?;
        }
        Ok(dir)
    }

    fn open_untouched(parent: BorrowedFd<'_>, name: &str, label: PathBuf, looser: Looser) -> Result<(Dir, Stat)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat(parent, name, flags, Mode::empty()).map_err(|e| explain_open(parent, name, &label, e))?;
        let stat = fs::fstat(&fd).map_err(|e| FileError::os("look at", &label, e))?;
        check_owner(&stat, &label)?;
        Ok((Dir { fd: Arc::new(fd), label, looser }, stat))
    }

    fn tighten(&self, stat: &Stat) -> Result<()> {
        tightened(effect::chmod(&self.own_name(), self, Mode::from_raw_mode(stat.st_mode & DIR_MODE)))
            .map_err(|e| FileError::os("tighten", &self.label, e))
    }

    /// The path by which people know this directory. Absolute.
    pub fn path(&self) -> &Path {
        &self.label
    }

    fn own_name(&self) -> Cow<'_, str> {
        self.label.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Whether this open directory is the one that its path names now; not if it was removed or replaced. What cannot be
    /// told counts as yes.
    pub fn is_in_place(&self) -> bool {
        match (fs::fstat(self), fs::stat(&self.label)) {
            (Ok(own), Ok(named)) => (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino),
            (_, Err(Errno::NOENT | Errno::NOTDIR)) => false,
            (Err(_), _) | (_, Err(_)) => true,
        }
    }

    /// The same open directory under the path that it will have for people.
    pub fn known_as(self, label: PathBuf) -> Dir {
        Dir { label, ..self }
    }

    /// The path by which people know `name` in this directory.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.label.join(name)
    }

    /// Opens a directory in this one; a looser mode is tightened.
    pub fn sub(&self, name: &str) -> Result<Dir> {
        self.check_name("open", name)?;
        Dir::open_in(self.as_fd(), name, self.path_of(name), self.looser)
    }

    /// Opens a directory in this one and makes it if it is not there. Mode 0700 under any umask.
    pub fn create_sub(&self, name: &str) -> Result<Dir> {
        self.check_name("create", name)?;
        make_dir(self.as_fd(), name, &self.path_of(name))?;
        self.sub(name)
    }

    /// Makes a directory that must not exist yet. Mode 0700 under any umask.
    pub fn create_new_sub(&self, name: &str) -> Result<Dir> {
        self.check_name("create", name)?;
        if !make_dir(self.as_fd(), name, &self.path_of(name))? {
            return Err(FileError::os("create", self.path_of(name), Errno::EXIST));
        }
        self.sub(name)
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, name: &str) -> Result<File> {
        self.open_with("open", name, OFlags::RDONLY)
    }

    /// Opens a regular file that exists for reading and writing.
    pub fn open_rw(&self, name: &str) -> Result<File> {
        self.open_with("open", name, OFlags::RDWR)
    }

    /// Opens a regular file for reading and writing and makes it if it is not there.
    pub fn create_file(&self, name: &str) -> Result<File> {
        self.open_with("create", name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Opens a regular file for reading and for writing at its end only; made if it is not there.
    pub fn create_append(&self, name: &str) -> Result<File> {
        self.open_with("create", name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    /// Makes a regular file that must not exist yet, for reading and writing.
    pub fn create_new(&self, name: &str) -> Result<File> {
        self.open_with("create", name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn open_with(&self, action: &'static str, name: &str, flags: OFlags) -> Result<File> {
        Ok(self.open_with_size(action, name, flags)?.0)
    }

    fn open_with_size(&self, action: &'static str, name: &str, flags: OFlags) -> Result<(File, u64)> {
        self.check_name(action, name)?;
        let label = self.path_of(name);
        // O_NONBLOCK, because a planted FIFO would otherwise block the open; it means nothing for
        // regular files, and anything else is refused below.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = effect::open(self, name, flags, Mode::from_raw_mode(FILE_MODE))
            .map_err(|e| explain_open(self.as_fd(), name, &label, e))?;
        let stat = fs::fstat(&fd).map_err(|e| FileError::os("look at", &label, e))?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(FileError::refused(action, label, "it is not a regular file; move it away"));
        }
        check_owner(&stat, &label)?;
        // A file that may be new gets back what the umask took; any other only loses what is too loose.
        let may_be_new = flags.contains(OFlags::CREATE);
        let mode = if may_be_new { FILE_MODE } else { stat.st_mode & FILE_MODE };
        let only_looks = !may_be_new && self.looser == Looser::Kept;
        if stat.st_mode & 0o7777 != mode && !only_looks {
            tightened(effect::chmod(name, &fd, Mode::from_raw_mode(mode)))
                .map_err(|e| FileError::os("tighten", &label, e))?;
        }
        Ok((File::from(fd), u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// Reads a whole file of at most `max` bytes; a longer one is reported as damaged.
    pub fn read(&self, name: &str, max: u64) -> Result<Vec<u8>> {
        let (file, size) = self.open_with_size("open", name, OFlags::RDONLY)?;
        // Room for all of it at once, and for the read that finds its end.
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(max)).unwrap_or(0) + 1);
        file.take(max + 1).read_to_end(&mut bytes).map_err(|e| FileError::io("read", self.path_of(name), &e))?;
        if bytes.len() as u64 > max {
            let why = format!("it is longer than {max} bytes");
            return Err(FileError::damaged("read", self.path_of(name), why));
        }
        Ok(bytes)
    }

    /// Reads a whole file as [`Dir::read`] does; `None` if it does not exist.
    pub fn read_if_there(&self, name: &str, max: u64) -> Result<Option<Vec<u8>>> {
        if_there(self.read(name, max))
    }

    /// An error if nothing can be written in this directory: the file system is read-only, or the mode forbids it.
    pub fn check_writable(&self) -> Result<()> {
        fs::accessat(self, c".", Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|e| FileError::os("write in", &self.label, e))
    }

    /// True if there is something of that name, whatever it is.
    pub fn exists(&self, name: &str) -> Result<bool> {
        self.check_name("look at", name)?;
        match fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(FileError::os("look at", self.path_of(name), e)),
        }
    }

    /// The names in this directory, unsorted, without `.` and `..`. Names that are not UTF-8 are
    /// left out: none of ours is.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.each_name(|name| {
            if let Ok(name) = name.to_str() {
                names.push(name.to_owned());
            }
        })?;
        Ok(names)
    }

    fn each_name(&self, mut visit: impl FnMut(&CStr)) -> Result<()> {
        let failed = |e| FileError::os("list", &self.label, e);
        for entry in fs::Dir::read_from(self).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                visit(entry.file_name());
            }
        }
        Ok(())
    }

    /// Removes a file, socket or link; a link's target is untouched.
    pub fn remove_file(&self, name: &str) -> Result<()> {
        self.check_name("remove", name)?;
        effect::remove(self, name.as_ref(), AtFlags::empty())
            .map_err(|e| FileError::os("remove", self.path_of(name), e))
    }

    /// Removes a file as [`Dir::remove_file`] does; false if there was none.
    pub fn remove_if_there(&self, name: &str) -> Result<bool> {
        Ok(if_there(self.remove_file(name))?.is_some())
    }

    /// Tightens the modes of the files in this directory, and refuses what is none.
    pub fn tighten_files(&self) -> Result<()> {
        self.names()?.iter().try_for_each(|name| self.open_file(name).map(|_| ()))
    }

    /// Removes a directory if it is there and empty; false if something is in it.
    pub fn remove_empty(&self, name: &str) -> Result<bool> {
        self.check_name("remove", name)?;
        match effect::remove(self, name.as_ref(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(e) => Err(FileError::os("remove", self.path_of(name), e)),
        }
    }

    /// Removes a directory and everything below it, following no link.
    pub fn remove_tree(&self, name: &str) -> Result<()> {
        let inner = self.sub(name)?;
        inner.clear()?;
        effect::remove(self, name.as_ref(), AtFlags::REMOVEDIR)
            .map_err(|e| FileError::os("remove", self.path_of(name), e))
    }

    /// Removes everything below this directory, following no link, and then what its path leads to: a directory, if nothing
    /// is in it.
    pub fn remove_whole(&self) -> Result<()> {
        self.clear()?;
        effect::remove(fs::CWD, &self.label, AtFlags::REMOVEDIR).map_err(|e| FileError::os("remove", &self.label, e))
    }

    /// Removes everything in this directory, following no link.
    pub fn clear(&self) -> Result<()> {
        let mut names = Vec::new();
        self.each_name(|name| names.push(name.to_owned()))?;
        for name in names {
            let label = self.label.join(name.to_string_lossy().as_ref());
            let path = Path::new(OsStr::from_bytes(name.to_bytes()));
            match effect::remove(self, path, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => {
                    let failed = |e| FileError::os("remove", &label, e);
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let fd = fs::openat(self, &name, flags, Mode::empty()).map_err(failed)?;
                    Dir { fd: Arc::new(fd), label: label.clone(), looser: self.looser }.clear()?;
                    effect::remove(self, path, AtFlags::REMOVEDIR).map_err(failed)?;
                }
                Err(e) => return Err(FileError::os("remove", label, e)),
            }
        }
        Ok(())
    }

    /// Renames within this directory; an existing target is replaced in one step.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.check_name("rename", from)?;
        self.check_name("rename to", to)?;
        effect::rename(self, from, self, to, RenameFlags::empty())
            .map_err(|e| FileError::os("rename to", self.path_of(to), e))
    }

    /// Renames within this directory; an existing target is an error ([`FileError::is_taken`]).
    pub fn rename_noreplace(&self, from: &str, to: &str) -> Result<()> {
        self.move_noreplace(from, self, to)
    }

    /// Renames into another directory of the same file system; an existing target is an error.
    pub fn move_noreplace(&self, from: &str, target: &Dir, to: &str) -> Result<()> {
        self.check_name("rename", from)?;
        target.check_name("rename to", to)?;
        let failed = |e| FileError::os("rename to", target.path_of(to), e);
        match effect::rename(self, from, target, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            // File systems without RENAME_NOREPLACE: a hard link never replaces either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                effect::link(self, from, target, to).map_err(failed)?;
                effect::remove(self, from.as_ref(), AtFlags::empty()).map_err(failed)
            }
            Err(e) => Err(failed(e)),
        }
    }

    /// Writes the names of this directory to the disk (`durability = "power"`).
    pub fn sync(&self) -> Result<()> {
        effect::sync(&self.own_name(), self).map_err(|e| FileError::os("sync", &self.label, e))
    }

    fn check_name(&self, action: &'static str, name: &str) -> Result<()> {
        let bad = name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']);
        if bad {
            let why = "a name must be one plain segment, without a slash";
            return Err(FileError::refused(action, self.label.join(name.replace(['/', '\0'], "?")), why));
        }
        Ok(())
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Turns "does not exist" into `None`.
pub fn if_there<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.is_missing() => Ok(None),
        Err(e) => Err(e),
    }
}

fn split_root(path: &Path) -> Result<(PathBuf, String, PathBuf)> {
    let refused = |why| FileError::refused("use", path, why);
    let path = std::path::absolute(path).map_err(|e| FileError::io("find", path, &e))?;
    // Rebuilt from its components, because a trailing slash would make the kernel follow a link.
    let clean: PathBuf = path.components().collect();
    let name = match clean.components().next_back() {
        Some(Component::Normal(name)) => name.to_str().map(str::to_owned),
        _ => return Err(refused("it must be a named directory below the root")),
    };
    let name = name.ok_or_else(|| refused("its last part must be UTF-8"))?;
    let parent = clean.parent().unwrap_or(Path::new("/")).to_owned();
    Ok((parent, name, clean))
}

fn open_parent(path: &Path, create: bool) -> Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let failed = |e| FileError::os("open", path, e);
    match fs::open(path, flags, Mode::empty()) {
        Ok(fd) => return Ok(Some(fd)),
        Err(Errno::NOENT) if create => {}
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(failed(e)),
    }
    if let (Some(above), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) {
        let above = open_parent(above, true)?.ok_or_else(|| failed(Errno::NOENT))?;
        make_dir(above.as_fd(), name, path)?;
    }
    fs::open(path, flags, Mode::empty()).map(Some).map_err(failed)
}

/// Makes a directory with mode 0700 whatever the umask is; false if it was there already.
fn make_dir(parent: BorrowedFd<'_>, name: &str, label: &Path) -> Result<bool> {
    let failed = |e| FileError::os("create", label, e);
    match effect::make_dir(parent, name, Mode::from_raw_mode(DIR_MODE)) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(false),
        Err(e) => return Err(failed(e)),
    }
    // A umask can only take bits away, so the directory was never too open; it may be too closed.
    let stat = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
    if stat.st_mode & 0o777 != DIR_MODE {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat(parent, name, flags, Mode::empty()).map_err(failed)?;
        effect::chmod_at(name, fs::CWD, &fd_path(fd.as_fd()), Mode::from_raw_mode(DIR_MODE)).map_err(failed)?;
    }
    Ok(true)
}

/// The path under which the kernel shows an open descriptor of this process (proc(5), `fd/`).
pub(crate) fn fd_path(fd: BorrowedFd<'_>) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// On a read-only file system a mode cannot be changed, and nothing new can be shown to others by it.
fn tightened(changed: std::result::Result<(), Errno>) -> std::result::Result<(), Errno> {
    if changed == Err(Errno::ROFS) { Ok(()) } else { changed }
}

fn check_owner(stat: &Stat, label: &Path) -> Result<()> {
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        let why = "it belongs to another user; name a state directory of your own";
        return Err(FileError::refused("use", label, why));
    }
    Ok(())
}

fn explain_open(parent: BorrowedFd<'_>, name: &str, label: &Path, errno: Errno) -> FileError {
    // O_NOFOLLOW answers ELOOP for a link, together with O_DIRECTORY it answers ENOTDIR.
    if matches!(errno, Errno::LOOP | Errno::NOTDIR)
        && let Ok(stat) = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        && FileType::from_raw_mode(stat.st_mode).is_symlink()
    {
        return FileError::refused("open", label, "it is a symbolic link; put the real thing there");
    }
    FileError::os("open", label, errno)
}
