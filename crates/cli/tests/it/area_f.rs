//! Area F: stop.

use std::time::Instant;

use crate::support::*;

#[test]
fn f1_stop_ends_the_whole_tree() {
    let world = world();
    let rows = [
        ("sleep 300 & echo >p; wait", false),
        ("(trap '' TERM; echo >p; while :; do sleep .1; done) & sleep 300", true),
        ("setsid sh -c 'trap \"\" TERM; echo >p; while :; do sleep .1; done' & sleep 300", true),
    ];
    for (line, ignores) in rows {
        let _old = std::fs::remove_file(world.file("p"));
        let id = bg_shell(&world, &[], line);
        world.wait_file("p");
        world.outlast(&["stop", &id, "--grace", "500ms"]).ok();
        world.nothing_left_of(&id);
        let told = world.status(&id);
        assert_eq!(told.str("/end/kind"), "stopped", "{ignores}: {told:?}");
        assert!([143, 137].contains(&told.int("/exit_code")) && told.null("/end/detail"), "{told:?}");
    }
}

#[test]
fn f1_another_signal_can_take_the_place_of_term() {
    let world = world();
    let id = bg_shell(&world, &[], "trap 'echo got INT; exit 3' INT; echo >p; while :; do sleep .05; done");
    world.wait_file("p");
    world.outlast(&["stop", &id, "--signal", "INT"]).ok();
    let told = world.status(&id);
    told.ends("stopped", 3);
    assert!(told.output().contains("got INT"));
    world.outlast(&["stop", &id, "--signal", "NONSENSE"]).exits(2);
}

#[test]
fn f2_ignored_term_leads_to_kill() {
    let world = world();
    let id = bg_shell(&world, &[], "trap '' TERM; echo >p; while :; do sleep .05; done");
    world.wait_file("p");
    let start = Instant::now();
    let stopped = world.outlast(&["stop", &id, "--grace", "700ms"]).ok();
    assert!(start.elapsed() >= Duration::from_millis(700), "KILL before the grace was over");
    let told = world.status(&id);
    told.ends("stopped", 137);
    assert_eq!(told.str("/end/signal"), "KILL");
    assert!(
        stopped.text().contains("TERM") && stopped.text().contains("KILL"),
        "two signals in the answer: {stopped:?}"
    );
}

#[test]
fn f3_stop_of_an_ended_command_ends_its_survivors() {
    let world = world();
    let told = world.outlast(&["run", "--json", "-c", "sleep 300 & exit 7"]).exits(7).json();
    let pid = told.int("/survivors/0/pid");
    let id = told.str("/id");
    let stopped = world.stop(id);
    assert!(stopped.text().contains(&pid.to_string()) || stopped.text().contains("sleep"), "{stopped:?}");
    let after = world.status(id);
    after.ends("exited", 7);
    assert!(after.survivors().is_empty());
    world.nothing_left_of(id);
    let unknown = world.outlast(&["stop", "wrk_00000000000070008000000000000000"]).exits(3);
    assert!(unknown.err().contains("unknown"), "{unknown:?}");
}

#[test]
fn f4_signals_never_reach_a_stranger() {
    let world = world();
    let canary = world.sleeper();
    for round in 0..30u32 {
        let id = bg_shell(&world, &[], &format!("sleep 0.0{}", round % 10));
        let stops = [world.spawn(&["stop", &id]), world.spawn(&["stop", &id, "--grace", "0s"])];
        for stop in stops {
            stop.wait().ok();
        }
        assert_eq!(world.status(&id).str("/phase"), "ended");
    }
    assert!(canary.lives(), "the canary was hit");
}

/// Covers: F6, K11, D9
#[test]
fn f6_accepted_stop_shows_at_once() {
    let world = world();
    let id = bg_shell(&world, &[], "trap 'echo >termed' TERM; echo >p; while :; do sleep .05; done");
    world.wait_file("p");
    let stopping = world.spawn(&["stop", &id, "--grace", "2s"]);
    world.wait_file("termed");
    assert_eq!(world.status(&id).str("/phase"), "stopping");
    let listed = world.outlast(&["ps", "--json"]).ok().json();
    assert_eq!(listed.each("/commands", "/phase"), ["stopping"]);
    assert!(world.outlast(&["ps"]).ok().text().contains("stopping"));
    let again = world.outlast(&["stop", &id]);
    assert!(matches!(again.code, Some(0 | 1)) && !again.text().contains("running"), "{again:?}");
    stopping.wait().ok();
    world.status(&id).ends("stopped", 137);
    assert!(world.outlast(&["ps", "--json"]).ok().json().items("/commands").is_empty());
}

#[test]
fn f7_stop_of_a_known_id_is_never_an_error() {
    let world = world();
    let running = world.bg(&["sleep", "50"]);
    let first = world.stop(&running);
    assert!(!first.text().contains("running"), "can be taken for a status poll: {first:?}");
    world.stop(&running);
    let ended = bg_shell(&world, &[], "exit 7");
    world.wait(&ended);
    for _ in 0..2 {
        let told = world.stop(&ended);
        assert!(told.text().contains("ended") && told.text().contains('7'), "{told:?}");
    }
    let many = world.outlast(&["stop", &running, "w99"]).exits(3);
    assert!(many.err().contains("w99"), "{many:?}");
}

#[test]
fn f8_output_of_a_stopped_command_is_its_own() {
    let world = world();
    let id = bg_shell(&world, &[], "echo mine; echo >p; exec sleep 300");
    world.wait_file("p");
    world.stop(&id);
    assert_eq!(world.status(&id).output(), "mine\n");
    assert_eq!(world.raw(&id), b"mine\n");
}

#[test]
fn f10_stop_works_though_a_grandchild_holds_the_pipes() {
    let world = world();
    for line in ["(sleep 300 &) ; sleep 300", "nohup sleep 300 & sleep 300", "(setsid sleep 300 &); sleep 300"] {
        let id = bg_shell(&world, &[], line);
        world.wait_until("both sleep", || world.of_command(&id).iter().filter(|one| one.name == "sleep").count() == 2);
        world.call(&["stop", &id]).within(Duration::from_secs(10)).run().ok();
        world.nothing_left_of(&id);
        assert_eq!(world.status(&id).str("/end/kind"), "stopped");
    }
}

#[test]
fn f11_stop_while_output_drains() {
    let world = world();
    let id = bg_shell(&world, &[], "(while :; do echo x; sleep .05; done) & echo >p; exit 7");
    world.wait_file("p");
    world.call(&["stop", &id]).within(Duration::from_secs(10)).run().ok();
    world.nothing_left_of(&id);
    let told = world.status(&id);
    assert_eq!(told.str("/phase"), "ended");
    // The stop may have come before the leader was reaped; its real code is kept either way.
    assert!(told.int("/exit_code") == 7 || told.str("/end/kind") == "stopped", "{told:?}");
    assert!(told.survivors().is_empty());
}

#[test]
fn f12_command_that_waits_for_input_can_be_stopped() {
    let world = world();
    for (options, line) in [(&["--stdin"][..], "exec cat"), (&["--pty"], "exec cat"), (&["--pty"], "read -p '? ' x")] {
        let id = world.bg(&[options, &["--", "bash", "-c", line]].concat());
        if line.starts_with("read") {
            world.wait_until("the prompt is visible", || world.raw(&id) == b"? ");
        }
        world.stop(&id);
        world.status(&id).ends("stopped", 143);
        world.nothing_left_of(&id);
    }
}
