//! Words that many tests share: the world around the binary, and small checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub use std::time::Duration;

pub use outlast_testkit::{Cast, Json, Output, Signal, World, proc};

/// A bound for what must happen "at once" on a busy machine.
pub const AT_ONCE: Duration = Duration::from_secs(5);

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_outlast");

/// A world with one session.
pub fn world() -> World {
    World::new(BINARY)
}

/// `run --json` of a shell line, whatever its exit code.
#[track_caller]
pub fn shell_json(world: &World, options: &[&str], line: &str) -> Json {
    let words = [&["run", "--json"], options, &["-c", line]].concat();
    world.call(&words).run().json()
}

/// Starts a shell line in the background.
#[track_caller]
pub fn bg_shell(world: &World, options: &[&str], line: &str) -> String {
    world.bg(&[options, &["-c", line]].concat())
}

/// Whether `inner` stands somewhere in the printed text between quotation marks.
pub fn quoted(text: &str, inner: &str) -> bool {
    let marks = |letter: Option<char>| letter.is_some_and(|letter| "\"'`“”‘’«»".contains(letter));
    text.match_indices(inner)
        .all(|(at, _)| marks(text[..at].chars().next_back()) && marks(text[at + inner.len()..].chars().next()))
}

/// Asserts that a text that outlast wrote has no control character but the line break and the tab.
#[track_caller]
pub fn printable(text: &str) {
    let hidden = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    assert!(!text.contains(hidden), "control characters in {text:?}");
}

/// Every path below `dir`, `dir` included, links not followed.
pub fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    if dir.is_dir() && !dir.is_symlink() {
        let entries = fs::read_dir(dir).expect("a readable directory");
        found.extend(entries.flat_map(|entry| tree(&entry.expect("a readable entry").path())));
    }
    found.sort();
    found
}

/// Lines `from..=to`, as `seq` prints them.
pub fn seq(from: u32, to: u32) -> String {
    (from..=to).map(|number| format!("{number}\n")).collect()
}

/// The ids of the entries of a list.
pub fn ids(entries: &[Json]) -> Vec<String> {
    entries.iter().map(|entry| entry.str("/id").to_owned()).collect()
}

/// The processes around a command that wrote `$PPID $$` into the file `name`.
/// Returns supervisor, leader and keeper.
pub fn family(world: &World, name: &str) -> (i32, i32, i32) {
    let pids = world.wait_pids(name);
    let keeper = proc::parent_of(pids[0]);
    assert_ne!(keeper, 1, "the supervisor's parent is the keeper");
    (pids[0], pids[1], keeper)
}

/// A small file system of its own, for the full disk.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// Mounts it, or gives nothing where this user may not.
    pub fn mount() -> Option<SmallDisk> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("outlast-disk-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let at = std::env::temp_dir().join(name);
        fs::create_dir(&at).expect("a new directory");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs"]).arg(&at).output();
        if mount.is_ok_and(|done| done.status.success()) {
            return Some(SmallDisk(at));
        }
        fs::remove_dir(&at).expect("our directory");
        None
    }
}

impl SmallDisk {
    /// Fills it until this many bytes are left.
    pub fn leave(&self, bytes: usize) {
        let disk = rustix::fs::statvfs(&self.0).expect("it is mounted");
        let left = usize::try_from(disk.f_bavail * disk.f_frsize).expect("it is small");
        fs::write(self.0.join("filler"), vec![b'x'; left.checked_sub(bytes).expect("it is larger")]).expect("a file");
    }

    /// Takes the filling away.
    pub fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.0).status().expect("umount can be started");
        assert!(done.success(), "{} stays mounted", self.0.display());
        fs::remove_dir(&self.0).expect("our directory");
    }
}
