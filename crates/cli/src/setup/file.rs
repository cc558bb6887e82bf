//! Files of somebody else's: read as a whole, and all of them changed or none.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::exit::Failure;

/// What the first copy of a file ends with.
const BACKUP: &str = ".before-outlast";

/// A file, as it was when it was read.
pub struct File {
    /// Where it is, behind any links.
    pub path: PathBuf,
    /// What stood in it; none where there is no such file.
    pub text: Option<String>,
}

/// What becomes of a file.
pub enum Change {
    /// Another text stands in it.
    Write {
        /// The text.
        text: String,
        /// Whether a copy of what stood there is kept, unless there is one.
        copy: bool,
    },
    /// The text of before stands in it, and the copy of it goes.
    Restore(String),
    /// It goes.
    Remove,
}

/// A change that is about to happen. What it has written so far goes with it.
struct Staged {
    target: PathBuf,
    old: Option<String>,
    new: PathBuf,
    removes: bool,
    /// The copy that was made for this change.
    copied: Option<PathBuf>,
    /// The copy that goes with this change.
    uncopies: Option<PathBuf>,
}

impl File {
    /// Reads a file. A link is followed, so that its target is what is changed. What is no file of text is refused.
    pub fn read(path: &Path) -> Result<File, Failure> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(File { path: path.to_owned(), text: None });
            }
            Err(error) => return Err(failed("look at", path, error)),
            Ok(_) => {}
        }
        let target = match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Failure::Refused(format!("{} is a link to nothing", path.display())));
            }
            found => found.map_err(|error| failed("follow", path, error))?,
        };
        if !fs::metadata(&target).map_err(|error| failed("look at", &target, error))?.is_file() {
            return Err(Failure::Refused(format!("{} is no regular file", target.display())));
        }
        let bytes = fs::read(&target).map_err(|error| failed("read", &target, error))?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(File { path: target, text: Some(text) }),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
                Err(Failure::Refused(format!("{}, line {line}: it is no UTF-8", target.display())))
            }
        }
    }

    /// The copy of what stood here before the first change; none where none was made.
    pub fn backup(&self) -> Result<Option<String>, Failure> {
        let path = self.backup_path();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &path, error)),
        }
    }

    /// Does all of a change that leaves the file as it is. Mode and owner will stay.
    fn stage(&self, change: &Change) -> Result<Staged, Failure> {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(dir).map_err(|error| failed("make", dir, error))?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let mut staged = Staged {
            target: self.path.clone(),
            old: self.text.clone(),
            new: dir.join(format!(".{name}.outlast-{}", std::process::id())),
            removes: matches!(change, Change::Remove),
            copied: None,
            uncopies: matches!(change, Change::Restore(_)).then(|| self.backup_path()),
        };
        self.look_for_locks()?;
        match change {
            Change::Write { text, copy } => {
                self.write_new(&staged.new, text)?;
                staged.copied = if *copy { self.keep_copy()? } else { None };
            }
            Change::Restore(text) => self.write_new(&staged.new, text)?,
            // It shows that the folder can be changed.
            Change::Remove => self.write_new(&staged.new, "")?,
        }
        Ok(staged)
    }

    /// A file can be replaced whatever its mode, but not where it is marked as immutable, which only opening it tells.
    fn look_for_locks(&self) -> Result<(), Failure> {
        match OpenOptions::new().write(true).open(&self.path) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::PERM) => {
                Err(failed("replace", &self.path, error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn write_new(&self, new: &Path, text: &str) -> Result<(), Failure> {
        let failed = |error| failed("write", new, error);
        let mut file = OpenOptions::new().write(true).create_new(true).open(new).map_err(failed)?;
        if self.text.is_some() {
            let old = fs::metadata(&self.path).map_err(failed)?;
            let own = file.metadata().map_err(failed)?;
            if (old.uid(), old.gid()) != (own.uid(), own.gid()) {
                chown(new, Some(old.uid()), Some(old.gid())).map_err(failed)?;
            }
            file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777)).map_err(failed)?;
        }
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }

    /// The path of the copy, where one was made.
    fn keep_copy(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(text) = &self.text else { return Ok(None) };
        let path = self.backup_path();
        let mode = fs::metadata(&self.path).map_err(|error| failed("look at", &self.path, error))?.mode() & 0o777;
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
            Ok(mut copy) => copy
                .write_all(text.as_bytes())
                .and_then(|()| copy.sync_all())
                .map(|()| Some(path.clone()))
                .map_err(|error| failed("write", &path, error)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(failed("write", &path, error)),
        }
    }

    fn backup_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(BACKUP);
        path.into()
    }
}

