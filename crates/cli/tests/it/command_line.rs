//! Details of the command line that programs rely on (docs/contract.md, "The command line").

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::support::*;

#[test]
fn usage_errors_end_with_2_and_a_reason() {
    let world = world();
    let rows: [&[&str]; 14] = [
        &["frobnicate"],
        &["run", "--no-such-option", "--", "true"],
        &["run", "--limit", "soon", "--", "true"],
        &["run", "--max-log", "many", "--", "true"],
        &["run", "--memory", "-1", "--", "true"],
        &["run", "--streams", "both", "--", "true"],
        &["run", "--survivors", "maybe", "--", "true"],
        &["run", "--lifetime", "eternal", "--", "true"],
        &["run", "-e", "=value", "--", "true"],
        &["run", "--consumer", "a/b", "--", "true"],
        &["status"],
        &["logs", "w1", "--tail", "1", "--head", "1"],
        &["stop"],
        &["session", "start", "--anchor", "zero"],
    ];
    for row in rows {
        let refused = world.outlast(row).exits(2);
        assert!(!refused.err().trim().is_empty() && refused.text().is_empty(), "{refused:?}");
    }
    assert!(world.list().is_empty());
}

/// Covers: U5
#[test]
fn u5_what_is_refused_says_what_to_do() {
    let world = world();
    let rows: [(&[&str], i32, &str); 12] = [
        (&["run", "--grace", "-5s", "--", "true"], 2, "'-5s' for '--grace <D>'"),
        (&["run", "--pids", "-1", "--", "true"], 2, "'-1' for '--pids <N>'"),
        (&["logs", "w1", "--tail", "-3"], 2, "'-3' for '--tail <N>'"),
        (&["run", "--track-changes", "/nonexistent", "--", "true"], 2, "is no directory"),
        (&["run", "-e", "OUTLAST_SESSION=x", "--", "true"], 2, "cannot be set"),
        (&["run", "--cwd", "/nonexistent", "--", "true"], 126, "name another directory with --cwd"),
        (&["run", "--", "no-such-program"], 127, "cannot start no-such-program: it was not found in PATH"),
        (&["mcp", "--http", "18765"], 2, "127.0.0.1:8765"),
        (&["stop"], 2, "--all"),
        (&["wait", "w1", "--until", "never"], 2, "`outlast wait --help`"),
        (&["setup", "claude"], 4, "give --project"),
        (&["session", "resume", "ses_"], 2, "`outlast session --help`"),
    ];
    for (words, code, what) in rows {
        let told = world.call(words).env("HOME", "/nonexistent").run().exits(code);
        assert!(told.err().contains(what), "{what}: {told:?}");
    }
    assert!(!std::path::Path::new("/nonexistent").exists());
    let told = world.shell("unset OUTLAST_SESSION; outlast logs w1").run().exits(3);
    assert!(told.err().contains("session start --anchor"), "{told:?}");
    let dir = world.work().display().to_string();
    let tracked = world.outlast(&["run", "--json", "--track-changes", ".", "--", "true"]).ok().json();
    assert_eq!(tracked.str("/tracked/dir"), dir);
}

/// Covers: R9
#[test]
fn r9_a_label_that_no_notice_could_hold_is_refused() {
    let world = world();
    let refused = world.outlast(&["run", "-b", "--label", &"L".repeat(201), "--", "true"]).exits(2);
    assert!(refused.err().contains("200 characters") && refused.err().len() < 300, "{refused:?}");
    assert!(world.list().is_empty());
    let id = world.bg(&["--label", &"L".repeat(200), "--", "true"]);
    assert_eq!(world.wait(&id).str("/label").len(), 200);
}

/// Covers: U5
#[test]
fn u5_kinds_of_outcome_are_told_apart() {
    let world = world();
    let rows: [(&[&str], i32, &str); 6] = [
        (&["-c", "exit 75"], 75, "exited"),
        (&["-c", "exit 124"], 124, "exited"),
        (&["-c", "exit 127"], 127, "exited"),
        (&["--limit", "100ms", "sleep", "50"], 124, "timed_out"),
        (&["--", "no-such-program"], 127, "spawn_failed"),
        (&["-c", "kill -USR1 $$"], 138, "signaled"),
    ];
    for (args, code, kind) in rows {
        let told = world.outlast(&[&["run", "--json"], args].concat()).exits(code).json();
        assert_eq!(told.str("/end/kind"), kind, "{args:?}");
        let plain = world.outlast(&[&["run"], args].concat()).exits(code);
        assert_eq!(plain.text(), "", "{args:?}");
    }
}

