//! Retention: what is kept, what goes, and what is said of it.

use std::fs;

use outlast_testkit::mcp::Era;
use serde_json::json;

use crate::support::*;

/// A command of the first session with so many lines of output, of whose end the model was told.
fn told(world: &World, lines: u32) -> String {
    let id = bg_shell(world, &[], &format!("seq {lines}; exit 7"));
    world.wait(&id);
    world.wait_released(&id);
    id
}

/// `gc --json` with these options.
#[track_caller]
fn gc(world: &World, options: &[&str]) -> Json {
    world.outlast(&[&["gc", "--json"], options].concat()).ok().json()
}

/// The sessions and logs that went; names of anchors are cleared beside.
fn removed(report: &Json) -> Vec<String> {
    let all = report.items("/removed").into_iter().map(|path| path.str("").to_owned());
    all.filter(|path| !path.contains("/by-anchor/")).collect()
}

/// Covers: I4, F7, D2
#[test]
fn i4_pruned_is_an_answer_of_its_own() {
    let world = world();
    let id = told(&world, 50_000);
    let log = world.dir(&id).join("output.log");
    let would = gc(&world, &["--keep-output", "4KiB", "--dry-run"]);
    assert_eq!(removed(&would), [log.display().to_string()]);
    assert!(log.exists() && world.status(&id).null("/pruned_at_ms"), "a dry run removes nothing");
    let done = gc(&world, &["--keep-output", "4KiB"]);
    assert_eq!(removed(&done), removed(&would));
    assert!(done.int("/freed") > 100_000 && !log.exists(), "{done:?}");

    let status = world.outlast(&["status", &id]).ok();
    assert!(status.text().contains("pruned on 2") && status.text().contains('7'), "{status:?}");
    let known = world.status(&id);
    known.ends("exited", 7);
    assert!(known.int("/pruned_at_ms") > 0 && known.null("/output/log"), "{known:?}");
    assert_eq!(known.each("/command", ""), ["sh", "-c", "seq 50000; exit 7"]);
    assert_eq!(world.status("w1").str("/id"), id);
    assert_eq!(world.trace("pruned").iter().map(|line| line.str("/id")).collect::<Vec<_>>(), [id.as_str()]);

    let logs = world.outlast(&["logs", &id]).ok();
    assert!(logs.text().is_empty() && logs.err().contains("pruned on 2"), "{logs:?}");
    let followed = world.outlast(&["logs", &id, "-f"]).ok();
    assert!(followed.text().is_empty() && followed.err().contains("pruned on 2"), "{followed:?}");
    for until in ["exit", "output:1"] {
        let waited = world.outlast(&["wait", &id, "--until", until]);
        assert!(waited.text().contains("pruned on 2"), "{waited:?}");
    }
    for _ in 0..2 {
        let stopped = world.outlast(&["stop", &id]).ok();
        assert!(stopped.text().contains("already ended, pruned"), "{stopped:?}");
    }
    world.outlast(&["wait", &id]).exits(7);
    let unknown = world.outlast(&["status", "wrk_00000000000070008000000000000000"]).exits(3);
    assert!(!unknown.err().contains("pruned"));
    assert!(gc(&world, &["--keep-output", "4KiB"]).items("/removed").is_empty(), "it is done once");
}

/// Covers: I4
#[test]
fn i4_pruned_over_mcp() {
    let world = world();
    let mut client = world.mcp(Era::Modern, &["--session", &world.session()]);
    let id = client.background("seq 50000; exit 7");
    client.tool("wait", json!({"id": id}));
    world.wait_released(&id);
    // What a reply has told is committed once the reply went out.
    world.wait_until("its end counts as told", || !world.trace("completed").is_empty());
    gc(&world, &["--keep-output", "4KiB"]);
    let read = client.tool("read", json!({"id": id}));
    assert!(!read.is_error && read.text.contains("pruned on 2"), "{read:?}");
    let stopped = client.tool("stop", json!({"id": id}));
    assert!(!stopped.is_error && stopped.first_line().contains("already ended, pruned"), "{stopped:?}");
    let unknown = client.tool("read", json!({"id": "wrk_00000000000070008000000000000000"}));
    assert!(unknown.is_error && !unknown.text.contains("pruned"), "{unknown:?}");
    client.close();
}

