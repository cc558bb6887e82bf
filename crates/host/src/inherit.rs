//! What a command inherits from its caller although another process starts it: limits and umask.

use outlast_core::request::Inherited;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Every resource that has a limit, in the order of the kernel's numbers.
const RESOURCES: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// Limits that bound what a process itself can do, and so those who depend on it.
const OWN_WORK: [Resource; 6] =
    [Resource::Cpu, Resource::Fsize, Resource::Data, Resource::Nproc, Resource::Nofile, Resource::As];

/// The most open files that the kernel allows anybody unless it is told otherwise (`fs.nr_open`, proc(5)).
const MOST_FILES: u64 = 1 << 20;

/// Frees this process, and what it forks, of the limits of whoever started it, as far as it may: above its hard limits
/// only with CAP_SYS_RESOURCE (setrlimit(2)), else up to them.
pub fn lift_limits() {
    for resource in OWN_WORK {
        let own = getrlimit(resource);
        let most = (resource == Resource::Nofile).then_some(own.maximum.unwrap_or(MOST_FILES).max(MOST_FILES));
        let free = setrlimit(resource, Rlimit { current: most, maximum: most });
        // Without the right to more it is the hard limit, which everybody may have.
        let _ = free.or_else(|_| setrlimit(resource, Rlimit { current: own.maximum, maximum: own.maximum }));
    }
}

/// The limits of this process.
pub fn limits() -> Vec<Inherited> {
    let all = RESOURCES.iter().map(|resource| {
        let limit = getrlimit(*resource);
        Inherited { resource: *resource as u32, soft: limit.current, hard: limit.maximum }
    });
    all.collect()
}

/// The limits of this process, with another soft limit of open files where one is given.
pub fn limits_with(open_files: Option<u64>) -> Vec<Inherited> {
    let mut all = limits();
    let files = all.iter_mut().find(|one| one.resource == Resource::Nofile as u32);
    if let (Some(files), Some(soft)) = (files, open_files) {
        files.soft = Some(files.hard.map_or(soft, |hard| soft.min(hard)));
    }
    all
}

/// Those of `wanted` that differ from `own`, to be set in a child.
pub fn differing(wanted: &[Inherited], own: &[Inherited]) -> Vec<(Resource, Rlimit)> {
    let differs = |one: &Inherited| {
        let resource = RESOURCES.into_iter().find(|resource| *resource as u32 == one.resource)?;
        (!own.contains(one)).then_some((resource, Rlimit { current: one.soft, maximum: one.hard }))
    };
    wanted.iter().filter_map(differs).collect()
}

/// The umask of this process, read without changing it (proc(5), `Umask` in status, since Linux 4.7).
pub fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_limits_do_not_differ_from_themselves() {
        let own = limits();
        assert_eq!(own.len(), 16);
        assert!(differing(&own, &own).is_empty());
        let mut other = own.clone();
        other[7].soft = Some(17);
        let found = differing(&other, &own);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1.current), (Resource::Nofile, Some(17)));
    }

    #[test]
    fn umask_is_read_without_changing_it() {
        let first = umask().expect("Linux 4.7 or newer");
        assert!(first <= 0o777);
        assert_eq!(umask(), Some(first));
    }
}
