//! Cases of the kind "truth": how a command ended is known and said as it was.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::*;

#[test]
fn case_056_limit_is_not_a_success() {
    let world = world();
    let rows = [
        "i=0; while :; do i=$((i+1)); echo $i; sleep .1; done",
        "trap 'exit 0' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep .1; done",
    ];
    for line in rows {
        let id = bg_shell(&world, &["--limit", "500ms"], line);
        let told = world.outlast(&["wait", &id, "--json"]).exits(124).json();
        told.ends("timed_out", 124).detail("wall");
        assert_eq!(told.str("/status"), "error");
        assert!(told.output().starts_with("1\n2\n"), "{told:?}");
    }
}

#[test]
fn case_058_wanted_stop_is_no_failure() {
    let world = world();
    let id = world.bg(&["sleep", "300"]);
    let stopped = world.outlast(&["stop", &id, "--json"]).ok().json();
    let looked = world.status(&id);
    for told in [&stopped, &looked] {
        told.ends("stopped", 143);
        assert_eq!(told.str("/end/signal"), "TERM");
        assert_eq!(told.str("/end/by"), "model");
    }
    assert_eq!(stopped.at("/end"), looked.at("/end"));
    for verb in [&["status", &id][..], &["ps", "-a"], &["inbox", "--consumer", "human"]] {
        let text = world.outlast(verb).ok().text();
        assert!(text.contains("stopped") && !text.contains("fail"), "{verb:?}: {text}");
    }
}

#[test]
fn case_059_code_and_signal_are_told_apart() {
    let world = world();
    for (name, number) in [("HUP", 1), ("INT", 2), ("ABRT", 6), ("KILL", 9), ("SEGV", 11), ("PIPE", 13), ("TERM", 15)] {
        let code = 128 + number;
        let exited = shell_json(&world, &[], &format!("exit {code}"));
        exited.ends("exited", code);
        assert_eq!(exited.int("/end/code"), code);
        let line = format!("ulimit -c 0; kill -{name} $$; sleep 9");
        let output = world.outlast(&["run", "--json", "-c", &line]);
        let code = i32::try_from(code).expect("small");
        let signaled = output.exits(code).json();
        signaled.ends("signaled", i64::from(code));
        assert_eq!(signaled.str("/end/signal"), name);
    }
}

#[test]
fn case_060_the_launcher_ended_but_its_work_lives() {
    let world = world();
    let output = world.outlast(&["run", "--json", "-c", "nohup sleep 60 >o 2>&1 & echo launched"]).ok();
    let told = output.json();
    told.ends("exited", 0);
    assert_eq!(told.survivors(), ["sleep"]);
    let pid = told.int("/survivors/0/pid").to_string();
    let first = world.outlast(&["status", told.str("/id")]).ok().first_line();
    for part in ["sleep", &pid, "alive", "stop"] {
        assert!(first.contains(part), "{part} is not in the first line: {first}");
    }
}

#[test]
fn case_063_all_watchers_killed_is_lost() {
    let world = world();
    let line = "setsid sleep 9999 & echo $PPID $$ >s; exec sleep 300";
    let id = bg_shell(&world, &[], line);
    let (supervisor, _, keeper) = family(&world, "s");
    for pid in [keeper, supervisor] {
        proc::signal(pid, Signal::KILL);
        assert!(proc::wait_gone(pid, AT_ONCE));
    }
    world.kill_anchor(&world.session(), Signal::KILL);
    let told = world.status(&id);
    told.ends("lost", None);
    world.outlast(&["wait", &id]).exits(69);
    world.wait_until("what it left is ended", || world.of_command(&id).is_empty());
    let verdict = world.dir(&id).join("verdict.json");
    let written = fs::metadata(&verdict).expect("a verdict");
    assert_eq!(world.status(&id).at("/end"), told.at("/end"));
    let again = fs::metadata(&verdict).expect("a verdict");
    assert_eq!((written.ino(), written.mtime_nsec()), (again.ino(), again.mtime_nsec()));
}

#[test]
fn case_063_supervisor_killed_is_recorded_by_the_keeper() {
    let world = world();
    let id = bg_shell(&world, &[], "setsid sleep 9999 & echo $PPID $$ >s; exec sleep 300");
    let (supervisor, leader, _) = family(&world, "s");
    proc::signal(supervisor, Signal::KILL);
    let told = world.wait(&id);
    told.ends("stopped", 137);
    assert_eq!((told.str("/end/by"), told.str("/end/signal")), ("supervisor_lost", "KILL"));
    assert!(!proc::alive(leader));
    world.nothing_left_of(&id);
}