/// Covers: U6
#[test]
fn u6_stop_prints_the_state_of_each() {
    let world = world();
    let (running, ended) = (world.bg(&["sleep", "50"]), world.bg(&["true"]));
    world.outlast(&["wait", &ended]).ok();
    let told = world.outlast(&["stop", &running, &ended]).ok();
    for id in [&running, &ended] {
        assert!(told.text().lines().any(|line| line.contains(id.as_str())), "{told:?}");
    }
    assert!(!told.text().contains("running:"), "nothing is verified to be alive: {told:?}");
    let one = world.outlast(&["stop", &running, "--json"]).ok().json();
    assert_eq!(one.str("/schema"), "outlast.command/1");
    let two = world.outlast(&["stop", &running, &ended, "--json"]).ok().json();
    assert_eq!(two.str("/schema"), "outlast.list/1");
}

#[test]
fn session_is_found_by_the_calling_shell() {
    let world = World::bare(BINARY, "state");
    let line = "outlast run -b --json -- sleep 300; outlast run -b --json -- sleep 300; outlast ps --json; true";
    let told = world.shell(line).run().ok();
    let values: Vec<Json> =
        serde_json::Deserializer::from_str(&told.text()).into_iter().map(|value| Json(value.expect("JSON"))).collect();
    assert_eq!(values[0].str("/session"), values[1].str("/session"), "one shell, one session");
    assert_eq!(values[2].each("/commands", "/id"), [values[0].str("/id"), values[1].str("/id")]);
    // The shell was the anchor; it has ended.
    world.wait_until("the session ended with its shell", || world.processes().is_empty());
}

#[test]
fn output_is_passed_on_as_it_comes() {
    let world = world();
    let front = world.spawn(&["run", "-c", "echo first; while [ ! -e go ]; do sleep .05; done; printf second"]);
    front.wait_stdout("the first line", |text| text == "first\n");
    std::fs::write(world.file("go"), "").expect("a file");
    assert_eq!(front.wait().ok().text(), "first\nsecond");
}

#[test]
fn command_knows_its_ids() {
    let world = world();
    let told = shell_json(&world, &["-e", "EXTRA=a b=c"], "echo $OUTLAST_WORK_ID $OUTLAST_SESSION $EXTRA");
    assert_eq!(told.output(), format!("{} {} a b=c\n", told.str("/id"), world.session()));
}

#[test]
fn environment_of_megabytes_is_passed_whole() {
    let world = world();
    let mut call = world.call(&["run", "--json", "-c", "env | wc -c"]);
    for number in 0..15 {
        call = call.env(&format!("BIG{number}"), "x".repeat(100_000));
    }
    let count: usize = call.run().ok().json().output().trim().parse().expect("a number");
    assert!(count > 1_500_000, "{count}");
}

#[test]
fn command_has_the_umask_of_its_caller() {
    let world = world();
    world.bg(&["sleep", "50"]);
    let told = world.shell("umask 027; exec outlast run -- sh -c umask").run().ok();
    assert_eq!(told.text(), "0027\n");
}

#[test]
fn working_directory_is_told_as_an_absolute_path() {
    let world = world();
    std::fs::create_dir(world.file("sub")).expect("a directory");
    let told = world.outlast(&["run", "--json", "--cwd", "sub", "--", "pwd"]).ok().json();
    let expected = world.file("sub").display().to_string();
    assert_eq!((told.str("/cwd"), told.output().trim_end()), (expected.as_str(), expected.as_str()));
}

#[test]
fn arguments_that_are_no_text_are_passed_whole() {
    let world = world();
    let odd = OsStr::from_bytes(b"a\xff\nb");
    let words = ["run", "-b", "--json", "--", "printf", "%s"].map(OsStr::new);
    let told = world.outlast(&[&words[..], &[odd]].concat()).ok().json();
    world.wait(told.str("/id"));
    assert_eq!(world.raw(told.str("/id")), odd.as_bytes());
    for verb in [&["ps", "-a"][..], &["status", "w1"], &["inbox", "--consumer", "human"], &["trace"]] {
        printable(&world.outlast(verb).ok().text());
    }
}

/// Covers: S8
#[test]
fn s8_send_says_whether_it_was_delivered() {
    let world = world();
    let closed = world.bg(&["sleep", "50"]);
    let refused = world.outlast(&["send", &closed, "text"]).exits(4);
    assert!(refused.err().contains("stdin"), "no reason: {refused:?}");
    let ended = world.bg(&["--stdin", "--", "true"]);
    world.outlast(&["wait", &ended]).ok();
    let refused = world.outlast(&["send", &ended, "text"]).exits(4);
    assert!(refused.err().contains("ended"), "no reason: {refused:?}");
    world.outlast(&["send", "w99", "text"]).exits(3);
    let open = world.bg(&["--stdin", "--", "cat"]);
    world.outlast(&["send", &open, "with"]).ok();
    world.outlast(&["send", &open, "with", "--no-newline"]).ok();
    world.outlast(&["send", &open, "--no-newline", "out", "--eof"]).ok();
    world.wait(&open).ends("exited", 0);
    assert_eq!(world.raw(&open), b"with\nwithout");
}