/// Covers: I4
#[test]
fn i4_what_runs_and_what_was_not_told_keeps_its_output() {
    let world = world();
    let runs = bg_shell(&world, &[], "seq 50000; echo >p; exec sleep 300");
    let untold = bg_shell(&world, &[], "seq 50000");
    world.wait_file("p");
    world.outlast(&["wait", &untold, "--consumer", "hook"]).ok();
    let (first, second) = (told(&world, 50_000), told(&world, 50_000));
    world.outlast(&["inbox", "--ack", "--consumer", "hook"]).ok();
    // The model has not been told of one of them.
    let report = gc(&world, &["--keep-output", "1KiB"]);
    let logs = [&first, &second].map(|id| world.dir(id).join("output.log").display().to_string());
    let mut gone = removed(&report);
    gone.sort();
    assert_eq!(gone, logs);
    assert_eq!(report.items("/kept").len(), 1, "{report:?}");
    assert_eq!(world.raw(&untold), seq(1, 50_000).into_bytes());
    assert!(world.raw(&runs).starts_with(b"1\n2\n"));
    world.outlast(&["wait", &untold]).ok();
    world.wait_released(&untold);
    assert_eq!(removed(&gc(&world, &["--keep-output", "1KiB"])).len(), 1, "now everybody knows");
    world.stop(&runs);
}

/// The oldest end goes first, and no more than needed.
#[test]
fn i4_the_oldest_output_goes_first() {
    let world = world();
    let all: Vec<String> = (0..3).map(|_| told(&world, 50_000)).collect();
    gc(&world, &["--keep-output", "700KiB"]);
    let pruned = all.iter().map(|id| !world.status(id).null("/pruned_at_ms")).collect::<Vec<_>>();
    assert_eq!(pruned, [true, false, false], "288 KiB each");
}

/// Covers: I4
#[test]
fn i4_every_id_of_many_resolves() {
    let world = world();
    // Ten thousand of them take minutes to run; that many records are made of one.
    let id = told(&world, 5);
    let (head, tail) = id.split_at(16);
    let made: Vec<String> = (0..10_000_u32).map(|number| format!("{head}{number:04x}{}", &tail[4..])).collect();
    for new in made.iter().filter(|new| **new != id) {
        let to = world.dir(new);
        fs::create_dir(&to).expect("a directory");
        for name in ["exit.json", "output.log"] {
            let text = fs::read_to_string(world.dir(&id).join(name)).expect("a record");
            fs::write(to.join(name), text.replace(&id, new)).expect("a record");
        }
    }
    let listed = world.list();
    assert!(made.iter().all(|id| listed.binary_search_by(|one| one.str("/id").cmp(id)).is_ok()));
    gc(&world, &["--keep-output", "1KiB", "--untold"]);
    for id in [&made[0], &made[5_000], &made[9_999]] {
        world.status(id).ends("exited", 7);
    }
    assert_eq!(world.list().len(), listed.len());
}

