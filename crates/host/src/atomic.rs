//! Replaces a file in one step, writes a file once, and sets space aside for a file that must land.

use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::dir::{Dir, FileError, Result};
use crate::effect;
pub use outlast_core::record::Durability;

/// Replaces `name` by a new file with these bytes. A reader or a crash sees the old or the new one.
///
/// A file has one writer at a time (its role or its lock says who), so the name of the temporary
/// file is fixed and a crash leaves at most one behind, which the next call clears.
pub fn replace(dir: &Dir, name: &str, bytes: &[u8], durability: Durability) -> Result<()> {
    let temporary = format!(".{name}.tmp");
    let file = match dir.create_new(&temporary) {
        Err(e) if e.is_taken() => {
            dir.remove_file(&temporary)?;
            dir.create_new(&temporary)?
        }
        other => other?,
    };
    let moved = fill(dir, &temporary, &file, bytes, durability).and_then(|()| dir.rename(&temporary, name));
    settle(dir, &temporary, moved, durability)
}

/// Writes a file that must not exist yet; a taken name is an error ([`FileError::is_taken`]) and
/// leaves the file that is there untouched. Readers see all of it or nothing.
pub fn write_once(dir: &Dir, name: &str, bytes: &[u8], durability: Durability) -> Result<()> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = format!(".{name}.{}.{count}.tmp", std::process::id());
    let file = dir.create_new(&temporary)?;
    let moved = fill(dir, &temporary, &file, bytes, durability).and_then(|()| dir.rename_noreplace(&temporary, name));
    settle(dir, &temporary, moved, durability)
}

/// Space set aside for a file that must land even on a full disk.
#[derive(Debug)]
pub struct Reserved {
    dir: Dir,
    file: File,
    temporary: &'static str,
    name: &'static str,
}

impl Reserved {
    /// Makes `temporary` with `size` allocated bytes; [`Reserved::fill`] turns it into `name`.
    pub fn create(dir: &Dir, temporary: &'static str, name: &'static str, size: u32) -> Result<Reserved> {
        let file = dir.create_file(temporary)?;
        let failed = |e| FileError::os("set space aside for", dir.path_of(name), e);
        match effect::allocate(temporary, &file, FallocateFlags::KEEP_SIZE, 0, u64::from(size)) {
            Ok(()) => {}
            // File systems without fallocate get the bytes written.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => effect::write_at(temporary, &file, &vec![0; size as usize], 0)
                .map_err(|e| FileError::io("set space aside for", dir.path_of(name), &e))?,
            Err(e) => return Err(failed(e)),
        }
        Ok(Reserved { dir: dir.clone(), file, temporary, name })
    }

    /// The space that a dead writer set aside, for whoever finishes in its place.
    pub fn reopen(dir: &Dir, temporary: &'static str, name: &'static str) -> Result<Option<Reserved>> {
        let file = crate::dir::if_there(dir.open_rw(temporary))?;
        Ok(file.map(|file| Reserved { dir: dir.clone(), file, temporary, name }))
    }

    /// Writes the bytes into the space and gives the file its name, which must not be taken.
    pub fn fill(self, bytes: &[u8], durability: Durability) -> Result<()> {
        let path = self.dir.path_of(self.name);
        let slack = self.fill_in_haste(bytes, durability)?;
        slack.give_back().map_err(|e| FileError::io("trim", path, &e))
    }

    /// The same, but what is left of the space is given back later: that costs more than the write itself.
    pub fn fill_in_haste(self, bytes: &[u8], durability: Durability) -> Result<Slack> {
        let length = bytes.len() as u64;
        let failed = |e: std::io::Error| FileError::io("write", self.dir.path_of(self.temporary), &e);
        effect::write_at(self.temporary, &self.file, bytes, 0).map_err(failed)?;
        // The file is longer where the space was made of zeros.
        if self.file.metadata().map_err(failed)?.len() != length {
            effect::set_len(self.temporary, &self.file, length).map_err(failed)?;
        }
        if durability == Durability::Power {
            effect::sync(self.temporary, &self.file).map_err(|e| failed(e.into()))?;
        }
        self.dir.rename_noreplace(self.temporary, self.name)?;
        sync_names(&self.dir, durability)?;
        Ok(Slack { file: self.file, name: self.name, length })
    }
}

/// Space behind the end of a file that was filled in haste.
#[derive(Debug)]
pub struct Slack {
    file: File,
    name: &'static str,
    length: u64,
}

