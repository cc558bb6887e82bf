//! Tests of access beneath an open directory.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A directory of one test, removed when the test is over.
pub(crate) struct TempDir {
    path: PathBuf,
}

impl TempDir {
    pub(crate) fn new() -> TempDir {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("outlast-host-{}-{count}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        TempDir { path: path.canonicalize().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn dir(&self) -> Dir {
        Dir::open_state_root(&self.path).unwrap()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).unwrap();
    }
}

fn mode(path: impl AsRef<Path>) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Covers: M1, case-117
#[test]
fn m1_everything_is_made_private_and_looser_things_are_tightened() {
    let temp = TempDir::new();
    let root = temp.path().join("a/b/state");
    let dir = Dir::open_state_root(&root).unwrap();
    dir.create_sub("s").unwrap().create_file("f").unwrap();
    for path in ["a", "a/b", "a/b/state", "a/b/state/s"] {
        assert_eq!(mode(temp.path().join(path)), 0o700, "{path}");
    }
    assert_eq!(mode(root.join("s/f")), 0o600);

    dir.create_sub("sessions").unwrap();
    set_mode(&root, 0o777);
    set_mode(root.join("s"), 0o755);
    set_mode(root.join("s/f"), 0o644);
    let dir = Dir::open_state_root(&root).unwrap();
    assert_eq!(mode(&root), 0o700);
    let sub = dir.sub("s").unwrap();
    assert_eq!(mode(root.join("s")), 0o700);
    sub.open_file("f").unwrap();
    assert_eq!(mode(root.join("s/f")), 0o600);
}

/// Covers: M1, case-117
#[test]
fn m1_a_directory_that_others_may_be_using_is_not_closed_to_them() {
    let temp = TempDir::new();
    let srv = temp.path().join("srv");
    std::fs::create_dir_all(srv.join("www")).unwrap();
    set_mode(&srv, 0o755);
    let error = Dir::open_state_root(&srv).unwrap_err().to_string();
    assert!(error.contains("neither empty nor a state directory"), "{error}");
    assert_eq!(mode(&srv), 0o755);
    assert_eq!(std::fs::read_dir(&srv).unwrap().count(), 1);

    for known in ["", "sessions", "by-anchor"] {
        let root = temp.path().join(format!("state-{known}"));
        std::fs::create_dir_all(root.join(known)).unwrap();
        std::fs::write(root.join("README"), "").unwrap();
        if known.is_empty() {
            std::fs::remove_file(root.join("README")).unwrap();
        }
        set_mode(&root, 0o777);
        Dir::open_state_root(&root).unwrap();
        assert_eq!(mode(&root), 0o700, "{known:?}");
    }
}

/// Covers: M1
#[test]
fn m1_looking_changes_no_mode() {
    let temp = TempDir::new();
    let root = temp.path().join("state");
    Dir::open_state_root(&root).unwrap().create_sub("sessions").unwrap().create_file("f").unwrap();
    let loose = [(root.clone(), 0o755), (root.join("sessions"), 0o750), (root.join("sessions/f"), 0o644)];
    for (path, bits) in &loose {
        set_mode(path, *bits);
    }
    let found = Dir::find_state_root(&root).unwrap().unwrap();
    found.sub("sessions").unwrap().open_file("f").unwrap();
    for (path, bits) in &loose {
        assert_eq!(mode(path), *bits, "{}", path.display());
    }
    let made = found.sub("sessions").unwrap().create_file("new").unwrap();
    drop(made);
    assert_eq!(mode(root.join("sessions/new")), 0o600, "what is made is private all the same");
}

/// Covers: M1
#[test]
fn m1_a_strange_umask_changes_nothing() {
    let temp = TempDir::new();
    let dir = temp.dir();
    // The umask belongs to the process: nextest runs each test in a process of its own.
    for umask in [0o777, 0o000, 0o277] {
        let old = rustix::process::umask(Mode::from_raw_mode(umask));
        let sub = dir.create_sub(&format!("d{umask:o}"));
        let file = sub.as_ref().ok().map(|sub| sub.create_file("f"));
        rustix::process::umask(old);
        file.unwrap().unwrap();
        assert_eq!(mode(sub.as_ref().unwrap().path()), 0o700);
        assert_eq!(mode(sub.unwrap().path_of("f")), 0o600);
    }
}

/// Covers: M11
#[test]
fn m11_links_are_refused_and_nothing_is_written_through_them() {
    let temp = TempDir::new();
    let outside = temp.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "x").unwrap();
    let state = temp.path().join("state");
    let dir = Dir::open_state_root(&state).unwrap();
    symlink(&outside, state.join("d")).unwrap();
    symlink(outside.join("f"), state.join("f")).unwrap();
    symlink(outside.join("new"), state.join("n")).unwrap();
    symlink(&state, temp.path().join("linked")).unwrap();

    let errors = [
        dir.sub("d").unwrap_err(),
        dir.create_sub("d").unwrap_err(),
        dir.remove_tree("d").unwrap_err(),
        dir.open_file("f").unwrap_err(),
        dir.create_file("f").unwrap_err(),
        dir.create_file("n").unwrap_err(),
        dir.create_append("f").unwrap_err(),
        Dir::open_state_root(&temp.path().join("linked")).unwrap_err(),
        Dir::open_state_root(&temp.path().join("linked/")).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert!(error.to_string().contains(temp.path().to_str().unwrap()), "{error}");
    }
    assert!(dir.create_new("n").unwrap_err().is_taken());
    assert!(!outside.join("new").exists());
    assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"x");
}

