//! What a command inherits from its caller although another process starts it: limits and umask.

use outlast_core::request::Inherited;
use rustix::process::{Resource, Rlimit, getrlimit};

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
