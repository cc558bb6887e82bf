//! Area A: start and foreground.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::*;

/// Asserts that no command of the session has records and nobody has anything to hear.
#[track_caller]
fn nothing_recorded(world: &World) {
    let work = world.session_dir(&world.session()).join("work");
    let left = tree(&world.state()).into_iter().filter(|path| path.to_string_lossy().contains("wrk_")).count();
    assert_eq!(left, 0, "records in {}", work.display());
    assert!(world.list().is_empty());
    for consumer in ["model", "human", "hook"] {
        assert!(world.acked(consumer).is_empty());
    }
}

#[test]
fn a1_foreground_end_leaves_nothing() {
    let world = world();
    let told = world.outlast(&["run", "--grace", "10s", "--json", "--", "echo", "hi"]).ok().json();
    told.ends("exited", 0);
    assert_eq!(told.output(), "hi\n");
    assert!(!told.bool("/demoted") && !told.bool("/output/truncated"));
    assert!(told.null("/output/log") && told.null("/alias"));
    let failed = world.outlast(&["run", "--grace", "10s", "--json", "-c", "exit 3"]).exits(3).json();
    failed.ends("exited", 3);
    nothing_recorded(&world);
}

/// Covers: A1, C5
#[test]
fn a1_output_exactly_at_the_cap_stays_in_memory() {
    let world = world();
    let at_cap = shell_json(&world, &[], "seq 1000 9999 | head -c 16384");
    assert_eq!(at_cap.int("/output/bytes"), 16_384);
    assert!(!at_cap.bool("/output/truncated") && at_cap.null("/output/log"));
    nothing_recorded(&world);
    let above = shell_json(&world, &[], "seq 1000 9999 | head -c 16385");
    assert!(above.bool("/output/truncated"));
    assert_eq!(above.int("/output/shown_from"), 1);
    assert_eq!(world.raw(above.str("/id")), &seq(1000, 9999).as_bytes()[..16_385]);
}

#[test]
fn a2_background_start_outlives_its_front_end() {
    let world = world();
    let plain = world.outlast(&["run", "-b", "--stdin", "-c", "printf hello; read x; exit 0"]).ok();
    let list = world.list();
    assert_eq!(list.len(), 1);
    list[0].runs();
    let id = list[0].str("/id");
    assert_eq!(plain.text(), format!("w1  {id}\n"));
    for name in ["request.json", "status.json", "lease", "output.log"] {
        assert!(world.dir(id).join(name).exists(), "{name} is missing while running");
    }
    world.outlast(&["send", id, "--eof"]).ok();
    assert_eq!(world.wait(id).ends("exited", 0).output(), "hello");
    assert_eq!(world.raw(id), b"hello");
    let labelled = world.outlast(&["run", "-b", "--label", "api", "--", "true"]).ok().text();
    assert!(labelled.starts_with("w2  wrk_") && labelled.lines().count() == 1, "{labelled}");
}

#[test]
fn a4_without_records_nothing_is_demoted() {
    let world = World::bare(BINARY, "state");
    fs::write(world.state(), "a plain file").expect("a file in the world");
    let before = tree(&world.work());
    let inline = world.outlast(&["run", "--grace", "200ms", "-c", "sleep 1; echo done"]).ok();
    assert_eq!(inline.text(), "done\n");
    assert_eq!(tree(&world.work()), before);
    // All of a long output is held; a reply has its end, and says where that begins.
    let long = world.outlast(&["run", "--json", "-c", "seq 1 20000"]).ok().json();
    let shown = i64::try_from(long.output().len()).expect("a short text");
    assert!(long.output().ends_with("20000\n"), "{long:?}");
    assert_eq!((long.int("/output/shown_from"), long.bool("/output/truncated")), (108_894 - shown, true));
    let refused = world.outlast(&["run", "-b", "-c", "echo >started"]).exits(4);
    assert!(refused.err().contains(&world.state().display().to_string()), "no reason: {refused:?}");
    assert!(!world.file("started").exists());
}

/// What nobody can store is not held either, but for the end of it, which the reply shows.
#[test]
fn a4_without_records_no_output_fills_the_memory() {
    let world = World::bare(BINARY, "state");
    fs::write(world.state(), "a plain file").expect("a file in the world");
    let line = "seq 1 30000000; touch all; until test -e go; do sleep .05; done";
    let call = world.spawn(&["run", "--json", "-c", line]);
    world.wait_until("all of it came", || world.file("all").exists());
    for one in Cast::of(&world).supervisors {
        let status = fs::read_to_string(format!("/proc/{}/status", one.pid)).expect("its status");
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        let most: u64 = most.and_then(|number| number.parse().ok()).expect("a number");
        assert!(most < 48 * 1024, "{most} KiB at most in {one:?}");
    }
    fs::write(world.file("go"), "").expect("a file in the world");
    let told = call.wait().ok().json();
    assert_eq!(told.int("/output/bytes"), 258_888_897);
    assert!(told.output().ends_with("\n29999999\n30000000\n") && told.bool("/output/truncated"), "{told:?}");
    let shown = i64::try_from(told.output().len()).expect("a short text");
    assert_eq!(told.int("/output/shown_from"), 258_888_897 - shown);
}

