//! What the measurements ran on.

use std::path::Path;

use rustix::event::{PollFd, Timespec, poll};

use crate::Result;

/// How long others are watched.
const WATCH: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// The share of the processors above which others make the figures worthless.
pub const BUSY: f64 = 0.1;

/// The machine, in words.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many of them this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// Memory in bytes.
    pub memory: u64,
    /// The type of the file system that everything was written to.
    pub file_system: String,
    /// The share of the processors that others used before the run.
    pub others_before: f64,
    /// The same after it.
    pub others_after: f64,
}

impl Machine {
    /// Looks at this machine and at the file system of a directory.
    pub fn look(dir: &Path) -> Result<Machine> {
        let cpu = std::fs::read_to_string("/proc/cpuinfo")?;
        let memory = std::fs::read_to_string("/proc/meminfo")?;
        let kib = value(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Ok(Machine {
            processor: value(&cpu, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            memory: kib.unwrap_or(0) << 10,
            file_system: file_system(dir)?,
            others_before: others()?,
            others_after: 0.0,
        })
    }

    /// Looks again at what others do, once nothing of the run is left.
    pub fn look_again(&mut self) -> Result<()> {
        self.others_after = others()?;
        Ok(())
    }

    /// Whether others had so much of it that the figures say little.
    pub fn was_busy(&self) -> bool {
        self.others_before.max(self.others_after) > BUSY
    }

    /// Name and value of each fact.
    pub fn facts(&self) -> [(&'static str, String); 6] {
        [
            ("processor", self.processor.clone()),
            ("cores", self.cores.to_string()),
            ("kernel", self.kernel.clone()),
            ("memory", format!("{:.1} GiB", self.memory as f64 / f64::from(1 << 30))),
            ("file system", self.file_system.clone()),
            (
                "used by others before and after",
                format!("{:.0} % and {:.0} %", self.others_before * 1e2, self.others_after * 1e2),
            ),
        ]
    }
}

/// The share of the processors that is used while this process does nothing (proc_stat(5)).
fn others() -> Result<f64> {
    let before = spent()?;
    poll(&mut [] as &mut [PollFd<'_>], Some(&WATCH))?;
    let after = spent()?;
    let (idle, all) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    Ok(1.0 - idle as f64 / (all as f64).max(1.0))
}

/// Idle time and all time of all processors since the boot, in ticks. Waiting for a disk is idle.
fn spent() -> Result<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().and_then(|line| line.strip_prefix("cpu ")).ok_or("/proc/stat has no first line")?;
    // Guests come after the eighth and are in the first two already.
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
    Ok((ticks.iter().skip(3).take(2).sum(), ticks.iter().sum()))
}

/// The value of the first line `key : value`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, value) = text.lines().find(|line| line.starts_with(key))?.split_once(':')?;
    Some(value.trim())
}

/// The type of the mount with the longest path that the directory lies in (proc_pid_mountinfo(5)).
fn file_system(dir: &Path) -> Result<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let found = mounts.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let point = front.split(' ').nth(4)?;
        dir.starts_with(point).then(|| (point.len(), back.split(' ').next().unwrap_or_default().to_owned()))
    });
    // Of two mounts on one point the later one is seen.
    Ok(found.max_by_key(|(length, _)| *length).map_or_else(|| "unknown".to_owned(), |(_, name)| name))
}
