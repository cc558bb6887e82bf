//! Random commands, and SIGKILL for random ones of those who know about them, in every order, at random
//! moments.
//!
//! `OUTLAST_KILL_ROUNDS` says how many rounds all of these tests make together, `OUTLAST_KILL_SEED` from
//! which seed, and `OUTLAST_KILL_ONLY` plays one round alone.

use super::rules::{self, Act};
use super::shapes::{SHAPES, Shape};
use super::victims::{Dead, VICTIMS, Victim, kill_exact};
use crate::support::*;

/// Rounds of all tests together, unless the environment says otherwise.
const ROUNDS: u64 = 120;
/// The tests that share them.
const SHARES: u64 = 4;

#[test]
fn random_kills_first_share() {
    play_share(0);
}

#[test]
fn random_kills_second_share() {
    play_share(1);
}

#[test]
fn random_kills_third_share() {
    play_share(2);
}

#[test]
fn random_kills_fourth_share() {
    play_share(3);
}

/// A number that a person set for a longer or a repeated run.
#[expect(clippy::disallowed_methods, reason = "the person who runs a test has no other way to it")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Rounds of all random kills together.
pub fn rounds() -> u64 {
    setting("OUTLAST_KILL_ROUNDS").unwrap_or(ROUNDS)
}

/// What the rounds are made from.
pub fn seed() -> u64 {
    let by_chance = || std::time::UNIX_EPOCH.elapsed().map_or(1, |time| u64::from(time.subsec_nanos()));
    setting("OUTLAST_KILL_SEED").unwrap_or_else(by_chance)
}

fn play_share(share: u64) {
    let (rounds, seed) = (rounds(), seed());
    let orders = orders();
    let only = setting("OUTLAST_KILL_ONLY");
    for round in (0..rounds).filter(|round| round % SHARES == share && only.is_none_or(|only| only == *round)) {
        let order = &orders[usize::try_from(round).expect("small") % orders.len()];
        let mut scene = Scene(format!("OUTLAST_KILL_SEED={seed} OUTLAST_KILL_ONLY={round} {order:?}"));
        play(order, &mut Dice::new(seed, round), &mut scene);
    }
}

/// Every order of every non-empty set of victims: 64.
fn orders() -> Vec<Vec<Victim>> {
    let mut all: Vec<Vec<Victim>> = vec![Vec::new()];
    let mut from = 0;
    while from < all.len() {
        let base = all[from].clone();
        all.extend(VICTIMS.iter().filter(|one| !base.contains(one)).map(|one| [base.as_slice(), &[*one]].concat()));
        from += 1;
    }
    all.split_off(1)
}

#[test]
fn orders_are_all_of_them() {
    let orders = orders();
    assert_eq!(orders.len(), 4 + 12 + 24 + 24);
    assert!(orders.iter().enumerate().all(|(at, one)| !orders[..at].contains(one)));
}

/// One round: a command, maybe another beside it, and the kills.
fn play(order: &[Victim], dice: &mut Dice, scene: &mut Scene) {
    let shape = &SHAPES[dice.below(SHAPES.len() as u64) as usize];
    let endless = shape.code.is_none();
    let mode: &[&str] = match dice.below(if endless { 2 } else { 3 }) {
        0 => &["-b"],
        1 => &["--grace", "20ms"],
        _ => &[],
    };
    let beside = dice.below(2) == 0;
    let span = [3_000, 30_000, 120_000][dice.below(3) as usize];
    let moment = dice.below(span);
    scene.0 += &format!(" {} {mode:?} beside {beside} after {moment} us", shape.name);

    let world = world();
    let mut acts = Vec::new();
    let mut spared = Vec::new();
    if beside {
        let told = world.outlast(&Act::words("beside", &SHAPES[4], &["-b"])).ok();
        spared.push(world.record(told.json().str("/id"), "status.json").int("/supervisor/pid"));
        acts.push(act("beside", &SHAPES[4], told));
    }
    let front = world.spawn(&Act::words("target", shape, mode));
    pass(moment);
    let mut dead = Dead::default();
    let mut front = Some(front);
    let mut told = None;
    for victim in order {
        if *victim == Victim::Front {
            let mut ending = front.take().expect("the front end is killed once");
            dead.front = !ending.ended();
            if dead.front {
                ending.signal(Signal::KILL);
            }
            told = Some(ending.wait_killed());
        } else if kill(&world, *victim, &spared) {
            dead.add(*victim);
        }
        pass(dice.below(2_000));
    }
    let told = told.unwrap_or_else(|| front.take().expect("it was not killed").wait());
    scene.0 += &format!(" killed {dead:?}");
    for bystander in &mut acts {
        bystander.dead.keeper = dead.keeper;
    }
    acts.push(Act { dead, ..act("target", shape, told) });
    rules::judge(&world, &acts);
}

fn act(label: &'static str, shape: &'static Shape, told: Output) -> Act {
    Act { label, shape, dead: Dead::default(), told }
}

/// Kills one of those who know about the target; those in `spared` watch another command.
fn kill(world: &World, victim: Victim, spared: &[i64]) -> bool {
    let cast = Cast::of(world);
    let is_spared = |pid: i32| spared.contains(&i64::from(pid));
    let found = match victim {
        Victim::Front => None,
        Victim::Keeper => cast.keepers.first(),
        Victim::Supervisor => cast.supervisors.iter().find(|one| !is_spared(one.pid)),
        Victim::Leader => cast.leaders.iter().find(|one| !is_spared(one.ppid)),
    };
    found.is_some_and(|one| kill_exact(world, one))
}

/// Lets a random time pass: the moment of a kill is what these tests try out, nothing waits for it.
#[expect(clippy::disallowed_methods, reason = "a random moment is no event that could be waited for")]
pub fn pass(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}

/// Numbers that look random and can be had again (xorshift, Marsaglia 2003).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64, round: u64) -> Dice {
        let mut dice = Dice((seed ^ round.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1);
        // Seeds that differ in few bits begin alike.
        for _ in 0..16 {
            dice.below(2);
        }
        dice
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// What is being played, printed when the round fails.
pub struct Scene(pub String);

impl Drop for Scene {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this round: {}", self.0);
        }
    }
}
