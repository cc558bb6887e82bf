//! What can go wrong with a file: what was tried, on which path, why, and what to do.

use std::path::PathBuf;

use rustix::io::Errno;

/// What was tried, on which path, and why it did not work.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {action} {}: {cause}", path.display())]
pub struct FileError {
    /// What was tried, as a verb.
    pub action: &'static str,
    /// The path it was tried on.
    pub path: PathBuf,
    /// Why it did not work, and what to do.
    #[source]
    pub cause: FileCause,
}

/// Why a file operation did not work.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FileCause {
    /// The kernel said no.
    #[error("{}{}", std::io::Error::from(*.0), hint(*.0))]
    Os(Errno),
    /// A rule of outlast forbids it; the text says the rule and the way out.
    #[error("refused: {0}")]
    Refused(&'static str),
    /// The content is not what was written there.
    #[error("damaged: {0}")]
    Damaged(String),
    /// A newer outlast wrote it, in a form that this one does not know.
    #[error("a newer outlast wrote it; update this one")]
    Newer,
}

fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS | Errno::PERM => "; check who owns it and its mode",
        Errno::NOSPC | Errno::DQUOT => "; make room on that file system",
        Errno::NOTDIR => "; move what stands there away, or name another directory",
        Errno::ROFS => "; name a writable state directory",
        Errno::MFILE | Errno::NFILE => "; raise the limit of open files",
        _ => "",
    }
}

impl FileError {
    /// An error of the kernel.
    pub fn os(action: &'static str, path: impl Into<PathBuf>, errno: Errno) -> FileError {
        FileError { action, path: path.into(), cause: FileCause::Os(errno) }
    }

    /// An error of the standard library, which always carries an errno here.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, error: &std::io::Error) -> FileError {
        match Errno::from_io_error(error) {
            Some(errno) => FileError::os(action, path, errno),
            None => FileError::damaged(action, path, error.to_string()),
        }
    }

    /// A refusal by a rule of outlast.
    pub fn refused(action: &'static str, path: impl Into<PathBuf>, why: &'static str) -> FileError {
        FileError { action, path: path.into(), cause: FileCause::Refused(why) }
    }

    /// Content that is not what was written there.
    pub fn damaged(action: &'static str, path: impl Into<PathBuf>, why: String) -> FileError {
        FileError { action, path: path.into(), cause: FileCause::Damaged(why) }
    }

    /// What the kernel said, if it was the kernel.
    pub fn errno(&self) -> Option<Errno> {
        match self.cause {
            FileCause::Os(errno) => Some(errno),
            FileCause::Refused(_) | FileCause::Damaged(_) | FileCause::Newer => None,
        }
    }

    /// True if it says nothing about what is there: it could not be looked at now (out of descriptors or memory,
    /// a disk that fails, no permission). Such an error never means that something is absent, ended or damaged.
    pub fn is_unknown(&self) -> bool {
        let told = [
            Errno::NOENT,
            Errno::EXIST,
            // Something else than what belongs there.
            Errno::NOTDIR,
            Errno::ISDIR,
            Errno::LOOP,
            Errno::NAMETOOLONG,
        ];
        self.errno().is_some_and(|errno| !told.contains(&errno)) && !self.is_unwritable()
    }

    /// True if nothing can be written there now: a full or read-only file system, or a file that is not to change.
    pub fn is_unwritable(&self) -> bool {
        matches!(self.errno(), Some(Errno::ROFS | Errno::NOSPC | Errno::DQUOT | Errno::PERM))
    }

    /// True if a newer outlast wrote it.
    pub fn is_newer(&self) -> bool {
        matches!(self.cause, FileCause::Newer)
    }

    /// True if the file or directory does not exist.
    pub fn is_missing(&self) -> bool {
        self.errno() == Some(Errno::NOENT)
    }

    /// True if the name is taken already.
    pub fn is_taken(&self) -> bool {
        self.errno() == Some(Errno::EXIST)
    }
}
