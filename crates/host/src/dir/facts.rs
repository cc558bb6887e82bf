//! What can be told of files and directories by a look at them.

use std::os::fd::AsFd;

use rustix::fs::{self, AtFlags};
use rustix::io::Errno;

use super::{Dir, FileError, Result};

impl Dir {
    /// Refused where others may write: what is put there could be taken away by them.
    pub fn check_nobody_else_writes(&self) -> Result<()> {
        let stat = fs::fstat(self).map_err(|e| FileError::os("look at", self.path(), e))?;
        if stat.st_mode & 0o022 != 0 {
            let why = "others may write in it; take that away or choose another";
            return Err(FileError::refused("use", self.path(), why));
        }
        Ok(())
    }

    /// True if both are one directory.
    pub fn is_same(&self, other: &Dir) -> Result<bool> {
        let of = |dir: &Dir| fs::fstat(dir).map_err(|e| FileError::os("look at", &dir.label, e));
        let (own, other) = (of(self)?, of(other)?);
        Ok((own.st_dev, own.st_ino) == (other.st_dev, other.st_ino))
    }

    /// True if this open file is the one that the name leads to.
    pub fn is_named(&self, name: &str, file: impl AsFd) -> Result<bool> {
        self.check_name("look at", name)?;
        let failed = |e| FileError::os("look at", self.path_of(name), e);
        let open = fs::fstat(file).map_err(failed)?;
        match fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(failed(e)),
        }
    }

    /// Bytes on disk that a file takes; 0 if there is none.
    pub fn disk_bytes(&self, name: &str) -> Result<u64> {
        self.check_name("look at", name)?;
        match fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Blocks of 512 bytes, whatever the file system's own are (stat(2)).
            Ok(stat) => Ok(u64::try_from(stat.st_blocks).unwrap_or(0) * 512),
            Err(Errno::NOENT) => Ok(0),
            Err(e) => Err(FileError::os("look at", self.path_of(name), e)),
        }
    }
}
