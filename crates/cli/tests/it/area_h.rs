//! Area H: joining identical launches, on the command line.

use crate::support::*;

/// Notes that it was started, says X, and ends once the file `go` is there.
const GATED: &str = "echo started >>starts; echo X; while [ ! -e go ]; do sleep .01; done; exit 3";

fn open_gate(world: &World) {
    std::fs::write(world.file("go"), "").expect("a file");
}

fn starts(world: &World) -> usize {
    world.wait_file("starts").lines().count()
}

/// Several calls of their own processes, of which all but the first joined when this returns.
fn joined_calls(world: &World, options: &[&str]) -> [outlast_testkit::Front; 3] {
    let words = [&["run", "--join"], options, &["-c", GATED]].concat();
    let first = world.spawn(&words);
    world.wait_file("starts");
    let rest = [world.spawn(&words), world.spawn(&words)];
    for one in &rest {
        one.wait_stderr("it joined", |text| text.contains("joined wrk_"));
    }
    let [second, third] = rest;
    [first, second, third]
}

#[test]
fn h2_three_calls_are_one_process() {
    let world = world();
    let calls = joined_calls(&world, &["--json"]);
    open_gate(&world);
    let told = calls.map(|call| call.wait().exits(3).json());
    for one in &told {
        assert_eq!((one.output(), one.str("/id"), one.int("/exit_code")), ("X\n", told[0].str("/id"), 3));
        assert!(one.null("/alias"), "nothing of it is on disk: {one:?}");
    }
    assert_eq!(told.map(|one| one.bool("/joined")), [false, true, true]);
    assert_eq!(starts(&world), 1);
}

#[test]
fn h2_each_call_streams_all_of_the_output() {
    let world = world();
    let calls = joined_calls(&world, &[]);
    for call in &calls {
        call.wait_stdout("the output", |text| text == "X\n");
    }
    open_gate(&world);
    for call in calls {
        assert_eq!(call.wait().exits(3).text(), "X\n");
    }
}

/// Covers: H8
#[test]
fn h2_without_being_asked_nothing_is_joined() {
    let world = world();
    let id = world.bg(&["--join", "-c", GATED]);
    for options in [&[][..], &["--unique"]] {
        let told = world.outlast(&[&["run", "-b", "--json"], options, &["-c", GATED]].concat()).ok().json();
        assert!(!told.bool("/joined") && told.str("/id") != id, "{told:?}");
    }
    world.outlast(&["run", "--join", "--unique", "true"]).exits(2);
    // What comes in is part of what is run.
    world.outlast(&["run", "--join", "--stdin", "cat"]).exits(2);
}

#[test]
fn h4_a_background_start_moves_what_it_joins_and_the_caller_goes_on() {
    let world = world();
    let call = world.spawn(&["run", "--join", "--json", "-c", GATED]);
    world.wait_file("starts");
    let told = world.outlast(&["run", "--join", "-b", "--json", "-c", GATED]).ok().json();
    assert!(told.bool("/joined") && told.bool("/demoted"), "{told:?}");
    let listed = world.list();
    assert_eq!(ids(&listed), [told.str("/id")]);
    open_gate(&world);
    let ended = call.wait().exits(3).json();
    assert_eq!((ended.str("/id"), ended.output(), ended.bool("/demoted")), (told.str("/id"), "X\n", true));
    // The call that showed the end told it, to its own consumer.
    assert!(world.acked("model").is_empty());
    assert_eq!(ids(&world.acked("human")), [told.str("/id")]);
}

#[test]
fn h7_a_stop_that_others_would_notice_needs_force() {
    let world = world();
    let id = world.bg(&["--join", "-c", GATED]);
    world.wait_file("starts");
    let mut calls: Vec<_> = (0..2).map(|_| world.spawn(&["run", "--join", "--json", "-c", GATED])).collect();
    for call in &calls {
        call.wait_stderr("it joined", |text| text.contains(&id));
    }
    let refused = world.outlast(&["stop", &id]).exits(4);
    assert!(refused.err().contains("2 others") && refused.err().contains("--force"), "{refused:?}");
    assert_eq!(world.status(&id).str("/phase"), "running");
    world.outlast(&["stop", &id, "--force"]).ok();
    for call in calls.drain(..) {
        call.wait().exits(143).json().ends("stopped", 143);
    }
}

/// Covers: H7
#[test]
fn h7_an_interrupt_of_one_caller_is_none_for_the_others() {
    let world = world();
    let mut calls: Vec<_> = (0..2)
        .map(|at| {
            let call = world.spawn(&["run", "--join", "--grace", "60s", "-c", GATED]);
            if at == 0 {
                world.wait_file("starts");
            } else {
                call.wait_stderr("it joined", |text| text.contains("joined"));
            }
            call
        })
        .collect();
    calls[0].signal(Signal::INT);
    let left = calls.remove(0).wait().exits(130);
    assert!(left.err().contains("still wait for it: 1"), "{left:?}");
    open_gate(&world);
    calls.remove(0).wait().exits(3);
    assert_eq!(starts(&world), 1);
}

#[test]
fn h2_what_outlived_its_keeper_is_joined_all_the_same() {
    let world = world();
    let id = world.bg(&["--join", "-c", &format!("echo $PPID $$ >family; {GATED}")]);
    let (_, _, keeper) = family(&world, "family");
    proc::signal(keeper, Signal::KILL);
    assert!(proc::wait_gone(keeper, AT_ONCE));
    let words = ["run", "-b", "--json", "--join", "-c", &format!("echo $PPID $$ >family; {GATED}")];
    let told = world.outlast(&words).ok().json();
    assert!(told.bool("/joined") && told.str("/id") == id, "{told:?}");
    open_gate(&world);
    world.wait(&id).ends("exited", 3);
    assert_eq!(starts(&world), 1);
}
