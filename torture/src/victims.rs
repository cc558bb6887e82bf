//! Who is there to be killed or paused, and the one who does it, to exactly the process that was seen.

use std::fs;
use std::time::Duration;

use outlast_testkit::{Proc, Signal, World, proc};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::pace;

/// The id of the command that a process belongs to.
pub fn command_of(pid: i32) -> Option<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entry = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"OUTLAST_WORK_ID=wrk_"))?;
    Some(format!("wrk_{}", String::from_utf8_lossy(entry)))
}

/// A process that was proven to be the one that was seen, and of this world.
pub struct Held {
    handle: rustix::fd::OwnedFd,
    /// What it was when it was seen.
    pub seen: Proc,
}

impl Held {
    /// Takes hold of it, unless it has ended.
    pub fn of(world: &World, seen: &Proc) -> Option<Held> {
        let handle = pidfd_open(Pid::from_raw(seen.pid)?, PidfdFlags::empty()).ok()?;
        let same = proc::stat(seen.pid).is_some_and(|now| now.start == seen.start && now.lives());
        let ours = proc::environ_holds(seen.pid, &format!("{}/", world.root().display()));
        (same && ours).then(|| Held { handle, seen: seen.clone() })
    }

    /// Sends it a signal. False when it has ended.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.handle, signal).is_ok()
    }

    /// Stops it, tells what its children are while it can have no new ones, and kills it. Nothing if it ended by itself.
    pub fn kill(&self) -> Option<Vec<Proc>> {
        if !self.signal(Signal::STOP) {
            return None;
        }
        let stopped = pace::until(Duration::from_secs(2), || {
            proc::stat(self.seen.pid).is_none_or(|now| now.state == 'T' || !now.lives())
        });
        let lives = proc::stat(self.seen.pid).is_some_and(|now| now.lives());
        let children = proc::all().into_iter().filter(|one| one.ppid == self.seen.pid).collect();
        (self.signal(Signal::KILL) && stopped && lives).then_some(children)
    }
}