impl Slack {
    /// Gives the space back; a file of that length is truncated to its own length (ext4 frees what was set
    /// aside behind it then). Without it only disk space is wasted.
    pub fn give_back(self) -> std::io::Result<()> {
        // A file that somebody changed meanwhile is not ours to cut.
        if self.file.metadata()?.len() == self.length {
            effect::set_len(self.name, &self.file, self.length)
        } else {
            Ok(())
        }
    }
}

fn fill(dir: &Dir, name: &str, file: &File, bytes: &[u8], durability: Durability) -> Result<()> {
    let failed = |e: std::io::Error| FileError::io("write", dir.path_of(name), &e);
    effect::write_at(name, file, bytes, 0).map_err(failed)?;
    effect::set_len(name, file, bytes.len() as u64).map_err(failed)?;
    match durability {
        Durability::Process => Ok(()),
        Durability::Power => effect::sync(name, file).map_err(|e| failed(e.into())),
    }
}

fn settle(dir: &Dir, temporary: &str, moved: Result<()>, durability: Durability) -> Result<()> {
    if let Err(e) = moved {
        // The first error is the one to tell; a leftover is cleared by the next call or by gc.
        let _ = dir.remove_file(temporary);
        return Err(e);
    }
    sync_names(dir, durability)
}

fn sync_names(dir: &Dir, durability: Durability) -> Result<()> {
    match durability {
        Durability::Process => Ok(()),
        Durability::Power => dir.sync(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::tests::TempDir;

    /// Covers: M2
    #[test]
    fn m2_replace_is_one_step_and_leaves_nothing_behind() {
        let temp = TempDir::new();
        let dir = temp.dir();
        std::fs::write(dir.path_of(".f.tmp"), "left by a dead writer").unwrap();
        replace(&dir, "f", b"one", Durability::Process).unwrap();
        replace(&dir, "f", b"2", Durability::Power).unwrap();
        assert_eq!(dir.read("f", 9).unwrap(), b"2");
        assert_eq!(dir.names().unwrap(), ["f"]);
    }

    /// Covers: M2
    #[test]
    fn m2_a_file_that_is_written_once_stays() {
        let temp = TempDir::new();
        let dir = temp.dir();
        write_once(&dir, "f", b"one", Durability::Power).unwrap();
        assert!(write_once(&dir, "f", b"two", Durability::Process).unwrap_err().is_taken());
        assert_eq!(dir.read("f", 9).unwrap(), b"one");
        assert_eq!(dir.names().unwrap(), ["f"]);
    }

    /// Covers: M2
    #[test]
    fn m2_readers_see_the_old_or_the_new_file_only() {
        let temp = TempDir::new();
        let dir = temp.dir();
        let texts = [vec![b'a'; 9000], vec![b'b'; 70]];
        replace(&dir, "f", &texts[0], Durability::Process).unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| (0..3000).all(|_| texts.contains(&dir.read("f", 10_000).unwrap())));
            for turn in 0..1000 {
                replace(&dir, "f", &texts[turn % 2], Durability::Process).unwrap();
            }
            assert!(reader.join().unwrap());
        });
    }

    /// Covers: M2, C4
    #[test]
    fn c4_reserved_space_becomes_the_file() {
        let temp = TempDir::new();
        let dir = temp.dir();
        let space = Reserved::create(&dir, "x.tmp", "x", 65536).unwrap();
        let set_aside = std::fs::metadata(dir.path_of("x.tmp")).unwrap();
        assert!(std::os::unix::fs::MetadataExt::blocks(&set_aside) * 512 >= 65536);
        drop(space);
        let space = Reserved::reopen(&dir, "x.tmp", "x").unwrap().unwrap();
        space.fill(b"end", Durability::Process).unwrap();
        assert_eq!(dir.read("x", 9).unwrap(), b"end");
        let left = std::fs::metadata(dir.path_of("x")).unwrap();
        assert!(std::os::unix::fs::MetadataExt::blocks(&left) * 512 < 65536, "the rest of the space is kept");
        assert!(Reserved::reopen(&dir, "x.tmp", "x").unwrap().is_none());
        let late = Reserved::create(&dir, "x.tmp", "x", 10).unwrap();
        assert!(late.fill(b"other", Durability::Process).unwrap_err().is_taken());
        assert_eq!(dir.read("x", 9).unwrap(), b"end");
    }
}