/// Covers: I5, I6
#[test]
fn i5_sessions_beyond_the_bounds_go_with_everything() {
    let world = world();
    let ended: Vec<String> = (0..3).map(|_| world.new_session(&["--context", "project"])).collect();
    for session in &ended {
        world.outlast(&["session", "end", session]).ok();
    }
    let open = world.new_session(&[]);
    for none in [&["--keep-sessions", "0"], &["--keep-age", "0s"], &["--keep-output", "0"]] {
        world.outlast(&[&["gc"], &none[..]].concat()).exits(2);
    }
    assert!(removed(&gc(&world, &[])).is_empty(), "there is no bound by default");
    let path = |session: &String| world.session_dir(session).display().to_string();
    let would = gc(&world, &["--keep-sessions", "3", "--dry-run"]);
    assert_eq!(removed(&would), [path(&ended[0])]);
    assert!(world.session_dir(&ended[0]).exists());
    // The first session of the world is older, and open.
    assert_eq!(removed(&gc(&world, &["--keep-sessions", "3"])), removed(&would));
    assert!(!world.session_dir(&ended[0]).exists());
    world.outlast(&["session", "show", &ended[0]]).exits(3);
    for stays in [&world.session(), &ended[1], &ended[2], &open] {
        world.outlast(&["session", "show", stays]).ok();
    }
    assert!(removed(&gc(&world, &["--keep-sessions", "3"])).is_empty(), "twice is once");
    let operator = |key: &str, value: &str| {
        let report = world.call(&["gc", "--json"]).env(key, value).run().ok().json();
        removed(&report)
    };
    assert!(operator("OUTLAST_KEEP_AGE", "1h").is_empty());
    assert_eq!(operator("OUTLAST_KEEP_SESSIONS", "2"), [path(&ended[1])]);
    assert_eq!(operator("OUTLAST_KEEP_AGE", "1ms"), [path(&ended[2])]);
    let trace = fs::read_to_string(world.state().join("trace.jsonl")).expect("the trace of the state directory");
    let lines: Vec<Json> = trace.lines().map(Json::parse).collect();
    let gone: Vec<&str> = lines.iter().map(|line| line.str("/session")).collect();
    assert_eq!(gone, ended.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(lines.iter().all(|line| line.str("/type") == "removed"), "{trace}");
    let left: Vec<_> =
        tree(&world.state()).into_iter().filter(|path| path.to_string_lossy().contains("ses_")).collect();
    assert!(left.iter().all(|path| !ended.iter().any(|gone| path.to_string_lossy().contains(gone))), "{left:#?}");
    let contexts = fs::read_dir(world.state().join("by-context")).expect("the contexts").count();
    assert_eq!(contexts, 1, "the context of the sessions that are gone is gone");
}

/// Covers: I5
#[test]
fn i5_never_what_runs_nor_what_somebody_was_not_told_of() {
    let world = world();
    let ended = |line: &str, options: &[&str]| {
        let session = world.new_session(&["--context", "project"]);
        let words = [&["run", "-b", "--json"], options, &["-c", line]].concat();
        let id = world.call(&words).session(&session).run().ok().json().str("/id").to_owned();
        (session, id)
    };
    let (untold, of_untold) = ended("exit 5", &[]);
    world.outlast(&["wait", &of_untold, "--consumer", "hook"]).exits(5);
    world.kill_anchor(&untold, Signal::KILL);
    let (runs, detached) = ended("exec sleep 300", &["--lifetime", "detached"]);
    world.outlast(&["session", "end", &runs]).ok();
    let newer = world.new_session(&[]);
    world.outlast(&["session", "end", &newer]).ok();
    world.wait_until("the first one is over", || world.outlast(&["session", "show", &untold]).text().contains("ended"));
    world.wait_unkept(&untold);
    let report = gc(&world, &["--keep-sessions", "1", "--keep-age", "1ms"]);
    assert!(removed(&report).is_empty(), "{report:?}");
    assert!(report.each("/kept", "").iter().any(|line| line.contains(&untold)), "{report:?}");
    world.status(&detached).runs();
    world.stop(&detached);
    world.outlast(&["wait", &detached]).exits(143);
    world.wait_unkept(&runs);
    let report = gc(&world, &["--keep-age", "1ms"]);
    assert_eq!(removed(&report), [&runs, &newer].map(|session| world.session_dir(session).display().to_string()));
    world.outlast(&["wait", &of_untold]).exits(5);
    assert_eq!(removed(&gc(&world, &["--keep-age", "1ms"])).len(), 1, "now everybody knows");
}

/// Covers: J8
#[test]
fn j8_id_of_a_removed_session_is_unknown() {
    let world = world();
    let session = world.new_session(&["--context", "project"]);
    let id = world.call(&["run", "-b", "--json", "--", "true"]).session(&session).run().ok().json();
    let id = id.str("/id").to_owned();
    world.call(&["wait", &id]).session(&session).run().ok();
    world.outlast(&["session", "end", &session]).ok();
    world.wait_unkept(&session);
    let next = world.resume(&session);
    let mut client = world.mcp(Era::Modern, &["--session", &next]);
    let earlier = client.tool("stop", json!({"id": id}));
    assert!(earlier.text.contains("earlier session"), "{earlier:?}");
    assert_eq!(removed(&gc(&world, &["--keep-age", "1ms"])), [world.session_dir(&session).display().to_string()]);
    let told = world.call(&["status", &id]).session(&next).run().exits(3);
    assert!(told.err().contains("unknown") && told.err().contains(&id), "{told:?}");
    let unknown = client.tool("stop", json!({"id": id}));
    assert!(unknown.text.contains("unknown") && !unknown.text.contains("earlier"), "{unknown:?}");
    client.close();
}

/// Nobody has to ask for it: what adds to the records looks once an hour.
#[test]
fn bounds_are_held_without_gc() {
    let world = world();
    let id = told(&world, 50_000);
    let again = |options: &[&str]| {
        let words = [&["run"], options, &["--", "true"]].concat();
        world.call(&words).env("OUTLAST_KEEP_OUTPUT", "1KiB").run().ok();
    };
    again(&[]);
    assert!(world.status(&id).null("/pruned_at_ms"), "the last look was less than an hour ago");
    let stamp = world.state().join("retain.lock");
    fs::write(&stamp, "1700000000000").expect("our file");
    again(&[]);
    assert!(!world.status(&id).null("/pruned_at_ms"));
    assert_ne!(fs::read_to_string(&stamp).expect("our file"), "1700000000000");
}