/// Nobody could find it again, so it ends with its caller; where its keeper was killed before, its supervisor sees to that.
#[test]
fn a4_without_records_a_command_ends_with_its_caller() {
    let world = World::bare(BINARY, "state");
    fs::write(world.state(), "a plain file").expect("a file in the world");
    for keeper_is_killed in [false, true] {
        let call = world.spawn(&["run", "-c", "echo up; exec sleep 300"]);
        call.wait_stdout("its output", |text| text.contains("up"));
        let cast = Cast::of(&world);
        for keeper in cast.keepers.iter().filter(|_| keeper_is_killed) {
            proc::signal(keeper.pid, Signal::KILL);
            world.wait_until("its keeper is gone", || Cast::of(&world).keepers.is_empty());
        }
        call.signal(Signal::KILL);
        call.wait_killed();
        world.wait_until("nothing of it is left", || world.processes().is_empty());
    }
}

#[test]
fn a7_spawn_failure_is_told_by_its_call() {
    let world = world();
    for option in [&["--grace", "0s"][..], &["-b"], &["--grace", "10s"]] {
        let words = [&["run"], option, &["--json", "--", "no-such-program"]].concat();
        let output = world.outlast(&words).exits(127);
        let told = output.json();
        told.ends("spawn_failed", 127).detail("exec: ENOENT");
        let plain = world.outlast(&[&["run"], option, &["--", "no-such-program"]].concat()).exits(127);
        assert!(plain.err().contains("no-such-program"), "{plain:?}");
    }
    fs::write(world.file("tool"), "#!/bin/sh\n").expect("a file");
    let denied = world.outlast(&["run", "--json", "--", "./tool"]).exits(126);
    denied.json().ends("spawn_failed", 126).detail("exec: EACCES");
    nothing_recorded(&world);
}

#[test]
fn a8_working_directory_must_be_one() {
    let world = world();
    fs::write(world.file("plain"), "").expect("a file");
    for (name, errno) in [("plain", "ENOTDIR"), ("missing", "ENOENT")] {
        let dir = world.file(name).display().to_string();
        for option in ["--json", "-b"] {
            let output = world.outlast(&["run", option, "--cwd", &dir, "-c", "echo >ran"]).exits(126);
            assert!((output.text() + &output.err()).contains(&dir), "the path is not named: {output:?}");
        }
        let told = world.outlast(&["run", "--json", "--cwd", &dir, "--", "true"]).exits(126).json();
        told.ends("spawn_failed", 126).detail(&format!("cwd: {errno}"));
    }
    nothing_recorded(&world);
}

#[test]
fn a9_limit_does_not_lengthen_the_grace() {
    let world = world();
    let demoted = world.outlast(&["run", "--json", "--grace", "100ms", "--limit", "600s", "sleep", "5"]).exits(75);
    world.status(demoted.json().str("/id")).runs();
    let limited = world.outlast(&["run", "--json", "--grace", "10s", "--limit", "100ms", "sleep", "5"]).exits(124);
    limited.json().ends("timed_out", 124).detail("wall");
    assert!(!limited.json().bool("/demoted"));
}

#[test]
fn a12_empty_commands_are_refused() {
    let world = world();
    let rows: [&[&str]; 8] = [
        &["run"],
        &["run", "--"],
        &["run", "-c", ""],
        &["run", "-c", "  \t\n"],
        &["run", "--", ""],
        &["run", "--", "", "argument"],
        &["run", "--grace", "-3s", "--", "true"],
        &["run", "--grace", "10 parsecs", "--", "true"],
    ];
    for row in rows {
        let refused = world.outlast(row).exits(2);
        assert!(!refused.err().trim().is_empty(), "no reason: {refused:?}");
    }
    nothing_recorded(&world);
}

#[test]
fn a13_program_is_recorded_as_found() {
    let world = world();
    let id = world.bg(&["--", "bash", "-c", "exit 0"]);
    let found = world.record(&id, "request.json");
    assert!(found.str("/program").starts_with('/') && found.str("/program").ends_with("/bash"), "{found:?}");
    let tool = world.file("local-tool");
    fs::write(&tool, "#!/bin/sh\nexit 7\n").expect("a file");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("our file");
    let local = world.bg(&["--", "./local-tool"]);
    world.outlast(&["wait", &local]).exits(7);
    assert_eq!(world.record(&local, "request.json").str("/program"), "./local-tool");
    assert_eq!(world.status(&local).at("/command").to_string(), r#"["./local-tool"]"#);
}

#[test]
fn a15_bad_session_is_a_usage_error() {
    let world = world();
    let before = tree(&world.root());
    for name in ["../../etc", "ses_", "", "ses_/../x", "wrk_00000000000070008000000000000000"] {
        let refused = world.outlast(&["run", "--session", name, "--", "touch", "ran"]).exits(2);
        assert!(refused.err().contains("session"), "the field is not named: {refused:?}");
    }
    assert_eq!(tree(&world.root()), before);
}
