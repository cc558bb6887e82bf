//! A session that stands through all rounds: the memory and the descriptors of its watchers must not grow with what
//! they have served.

use std::time::Duration;

use outlast_testkit::World;

use crate::judge::proc_memory;
use crate::pace;
use crate::round::open_files_of;
use outlast_testkit::Cast;

/// Rounds until watchers have touched all that they ever need.
const WARM: usize = 8;

/// How much a watcher may have grown after that, in KiB: a page here and there, and nothing for each command.
const SLACK: u64 = 96;

/// The session, and what was seen of its watchers.
pub struct Standing {
    world: World,
    seen: Vec<Sample>,
}

/// The watchers at one instant when nothing happens.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Memory of the keeper's own, in KiB.
    pub keeper: u64,
    /// The same of the supervisor of a command that runs all the time.
    pub supervisor: u64,
    /// Descriptors of both.
    pub files: u64,
}

impl Standing {
    /// Starts it.
    pub fn start(binary: &str) -> Standing {
        let world = World::new(binary);
        world.bg(&["--", "sleep", "86400"]);
        Standing { world, seen: Vec::new() }
    }

    /// Has it serve some commands of each kind, and looks at its watchers.
    pub fn serve(&mut self) {
        for _ in 0..3 {
            self.world.outlast(&["run", "-c", "seq 1 100"]).ok();
        }
        let told = self.world.outlast(&["run", "--json", "--grace", "1ms", "-c", "sleep .02; seq 1 3000"]);
        assert!(matches!(told.code, Some(0 | 75)), "{told:?}");
        self.world.wait(told.json().str("/id"));
        self.world.stop(&self.world.bg(&["--", "sleep", "300"]));
        let quiet = || Cast::of(&self.world).supervisors.len() <= 2;
        assert!(pace::until(Duration::from_secs(10), quiet), "supervisors stay: {:#?}", Cast::of(&self.world));
        let cast = Cast::of(&self.world);
        let [keeper] = cast.keepers.as_slice() else { panic!("one keeper: {cast:#?}") };
        let leader = cast.leaders.first().expect("the command that runs all the time");
        self.seen.push(Sample {
            keeper: proc_memory(keeper.pid),
            supervisor: proc_memory(leader.ppid),
            files: open_files_of(keeper.pid) + open_files_of(leader.ppid),
        });
    }

    /// The first sample after the beginning, and the last.
    pub fn span(&self) -> Option<(Sample, Sample)> {
        Some((*self.seen.get(WARM)?, *self.seen.last()?))
    }

    /// Holds the samples against each other, and ends the session.
    pub fn end(self) {
        if let Some((first, last)) = self.span() {
            let flat = last.keeper <= first.keeper + SLACK && last.supervisor <= first.supervisor + SLACK;
            // A spare that is just born or used up makes a descriptor more or less.
            let same = last.files <= first.files + 2;
            assert!(flat && same, "watchers grow: {first:?}, then {last:?} after {} rounds", self.seen.len());
        }
        self.world.finish();
    }
}
