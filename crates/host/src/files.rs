//! The files below a directory, but for those that git ignores.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use ignore::{DirEntry, WalkBuilder};
use outlast_core::tracking::{Look, Stamp};

use crate::clock;

/// Looks at the files and links below a directory: those of git (`.git`) left out, and those that a `.gitignore` or
/// `.git/info/exclude` of the repository ignores. No link is followed. It stops at so many files, or after so long, and
/// the look says so.
pub fn look(dir: &Path, most: usize, longest: Duration) -> Look {
    let until = clock::monotonic() + longest;
    let mut look = Look::default();
    let mut builder = WalkBuilder::new(dir);
    // What a person has set for all repositories does not count: it would have to be looked for in the environment.
    builder.hidden(false).ignore(false).git_global(false).filter_entry(|entry| entry.file_name() != ".git");
    for entry in builder.build() {
        let found = entry.and_then(|entry| stamped(&entry, dir));
        match found {
            Ok(Some((path, stamp))) => drop(look.files.insert(path, stamp)),
            Ok(None) => {}
            // It went away while it was looked at.
            Err(error) if error.io_error().is_some_and(|error| error.kind() == ErrorKind::NotFound) => {}
            Err(error) => look.problem = Some(format!("not all could be looked at: {error}")),
        }
        if look.files.len() > most {
            look.problem = Some(format!("there are more than {most} files, and only some were looked at"));
            return look;
        }
        if clock::monotonic() > until {
            let time = longest.as_secs();
            look.problem = Some(format!("a look took longer than {time} s, and only some files were looked at"));
            return look;
        }
    }
    look
}

/// Whether there is something at this path, a link included.
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn stamped(entry: &DirEntry, dir: &Path) -> Result<Option<(Vec<u8>, Stamp)>, ignore::Error> {
    if entry.file_type().is_none_or(|kind| kind.is_dir()) {
        return Ok(None);
    }
    let meta = entry.metadata()?;
    let Ok(path) = entry.path().strip_prefix(dir) else { return Ok(None) };
    let stamp =
        Stamp { inode: meta.ino(), bytes: meta.len(), mode: meta.mode(), modified: (meta.mtime(), meta.mtime_nsec()) };
    Ok(Some((path.as_os_str().as_bytes().to_vec(), stamp)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_git_ignores_is_left_out_and_too_much_is_said() {
        let dir = std::env::temp_dir().join(format!("outlast-files-{}", std::process::id()));
        for sub in [".git/info", "sub/target", "target"] {
            fs::create_dir_all(dir.join(sub)).unwrap();
        }
        let files =
            [".git/HEAD", ".gitignore", "a", ".hidden", "x.log", "sub/b", "sub/y.tmp", "sub/target/c", "target/d"];
        files.iter().for_each(|file| fs::write(dir.join(file), "target/\n*.log\n").unwrap());
        fs::write(dir.join(".git/info/exclude"), "*.tmp\n").unwrap();
        std::os::unix::fs::symlink("/nowhere", dir.join("link")).unwrap();
        let names =
            |look: &Look| look.files.keys().map(|path| String::from_utf8_lossy(path).into_owned()).collect::<Vec<_>>();
        let all = look(&dir, 100, Duration::from_secs(60));
        assert_eq!(
            (names(&all), all.problem),
            ([".gitignore", ".hidden", "a", "link", "sub/b"].map(str::to_owned).to_vec(), None)
        );
        let below = look(&dir.join("sub"), 100, Duration::from_secs(60));
        assert_eq!(names(&below), ["b"], "the rules of the directories above hold");
        let some = look(&dir, 2, Duration::from_secs(60));
        assert!(some.problem.unwrap().contains("more than 2 files"));
        assert!(look(&dir, 100, Duration::ZERO).problem.unwrap().contains("longer than 0 s"));
        assert!(look(&dir.join("none"), 100, Duration::from_secs(60)).files.is_empty());
        assert!(exists(&dir.join("link")) && !exists(&dir.join("none")));
        fs::remove_dir_all(&dir).unwrap();
    }
}
