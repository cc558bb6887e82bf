//! Cases of the kind "survivors": what a command started and what becomes of it.

use std::fs;

use crate::support::*;

#[test]
fn case_014_limit_ends_the_whole_pipeline() {
    let world = world();
    let id = bg_shell(&world, &["--limit", "300ms"], "sleep 9999 | cat");
    let told = world.outlast(&["wait", &id, "--json"]).exits(124).json();
    world.nothing_left_of(&id);
    told.ends("timed_out", 124).detail("wall");
    assert!(told.survivors().is_empty());
}

#[test]
fn case_017_nothing_works_on_after_a_stop() {
    let world = world();
    let id = bg_shell(&world, &[], "while :; do timeout 99 sleep .1; echo round >>n; done");
    world.wait_file("n");
    world.stop(&id);
    world.nothing_left_of(&id);
    let at_stop = fs::read_to_string(world.file("n")).expect("n is there");
    world.outlast(&["run", "--", "sleep", "0.5"]).ok();
    assert_eq!(fs::read_to_string(world.file("n")).expect("n is there"), at_stop);
}

#[test]
fn case_018_limits_take_the_one_stop_path() {
    let world = world();
    let hog = "sleep 9999 | python3 -c 'x = b\"x\" * (200 << 20); import time; time.sleep(99)'";
    let storm = "for i in 1 2 3 4 5 6; do sleep 9999 & done; wait";
    let rows = [
        ("--limit", "300ms", "sleep 9999 | cat", "timed_out", "wall"),
        ("--idle-limit", "300ms", "sleep 9999 | cat", "timed_out", "idle"),
        ("--memory", "48MiB", hog, "limit", "memory"),
        ("--pids", "3", storm, "limit", "pids"),
    ];
    for (option, value, line, kind, detail) in rows {
        let id = bg_shell(&world, &[option, value], line);
        let told = world.wait(&id);
        world.nothing_left_of(&id);
        assert_eq!((told.str("/end/kind"), told.str("/end/detail")), (kind, detail), "{option}: {told:?}");
    }
}

#[test]
fn case_018_stops_take_the_one_stop_path() {
    let world = world();
    let one = bg_shell(&world, &[], "sleep 9999 | cat");
    let two = bg_shell(&world, &[], "sleep 9999 | cat");
    world.stop(&one);
    world.nothing_left_of(&one);
    world.outlast(&["stop", "--all"]).ok();
    world.nothing_left_of(&two);
    for id in [one, two] {
        assert_eq!(world.status(&id).str("/end/kind"), "stopped");
    }
}

#[test]
fn case_018_session_ends_take_the_one_stop_path() {
    let world = world();
    for kill_anchor in [false, true] {
        let session = world.new_session(&[]);
        let start = world.call(&["run", "-b", "--json", "-c", "sleep 9999 | cat"]).session(&session).run().ok();
        let id = start.json().str("/id").to_owned();
        if kill_anchor {
            world.kill_anchor(&session, Signal::KILL);
            world.wait_until("the command has ended", || world.of_command(&id).is_empty());
        } else {
            world.outlast(&["session", "end", &session]).ok();
        }
        world.nothing_left_of(&id);
        let told = world.wait(&id);
        assert_eq!(told.str("/end/kind"), "abandoned", "{told:?}");
    }
}

#[test]
fn case_019_servers_do_not_outlive_the_session() {
    let world = world();
    for how in ["end", "TERM", "KILL"] {
        let session = world.new_session(&[]);
        let start = |words: &[&str]| {
            let words = [&["run", "-b", "--json"], words].concat();
            world.call(&words).session(&session).run().ok().json().str("/id").to_owned()
        };
        let started = [start(&["sleep", "9999"]), start(&["-c", "setsid sleep 9999"])];
        match how {
            "end" => drop(world.outlast(&["session", "end", &session]).ok()),
            "TERM" => world.kill_anchor(&session, Signal::TERM),
            _ => world.kill_anchor(&session, Signal::KILL),
        }
        for id in started {
            world.wait_until("the server is gone", || world.of_command(&id).is_empty());
            let told = world.wait(&id);
            assert_eq!(told.str("/end/kind"), "abandoned", "{how}: {told:?}");
        }
    }
}

#[test]
fn case_021_interrupted_wait_says_what_runs_on() {
    let world = world();
    let id = bg_shell(&world, &[], "echo $$ >p; exec sleep 600");
    let waiting = world.spawn(&["wait", &id]);
    world.wait_until("wait handles INT", || proc::catches(waiting.pid(), Signal::INT));
    waiting.signal(Signal::INT);
    let told = waiting.wait().exits(130);
    let lines: Vec<String> = told.err().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 1, "{told:?}");
    assert!(lines[0].contains(&id) && lines[0].contains("running"), "{told:?}");
    world.status(&id).runs();
    proc::signal(world.wait_pids("p")[0], Signal::KILL);
    world.wait_until("it has ended", || world.status(&id).str("/phase") == "ended");
    assert_eq!(ids(&world.acked("model")), [id]);
}

