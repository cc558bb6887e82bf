//! The processes of a command: signalled only when proven to be ours, swept until none is left.

use std::os::fd::OwnedFd;

use outlast_core::record::{Fate, Survivor};
use outlast_host::cgroup::Leaf;
use outlast_host::proc::{self, Stat};
use outlast_host::sys::pidfd;
use rustix::process::Signal;

/// The tree below this process, which is its subreaper.
pub struct Tree<'a> {
    /// The leader's process id, which is also the id of its group.
    pub leader: u32,
    /// The leader itself; valid for its group after it was reaped too.
    pub pidfd: &'a OwnedFd,
    /// The command's own cgroup, where one could be made.
    pub leaf: Option<&'a Leaf>,
}

impl Tree<'_> {
    /// Sends `signal` to the leader's group and to every descendant that left it, then CONT, because a
    /// stopped process cannot act on a signal.
    pub fn signal(&self, signal: Signal) {
        self.signal_group(signal);
        self.signal_each(signal, |stat| stat.pgrp != self.leader);
        if signal != Signal::KILL && signal != Signal::STOP {
            self.signal_group(Signal::CONT);
            self.signal_each(Signal::CONT, |stat| stat.pgrp != self.leader);
        }
    }

    /// Sends `signal` to the leader's group alone. True if it reached anybody.
    pub fn signal_group(&self, signal: Signal) -> bool {
        match pidfd::signal_group(self.pidfd, signal) {
            Ok(()) => true,
            Err(rustix::io::Errno::SRCH) => false,
            // Linux before 6.9 cannot signal a group through a descriptor: its members one by one.
            Err(_) => self.signal_each(signal, |stat| stat.pgrp == self.leader) > 0,
        }
    }

    /// One pass: everything that descends from this process is killed.
    pub fn sweep(&self) {
        if let Some(leaf) = self.leaf {
            // A leaf that cannot be killed as a whole is swept like any other tree.
            let _ = leaf.kill();
        }
        self.signal_group(Signal::KILL);
        self.signal_each(Signal::KILL, |_| true);
    }

    fn signal_each(&self, signal: Signal, wanted: impl Fn(&Stat) -> bool) -> usize {
        let Ok(found) = proc::descendants(std::process::id()) else { return 0 };
        found.iter().filter(|stat| wanted(stat)).filter(|stat| signal_exact(stat, signal)).count()
    }
}

/// Signals the process of `stat`, if it is still that process and not one that got its number.
pub fn signal_exact(stat: &Stat, signal: Signal) -> bool {
    let Ok(fd) = pidfd::open(stat.pid) else { return false };
    match proc::stat(stat.pid) {
        Ok(Some(now)) if now.start == stat.start => pidfd::signal(&fd, signal).is_ok(),
        _ => false,
    }
}

/// The descendants of this process that are alive, as survivors.
pub fn survivors() -> Vec<Survivor> {
    let found = proc::descendants(std::process::id()).unwrap_or_default();
    found.into_iter().map(|stat| survivor(stat, Fate::Kept)).collect()
}

/// The shape in which a living process is told of.
pub fn survivor(stat: Stat, fate: Fate) -> Survivor {
    Survivor { pid: stat.pid, name: stat.comm, start: stat.start, fate }
}
