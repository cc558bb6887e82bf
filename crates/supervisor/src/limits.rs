//! Bounds on the whole tree's memory and processes, and the kernel's evidence of what was reached.

use std::time::Duration;

use outlast_core::ending::Resource;
use outlast_core::request::{CPU_PERCENT, DISK_RATE, Limits};
use outlast_host::cgroup::{self, CgroupParent, Leaf};
use outlast_host::proc;
use rustix::io::Errno;

/// Time between two samples of the tree, where no controller keeps the bound.
pub const SAMPLE_PAUSE: Duration = Duration::from_millis(250);

/// The cgroup leaf of one supervisor and the counters as they were when its command started.
pub struct Cage {
    leaf: Leaf,
    spent: bool,
    oom_kills: u64,
    refused_forks: u64,
}

impl Cage {
    /// A leaf below `parent`; none where none can be made.
    pub fn make(parent: Option<&CgroupParent>) -> Option<Cage> {
        let parent = parent?;
        let name = parent.leaf_name(std::process::id());
        // One that a killed process of the same pid left is not used again, and must not be in the way.
        let leaf = Leaf::create(parent, &name).or_else(|error| {
            let is_free = error.errno == Errno::EXIST && Leaf::open(&parent.path.join(&name))?.remove()?;
            if is_free { Leaf::create(parent, &name) } else { Err(error) }
        });
        let leaf = leaf.ok()?;
        Some(Cage { leaf, spent: false, oom_kills: 0, refused_forks: 0 })
    }

    /// A leaf for the next command. One that was killed is not used again: the kernel (seen on 6.18) kills
    /// what is born into it by `CLONE_INTO_CGROUP`, because it compares the leaf's count of kills with
    /// that of the parent's cgroup. Nor is one that has bounds, which are those of another command.
    pub fn renew(self, parent: Option<&CgroupParent>) -> Option<Cage> {
        if !self.spent {
            return Some(self);
        }
        if self.remove() { Cage::make(parent) } else { None }
    }

    /// The leaf was, or is about to be, killed as a whole.
    pub fn spend(&mut self) {
        self.spent = true;
    }

    /// The leaf itself.
    pub fn leaf(&self) -> &Leaf {
        &self.leaf
    }

    /// Sets the bounds that its controllers can keep and tells those that they cannot.
    pub fn bound(&mut self, limits: &Limits) -> Limits {
        let mut left = limits.clone();
        self.spent |= limits.memory.is_some() || limits.pids.is_some() || limits.throttled;
        if limits.throttled {
            self.throttle();
        }
        if limits.memory.is_some_and(|bytes| self.has("memory") && self.leaf.set_memory_max(bytes).is_ok()) {
            left.memory = None;
        }
        if limits.pids.is_some_and(|count| self.has("pids") && self.leaf.set_pids_max(count).is_ok()) {
            left.pids = None;
        }
        self.oom_kills = self.leaf.memory_events().ok().flatten().unwrap_or(0);
        self.refused_forks = self.leaf.pids_events().ok().flatten().unwrap_or(0);
        left
    }

    /// Slows the tree down where a controller can; one that the kernel refuses is as one that is not there.
    fn throttle(&self) {
        if self.has("cpu") {
            let _ = self.leaf.set_cpu_max(CPU_PERCENT);
        }
        if self.has("io") {
            // What stands on another disk, such as a volume, counts there too.
            for disk in cgroup::disks() {
                let _ = self.leaf.set_io_max(&disk, DISK_RATE);
            }
        }
    }

    fn has(&self, controller: &str) -> bool {
        self.leaf.has_controller(controller).unwrap_or(false)
    }

    /// The resource that the leaf's counters name, if any moved.
    pub fn evidence(&self) -> Option<Resource> {
        let moved = |now: Option<u64>, before: u64| now.is_some_and(|count| count > before);
        if moved(self.leaf.memory_events().ok().flatten(), self.oom_kills) {
            Some(Resource::Memory)
        } else if moved(self.leaf.pids_events().ok().flatten(), self.refused_forks) {
            Some(Resource::Pids)
        } else {
            None
        }
    }

