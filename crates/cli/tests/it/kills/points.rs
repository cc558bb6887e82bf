//! A walk through whole lives: each effect of keeper, supervisor and front end, with SIGKILL right before it.
//!
//! Which effects there are, nobody lists. Each life of [`lives`] and [`fronts`] is played once without a death, and the binary under
//! test writes down what it comes by (`OUTLAST_CRASH_LOG`). Then it is played once for each step, and whoever comes by
//! that step dies there. A process that is killed between two effects leaves what one leaves that is killed right
//! before the second, so these are all moments of a life that differ.
//!
//! A life that is [`Walk::Whole`] is walked step by step, whatever repeats in it. Of the others, which are the same for
//! long stretches, the names from a certain step on are walked, each the first time that it is come by there, and before
//! it those that no life above has. A step that a
//! play did not come by, because the life took another turn (output came in two pieces, a message had to wait), is
//! proven from what that play wrote down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::fronts;
use super::lives::{self, Life, Walk};
use super::random::Scene;
use crate::support::*;

/// The tests that share the walk.
const SHARES: u32 = 6;
/// One step of so many may be missed by a play that took another turn.
const MOST_MISSED: usize = 5;

/// A moment of a life: the `nth` time that one process comes by this name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    pub name: String,
    pub nth: usize,
}

impl Step {
    /// Whether who dies there is in this role.
    pub fn is_of(&self, role: &str) -> bool {
        self.name.split(' ').next() == Some(role)
    }
}

/// A world in which one step kills once, or in which steps are only written down.
pub struct Stage {
    pub world: World,
    step: Option<Step>,
    log: PathBuf,
    mark: PathBuf,
    /// What was written down before the curtain fell.
    passed: OnceLock<Vec<(i32, String)>>,
}

impl Stage {
    pub fn new(step: Option<Step>) -> Stage {
        Stage::in_world(world(), step)
    }

    fn in_world(world: World, step: Option<Step>) -> Stage {
        let (log, mark) = (world.root().join("passed"), world.root().join("crashed"));
        Stage { world, step, log, mark, passed: OnceLock::new() }
    }

    /// A call in which the step kills, also the keeper that it starts, the supervisors of that and what they run.
    pub fn call(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> Output {
        self.arm(self.world.call(words)).run()
    }

    /// The same for a call that is made otherwise.
    pub fn arm(&self, call: outlast_testkit::Call) -> outlast_testkit::Call {
        let call = call.env("OUTLAST_CRASH_LOG", &self.log).env("OUTLAST_CRASH_MARK", &self.mark);
        let call = call.within(Duration::from_secs(30));
        match &self.step {
            Some(step) => call.env("OUTLAST_CRASH_AT", format!("{}#{}", step.name, step.nth)),
            None => call,
        }
    }

    /// Whether a process in this role is the one who dies.
    pub fn kills(&self, role: &str) -> bool {
        self.step.as_ref().is_some_and(|step| step.is_of(role))
    }

    /// The life is over, and nobody dies any more: what follows only judges it.
    pub fn curtain(&self) {
        self.passed.get_or_init(|| read_log(&self.log));
        // Taken where the step has killed.
        let _ = fs::File::create_new(&self.mark).map(|_| fs::write(&self.mark, "nobody"));
    }

    pub fn has_killed(&self) -> bool {
        fs::read(&self.mark).is_ok_and(|mark| mark.is_empty())
    }

    fn passed(&self) -> &[(i32, String)] {
        self.passed.get().expect("every life has its curtain")
    }
}

/// What processes came by, in their order.
fn read_log(log: &PathBuf) -> Vec<(i32, String)> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(pid, name)| (pid.parse().expect("a pid"), name.to_owned())).collect()
}