#[test]
fn case_063_keeper_killed_is_not_felt() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "echo $PPID $$ >s; read x; exit 7");
    let (_, _, keeper) = family(&world, "s");
    proc::signal(keeper, Signal::KILL);
    world.wait_until("the keeper is gone", || !proc::alive(keeper));
    world.status(&id).runs();
    let next = world.bg(&["sleep", "300"]);
    world.outlast(&["send", &id, "x"]).ok();
    world.wait(&id).ends("exited", 7);
    assert_eq!(ids(&world.acked("human")), [id.as_str()]);
    world.stop(&next);
}

#[test]
fn case_066_limit_keeps_the_output() {
    let world = world();
    let line = "while :; do echo tick; sleep .2; done";
    let told = world.outlast(&["run", "--json", "--limit", "1s", "-c", line]).exits(124).json();
    told.ends("timed_out", 124).detail("wall");
    assert!(told.output().contains("tick"));
    let id = bg_shell(&world, &["--limit", "1s"], line);
    let ended = world.wait(&id);
    assert!(ended.output().contains("tick"));
    assert!(world.raw(&id).starts_with(b"tick\ntick\n"));
    let text = world.outlast(&["status", &id]).ok().text();
    assert!(text.contains("tick") && text.contains("partial"), "{text}");
}

#[test]
fn case_068_last_bytes_lose_no_race_in_the_foreground() {
    let world = world();
    let rounds = |first: u32| {
        for round in first..first + 75 {
            let text = world.outlast(&["run", "-c", "printf x"]).ok().text();
            assert_eq!(text, "x", "lost in round {round}");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| rounds(0));
        rounds(1000);
    });
}

#[test]
fn case_068_last_bytes_lose_no_race_in_the_background() {
    let world = world();
    for round in 0..20 {
        let id = bg_shell(&world, &[], "printf x");
        assert_eq!(world.wait(&id).output(), "x", "lost in round {round}");
        assert_eq!(world.raw(&id), b"x", "lost in round {round}");
        let demoted = world.outlast(&["run", "--grace", "50ms", "--json", "-c", "sleep .1; printf x"]).exits(75);
        assert_eq!(world.wait(demoted.json().str("/id")).output(), "x", "lost in round {round}");
    }
}

#[test]
fn case_070_quick_command_is_known_when_it_is_read() {
    let world = world();
    for _ in 0..10 {
        let id = world.bg(&["true"]);
        world.outlast(&["status", &id]).ok();
        world.outlast(&["wait", &id]).ok();
        assert_eq!(world.outlast(&["logs", &id]).ok().text(), "");
        let stopped = world.outlast(&["stop", &id]).ok();
        assert!(stopped.text().contains("ended"), "{stopped:?}");
        world.status(&id).ends("exited", 0);
    }
}

#[test]
fn case_071_unknown_earlier_and_pruned_are_three_answers() {
    let world = world();
    let unknown = "wrk_00000000000070008000000000000000";
    let first = world.outlast(&["status", unknown]).exits(3);
    assert!(first.err().contains(unknown) && first.err().contains("unknown"), "{first:?}");

    let session = world.new_session(&["--context", "project"]);
    let start = world.call(&["run", "-b", "--json", "--", "sh", "-c", "exit 7"]).session(&session).run().ok();
    let id = start.json().str("/id").to_owned();
    world.call(&["wait", &id]).session(&session).run().exits(7);
    world.outlast(&["session", "end", &session]).ok();
    let next = world.resume(&session);
    let earlier = world.call(&["status", &id]).session(&next).run().ok();
    assert!(earlier.text().contains("earlier session") && earlier.text().contains('7'), "{earlier:?}");

    let pruned = bg_shell(&world, &[], "seq 9999");
    world.wait(&pruned);
    world.wait_released(&pruned);
    world.outlast(&["gc", "--keep-output", "1KiB"]).ok();
    let told = world.outlast(&["status", &pruned]).ok();
    assert!(told.text().contains("pruned on 2") && !told.text().contains("earlier"), "{told:?}");
    assert!(![&first.err(), &earlier.text()].iter().any(|other| other.contains("pruned")));
}
