//! Cases of the kind "hang": a call that does not come back, or a command that keeps others waiting.

use crate::support::*;

#[test]
fn case_001_silent_child_holds_a_pipe() {
    let world = world();
    let told = shell_json(&world, &["--grace", "60s"], "sleep 300 </dev/null >/dev/null & echo done");
    told.ends("exited", 0);
    assert_eq!(told.output().trim_end(), "done");
    assert_eq!(told.survivors(), ["sleep"]);
    let sleeper = i32::try_from(told.int("/survivors/0/pid")).expect("a pid");
    assert!(proc::alive(sleeper) && proc::command_line(sleeper) == "sleep 300");
    world.stop(told.str("/id"));
    assert!(!proc::alive(sleeper));
    let after = world.status(told.str("/id"));
    after.ends("exited", 0);
    assert!(after.survivors().is_empty());
}

#[test]
fn case_002_chatty_child_holds_the_pipe() {
    let world = world();
    let told = shell_json(&world, &["--grace", "60s"], "(while :; do echo x; sleep .05; done) & echo fg");
    told.ends("exited", 0);
    assert!(told.output().lines().any(|line| line == "fg"), "{told:?}");
    let id = told.str("/id");
    let before = world.raw(id);
    world.wait_until("more was captured under the same id", || world.raw(id).len() > before.len() + 4);
    let offset = before.len().to_string();
    let rest = world.outlast(&["logs", id, "--raw", "--offset", &offset, "--bytes", "4"]).ok().stdout;
    assert_eq!(rest, world.raw(id)[before.len()..before.len() + 4]);
    world.stop(id);
    world.nothing_left_of(id);
    assert!(world.status(id).survivors().is_empty());
}

#[test]
fn case_003_child_that_left_the_group_holds_the_pipe() {
    let world = world();
    for stop_it in [true, false] {
        let told = shell_json(&world, &["--limit", "5s"], "setsid sleep 300 & echo go");
        told.ends("exited", 0);
        assert_eq!(told.output().trim_end(), "go");
        assert_eq!(told.survivors(), ["sleep"]);
        let escaped = i32::try_from(told.int("/survivors/0/pid")).expect("a pid");
        // The second one is left to the end of the session.
        if stop_it {
            world.stop(told.str("/id"));
        } else {
            world.outlast(&["session", "end", &world.session()]).ok();
        }
        assert!(!proc::alive(escaped), "the escaped process lives (stopped: {stop_it})");
    }
}

#[test]
fn case_009_leader_killed_from_outside() {
    let world = world();
    let id = bg_shell(&world, &[], "echo $$ >p; exec sleep 300");
    let leader = world.wait_pids("p")[0];
    let waiting = world.spawn(&["wait", &id, "--timeout", "50s"]);
    proc::signal(leader, Signal::KILL);
    waiting.wait().exits(137);
    let told = world.status(&id);
    told.ends("signaled", 137);
    assert_eq!(told.str("/end/signal"), "KILL");
    assert!(told.null("/end/by"));
}

#[test]
fn case_011_one_stuck_command_blocks_nobody() {
    let world = world();
    let stuck = world.bg(&["sleep", "300"]);
    let waiting = world.spawn(&["wait", &stuck]);
    let listing = world.call(&["run", "--", "ls", "/"]).within(AT_ONCE).run().ok();
    assert!(listing.text().contains("proc"));
    for verb in [&["ps"][..], &["status", &stuck], &["logs", &stuck]] {
        world.call(verb).within(AT_ONCE).run().ok();
    }
    let other = world.bg(&["sleep", "300"]);
    world.call(&["stop", &other]).within(AT_ONCE).run().ok();
    world.status(&stuck).runs();
    assert!(world.outlast(&["ps"]).ok().text().contains("sleep 300"));
    world.stop(&stuck);
    waiting.wait().exits(143);
}
