//! Processes as the kernel shows them: found by what their environment says, so that none is lost whose parent is gone.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::Result;
use crate::place::{Place, readable_within};

/// The variable that commands have and whatever started them has not.
const MARK: &str = "OUTLAST_BENCH_MARK";
/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// Looks that must find nothing before a group is taken to be empty.
const LOOKS: usize = 20;
/// How long it may take until what was killed is gone.
const GONE_BOUND: Duration = Duration::from_secs(20);

/// What marks the processes of one command.
#[derive(Clone, Debug)]
pub struct Mark(String);

/// A process that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in ticks since the boot.
    pub start: u64,
    /// Its parent.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its name.
    pub name: String,
}

impl Mark {
    /// One that no other command of this run has.
    pub fn next(place: &Place) -> Mark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Mark(format!("{}{number}.", run_mark(place)))
    }

    /// Words that run others so marked, and not the tool that is given these words.
    pub fn words<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        ["/usr/bin/env", &self.0].into_iter().chain(words.iter().copied()).collect()
    }

    /// The living processes that have it.
    pub fn alive(&self) -> Result<Vec<Process>> {
        with_entry(&self.0)
    }

    /// Ends them all, however they move.
    pub fn end(&self) -> Result<()> {
        end_with_entry(&self.0)
    }
}

/// Ends whatever has an entry in its environment that begins so. Each is proven by the entry and its start after a
/// descriptor of it was opened, and waited for; that is repeated until two looks find nothing.
pub fn end_with_entry(entry: &str) -> Result<()> {
    let until = Instant::now() + GONE_BOUND;
    let mut quiet = 0;
    while quiet < 2 {
        let found = with_entry(entry)?;
        quiet = if found.is_empty() { quiet + 1 } else { 0 };
        let mut opened = Vec::new();
        for process in found {
            if let Some(pidfd) = open_proven(&process, entry)? {
                signal(&pidfd, Signal::KILL)?;
                opened.push(pidfd);
            }
        }
        for pidfd in opened {
            if !readable_within(&pidfd, until.saturating_duration_since(Instant::now()))? {
                return Err(format!("a process with {entry} in its environment does not go").into());
            }
        }
    }
    Ok(())
}

/// The same for whatever runs an executable of this run.
pub fn end_with_executable(path: &Path) -> Result<()> {
    let until = Instant::now() + GONE_BOUND;
    loop {
        let found = with_executable(path)?;
        kill_all(&found)?;
        if found.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("processes of {} do not go", path.display()).into());
        }
    }
}

/// Kills processes that were found, all before the first is waited for.
pub fn kill_all(processes: &[Process]) -> Result<()> {
    let mut opened = Vec::new();
    for process in processes {
        opened.extend(open_proven(process, "")?);
    }
    opened.iter().try_for_each(|pidfd| signal(pidfd, Signal::KILL))?;
    for pidfd in opened {
        if !readable_within(&pidfd, GONE_BOUND)? {
            return Err("a process that was killed does not go".into());
        }
    }
    Ok(())
}

/// Waits until all of these have ended; false at the bound.
pub fn ended_within(processes: &[Process], bound: Duration) -> Result<bool> {
    let until = Instant::now() + bound;
    for process in processes {
        let Some(pidfd) = open_proven(process, "")? else { continue };
        if !readable_within(&pidfd, until.saturating_duration_since(Instant::now()))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// TERM to a process group of marked processes and, after a grace, KILL to what is left in it: what a person does who
/// knows the group and nothing else.
pub fn stop_group(group: u32) -> Result<()> {
    let id = i32::try_from(group).ok().and_then(Pid::from_raw).ok_or("a group has no number")?;
    // While a marked process is in it the number is that group's. One that is just becoming another program shows no
    // environment, so it is looked for more than once.
    let members = || -> Result<Vec<Process>> {
        for _ in 0..LOOKS {
            let marked = with_entry(&format!("{MARK}="))?;
            let found: Vec<Process> = marked.into_iter().filter(|process| process.group == group).collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    };
    for (at, word) in [Signal::TERM, Signal::KILL].into_iter().enumerate() {
        let left = members()?;
        if left.is_empty() {
            break;
        }
        if let Err(error) = kill_process_group(id, word)
            && error != Errno::SRCH
        {
            return Err(error.into());
        }
        if at == 0 {
            ended_within(&left, GRACE)?;
        }
    }
    Ok(())
}

/// Living processes with an entry in their environment that begins so; zombies are none.
pub fn with_entry(entry: &str) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for item in fs::read_dir("/proc")? {
        let Some(pid) = item?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if pid != std::process::id()
            && has_entry(pid, entry)
            && let Some(process) = look(pid)
        {
            found.push(process);
        }
    }
    Ok(found)
}

/// Living processes of an executable.
pub fn with_executable(path: &Path) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for item in fs::read_dir("/proc")? {
        let item = item?;
        let Some(pid) = item.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if fs::read_link(item.path().join("exe")).is_ok_and(|exe| exe == path)
            && let Some(process) = look(pid)
        {
            found.push(process);
        }
    }
    Ok(found)
}

/// Whether a process is one of a command, and not of what started it.
pub fn is_marked(process: &Process) -> bool {
    has_entry(process.pid, &format!("{MARK}="))
}

/// The beginning of all marks of a run.
pub fn run_mark(place: &Place) -> String {
    format!("{MARK}={}:", place.dir().display())
}

/// A process that lives and is no zombie (proc_pid_stat(5)).
fn look(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let (front, rest) = stat.rsplit_once(") ")?;
    let name = front.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    let process = Process { pid, start: fields.get(19)?.parse().ok()?, parent: number(1)?, group: number(2)?, name };
    (!matches!(*fields.first()?, "Z" | "X")).then_some(process)
}

fn has_entry(pid: u32, entry: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    entry.is_empty() || environment.split(|byte| *byte == 0).any(|one| one.starts_with(entry.as_bytes()))
}

/// A descriptor of exactly this process; none if it is gone, or no longer what it was.
fn open_proven(process: &Process, entry: &str) -> Result<Option<OwnedFd>> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or("a process has no number")?;
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(None) };
    let same = look(process.pid).is_some_and(|now| now.start == process.start) && has_entry(process.pid, entry);
    Ok(same.then_some(pidfd))
}

fn signal(pidfd: &OwnedFd, word: Signal) -> Result<()> {
    match pidfd_send_signal(pidfd, word) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
