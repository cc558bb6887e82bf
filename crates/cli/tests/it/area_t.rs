//! Area T: trace and accounting.

use std::collections::BTreeSet;

use crate::support::*;

#[test]
fn t1_lines_have_their_keys_and_no_null() {
    let world = world();
    world.outlast(&["run", "--", "true"]).ok();
    assert!(world.trace("finished").is_empty(), "a foreground end is an event only");
    let id = bg_shell(&world, &[], "echo X; exit 7");
    world.outlast(&["wait", &id]).exits(7);
    let demoted = &world.trace("demoted")[0];
    for key in ["id", "program", "command", "grace_ms"] {
        assert!(demoted.has(&format!("/{key}")), "{key} is not in {demoted:?}");
    }
    let completed = &world.trace("completed")[0];
    for key in ["id", "program", "command", "end", "duration_ms", "log", "bytes", "status", "consumer", "delivered_via"]
    {
        assert!(completed.has(&format!("/{key}")), "{key} is not in {completed:?}");
    }
    let all = world.outlast(&["trace", &world.session(), "--json"]).ok().json_lines();
    let known = ["session", "finished", "demoted", "completed", "abandoned", "lost", "interrupted", "unrecorded"];
    for line in all {
        assert!(known.contains(&line.str("/type")), "{line:?}");
        assert!(line.0.as_object().expect("an object").values().all(|value| !value.is_null()), "{line:?}");
    }
}

#[test]
fn t1_an_end_in_the_foreground_has_its_line_where_the_trace_holds_all() {
    let world = world();
    let file = world.root().join("policy.toml");
    std::fs::write(&file, "trace = \"all\"\n").expect("a file");
    let call = |args: &[&str]| world.call(args).env("OUTLAST_POLICY", file.display().to_string()).run();
    call(&["run", "-c", "echo one; exit 7"]).exits(7);
    call(&["run", "--", "no-such-program"]).exits(127);
    let started = call(&["run", "-b", "--json", "-c", "exit 9"]).ok().json();
    call(&["wait", started.str("/id")]).exits(9);
    let lines = world.trace("finished");
    let told: Vec<(&str, i64, i64)> =
        lines.iter().map(|line| (line.str("/end/kind"), line.int("/exit_code"), line.int("/bytes"))).collect();
    assert_eq!(told, [("exited", 7, 4), ("spawn_failed", 127, 0)], "{lines:#?}");
    for line in &lines {
        assert!(!line.has("/log") && !line.has("/consumer"), "{line:?}");
        assert!(line.has("/program") && line.has("/command") && line.has("/duration_ms"), "{line:?}");
    }
    assert_eq!(world.trace("completed").len(), 1, "an end in the background has one line, of its own type");
}

#[test]
fn t2_one_completed_line_for_each_consumer() {
    let world = world();
    let rows = [("wait", "model"), ("stop", "model"), ("inbox", "human")];
    for (via, consumer) in rows {
        let id = world.bg(&["sleep", if via == "stop" { "50" } else { "0.05" }]);
        match via {
            "wait" => drop(world.outlast(&["wait", &id]).ok()),
            "stop" => drop(world.stop(&id)),
            _ => world.wait_until("it was told", || ids(&world.acked("human")).contains(&id)),
        }
        world.outlast(&["wait", &id]);
        let lines = world.trace("completed");
        let told: Vec<&Json> =
            lines.iter().filter(|line| line.str("/id") == id && line.str("/consumer") == consumer).collect();
        assert_eq!(told.len(), 1, "{via}: {lines:#?}");
        assert_eq!(told[0].str("/delivered_via"), via);
    }
}

#[test]
fn t3_lines_form_a_tree() {
    let world = world();
    let id = bg_shell(&world, &[], "exit 7");
    world.outlast(&["wait", &id]).exits(7);
    world.bg(&["sleep", "300"]);
    let session = world.session();
    world.outlast(&["session", "end", &session]).ok();
    let lines = world.outlast(&["trace", &session, "--json"]).ok().json_lines();
    let mut seen = BTreeSet::new();
    let mut last = String::new();
    for line in &lines {
        let event = line.str("/event").to_owned();
        assert!(event > last, "events are ordered by time: {event} after {last}");
        if line.has("/parent") {
            assert!(seen.contains(line.str("/parent")), "the parent is not above: {line:?}");
        }
        assert!(line.int("/at_ms") > 0 && line.str("/session") == session);
        last.clone_from(&event);
        seen.insert(event);
    }
    let start = lines.iter().find(|line| line.str("/type") == "session").expect("the session's start");
    for line in lines.iter().filter(|line| ["completed", "abandoned"].contains(&line.str("/type"))) {
        assert_eq!(line.at("/parent"), start.at("/event"));
    }
}

/// Covers: T4, G12
#[test]
fn t4_each_command_counts_once() {
    let world = world();
    let mut started: Vec<String> = (0..3).map(|_| world.bg(&["true"])).collect();
    for _ in 0..2 {
        started
            .push(world.outlast(&["run", "--grace", "0s", "--json", "sleep", "50"]).exits(75).json().str("/id").into());
    }
    world.outlast(&["wait", &started[0]]).ok();
    world.outlast(&["stop", "--all"]).ok();
    let mut counted: Vec<String> = world.trace("demoted").iter().map(|line| line.str("/id").to_owned()).collect();
    counted.sort();
    started.sort();
    assert_eq!(counted, started);
    let background = world.trace("demoted").into_iter().filter(|line| line.int("/grace_ms") == 0).count();
    assert_eq!(background, 5, "a background start counts as demoted with grace 0");
}

/// Covers: T5
#[test]
fn t5_stats_count_each_command_once() {
    let world = world();
    let counts = || {
        let stats = world.outlast(&["stats", "--json"]).ok().json();
        ["commands", "running", "ok", "stopped", "timeouts", "failures", "unknown"]
            .map(|name| stats.int(&format!("/{name}")))
    };
    assert_eq!(counts(), [0; 7], "a session that is not there yet");
    world.outlast(&["run", "--", "false"]).exits(1);
    let fails = bg_shell(&world, &[], "exit 7");
    let late = bg_shell(&world, &["--limit", "100ms"], "exec sleep 60");
    let runs = world.bg(&["sleep", "300"]);
    let fine = world.bg(&["true"]);
    for (id, code) in [(&fails, 7), (&late, 124), (&fine, 0)] {
        // Told twice, and to two: counted once.
        world.outlast(&["wait", id]).exits(code);
        world.outlast(&["wait", id, "--consumer", "other"]).exits(code);
    }
    assert_eq!(counts(), [4, 1, 1, 0, 1, 1, 0]);
    // Stopped never counts as a failure, whatever its code is.
    world.stop(&runs);
    assert_eq!(counts(), [4, 0, 1, 1, 1, 1, 0]);
    let text = world.outlast(&["stats"]).ok().text();
    assert_eq!(text, "commands  4\nrunning   0\nok        1\nstopped   1\ntimeouts  1\nfailures  1\nunknown   0\n");
}

#[test]
fn t8_constant_texts_are_constant() {
    let world = world();
    let other = world.new_session(&[]);
    for verb in [&["--help"][..], &["run", "--help"], &["wait", "--help"], &["--version"], &["completions", "bash"]] {
        let here = world.outlast(verb).ok().text();
        assert_eq!(here, world.call(verb).session(&other).run().ok().text(), "{verb:?}");
        assert!(!here.is_empty());
    }
}