/// Covers: S8
#[test]
fn s8_sent_signal_is_no_stop() {
    let world = world();
    let id = bg_shell(&world, &[], "trap 'echo got >p; exit 7' USR1; echo >q; while :; do sleep .05; done");
    world.wait_file("q");
    world.outlast(&["send", &id, "--signal", "USR1"]).ok();
    world.wait(&id).ends("exited", 7);
    assert_eq!(world.wait_file("p"), "got");
}

#[test]
fn stop_all_includes_detached_only_when_asked() {
    let world = world();
    let bound = world.bg(&["sleep", "50"]);
    let detached = world.bg(&["--lifetime", "detached", "sleep", "50"]);
    world.outlast(&["stop", "--all"]).ok();
    assert_eq!(world.status(&bound).str("/phase"), "ended");
    world.status(&detached).runs();
    world.outlast(&["stop", "--all", "--detached"]).ok();
    assert_eq!(world.status(&detached).str("/end/kind"), "stopped");
}

#[test]
fn dead_anchor_is_refused() {
    let world = world();
    let mut gone = world.sleeper();
    gone.end(Signal::KILL);
    let refused = world.outlast(&["session", "start", "--anchor", &gone.pid().to_string()]).exits(4);
    assert!(refused.err().contains(&gone.pid().to_string()), "{refused:?}");
}

#[test]
fn every_verb_prints_its_schema() {
    let world = world();
    world.bg(&["sleep", "50"]);
    let rows: [(&[&str], &str); 7] = [
        (&["ps", "--json"], "outlast.list/1"),
        (&["inbox", "--json"], "outlast.inbox/1"),
        (&["session", "list", "--json"], "outlast.sessions/1"),
        (&["session", "show", "--json"], "outlast.session/1"),
        (&["gc", "--dry-run", "--json"], "outlast.gc/1"),
        (&["stats", "--json"], "outlast.stats/1"),
        (&["doctor", "--json"], "outlast.doctor/1"),
    ];
    for (verb, schema) in rows {
        assert_eq!(world.outlast(verb).ok().json().str("/schema"), schema, "{verb:?}");
    }
    let shown = world.outlast(&["session", "show", "--json"]).ok().text();
    assert!(shown.contains(&world.session()));
}

#[test]
fn doctor_says_what_this_machine_gives() {
    let world = world();
    let told = world.outlast(&["doctor"]).ok().text();
    for words in ["cgroup", "pidfd", &world.state().display().to_string()] {
        assert!(told.contains(words), "{words} is not in {told}");
    }
}

#[test]
fn stopped_keeper_or_supervisor_is_named_and_nothing_hangs() {
    let world = world();
    let id = bg_shell(&world, &[], "echo $PPID $$ >s; exec sleep 300");
    let (supervisor, _, keeper) = family(&world, "s");
    proc::signal(supervisor, Signal::STOP);
    for verb in [&["wait", &id, "--timeout", "1ms"][..], &["logs", &id], &["status", &id], &["send", &id, "--eof"]] {
        let told = world.call(verb).within(Duration::from_secs(40)).run();
        let named = format!("(pid {supervisor}) does not answer");
        assert!((told.text() + &told.err()).contains(&named), "does not name the stopped process: {told:?}");
    }
    proc::signal(supervisor, Signal::CONT);
    for (pid, verb) in [(supervisor, &["stop", &id][..]), (keeper, &["run", "-b", "--", "true"])] {
        proc::signal(pid, Signal::STOP);
        let told = world.call(verb).within(Duration::from_secs(40)).run();
        let doctor = world.call(&["doctor"]).within(Duration::from_secs(40)).run();
        proc::signal(pid, Signal::CONT);
        if told.code != Some(0) {
            assert!(
                (told.text() + &told.err()).contains(&pid.to_string()),
                "does not name the stopped process: {told:?}"
            );
        }
        assert!((doctor.text() + &doctor.err()).contains(&pid.to_string()), "{doctor:?}");
    }
    world.outlast(&["stop", "--all"]).ok();
}

/// Covers: S5
#[test]
fn s5_eight_front_ends_at_once() {
    let world = world();
    let work = || {
        for round in 0..4 {
            let id = bg_shell(&world, &["--stdin"], "read x; echo got $x; exit 7");
            world.list();
            world.outlast(&["send", &id, "it"]).ok();
            if round % 2 == 0 {
                world.outlast(&["wait", &id]).exits(7);
            } else {
                world.outlast(&["stop", &id]).ok();
            }
            assert_eq!(world.status(&id).str("/phase"), "ended");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(work);
        }
    });
    assert_eq!(world.acked("human").len(), 32);
    assert!(world.acked("model").is_empty());
}
