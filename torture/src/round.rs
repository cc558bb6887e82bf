//! One round: a sealed world, a storm in it, and the judgement.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use outlast_testkit::World;

use crate::dice::Dice;
use crate::faults::Means;
use crate::judge::Judge;
use crate::plan::Plan;
use crate::storm::Storm;
use crate::story::Story;
use crate::tally::Tally;
use crate::watch::Watch;
use crate::{disk, faults};

/// What was not true in a round.
pub struct Failure {
    /// The fault.
    pub fault: String,
    /// What was done, in order.
    pub story: String,
    /// Where the world is kept.
    pub kept: PathBuf,
}

/// The last panic of any thread, with its place.
static FAULT: Mutex<Option<String>> = Mutex::new(None);

/// From now on a panic is kept for the story of its round in place of being printed.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("a panic without a message");
        let place = panic.location().map_or(String::new(), |place| format!(" ({}:{})", place.file(), place.line()));
        let mut fault = FAULT.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert(format!("{message}{place}"));
    }));
}

/// Runs something that ends by a panic where something is not true; the fault.
pub fn caught<T>(play: impl FnOnce() -> T) -> Result<T, String> {
    *FAULT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    catch_unwind(AssertUnwindSafe(play)).map_err(|_payload| {
        let fault = FAULT.lock().unwrap_or_else(PoisonError::into_inner).take();
        fault.unwrap_or_else(|| "a panic without a message".to_owned())
    })
}

/// Plays one round. `means`: what may be done to the machine.
pub fn play(binary: &str, seed: u64, round: u64, means: &Means, tally: &mut Tally) -> Result<(), Box<Failure>> {
    let plan = Plan::draw(&mut Dice::new(seed, round), means.mounts.is_ok());
    let mut story = Story::new();
    let world = World::bare(binary, "state");
    let state = world.state();
    if plan.small_disk
        && let Err(error) = faults::mount_small(&state)
    {
        story.note(&error);
    }
    let played = caught(|| {
        world.new_session(&["--context", "world"]);
        storm(&world, &plan, &mut story, means, tally);
    });
    tally.add("rounds");
    tally.add_many("commands", plan.acts.len() as u64);
    if let Err(fault) = played {
        // The mount goes with this process; what is on it is copied to stay.
        let text = format!("{fault}\n{}", processes(&world));
        let kept = world.keep();
        if plan.small_disk {
            let _copied = Command::new("cp").arg("-a").arg(&state).arg(kept.join("state-of-small-disk")).status();
        }
        return Err(Box::new(Failure { fault: text, story: story.text(), kept }));
    }
    if plan.small_disk
        && let Err(error) = faults::unmount(&state)
    {
        story.note(&error);
    }
    let root = world.root();
    caught(|| world.finish()).map_err(|fault| Box::new(Failure { fault, story: story.text(), kept: root }))
}

fn storm(world: &World, plan: &Plan, story: &mut Story, means: &Means, tally: &mut Tally) {
    let watch = Watch::over(world.state());
    let mut storm = Storm::new(world, plan, &watch, story, tally, means);
    let told = storm.play();
    let Storm { began, deaths, stopped, sent, planted, was_full, torn, .. } = storm;
    Judge { world, plan, began, told, deaths, stopped, sent, planted, was_full, torn, tally }.judge();
    let seen = watch.end();
    tally.add_many("looks at all records", seen.looks);
    assert!(seen.faults.is_empty(), "a reader saw: {}", seen.faults.join("\n"));
    let open = open_files();
    tally.at_least("files that this process has open", open);
}

fn processes(world: &World) -> String {
    let line = |one: outlast_testkit::Proc| {
        format!("  {} < {} {} {}", one.pid, one.ppid, one.state, outlast_testkit::proc::command_line(one.pid))
    };
    world.processes().into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// How many descriptors this process has.
pub fn open_files() -> u64 {
    disk::entries(Path::new("/proc/self/fd")).len() as u64
}

/// How many descriptors a process has.
pub fn open_files_of(pid: i32) -> u64 {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |all| all.count() as u64)
}
