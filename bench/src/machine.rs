//! What the measurements ran on.

use std::path::Path;

use crate::Result;

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
    /// How busy it was over the minute before, in processes that want to run.
    pub load: String,
}

impl Machine {
    /// Looks at this machine and at the file system of a directory.
    pub fn look(dir: &Path) -> Result<Machine> {
        let cpu = std::fs::read_to_string("/proc/cpuinfo")?;
        let memory = std::fs::read_to_string("/proc/meminfo")?;
        let load = std::fs::read_to_string("/proc/loadavg")?;
        let kib = value(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Ok(Machine {
            processor: value(&cpu, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            memory: kib.unwrap_or(0) << 10,
            file_system: file_system(dir)?,
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        })
    }

    /// Name and value of each fact.
    pub fn facts(&self) -> [(&'static str, String); 6] {
        [
            ("processor", self.processor.clone()),
            ("cores", self.cores.to_string()),
            ("kernel", self.kernel.clone()),
            ("memory", format!("{:.1} GiB", self.memory as f64 / f64::from(1 << 30))),
            ("file system", self.file_system.clone()),
            ("load before the run", self.load.clone()),
        ]
    }
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