/// The steps of a life in their order, each once.
fn steps_of(passed: &[(i32, String)]) -> Vec<Step> {
    let mut seen: BTreeMap<&(i32, String), usize> = BTreeMap::new();
    let mut steps = Vec::new();
    for one in passed {
        let nth = seen.entry(one).or_default();
        *nth += 1;
        let step = Step { name: one.1.clone(), nth: *nth };
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

/// What each life comes by when nobody dies.
pub fn recorded() -> &'static [(&'static Life, Vec<Step>)] {
    static RECORDED: OnceLock<Vec<(&Life, Vec<Step>)>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let record = |life: &'static Life| {
            let stage = Stage::new(None);
            let _scene = Scene(format!("the life {} without a death", life.name));
            (life.play)(&stage);
            (life, steps_of(stage.passed()))
        };
        std::thread::scope(|scope| {
            let commands = scope.spawn(move || lives::LIVES.iter().map(record).collect::<Vec<_>>());
            let fronts: Vec<_> = fronts::LIVES.iter().map(record).collect();
            commands.join().expect("every life is played without a death").into_iter().chain(fronts).collect()
        })
    })
}

/// The steps at which each life is ended.
fn walk() -> Vec<(&'static Life, Step)> {
    let mut known = BTreeSet::new();
    let mut walk = Vec::new();
    for (life, steps) in recorded() {
        let from = match life.walk {
            Walk::Whole => Some(0),
            Walk::From(name) => {
                let from = steps.iter().position(|step| step.name == name);
                assert!(from.is_some(), "the life {} does not come by {name}: {steps:#?}", life.name);
                from
            }
            Walk::New => None,
        };
        let is_whole = matches!(life.walk, Walk::Whole);
        let mut walked = BTreeSet::new();
        for (at, step) in steps.iter().enumerate() {
            let is_in = from.is_some_and(|from| at >= from) || !known.contains(&step.name);
            if is_in && (walked.insert(&step.name) || is_whole) {
                walk.push((*life, step.clone()));
            }
        }
        known.extend(steps.iter().map(|step| step.name.clone()));
    }
    walk
}

/// Plays one life with a death at one step; whether somebody died there.
fn play(life: &Life, step: &Step) -> bool {
    let stage = Stage::new(Some(step.clone()));
    let _scene = Scene(format!("OUTLAST_KILL_STEP='{}: {}#{}'", life.name, step.name, step.nth));
    (life.play)(&stage);
    let mut times: BTreeMap<i32, usize> = BTreeMap::new();
    for (pid, _) in stage.passed().iter().filter(|(_, name)| *name == step.name) {
        *times.entry(*pid).or_default() += 1;
    }
    let came_by = times.values().any(|times| *times >= step.nth);
    assert!(stage.has_killed() || !came_by, "{step:?} was come by and nobody died");
    stage.has_killed()
}

/// A share by name, so that shares that are walked in processes of their own are parts of one whole.
fn share_of(life: &Life, step: &Step) -> u32 {
    let text = format!("{} {} {}", life.name, step.name, step.nth);
    // FNV-1a, 32 bits.
    text.bytes().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) % SHARES
}

fn play_share(share: u32) {
    if let Some(only) = only() {
        return if share == 0 {
            play_only(&only)
        };
    }
    let steps: Vec<_> = walk().into_iter().filter(|(life, step)| share_of(life, step) == share).collect();
    let missed: Vec<_> = steps.iter().filter(|(life, step)| !play(life, step)).map(|(_, step)| step).collect();
    let (missing, all) = (missed.len(), steps.len());
    assert!(missing * MOST_MISSED < all, "{missing} of {all} steps killed nobody: {missed:#?}");
}

/// The one step that a person wants to see: `OUTLAST_KILL_STEP='demoted: supervisor rename exit.json#1'`.
#[expect(clippy::disallowed_methods, reason = "the person who runs a test has no other way to it")]
fn only() -> Option<String> {
    std::env::var("OUTLAST_KILL_STEP").ok()
}

fn play_only(only: &str) {
    let (life, step) = only.split_once(": ").expect("a life and a step");
    let (name, nth) = step.split_once('#').unwrap_or((step, "1"));
    let step = Step { name: name.to_owned(), nth: nth.parse().expect("a number") };
    let mut all = lives::LIVES.iter().chain(fronts::LIVES);
    play(all.find(|one| one.name == life).expect("a life of this name"), &step);
}

#[test]
fn every_effect_first_share() {
    play_share(0);
}

#[test]
fn every_effect_second_share() {
    play_share(1);
}

#[test]
fn every_effect_third_share() {
    play_share(2);
}

#[test]
fn every_effect_fourth_share() {
    play_share(3);
}

#[test]
fn every_effect_fifth_share() {
    play_share(4);
}

#[test]
fn every_effect_sixth_share() {
    play_share(5);
}
