//! The end of a world: sessions ended, anchors killed, and proof that no process and no file is left.

use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::proc::{self, Proc};
use crate::world::{World, holds_within};

impl Drop for World {
    fn drop(&mut self) {
        if self.kept {
            self.sweep();
            return;
        }
        let failed = std::thread::panicking();
        if failed {
            tell(&self.describe());
        }
        // The end itself may fail by a panic; what is left is swept all the same.
        let ended = if failed { Ok(Vec::new()) } else { catch_unwind(AssertUnwindSafe(|| self.end())) };
        let faults = ended.unwrap_or_else(|_told| vec!["ending the sessions failed, as told above".to_owned()]);
        self.sweep();
        if let Err(error) = fs::remove_dir_all(&self.root) {
            tell(&format!("cannot remove {}: {error}", self.root.display()));
        }
        assert!(faults.is_empty(), "the world did not end clean:\n{}", faults.join("\n"));
    }
}

impl World {
    /// Ends every session in order and collects what is wrong afterwards.
    fn end(&self) -> Vec<String> {
        self.processes();
        let mut faults = Vec::new();
        let ids: Vec<String> = self.sessions.lock().expect("not poisoned").iter().map(|one| one.id.clone()).collect();
        // What retention has removed had ended.
        for id in ids.into_iter().filter(|id| self.session_dir(id).exists()) {
            let ended = self.call(&["session", "end", &id]).run();
            // A session that ended with its anchor is closed already, which is a refusal at most.
            if !matches!(ended.code, Some(0 | 4)) {
                faults.push(format!("session end: {ended:?}"));
            }
        }
        self.kill_anchors();
        holds_within(self.patience, || self.leftovers().is_empty());
        faults.extend(self.leftovers().iter().map(|one| format!("left: {one:?} {:?}", proc::command_line(one.pid))));
        faults.extend(self.stray_files().iter().map(|path| format!("left outside: {}", path.display())));
        faults
    }

    /// Ends the anchors; the sessions are not needed any more.
    fn kill_anchors(&self) {
        self.sessions.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
    }

    /// Living processes of this world, and zombies of it whose parent has not reaped them. A zombie that
    /// fell to process 1 is that process's business.
    fn leftovers(&self) -> Vec<Proc> {
        let mut found = self.processes();
        let seen = self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let zombies = seen.iter().filter_map(|(pid, start)| proc::stat(*pid).filter(|one| one.start == *start));
        found.extend(zombies.filter(|one| !one.lives() && one.ppid != 1));
        found
    }

    /// Files that outlast left where it has no business: the home, the usual places of the machine, and
    /// cgroup leaves named after a command or session of this world.
    fn stray_files(&self) -> Vec<PathBuf> {
        let mut stray = entries(&self.home());
        let common = ["/tmp", "/var/tmp", "/dev/shm", "/run"].map(Path::new);
        stray.extend(common.into_iter().flat_map(entries).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ses_") || name.starts_with("wrk_") || name.starts_with("outlast.")
        }));
        let ids = self.ids();
        let mut leaves = Vec::new();
        walk(Path::new("/sys/fs/cgroup"), 8, &mut leaves);
        stray.extend(leaves.into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            ids.iter().any(|id| name.contains(id.as_str()))
        }));
        stray
    }

    /// The ids of all sessions and commands that have a directory.
    fn ids(&self) -> Vec<String> {
        let sessions = entries(&self.state().join("sessions"));
        let commands = sessions.iter().flat_map(|session| entries(&session.join("work")));
        let names = sessions.iter().cloned().chain(commands);
        names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).filter(|name| name.len() == 36).collect()
    }

    /// Kills what is left, so that one failed test does not disturb others. Only processes that carry the
    /// world's directory in their environment are touched.
    fn sweep(&self) {
        self.kill_anchors();
        let root = format!("{}/", self.root.display());
        holds_within(self.patience, || {
            let left = self.processes();
            left.iter().for_each(|one| proc::signal_if_holds(one.pid, &root, Signal::KILL));
            left.is_empty()
        });
    }

    /// What a person wants to see of a failed test's world.
    fn describe(&self) -> String {
        let mut text = format!("world {}\n", self.root.display());
        for one in self.processes() {
            let _infallible =
                writeln!(text, "  {} < {} {} {}", one.pid, one.ppid, one.state, proc::command_line(one.pid));
        }
        let mut dirs = Vec::new();
        walk(&self.state(), 5, &mut dirs);
        for path in dirs.iter().flat_map(|dir| entries(dir)).filter(|path| path.is_file()).take(40) {
            let size = fs::metadata(&path).map_or(0, |found| found.len());
            let _infallible = writeln!(text, "  {size:>9} {}", path.display());
        }
        text
    }
}

#[allow(clippy::print_stderr)]
fn tell(text: &str) {
    eprintln!("{text}");
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(dir) else { return Vec::new() };
    found.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Collects `dir` and the directories below it.
fn walk(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    found.push(dir.to_owned());
    if depth > 0 {
        for path in entries(dir).into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
            walk(&path, depth - 1, found);
        }
    }
}
