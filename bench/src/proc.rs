//! What the kernel says of a process that is measured: its relatives, its memory, its descriptors, what it has used.

use std::fs;
use std::time::Duration;

use crate::Result;

/// What a process, with all its threads, has used since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Time on a processor.
    pub cpu: Duration,
    /// How often it stopped running and was run again later: each is a wake-up.
    pub switches: u64,
}

impl Used {
    /// What was used since an earlier look.
    pub fn since(self, before: Used) -> Used {
        Used { cpu: self.cpu.saturating_sub(before.cpu), switches: self.switches.saturating_sub(before.switches) }
    }
}

/// The parent of a process (proc_pid_stat(5)).
pub fn parent(pid: u32) -> Result<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name stands in parentheses and may hold anything; state and parent follow it.
    let (_, rest) = stat.rsplit_once(") ").ok_or("a stat file has no name")?;
    Ok(rest.split(' ').nth(1).ok_or("a stat file has no parent")?.parse()?)
}

/// The children of a process.
pub fn children(of: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that goes away meanwhile is nobody's child.
        if parent(pid).is_ok_and(|parent| parent == of) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// The proportional set size in KiB (proc_pid_smaps(5)).
pub fn pss(pid: u32) -> Result<u64> {
    rollup(pid, &["Pss:"])
}

/// The memory in KiB that nobody shares with it.
pub fn private(pid: u32) -> Result<u64> {
    rollup(pid, &["Private_Clean:", "Private_Dirty:"])
}

/// How many descriptors it has open.
pub fn descriptors(pid: u32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// What it has used so far (proc_pid_schedstat(5), proc_pid_status(5)).
pub fn used(pid: u32) -> Result<Used> {
    let mut all = Used::default();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        // A thread that ended meanwhile does not count.
        let (Ok(times), Ok(status)) =
            (fs::read_to_string(task.join("schedstat")), fs::read_to_string(task.join("status")))
        else {
            continue;
        };
        let ran = times.split(' ').next().ok_or("a schedstat file is empty")?.parse()?;
        all.cpu += Duration::from_nanos(ran);
        all.switches += count(&status, "voluntary_ctxt_switches:")? + count(&status, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(all)
}

fn rollup(pid: u32, names: &[&str]) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    names.iter().map(|name| count(&text, name)).sum()
}

/// The number in the line that begins with a name.
fn count(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).ok_or_else(|| format!("there is no {name}"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
