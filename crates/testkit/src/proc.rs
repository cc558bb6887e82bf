//! What `/proc` says about processes: who lives, who descends from whom, whose environment holds what.

use std::fs;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// One process as `/proc/PID/stat` showed it (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proc {
    /// Process id.
    pub pid: i32,
    /// Parent's process id.
    pub ppid: i32,
    /// State letter: `R`, `S`, `D`, `T`, `Z`, …
    pub state: char,
    /// Name, at most 15 bytes.
    pub name: String,
    /// Start time in clock ticks since boot; with the pid it names the process for ever.
    pub start: u64,
    /// Process group.
    pub pgrp: i32,
    /// Session (of the kernel, not of outlast).
    pub session: i32,
}

impl Proc {
    /// Whether the process runs, that is: it is neither a zombie nor dead.
    pub fn lives(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// Reads one process, or nothing when there is none of that number.
pub fn stat(pid: i32) -> Option<Proc> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name stands in parentheses and may itself hold any character, so the last one counts.
    let (head, tail) = (text.find('(')?, text.rfind(')')?);
    let name = text[head + 1..tail].to_owned();
    let fields: Vec<&str> = text[tail + 1..].split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
    Some(Proc {
        pid,
        name,
        state: fields.first()?.chars().next()?,
        ppid: number(1)?,
        pgrp: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// All processes of the machine that can be read, zombies included.
pub fn all() -> Vec<Proc> {
    let entries = fs::read_dir("/proc").expect("/proc is there on Linux");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(stat).collect()
}

/// Whether a process of that number lives; a zombie does not.
pub fn alive(pid: i32) -> bool {
    stat(pid).is_some_and(|found| found.lives())
}

/// The parent of a living process.
///
/// # Panics
/// When there is no such process.
pub fn parent_of(pid: i32) -> i32 {
    stat(pid).unwrap_or_else(|| panic!("process {pid} is not there")).ppid
}

/// Every living process below `root`, without `root`, found through parent links.
pub fn descendants(root: i32) -> Vec<Proc> {
    let everyone = all();
    let mut found: Vec<Proc> = Vec::new();
    let mut frontier = vec![root];
    while let Some(parent) = frontier.pop() {
        for child in everyone.iter().filter(|one| one.ppid == parent && one.lives()) {
            frontier.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// The command line with spaces between its parts; empty for a zombie.
pub fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
}

/// Whether some entry of the process's first environment holds `needle`.
///
/// A zombie has no environment any more, so this is false for it.
pub fn environ_holds(pid: i32, needle: &str) -> bool {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).any(|entry| String::from_utf8_lossy(entry).contains(needle))
}

/// Whether the process has a handler for `signal` (field `SigCgt` of `/proc/PID/status`).
pub fn catches(pid: i32, signal: Signal) -> bool {
    mask(pid, "SigCgt") >> (signal.as_raw() - 1) & 1 == 1
}

/// One signal mask of `/proc/PID/status`, or 0 when it cannot be read.
pub fn mask(pid: i32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|value| u64::from_str_radix(value.trim(), 16).ok()).unwrap_or(0)
}

/// Sends a signal to a process that the test has proven to be its own.
///
/// # Panics
/// When there is no such process.
pub fn signal(pid: i32, signal: Signal) {
    let raw = Pid::from_raw(pid).expect("a process id is above 0");
    let handle = pidfd_open(raw, PidfdFlags::empty()).expect("the process is there");
    pidfd_send_signal(&handle, signal).expect("the process can be signalled");
}

/// Signals a process only when it still holds `needle` in its environment. The handle is opened before
/// the proof, so a number that is used again in between is not hit.
pub fn signal_if_holds(pid: i32, needle: &str, signal: Signal) {
    let Some(raw) = Pid::from_raw(pid) else { return };
    let Ok(handle) = pidfd_open(raw, PidfdFlags::empty()) else { return };
    if environ_holds(pid, needle) {
        // It may end by itself at this instant; then there is nothing to signal.
        let _ended = pidfd_send_signal(&handle, signal);
    }
}

/// Waits until a child or any other process has ended (it may still be a zombie), at most `bound`.
/// Returns whether it has.
pub fn wait_gone(pid: i32, bound: Duration) -> bool {
    let Some(raw) = Pid::from_raw(pid) else { return true };
    let Ok(handle) = pidfd_open(raw, PidfdFlags::empty()) else { return true };
    let timeout = Timespec {
        tv_sec: i64::try_from(bound.as_secs()).expect("a bound of a test is short"),
        tv_nsec: i64::from(bound.subsec_nanos()),
    };
    let mut watched = [PollFd::new(&handle, PollFlags::IN)];
    poll(&mut watched, Some(&timeout)).expect("poll of one pidfd") == 1
}
