//! Holds, waits for and looks at `flock` locks, which the kernel frees when their holder dies.
//!
//! A lock belongs to the open file, which a forked child shares. A child that must not keep its
//! parent's lock alive drops its copy of the [`Lock`]: dropping closes and never unlocks, so the
//! parent keeps its lock. An `execve` closes the copy by itself.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, fstat};
use rustix::io::Errno;

use crate::dir::{Dir, FileError, Result, if_there};
use crate::effect;

/// An exclusive lock, held until it is dropped or the process dies.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock if nobody holds it; the file is made if it is not there.
    ///
    /// Someone who merely looks ([`is_held`]) never makes this fail: lookers share, so when the
    /// exclusive attempt fails but a shared one succeeds, only lookers were there, and they are gone
    /// within a system call.
    pub fn try_acquire(dir: &Dir, name: &'static str) -> Result<Option<Lock>> {
        Wanted::new(dir, name).try_take()
    }

    /// Waits for the lock; the file is made if it is not there.
    ///
    /// For locks that are held for a moment only (`inbox.lock`, the trace): this blocks the thread.
    pub fn acquire(dir: &Dir, name: &str) -> Result<Lock> {
        loop {
            let lock = Lock::open(dir, name)?;
            lock.attempt(FlockOperation::LockExclusive)?;
            if lock.is_named()? {
                return Ok(lock);
            }
        }
    }

    fn open(dir: &Dir, name: &str) -> Result<Lock> {
        Ok(Lock { file: dir.create_file(name)?, path: dir.path_of(name) })
    }

    fn attempt(&self, operation: FlockOperation) -> Result<bool> {
        try_flock(&self.file_name(), &self.file, operation).map_err(|e| FileError::os("lock", &self.path, e))
    }

    /// False if the file was removed between opening and locking it: such a lock protects nothing.
    fn is_named(&self) -> Result<bool> {
        let stat = fstat(&self.file).map_err(|e| FileError::os("look at", &self.path, e))?;
        Ok(stat.st_nlink > 0)
    }

    fn file_name(&self) -> std::borrow::Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Takes the text in the lock's file away.
    pub fn clear_content(&self) -> Result<()> {
        effect::set_len(&self.file_name(), &self.file, 0).map_err(|e| FileError::io("write", &self.path, &e))
    }

    /// Replaces the text in the lock's file, which says who holds it.
    pub fn write_content(&self, bytes: &[u8]) -> Result<()> {
        let failed = |e: std::io::Error| FileError::io("write", &self.path, &e);
        let name = self.file_name();
        effect::write_at(&name, &self.file, bytes, 0).map_err(failed)?;
        effect::set_len(&name, &self.file, bytes.len() as u64).map_err(failed)
    }
}

/// A lock that is tried again and again by whoever is told when something changes in its directory.
///
/// Its file is opened once: an open file that is closed again is a change in the directory, so that one who opens it for
/// each try wakes all others who wait, and himself, without an end.
#[derive(Debug)]
pub struct Wanted {
    dir: Dir,
    name: &'static str,
    open: Option<Lock>,
}

impl Wanted {
    /// Nothing is opened yet.
    pub fn new(dir: &Dir, name: &'static str) -> Wanted {
        Wanted { dir: dir.clone(), name, open: None }
    }

    /// Takes the lock if nobody holds it, as [`Lock::try_acquire`] does.
    pub fn try_take(&mut self) -> Result<Option<Lock>> {
        loop {
            let lock = match self.open.take() {
                Some(lock) if lock.is_named()? => lock,
                Some(_) | None => Lock::open(&self.dir, self.name)?,
            };
            let taken = loop {
                if lock.attempt(FlockOperation::NonBlockingLockExclusive)? {
                    break true;
                }
                if !lock.attempt(FlockOperation::NonBlockingLockShared)? {
                    break false;
                }
            };
            if !taken {
                self.open = Some(lock);
                return Ok(None);
            }
            if lock.is_named()? {
                return Ok(Some(lock));
            }
        }
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Locks an open file and waits for it; the lock goes when the last copy of the file is closed.
///
/// For files that are their own lock (trace, aliases).
pub(crate) fn lock_file(dir: &Dir, name: &str, file: &File) -> Result<()> {
    try_flock(name, file, FlockOperation::LockExclusive)
        .map(|_| ())
        .map_err(|e| FileError::os("lock", dir.path_of(name), e))
}

/// True if somebody holds the lock now. A missing file is held by nobody.
///
/// It asks with a shared, non-blocking lock that is gone again at once. The holder notices nothing,
/// lookers do not disturb each other, and [`Lock::try_acquire`] knows how to tell lookers from a
/// holder. (`F_OFD_GETLK` would not even do that much, but sees no `flock`; `/proc/locks` hides
/// holders in other pid namespaces.)
pub fn is_held(dir: &Dir, name: &str) -> Result<bool> {
    let Some(file) = if_there(dir.open_file(name))? else { return Ok(false) };
    try_flock(name, &file, FlockOperation::NonBlockingLockShared)
        .map(|free| !free)
        .map_err(|e| FileError::os("look at the lock", dir.path_of(name), e))
}

/// The text in a lock's file, whoever holds it; `None` if there is no such file.
pub fn read_content(dir: &Dir, name: &str) -> Result<Option<Vec<u8>>> {
    dir.read_if_there(name, 64 * 1024)
}

fn try_flock(name: &str, file: &File, operation: FlockOperation) -> std::result::Result<bool, Errno> {
    loop {
        match effect::lock(name, file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::tests::TempDir;

    #[test]
    fn a_lock_has_one_holder_and_goes_with_it() {
        let temp = TempDir::new();
        let dir = temp.dir();
        assert!(!is_held(&dir, "l").unwrap(), "a missing file is held by nobody");
        let lock = Lock::try_acquire(&dir, "l").unwrap().unwrap();
        lock.write_content(b"a long text").unwrap();
        lock.write_content(b"mine").unwrap();
        assert!(Lock::try_acquire(&dir, "l").unwrap().is_none());
        assert!(is_held(&dir, "l").unwrap());
        assert_eq!(read_content(&dir, "l").unwrap().unwrap(), b"mine");
        drop(lock);
        assert!(!is_held(&dir, "l").unwrap());
        assert!(Lock::try_acquire(&dir, "l").unwrap().is_some());
    }

    /// Covers: L16
    #[test]
    fn l16_lookers_never_make_a_free_lock_look_held() {
        let temp = TempDir::new();
        let dir = temp.dir();
        drop(Lock::try_acquire(&dir, "l").unwrap());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..3000).filter(|_| is_held(&dir, "l").unwrap()).count());
            }
            for _ in 0..1000 {
                assert!(Lock::try_acquire(&dir, "l").unwrap().is_some());
            }
        });
    }

    #[test]
    fn a_lock_whose_file_was_removed_is_taken_anew() {
        let temp = TempDir::new();
        let dir = temp.dir();
        let first = Lock::acquire(&dir, "l").unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Lock::acquire(&dir, "l").unwrap());
            dir.remove_file("l").unwrap();
            drop(first);
            let second = second.join().unwrap();
            assert!(second.is_named().unwrap());
            assert!(is_held(&dir, "l").unwrap());
        });
    }
}