impl Staged {
    /// The copy that nobody needs any more.
    fn commit(mut self) -> Result<Option<PathBuf>, Failure> {
        // A host that runs writes its settings, too.
        if File::read(&self.target)?.text != self.old {
            return Err(Failure::Refused(format!("{} was changed at this moment", self.target.display())));
        }
        if self.removes {
            fs::remove_file(&self.target).map_err(|error| failed("remove", &self.target, error))?;
        } else {
            fs::rename(&self.new, &self.target).map_err(|error| failed("replace", &self.target, error))?;
        }
        self.copied = None;
        Ok(self.uncopies.take())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What is told is why the change did not happen; after a rename nothing is there.
        let _gone = fs::remove_file(&self.new);
        if let Some(copy) = &self.copied {
            let _gone = fs::remove_file(copy);
        }
    }
}

/// Changes files: none, where it shows beforehand that one cannot be changed. An error says which were and were not.
pub fn apply(changes: &[(&File, &Change)]) -> Result<(), Failure> {
    let staged: Result<Vec<_>, _> = changes.iter().map(|(file, change)| file.stage(change)).collect();
    commit(staged.map_err(|failure| failure.behind("nothing was changed"))?)
}

fn commit(staged: Vec<Staged>) -> Result<(), Failure> {
    let paths: Vec<String> = staged.iter().map(|one| one.target.display().to_string()).collect();
    let mut copies = Vec::new();
    for (at, one) in staged.into_iter().enumerate() {
        let copy = one.commit().map_err(|failure| {
            let (changed, rest) = (paths[..at].join(", "), paths[at..].join(", "));
            failure.behind(&match at {
                0 => "nothing was changed".to_owned(),
                _ => format!("changed: {changed}; not changed: {rest}; the same call does the rest"),
            })
        })?;
        copies.extend(copy);
    }
    let mut copies = copies.iter();
    copies.try_for_each(|copy| fs::remove_file(copy).map_err(|error| failed("remove the copy", copy, error)))
}

fn failed(what: &str, path: &Path, error: io::Error) -> Failure {
    Failure::System(format!("cannot {what} {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_and_was_not_changed_is_told() {
        let dir = std::env::temp_dir().join(format!("outlast-setup-{}", std::process::id()));
        fs::create_dir(&dir).expect("a folder");
        let path = |name: &str| dir.join(name);
        fs::write(path("b"), "old").expect("a file");
        let files = ["a", "b", "c"].map(|name| File::read(&path(name)).expect("it can be read"));
        let change = Change::Write { text: "new".to_owned(), copy: true };
        let staged: Vec<Staged> = files.iter().map(|file| file.stage(&change).expect("nothing is wrong yet")).collect();
        fs::write(path("b"), "by a host").expect("a file");
        let message = commit(staged).expect_err("a file is another one").message().unwrap_or_default();
        let (a, b, c) = (path("a"), path("b"), path("c"));
        let told = format!("changed: {}; not changed: {}, {}; ", a.display(), b.display(), c.display());
        assert!(message.starts_with(&told), "{message}");
        assert!(message.ends_with("b was changed at this moment"), "{message}");
        let mut left: Vec<_> = fs::read_dir(&dir).expect("our folder").flatten().map(|one| one.file_name()).collect();
        left.sort();
        assert_eq!(left, ["a", "b"], "no copy and nothing that was half written stays");
        fs::remove_dir_all(&dir).expect("our folder");
    }
}
