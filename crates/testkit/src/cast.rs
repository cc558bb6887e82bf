//! Who watches the commands of a world, and their leaders.

use crate::proc::{self, Proc};
use crate::world::World;

/// The names under which watchers run, as `ps` shows them.
const KEEPER: &str = "outlast-keeper";
const SUPERVISOR: &str = "outlast-super";

/// The watchers and leaders of a world as `/proc` shows them at one instant.
#[derive(Debug, Default)]
pub struct Cast {
    /// Keepers.
    pub keepers: Vec<Proc>,
    /// Supervisors, spares included.
    pub supervisors: Vec<Proc>,
    /// Children of supervisors that belong to a command.
    pub leaders: Vec<Proc>,
}

impl Cast {
    /// Looks at the processes of a world.
    pub fn of(world: &World) -> Cast {
        let all = world.processes();
        let (watchers, others): (Vec<Proc>, Vec<Proc>) =
            all.into_iter().partition(|one| [KEEPER, SUPERVISOR].contains(&one.name.as_str()));
        // A supervisor gets its name a moment after its birth; until then its parent tells. A leader has that of its
        // supervisor until its program runs: it is neither then.
        let named =
            |name: &str| -> Vec<i32> { watchers.iter().filter(|one| one.name == name).map(|one| one.pid).collect() };
        let (keepers, supervisors) = (named(KEEPER), named(SUPERVISOR));
        let watchers = watchers.into_iter().filter(|one| !supervisors.contains(&one.ppid));
        let (supervisors, keepers): (Vec<Proc>, Vec<Proc>) =
            watchers.partition(|one| one.name == SUPERVISOR || keepers.contains(&one.ppid));
        let is_below = |one: &Proc| supervisors.iter().any(|supervisor| supervisor.pid == one.ppid);
        let leaders = others
            .into_iter()
            .filter(|one| is_below(one) && proc::environ_holds(one.pid, "OUTLAST_WORK_ID=wrk_"))
            .collect();
        Cast { keepers, supervisors, leaders }
    }
}
