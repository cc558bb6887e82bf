//! A whole life of a command for each named crash point, with SIGKILL at that point.

use std::path::PathBuf;

use super::random::Scene;
use super::rules::{self, Act};
use super::shapes::{SHAPES, Shape};
use super::victims::{Dead, kill_marked};
use crate::support::*;

/// The places, as the source of the crate that has them lists them.
fn points() -> Vec<&'static str> {
    let source = include_str!("../../../../host/src/crash.rs");
    let list = source.split("POINTS: &[&str] = &[").nth(1).expect("the list of crash points");
    let list = list.split("];").next().expect("the end of the list");
    list.split('"').skip(1).step_by(2).collect()
}

/// A world in which one point kills once.
struct Stage {
    world: World,
    point: &'static str,
    mark: PathBuf,
}

impl Stage {
    fn new(point: &'static str) -> Stage {
        let world = world();
        let mark = world.root().join("crashed");
        Stage { world, point, mark }
    }

    /// A call whose keeper, if it starts one, dies at the point, as do the supervisors of that keeper.
    fn call(&self, words: &[String]) -> Output {
        let call = self.world.call(words).env("OUTLAST_CRASH_AT", self.point).env("OUTLAST_CRASH_MARK", &self.mark);
        call.within(Duration::from_secs(30)).run()
    }

    fn run(&self, label: &'static str, shape: &'static Shape, options: &[&str]) -> Act {
        let told = self.call(&Act::words(label, shape, options));
        Act { label, shape, dead: Dead::default(), told }
    }

    fn crashed(&self) -> bool {
        self.mark.exists()
    }
}