    /// Removes the leaf; true once it is gone.
    pub fn remove(&self) -> bool {
        self.leaf.remove().unwrap_or(false)
    }
}

/// Bounds that are kept by looking at the tree four times a second.
pub struct Sampler {
    memory: Option<u64>,
    pids: Option<u64>,
    /// When the next look is due.
    pub next_at: Duration,
}

impl Sampler {
    /// A sampler for what no controller keeps; none where nothing is left to keep.
    pub fn new(limits: &Limits, now: Duration) -> Option<Sampler> {
        let sampler = Sampler { memory: limits.memory, pids: limits.pids, next_at: now };
        (sampler.memory.is_some() || sampler.pids.is_some()).then_some(sampler)
    }

    /// Looks at the tree below this process; tells the bound that is passed.
    pub fn sample(&mut self, now: Duration) -> Option<Resource> {
        self.next_at = now + SAMPLE_PAUSE;
        let tree = proc::descendants(std::process::id()).unwrap_or_default();
        if self.pids.is_some_and(|most| tree.len() as u64 > most) {
            return Some(Resource::Pids);
        }
        let most = self.memory?;
        // Resident sizes count shared pages once for each process: the exact and costly figure decides.
        let resident: u64 = tree.iter().map(|stat| stat.rss).sum();
        if resident <= most {
            return None;
        }
        let exact: u64 = tree.iter().map(|stat| proc::pss(stat.pid).ok().flatten().unwrap_or(stat.rss)).sum();
        (exact > most).then_some(Resource::Memory)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// A directory with the files of a leaf that has these controllers. Few hosts give their controllers away, and what is
    /// written is the same.
    struct Pretended(PathBuf);

    impl Pretended {
        fn new(name: &str, controllers: &str) -> (Pretended, Cage) {
            let path = std::env::temp_dir().join(format!("outlast-leaf-{name}-{}", std::process::id()));
            fs::create_dir(&path).expect("a directory");
            fs::write(path.join("cgroup.controllers"), controllers).expect("a file");
            for controller in controllers.split(' ') {
                fs::write(path.join(format!("{controller}.max")), "").expect("a file");
            }
            let leaf = Leaf::open(&path).expect("a leaf");
            (Pretended(path), Cage { leaf, spent: false, oom_kills: 0, refused_forks: 0 })
        }

        fn read(&self, file: &str) -> Option<String> {
            fs::read_to_string(self.0.join(file)).ok()
        }
    }

    impl Drop for Pretended {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Covers: P8
    #[test]
    fn p8_each_controller_that_is_there_keeps_its_bound() {
        let (leaf, mut cage) = Pretended::new("all", "cpu io memory pids");
        let left = cage.bound(&Limits::bounded());
        assert_eq!(left, Limits { memory: None, pids: None, ..Limits::bounded() });
        let read = |file| leaf.read(file).expect("a file");
        let written = (read("memory.max"), read("pids.max"), read("cpu.max"));
        assert_eq!(written, ("4294967296".to_owned(), "256".to_owned(), "200000 100000".to_owned()));
        let any_disk = fs::read_dir(Path::new("/sys/block")).is_ok_and(|mut disks| disks.next().is_some());
        assert_eq!(read("io.max").contains(" rbps=104857600 wbps=104857600"), any_disk);

        // Another command gets another leaf then, where it is not bounded by these.
        assert!(cage.spent);
        let (leaf, mut cage) = Pretended::new("none", "hugetlb");
        assert_eq!(cage.bound(&Limits::default()), Limits::default());
        assert!(!cage.spent, "it has no bounds");
        assert_eq!(cage.bound(&Limits::bounded()), Limits::bounded(), "memory and processes are left to sampling");
        assert_eq!((leaf.read("cpu.max"), leaf.read("io.max")), (None, None));
        let (leaf, mut cage) = Pretended::new("free", "cpu io memory pids");
        cage.bound(&Limits { files: Some(5), ..Limits::default() });
        assert_eq!(
            ["memory.max", "pids.max", "cpu.max", "io.max"].map(|file| leaf.read(file)),
            [(); 4].map(|()| Some(String::new()))
        );
    }
}