/// Covers: M11
#[test]
fn m11_a_directory_replaced_by_a_link_while_open_is_still_the_old_one() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let sub = dir.create_sub("s").unwrap();
    let outside = TempDir::new();
    std::fs::rename(temp.path().join("s"), temp.path().join("moved")).unwrap();
    symlink(outside.path(), temp.path().join("s")).unwrap();
    sub.create_file("f").unwrap();
    assert!(temp.path().join("moved/f").exists());
    assert!(!outside.path().join("f").exists());
}

/// Covers: M11
#[test]
fn m11_names_are_one_plain_segment() {
    let temp = TempDir::new();
    let dir = temp.dir();
    for name in ["", ".", "..", "a/b", "/etc/passwd", "../x", "a\0b"] {
        assert!(matches!(dir.open_file(name).unwrap_err().cause, FileCause::Refused(_)), "{name:?}");
        assert!(matches!(dir.create_sub(name).unwrap_err().cause, FileCause::Refused(_)), "{name:?}");
    }
}

/// Covers: M1, M11
#[test]
fn m1_foreign_shared_and_odd_things_are_refused() {
    let temp = TempDir::new();
    let dir = temp.dir();
    std::fs::write(temp.path().join("file"), "").unwrap();
    rustix::fs::mkfifoat(&dir, "fifo", Mode::from_raw_mode(0o600)).unwrap();
    std::fs::create_dir(temp.path().join("shared")).unwrap();
    set_mode(temp.path().join("shared"), 0o1777);
    assert!(Dir::open_state_root(&temp.path().join("file")).unwrap_err().to_string().contains("irectory"));
    let shared = Dir::open_state_root(&temp.path().join("shared")).unwrap_err();
    assert!(shared.to_string().contains("shared"), "{shared}");
    assert_eq!(mode(temp.path().join("shared")), 0o1777);
    assert!(dir.open_file("fifo").unwrap_err().to_string().contains("regular"));
    assert!(Dir::open_state_root(Path::new("/")).is_err());
    if rustix::process::geteuid().is_root() {
        std::fs::create_dir(temp.path().join("foreign")).unwrap();
        std::os::unix::fs::chown(temp.path().join("foreign"), Some(12345), None).unwrap();
        assert!(dir.sub("foreign").unwrap_err().to_string().contains("another user"));
        let root = Dir::open_state_root(&temp.path().join("foreign")).unwrap_err();
        assert!(root.to_string().contains("another user"));
    }
}

/// Covers: M4
#[test]
fn m4_looking_makes_nothing() {
    let temp = TempDir::new();
    assert!(Dir::find_state_root(&temp.path().join("a/b")).unwrap().is_none());
    assert!(!temp.path().join("a").exists());
}

#[test]
fn trees_are_removed_and_what_their_links_point_at_is_not() {
    let temp = TempDir::new();
    let outside = TempDir::new();
    std::fs::write(outside.path().join("f"), "x").unwrap();
    let dir = temp.dir();
    let deep = dir.create_sub("t").unwrap().create_sub("u").unwrap();
    deep.create_file("f").unwrap();
    symlink(outside.path(), deep.path_of("link")).unwrap();
    dir.remove_tree("t").unwrap();
    assert!(!dir.exists("t").unwrap());
    assert!(outside.path().join("f").exists());
}

#[test]
fn long_files_are_not_read() {
    let temp = TempDir::new();
    let dir = temp.dir();
    std::fs::write(dir.path_of("f"), [0; 11]).unwrap();
    assert_eq!(dir.read("f", 11).unwrap().len(), 11);
    assert!(dir.read("f", 10).unwrap_err().to_string().contains("longer"));
    assert!(dir.read_if_there("g", 10).unwrap().is_none());
    assert!(dir.rename_noreplace("f", "f2").is_ok());
    dir.create_file("f").unwrap();
    assert!(dir.rename_noreplace("f", "f2").unwrap_err().is_taken());
}

/// Covers: L16
#[test]
fn l16_only_what_was_looked_at_says_that_something_is_not_there() {
    let error = |errno| FileError::os("open", "/x", errno);
    for unknown in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO, Errno::ACCESS, Errno::NOBUFS] {
        assert!(error(unknown).is_unknown(), "{unknown}");
    }
    for told in [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::EXIST, Errno::ROFS, Errno::NOSPC] {
        assert!(!error(told).is_unknown(), "{told}");
    }
    assert!(!FileError::damaged("read", "/x", "torn".to_owned()).is_unknown());
    assert!(error(Errno::ROFS).is_unwritable() && !error(Errno::IO).is_unwritable());
}