/// Plays `life` once for each of its points; each must have killed somebody by its end.
fn play(points: &[&'static str], life: impl Fn(&Stage) -> Vec<Act>) {
    for point in points {
        let stage = Stage::new(point);
        let mut acts = life(&stage);
        for act in &mut acts {
            act.dead.keeper |= point.starts_with("keeper.");
            act.dead.supervisor |= point.starts_with("supervisor.");
        }
        let told = format!("at {point}: {:#?}", acts.iter().map(|act| &act.told).collect::<Vec<_>>());
        let scene = Scene(told);
        rules::judge(&stage.world, &acts);
        stage.world.wait_until(&format!("{point} has killed"), || stage.crashed());
        drop(scene);
    }
}

const FAILS: &Shape = &SHAPES[1];
const SHORT: &Shape = &SHAPES[2];
const LOUD: &Shape = &SHAPES[3];
const ENDLESS: &Shape = &SHAPES[4];
const DAEMON: &Shape = &SHAPES[7];
const TERMINAL: &Shape = &SHAPES[8];

/// Places that every command comes by until its leader runs.
const BIRTH: [&str; 9] = [
    "keeper.born",
    "keeper.locked",
    "keeper.listening",
    "keeper.forked",
    "supervisor.accepting",
    "supervisor.accepted",
    "supervisor.begun",
    "supervisor.spawned",
    "supervisor.started",
];
/// Places at which its records come to be.
const RECORDS: [&str; 5] =
    ["supervisor.built", "supervisor.logged", "supervisor.published", "supervisor.traced", "supervisor.demoted"];
/// Places that it comes by from the reap on.
const END: [&str; 6] = [
    "supervisor.reaped",
    "supervisor.drained",
    "supervisor.exit-writing",
    "supervisor.exit-written",
    "supervisor.telling",
    "supervisor.told",
];
/// Places at which its log is closed, where it has one.
const CLOSE: [&str; 2] = ["supervisor.closing", "supervisor.closed"];
/// Places that a start comes by that joins an identical command.
const JOIN: [&str; 2] = ["keeper.joining", "supervisor.joining"];
/// Places of retention, which area_i plays.
const RETAIN: [&str; 2] = ["retain.recorded", "retain.hidden"];
/// Places of a keeper that finishes the record of a dead supervisor.
const VACANT: [&str; 3] = ["keeper.bereft", "keeper.finishing", "keeper.finished"];

#[test]
fn every_crash_point_of_a_life_in_the_foreground() {
    play(&[&BIRTH[..], &END, &["keeper.leaving"]].concat(), |stage| vec![stage.run("target", FAILS, &[])]);
}

#[test]
fn every_crash_point_of_a_life_at_a_terminal() {
    play(&[&BIRTH[6..], &END].concat(), |stage| vec![stage.run("target", TERMINAL, &[])]);
    play(&[&RECORDS[..], &END, &CLOSE].concat(), |stage| vec![stage.run("target", TERMINAL, &["-b"])]);
}

#[test]
fn every_crash_point_of_a_life_that_is_demoted() {
    let points = [&RECORDS[..], &END, &CLOSE, &["keeper.leaving"]].concat();
    play(&points, |stage| vec![stage.run("target", SHORT, &["--grace", "20ms"])]);
}

#[test]
fn every_crash_point_of_a_life_in_the_background() {
    let points = [&BIRTH[..], &RECORDS, &END, &CLOSE].concat();
    play(&points, |stage| vec![stage.run("target", SHORT, &["-b"])]);
}

#[test]
fn every_crash_point_of_a_life_that_overflows() {
    let points = [&RECORDS[..3], &END, &CLOSE].concat();
    play(&points, |stage| vec![stage.run("target", LOUD, &[])]);
}

#[test]
fn every_crash_point_of_a_life_that_is_stopped() {
    let points = [&["supervisor.signalling"], &END[..], &CLOSE].concat();
    play(&points, |stage| vec![stage.run("target", ENDLESS, &["-b"])]);
}

#[test]
fn every_crash_point_of_a_life_with_survivors() {
    let points = [&RECORDS[..3], &END].concat();
    play(&points, |stage| vec![stage.run("target", DAEMON, &[])]);
    play(&points, |stage| vec![stage.run("target", DAEMON, &["-b"])]);
}

#[test]
fn every_crash_point_of_a_keeper_whose_supervisor_was_killed() {
    for options in [&["-b"][..], &["--grace", "1ms"]] {
        play(&VACANT, |stage| {
            let mut act = stage.run("target", ENDLESS, options);
            let id = act.told.json().str("/id").to_owned();
            let status = stage.world.record(&id, "status.json");
            act.dead.supervisor = kill_marked(&stage.world, &status, "/supervisor");
            assert!(act.dead.supervisor, "its supervisor was there");
            vec![act]
        });
    }
}

#[test]
fn every_crash_point_of_a_supervisor_that_is_used_again() {
    play(&["keeper.assigning"], |stage| {
        let first = stage.run("first", ENDLESS, &["-b"]);
        let second = stage.run("second", FAILS, &[]);
        let third = stage.run("third", SHORT, &["--grace", "20ms"]);
        vec![first, second, third]
    });
}

#[test]
fn every_crash_point_of_a_start_that_joins() {
    for point in JOIN {
        let stage = Stage::new(point);
        let start = || stage.call(&["run", "-b", "--json", "--join", "sleep", "300"].map(str::to_owned)).ok().json();
        let (first, second) = (start(), start());
        assert!(stage.crashed(), "{point} has killed");
        // Without its keeper the command runs on and is joined; without its supervisor it is over, and another starts.
        let joins = point == "keeper.joining";
        assert_eq!((second.bool("/joined"), second.str("/id") == first.str("/id")), (joins, joins), "{second:?}");
        assert_eq!(stage.world.of_command(second.str("/id")).len(), 1);
        stage.world.stop(second.str("/id"));
        assert_eq!(stage.world.wait(first.str("/id")).str("/end/kind"), "stopped");
    }
}

#[test]
fn every_crash_point_of_a_session_end() {
    let points = [&["keeper.closing", "keeper.closed", "keeper.leaving"], &END[..], &CLOSE].concat();
    for point in points {
        let stage = Stage::new(point);
        let mut act = stage.run("target", ENDLESS, &["-b"]);
        act.dead.keeper = point.starts_with("keeper.");
        act.dead.supervisor = point.starts_with("supervisor.");
        let _scene = Scene(format!("at {point}: {:#?}", act.told));
        rules::judge_end(&stage.world, &act);
        stage.world.wait_until(&format!("{point} has killed"), || stage.crashed());
    }
}

#[test]
fn every_crash_point_is_played() {
    let played = [
        &BIRTH[..],
        &RECORDS,
        &END,
        &CLOSE,
        &VACANT,
        &JOIN,
        &RETAIN,
        &crate::bind::MOVE,
        &["supervisor.signalling", "keeper.assigning", "keeper.closing", "keeper.closed", "keeper.leaving"],
    ]
    .concat();
    let missing: Vec<&str> = points().into_iter().filter(|point| !played.contains(point)).collect();
    assert!(missing.is_empty(), "no life comes by {missing:?}");
}

#[test]
fn binary_under_test_has_crash_points_and_an_installed_one_has_not() {
    let stage = Stage::new("supervisor.exit-written");
    let told = stage.call(&["run", "-b", "--json", "true"].map(str::to_owned));
    stage.world.wait_until("the point has killed", || stage.crashed());
    stage.world.wait(told.ok().json().str("/id")).ends("exited", 0);
    // The features of a table count for what it is the table of: tests here, everything elsewhere.
    let manifests = [
        include_str!("../../../Cargo.toml"),
        include_str!("../../../../supervisor/Cargo.toml"),
        include_str!("../../../../host/Cargo.toml"),
        include_str!("../../../../outlast/Cargo.toml"),
        include_str!("../../../../../Cargo.toml"),
    ];
    for manifest in manifests {
        let mut table = "";
        for line in manifest.lines().filter(|line| !line.trim_start().starts_with('#')) {
            table = if line.starts_with('[') { line } else { table };
            let turned_on = line.contains("crash-points") && !matches!(table, "[dev-dependencies]" | "[features]");
            assert!(!turned_on && !line.starts_with("default ="), "{table} {line}");
        }
    }
}
