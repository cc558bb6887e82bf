//! Whole lives of commands, and of what is done about them: what is called, and what must hold afterwards.

use super::points::Stage;
use super::rules::{self, Act};
use super::shapes::{SHAPES, Shape};
use super::victims::{Dead, kill_marked};
use crate::support::*;

/// One life.
pub struct Life {
    pub name: &'static str,
    pub walk: Walk,
    /// Plays and judges it; [`Stage::curtain`] falls between.
    pub play: fn(&Stage),
}

/// Which of its steps a life is ended at.
pub enum Walk {
    /// All.
    Whole,
    /// All from the first of this name on, and before it those that no life above has.
    From(&'static str),
    /// Those that no life above has.
    New,
}

/// From here on the ends of commands differ.
const REAPED: Walk = Walk::From("supervisor reap child");

/// All lives; the first ones are walked whole.
pub const LIVES: &[Life] = &[
    Life { name: "demoted", walk: Walk::Whole, play: |stage| run(stage, SHORT, &["--grace", "20ms"]) },
    Life { name: "foreground", walk: Walk::Whole, play: |stage| run(stage, FAILS, &[]) },
    Life { name: "background", walk: Walk::From("supervisor write aliases"), play: |stage| run(stage, SHORT, &["-b"]) },
    Life { name: "terminal", walk: REAPED, play: |stage| run(stage, TERMINAL, &["-b"]) },
    Life { name: "loud", walk: REAPED, play: |stage| run(stage, LOUD, &[]) },
    Life { name: "capped", walk: REAPED, play: |stage| run(stage, CAPPED, &["-b"]) },
    Life {
        name: "stopped",
        walk: Walk::From("supervisor signal-group TERM"),
        play: |stage| run(stage, ENDLESS, &["-b"]),
    },
    Life { name: "survived in the foreground", walk: REAPED, play: |stage| run(stage, DAEMON, &[]) },
    Life { name: "survived in the background", walk: REAPED, play: |stage| run(stage, DAEMON, &["-b"]) },
    Life { name: "bereft of its supervisor", walk: Walk::From("keeper reap child"), play: bereft },
    Life { name: "one of three", walk: Walk::New, play: three },
    Life { name: "joined", walk: Walk::New, play: joined },
];

pub const FAILS: &Shape = &SHAPES[1];
pub const SHORT: &Shape = &SHAPES[2];
const LOUD: &Shape = &SHAPES[3];
pub const ENDLESS: &Shape = &SHAPES[4];
const DAEMON: &Shape = &SHAPES[7];
const TERMINAL: &Shape = &SHAPES[8];
/// More output than is kept.
const CAPPED: &Shape = &Shape {
    name: "capped",
    options: &["--max-log", "4KiB"],
    line: "seq 1 60000; exit 5",
    code: Some(5),
    output: None,
};

/// One command, judged by all rules.
fn run(stage: &Stage, shape: &'static Shape, options: &[&str]) {
    let act = act(stage, "target", shape, options);
    judge(stage, &[act]);
}

/// A call of `run` in which the step may kill.
pub fn act(stage: &Stage, label: &'static str, shape: &'static Shape, options: &[&str]) -> Act {
    let told = stage.call(&Act::words(label, shape, options));
    Act { label, shape, dead: dead(stage, &told), told }
}

/// Who may have died over a call.
pub fn dead(stage: &Stage, told: &Output) -> Dead {
    assert!(told.code.is_some() || stage.kills("front"), "nobody was to kill the front end: {told:?}");
    // Who died in between left nobody to start the keeper.
    let keeper = stage.kills("keeper") || stage.kills("between");
    Dead { front: told.code.is_none(), keeper, supervisor: stage.kills("supervisor"), leader: false }
}

pub fn judge(stage: &Stage, acts: &[Act]) {
    let ended = rules::judge_acts(&stage.world, acts);
    stage.curtain();
    rules::judge_rest(&stage.world, &ended);
}

/// The id that a call has told.
pub fn id_of(told: &Output) -> Option<String> {
    serde_json::from_str(&told.text()).ok().map(|told| Json(told).str("/id").to_owned())
}

/// Its supervisor is killed in any case, and the keeper finishes its record.
fn bereft(stage: &Stage) {
    let mut act = act(stage, "target", ENDLESS, &["-b"]);
    if let Some(id) = id_of(&act.told) {
        let status = stage.world.record(&id, "status.json");
        act.dead.supervisor |= kill_marked(&stage.world, &status, "/supervisor");
    }
    judge(stage, &[act]);
}

/// The supervisor of the second is used again for the third.
fn three(stage: &Stage) {
    let first = act(stage, "first", ENDLESS, &["-b"]);
    let second = act(stage, "second", FAILS, &[]);
    let third = act(stage, "third", SHORT, &["--grace", "20ms"]);
    judge(stage, &[first, second, third]);
}

/// Two starts of one command.
fn joined(stage: &Stage) {
    let start = || stage.call(&["run", "-b", "--json", "--join", "sleep", "300"]);
    let (first, second) = (start(), start());
    stage.curtain();
    let world = &stage.world;
    let ids: Vec<String> = [&first, &second].into_iter().filter_map(id_of).collect();
    for told in [&first, &second] {
        assert!(told.code == Some(0) || told.code.is_none() && stage.kills("front"), "{told:?}");
    }
    if !stage.kills("front") && !stage.kills("supervisor") {
        // Without its keeper the command runs on and is joined.
        assert_eq!(ids[0], ids[1]);
        assert!(second.json().bool("/joined"), "{second:?}");
    }
    for id in &ids {
        assert!(world.of_command(id).len() <= 1, "it runs twice");
    }
    world.outlast(&["stop", "--all"]);
    for one in world.list() {
        let end = world.wait(one.str("/id"));
        let killed = stage.kills("supervisor") && end.str("/end/kind") == "stopped";
        assert!(killed || end.str("/end/kind") == "stopped", "{end:?}");
    }
    rules::judge_rest(world, &world.list());
}
