//! Whom a test kills: the front end, keeper, supervisor and leader of one world, each proven before it is
//! signalled.

use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::support::*;
use outlast_testkit::Proc;

/// A process that knows something of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Front,
    Keeper,
    Supervisor,
    Leader,
}

/// All of them, as the numbers 0 to 3 of an order.
pub const VICTIMS: [Victim; 4] = [Victim::Front, Victim::Keeper, Victim::Supervisor, Victim::Leader];

/// Who was killed of those who know about one command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dead {
    pub front: bool,
    pub keeper: bool,
    pub supervisor: bool,
    pub leader: bool,
}

impl Dead {
    /// Notes that one of them was killed.
    pub fn add(&mut self, victim: Victim) {
        match victim {
            Victim::Front => self.front = true,
            Victim::Keeper => self.keeper = true,
            Victim::Supervisor => self.supervisor = true,
            Victim::Leader => self.leader = true,
        }
    }
}

/// Whether a process belongs to a command.
pub fn holds_id(pid: i32) -> bool {
    proc::environ_holds(pid, "OUTLAST_WORK_ID=wrk_")
}

/// Kills exactly the process that was seen: the handle is opened first, then start time and world are
/// proven. True if it was there to be killed.
pub fn kill_exact(world: &World, seen: &Proc) -> bool {
    let Some(raw) = Pid::from_raw(seen.pid) else { return false };
    let Ok(handle) = pidfd_open(raw, PidfdFlags::empty()) else { return false };
    let same = proc::stat(seen.pid).is_some_and(|now| now.start == seen.start && now.lives());
    let ours = proc::environ_holds(seen.pid, &format!("{}/", world.root().display()));
    same && ours && pidfd_send_signal(&handle, Signal::KILL).is_ok()
}

/// Kills a process that a record names by its mark. True if it was there to be killed.
pub fn kill_marked(world: &World, record: &Json, pointer: &str) -> bool {
    let pid = i32::try_from(record.int(&format!("{pointer}/pid"))).expect("process ids fit");
    let start = u64::try_from(record.int(&format!("{pointer}/start"))).expect("a start time is above 0");
    proc::stat(pid).is_some_and(|found| found.start == start && kill_exact(world, &found))
}

/// Waits, bounded, until a process that was killed is gone.
#[track_caller]
pub fn gone(pid: i32) {
    assert!(proc::wait_gone(pid, AT_ONCE), "process {pid} outlived its end");
}
