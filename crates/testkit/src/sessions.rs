//! The sessions of a world and the processes that they are anchored on.

use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;

use rustix::process::Signal;

use crate::proc;
use crate::world::World;

/// A session and the process it is anchored on.
pub(crate) struct Owned {
    pub(crate) id: String,
    pub(crate) anchor: Sleeper,
}

/// A sleeping process that belongs to the test and ends with the value that holds it.
pub struct Sleeper(Child);

impl Sleeper {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("process ids fit")
    }

    /// Whether nobody has ended it.
    pub fn lives(&self) -> bool {
        proc::alive(self.pid())
    }

    /// Ends it with this signal and reaps it.
    pub fn end(&mut self, signal: Signal) {
        proc::signal(self.pid(), signal);
        self.0.wait().expect("it is our child");
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // Both fail only when it was ended and reaped already.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl World {
    /// The id of the first session.
    pub fn session(&self) -> String {
        self.owned()[0].id.clone()
    }

    pub(crate) fn owned(&self) -> MutexGuard<'_, Vec<Owned>> {
        self.sessions.lock().expect("nobody panics under it")
    }

    /// Starts another session with an anchor of its own, and returns its id.
    #[track_caller]
    pub fn new_session(&self, options: &[&str]) -> String {
        let anchor = self.sleeper();
        let pid = anchor.pid().to_string();
        let words = [&["session", "start", "--json", "--anchor", &pid], options].concat();
        self.own(&words, anchor)
    }

    /// Resumes an earlier session under an anchor of its own, and returns the new session's id.
    #[track_caller]
    pub fn resume(&self, earlier: &str) -> String {
        let anchor = self.sleeper();
        let pid = anchor.pid().to_string();
        let words = ["session", "resume", earlier, "--json", "--anchor", &pid];
        self.own(&words, anchor)
    }

    /// Makes a call that opens a session, and keeps its id and anchor.
    #[track_caller]
    fn own(&self, words: &[&str], anchor: Sleeper) -> String {
        let told = self.call(words).without("OUTLAST_SESSION").run().ok();
        let text = told.text();
        let start = text.find("ses_").unwrap_or_else(|| panic!("no session id in {told:?}"));
        let id: String = text[start..].chars().take(36).collect();
        self.owned().push(Owned { id: id.clone(), anchor });
        id
    }

    /// Kills the anchor of a session and reaps it.
    pub fn kill_anchor(&self, session: &str, signal: Signal) {
        let mut owned = self.owned();
        let one = owned.iter_mut().find(|one| one.id == session).expect("a session of this world");
        one.anchor.end(signal);
    }

    /// A process that belongs to the test and sleeps.
    pub fn sleeper(&self) -> Sleeper {
        let mut command = Command::new("/bin/sleep");
        command.arg("86400").env_clear().envs(self.environment()).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Sleeper(command.spawn().expect("sleep can be started"))
    }
}
