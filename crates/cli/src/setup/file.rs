//! One file of somebody else's: read as a whole, written as a whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

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

impl File {
    /// Reads a file. A link is followed, so that its target is what is changed.
    pub fn read(path: &Path) -> Result<File, Failure> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(File { path: path.to_owned(), text: None });
            }
            Err(error) => return Err(failed("look at", path, error)),
            Ok(_) => {}
        }
        let target = fs::canonicalize(path).map_err(|error| failed("follow", path, error))?;
        if !fs::metadata(&target).map_err(|error| failed("look at", &target, error))?.is_file() {
            return Err(Failure::Refused(format!("{} is no regular file", target.display())));
        }
        let text = fs::read_to_string(&target).map_err(|error| failed("read", &target, error))?;
        Ok(File { path: target, text: Some(text) })
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

    /// Writes another text in its place, in one step, after a copy was made the first time. Mode and owner stay.
    pub fn replace(&self, text: &str) -> Result<(), Failure> {
        self.keep_copy()?;
        self.write(text)
    }

    /// Puts back what stood here first, and removes the copy.
    pub fn restore(&self, text: &str) -> Result<(), Failure> {
        self.write(text)?;
        let path = self.backup_path();
        fs::remove_file(&path).map_err(|error| failed("remove", &path, error))
    }

    /// Removes a file that setup has made.
    pub fn remove(&self) -> Result<(), Failure> {
        fs::remove_file(&self.path).map_err(|error| failed("remove", &self.path, error))
    }

    /// Writes another text in its place, in one step.
    pub fn write(&self, text: &str) -> Result<(), Failure> {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(dir).map_err(|error| failed("make", dir, error))?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let new = dir.join(format!(".{name}.outlast-{}", std::process::id()));
        let written = self.write_new(&new, text).and_then(|()| {
            // A host that runs writes its settings, too.
            if File::read(&self.path)?.text != self.text {
                let path = self.path.display();
                return Err(Failure::Refused(format!("{path} was changed at this moment; nothing was written to it")));
            }
            fs::rename(&new, &self.path).map_err(|error| failed("replace", &self.path, error))
        });
        if written.is_err() {
            // The failure that is told is the first one.
            let _gone = fs::remove_file(&new);
        }
        written
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

    fn keep_copy(&self) -> Result<(), Failure> {
        let Some(text) = &self.text else { return Ok(()) };
        let path = self.backup_path();
        let mode = fs::metadata(&self.path).map_err(|error| failed("look at", &self.path, error))?.mode() & 0o777;
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
            Ok(mut copy) => copy
                .write_all(text.as_bytes())
                .and_then(|()| copy.sync_all())
                .map_err(|error| failed("write", &path, error)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed("write", &path, error)),
        }
    }

    fn backup_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(BACKUP);
        path.into()
    }
}

fn failed(what: &str, path: &Path, error: io::Error) -> Failure {
    Failure::System(format!("cannot {what} {}", path.display()), error)
}