#[test]
fn case_023_term_comes_before_kill() {
    let world = world();
    let line = "trap 'rm -f lk; exit' TERM; echo >lk; while :; do sleep .1; done";
    let id = bg_shell(&world, &[], line);
    world.wait_file("lk");
    world.stop(&id);
    assert!(!world.file("lk").exists(), "the command could not clean up");
    let id = bg_shell(&world, &[], line);
    world.wait_file("lk");
    world.outlast(&["stop", &id, "--grace", "0s"]).ok();
    assert!(world.file("lk").exists(), "a grace of 0 is KILL at once");
    assert_eq!(world.status(&id).str("/end/signal"), "KILL");
}

#[test]
fn case_025_signal_to_its_group_hits_only_itself() {
    let world = world();
    let neighbour = world.bg(&["sleep", "300"]);
    let told = shell_json(&world, &[], "kill -TERM 0; sleep 5");
    told.ends("signaled", 143);
    assert_eq!(told.str("/end/signal"), "TERM");
    assert!(told.null("/end/by"));
    world.status(&neighbour).runs();
}

#[test]
fn case_028_new_escapees_while_it_is_killed() {
    let world = world();
    let line = "while :; do setsid sh -c 'sleep 99' & sleep .02; done";
    let id = bg_shell(&world, &[], line);
    world.wait_until("many have escaped", || world.of_command(&id).len() > 20);
    world.stop(&id);
    world.nothing_left_of(&id);
    assert!(world.status(&id).survivors().is_empty());
}

#[test]
fn case_030_servers_are_kept_or_killed_by_rule() {
    let world = world();
    let line = "sleep 300 & echo $! >p; echo up";
    let kept = shell_json(&world, &[], line);
    let sleeper = world.wait_pids("p")[0];
    kept.ends("exited", 0);
    assert_eq!(kept.int("/survivors/0/pid"), i64::from(sleeper));
    assert!(proc::alive(sleeper));
    world.stop(kept.str("/id"));
    assert!(!proc::alive(sleeper));

    fs::remove_file(world.file("p")).expect("p is there");
    let output = world.outlast(&["run", "--json", "--survivors", "kill", "-c", line]);
    let sleeper = world.wait_pids("p")[0];
    assert!(!proc::alive(sleeper));
    output.json().ends("exited", 0);
    assert!(output.json().survivors().is_empty());
    let told = output.text() + &output.err();
    assert!(told.contains(&sleeper.to_string()), "silent about whom it hit: {output:?}");
}

#[test]
fn case_032_detached_stays_as_its_user_wanted() {
    let world = world();
    let session = world.session();
    let id = world.bg(&["--lifetime", "detached:1h", "sleep", "300"]);
    world.outlast(&["session", "end", &session]).ok();
    world.kill_anchor(&session, Signal::KILL);
    world.status(&id).runs();
    let listing = world.outlast(&["ps", "-a"]).ok().text();
    assert!(listing.contains("detached"), "{listing}");
    let closing = fs::read_to_string(world.session_dir(&session).join("closed.json")).expect("a closing report");
    assert!(closing.contains(&id), "left on purpose, but not named: {closing}");
    world.outlast(&["stop", &id]).ok();
    assert_eq!(world.wait(&id).str("/end/kind"), "stopped");
}

#[test]
fn case_032_detached_ends_by_its_time_to_live() {
    let world = world();
    let id = world.bg(&["--lifetime", "detached:500ms", "sleep", "300"]);
    world.outlast(&["session", "end", &world.session()]).ok();
    world.wait(&id).ends("timed_out", 124).detail("ttl");
    world.nothing_left_of(&id);
}

#[test]
fn case_035_stop_all_hits_exactly_this_session() {
    let world = world();
    let other = world.new_session(&[]);
    let start = world.call(&["run", "-b", "--json", "sleep", "300"]).session(&other).run().ok();
    let foreign = start.json().str("/id").to_owned();
    let bystander = world.sleeper();
    let mut mine = vec![world.bg(&["sleep", "300"]), world.bg(&["sleep", "301"])];
    let left_behind = shell_json(&world, &[], "sleep 302 & echo up");
    mine.push(left_behind.str("/id").to_owned());
    let told = world.outlast(&["stop", "--all", "--json"]).ok().json();
    let mut named = told.each("/commands", "/id");
    named.sort();
    mine.sort();
    assert_eq!(named, mine);
    mine.iter().for_each(|id| world.nothing_left_of(id));
    world.status(&foreign).runs();
    assert!(bystander.lives(), "a stranger was hit");
}
