//! The world watched at work: it must notice what a faulty runner would leave or print.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_testkit::{Signal, World, contract, proc};
use serde_json::{Value, json};

/// A stand-in for the binary: it opens sessions and otherwise does what its arguments say.
const STAND_IN: &str = r#"#!/bin/sh
case "$1 $2" in
"session start") echo '{"schema":"outlast.session/1","id":"ses_0123456789abcdef0123456789abcdef"}' ;;
"session end") exit 0 ;;
*) exec sh -c "$1" ;;
esac
"#;

fn stand_in(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&dir).expect("a directory for the stand-in");
    let path = dir.join("outlast");
    fs::write(&path, STAND_IN).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our script");
    path
}

fn story(run: impl FnOnce()) -> String {
    let failed = catch_unwind(AssertUnwindSafe(run)).expect_err("it must fail");
    failed.downcast_ref::<String>().expect("a story").clone()
}

#[test]
fn clean_world_ends_and_is_removed() {
    let world = World::new(stand_in("clean").to_str().expect("a text"));
    let root = world.root();
    world.outlast(&["echo hello; exit 3"]).exits(3);
    assert!(root.exists());
    world.finish();
    assert!(!root.exists());
}

/// The escaped process has left session, group and parent; the world finds it, fails, and kills it.
#[test]
fn escaped_process_fails_the_test_and_is_killed() {
    let world = World::new(stand_in("escaped").to_str().expect("a text")).patience(Duration::from_millis(500));
    world.outlast(&["(setsid sh -c 'echo $$ >p; exec sleep 600' >/dev/null 2>&1 &)"]).ok();
    let pid = world.wait_pids("p")[0];
    assert!(proc::alive(pid) && world.processes().iter().any(|one| one.pid == pid));
    let told = story(|| world.finish());
    assert!(told.contains("sleep 600"), "{told}");
    assert!(!proc::alive(pid));
}

#[test]
fn file_in_the_home_fails_the_test() {
    let world = World::new(stand_in("home").to_str().expect("a text"));
    world.outlast(&["echo >\"$HOME/.outlast\""]).ok();
    assert!(story(|| world.finish()).contains(".outlast"));
}

#[test]
fn call_that_hangs_or_leaves_its_output_open_fails_the_test() {
    let world = World::new(stand_in("hangs").to_str().expect("a text"));
    let hangs = story(|| drop(world.call(&["echo so far; exec sleep 600"]).within(Duration::from_millis(300)).run()));
    assert!(hangs.contains("so far"), "{hangs}");
    let held = story(|| drop(world.outlast(&["echo before; sleep 600 & echo $! >p"])));
    assert!(held.contains("holds its output"), "{held}");
    proc::signal(world.wait_pids("p")[0], Signal::KILL);
}

fn command() -> Value {
    json!({"schema": "outlast.command/1", "id": "wrk_0123456789abcdef0123456789abcdef", "alias": "w1",
        "session": "ses_0123456789abcdef0123456789abcdef", "label": null, "command": ["true"], "cwd": "/",
        "phase": "ended", "demoted": false,
        "end": {"kind": "exited", "code": 0, "signal": null, "detail": null, "by": null},
        "exit_code": 0, "status": "ok", "started_at_ms": 1, "demoted_at_ms": null, "ended_at_ms": 2,
        "duration_ms": 1, "output": {"text": "", "bytes": 0, "shown_from": 0, "truncated": false, "gap": null, "unwritten": null,
        "withheld": false, "log": null}, "pid": null, "survivors": [], "containment": "subreaper",
        "joined": false, "trust": "trusted"})
}

#[test]
fn contract_accepts_what_is_right_and_names_what_is_not() {
    assert_eq!(contract::check_command(&command(), true), Ok(()));
    let rows: [(&str, Value, &str); 9] = [
        ("/exit_code", json!(1), "agree"),
        ("/end", Value::Null, "ended command has an end"),
        ("/pid", json!(7), "pid is null"),
        ("/phase", json!("running"), "end is null while running"),
        ("/end/kind", json!("lost"), "agree"),
        ("/end/code", json!(7), "agree"),
        ("/output/text", json!("\u{1b}[0m"), "control"),
        ("/id", json!("wrk_1"), "32 hex digits"),
        ("/status", json!("fine"), "ok or error"),
    ];
    for (pointer, value, words) in rows {
        let mut broken = command();
        *broken.pointer_mut(pointer).expect("a key of the command") = value;
        let breach = contract::check_command(&broken, true).expect_err(pointer);
        assert!(breach.contains(words), "{pointer}: {breach}");
    }
    let mut missing = command();
    missing.as_object_mut().expect("an object").remove("trust");
    assert!(contract::check_command(&missing, true).expect_err("a missing key").contains("trust"));
}
