//! Area Q: processes.

use std::fs;

use crate::support::*;

/// Ways in which a command leaves something running.
const LEAVING: [&str; 5] = [
    "sleep 300 & echo up",
    "nohup sleep 300 >/dev/null 2>&1 & echo up",
    "setsid sleep 300 & echo up",
    "(setsid sh -c 'sleep 300 & echo' &) ; sleep .1; echo up",
    "sh -c 'sleep 300 & exit 0'; echo up",
];

#[test]
fn q1_command_leads_its_own_session_and_group() {
    let world = world();
    let id = bg_shell(&world, &[], "echo $PPID $$ >s; exec sleep 300");
    let (supervisor, leader, keeper) = family(&world, "s");
    let found = proc::stat(leader).expect("it lives");
    assert_eq!((found.pgrp, found.session), (leader, leader));
    let watcher = proc::stat(supervisor).expect("it lives");
    assert_ne!(watcher.session, found.session);
    let ours = proc::stat(i32::try_from(std::process::id()).expect("a pid")).expect("this test lives");
    assert_ne!(proc::stat(keeper).expect("it lives").session, ours.session, "the keeper has a session of its own");
    assert!(["cgroup", "subreaper"].contains(&world.status(&id).str("/containment")));
}

/// Covers: Q1, F1
#[test]
fn q1_nothing_gets_out_of_reach() {
    let world = world();
    let daemon = "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  open('d', 'w').write('x\\n'); time.sleep(300)\n os._exit(0)\ntime.sleep(300)";
    for end in ["stop", "session"] {
        let _old = fs::remove_file(world.file("d"));
        let id = world.bg(&["--", "python3", "-c", daemon]);
        world.wait_file("d");
        let before = world.of_command(&id).len();
        assert!(before >= 2, "{before} processes");
        match end {
            "stop" => drop(world.stop(&id)),
            _ => drop(world.outlast(&["session", "end", &world.session()]).ok()),
        }
        world.nothing_left_of(&id);
    }
}

#[test]
fn q1_fork_storm_ends_with_nothing() {
    let world = world();
    let id = bg_shell(&world, &[], "while :; do setsid sh -c 'sleep 50 & sleep 50' & sleep .01; done");
    world.wait_until("a storm", || world.of_command(&id).len() > 60);
    let stopped = world.stop(&id);
    world.nothing_left_of(&id);
    assert!(!stopped.text().contains("still"), "{stopped:?}");
}

/// Covers: Q2, Q4
#[test]
fn q2_survivors_are_kept_by_default() {
    let world = world();
    for line in LEAVING {
        let told = shell_json(&world, &[], line);
        told.ends("exited", 0);
        assert_eq!(told.str("/status"), "ok", "a survivor is no error");
        assert!(told.survivors().contains(&"sleep".to_owned()), "{line}: {told:?}");
        let id = told.str("/id");
        assert!(!world.of_command(id).is_empty(), "{line}");
        world.stop(id);
        world.nothing_left_of(id);
    }
}

/// Covers: Q2, Q4
#[test]
fn q2_survivors_are_killed_when_asked() {
    let world = world();
    for line in LEAVING {
        let id = bg_shell(&world, &["--survivors", "kill"], line);
        let told = world.wait(&id);
        told.ends("exited", 0);
        assert!(told.output().contains("up"), "{told:?}");
        world.wait_until("survivors are ended", || world.of_command(&id).is_empty());
        let text = world.outlast(&["status", &id]).ok().text();
        assert!(text.contains("sleep"), "silent about whom it ended: {text}");
    }
}

/// Covers: Q2, C1
#[test]
fn q2_kept_survivors_are_still_captured() {
    let world = world();
    let told =
        shell_json(&world, &[], "(while [ ! -e go ]; do sleep .05; done; echo later; exec sleep 300) & echo now");
    let id = told.str("/id");
    fs::write(world.file("go"), "").expect("a file");
    world.wait_until("later output came", || world.raw(id) == b"now\nlater\n");
    assert_eq!(world.status(id).int("/output/bytes"), 10);
    world.outlast(&["session", "end", &world.session()]).ok();
    world.nothing_left_of(id);
}

#[test]
fn q3_drain_has_one_deadline() {
    let world = world();
    for streams in ["merged", "separate"] {
        let words = ["run", "--json", "--streams", streams, "-c", "echo X; sleep 40 &"];
        let told = world.call(&words).within(Duration::from_secs(15)).run().ok().json();
        assert_eq!(told.output().lines().next(), Some("X"));
    }
    let plain = world.call(&["run", "-c", "echo X; sleep 40 &"]).within(Duration::from_secs(15)).run().ok();
    assert!(plain.text().starts_with("X\n"));
    assert!(plain.err().contains("sleep") && plain.err().contains("stop"), "no line about what lives on: {plain:?}");
}

#[test]
fn q4_stop_and_limit_end_the_tree_under_either_policy() {
    let world = world();
    for policy in ["keep", "kill"] {
        let limited = bg_shell(&world, &["--survivors", policy, "--limit", "300ms"], "nohup sleep 60 & sleep 61");
        world.wait(&limited).ends("timed_out", 124);
        world.nothing_left_of(&limited);
        let stopped = bg_shell(&world, &["--survivors", policy], "nohup sleep 60 & echo >p; sleep 61");
        world.wait_file("p");
        world.stop(&stopped);
        world.nothing_left_of(&stopped);
    }
}

#[test]
fn q5_standard_input_is_empty() {
    let world = world();
    shell_json(&world, &[], "read x; echo \"rc $? $x\"").ends("exited", 0);
    let told = world.outlast(&["run", "--json", "--", "cat"]).ok().json();
    assert_eq!(told.output(), "");
    // Not even the caller's own input reaches it.
    let told = world.call(&["run", "--json", "--", "cat"]).input("from the caller\n").run().ok().json();
    assert_eq!(told.output(), "");
}

#[test]
fn q6_environment_is_non_interactive() {
    let world = world();
    let line = "echo \"$PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT [$BASH_ENV$ENV] $LANG $LC_ALL $LC_CTYPE $CLAUDECODE\"";
    type Row = (&'static [(&'static str, &'static str)], &'static [&'static str], &'static str);
    let rows: [Row; 6] = [
        (&[], &[], "cat cat 0 [] C.UTF-8"),
        (&[("PAGER", "less"), ("BASH_ENV", "/x"), ("ENV", "/y")], &[], "less cat 0 [] C.UTF-8"),
        (&[("LC_ALL", "C")], &[], "cat cat 0 [] C.UTF-8 C"),
        (&[("LANG", "de_DE.ISO-8859-1")], &[], "cat cat 0 [] de_DE.ISO-8859-1  C.UTF-8"),
        (&[("CLAUDECODE", "1")], &[], "cat cat 0 [] C.UTF-8   1"),
        (&[("PAGER", "less")], &["-e", "PAGER=more", "-e", "GIT_TERMINAL_PROMPT=1"], "more cat 1 [] C.UTF-8"),
    ];
    for (entries, options, expected) in rows {
        let mut call = world.call(&[&["run"], options, &["-c", line]].concat());
        for (key, value) in entries {
            call = call.env(key, *value);
        }
        assert_eq!(call.run().ok().text().trim_end(), expected, "{entries:?} {options:?}");
    }
    let unset = world.call(&["run", "-c", "echo $LANG"]).without("LANG").run().ok();
    assert!(unset.text().contains("UTF-8"), "a UTF-8 locale if none is set: {unset:?}");
}

#[test]
fn q9_command_has_three_descriptors_and_default_signals() {
    let world = world();
    let line = "exec 7</dev/null 8>leak; trap '' PIPE HUP; exec outlast run -- ls /proc/self/fd";
    let told = world.shell(line).run().ok();
    assert_eq!(told.text(), "0\n1\n2\n3\n", "3 is the directory that ls reads");
    let status = world.shell("trap '' PIPE HUP INT; exec outlast run -- cat /proc/self/status").run().ok().text();
    for field in ["SigBlk", "SigIgn", "SigCgt"] {
        let line = status.lines().find(|line| line.starts_with(field)).expect("a mask");
        assert!(line.ends_with("\t0000000000000000"), "{line}");
    }
    let background = world.shell("exec 7</dev/null; exec outlast run -b -- sh -c 'ls /proc/self/fd; echo >p'").run();
    background.ok();
    world.wait_file("p");
    assert_eq!(world.raw("w1"), b"0\n1\n2\n3\n");
}

#[test]
fn q10_ending_the_front_end_waits_for_nothing() {
    let world = world();
    for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
        let name = format!("p{}", signal.as_raw());
        let line = format!("echo >{name}; sleep 1; exit 7");
        let front = world.call(&["run", "--grace", "60s", "-c", &line]).within(AT_ONCE).spawn();
        world.wait_file(&name);
        front.signal(signal);
        drop(front.wait_killed());
    }
    let ended = || world.list().into_iter().filter(|one| one.str("/phase") == "ended");
    world.wait_until("all three are recorded", || ended().count() == 3);
    for one in ended() {
        one.ends("exited", 7);
    }
}

#[test]
fn q11_end_of_file_is_no_exit() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "echo $$ >p; exec >&- 2>&-; read x; exit 5");
    world.wait_file("p");
    world.outlast(&["wait", &id, "--timeout", "500ms"]).exits(124);
    world.status(&id).runs();
    world.outlast(&["send", &id, "go"]).ok();
    world.wait(&id).ends("exited", 5);
    shell_json(&world, &["--grace", "30s"], "exec >&- 2>&-; sleep .5; exit 5").ends("exited", 5);
}

/// Covers: Q4
#[test]
fn q4_interrupt_at_a_foreground_run_goes_to_the_command() {
    let world = world();
    let front = world.spawn(&["run", "--grace", "60s", "-c", "echo $$ >p; exec sleep 300"]);
    let leader = world.wait_pids("p")[0];
    world.wait_until("run handles INT", || proc::catches(front.pid(), Signal::INT));
    front.signal(Signal::INT);
    front.wait().exits(130);
    assert!(!proc::alive(leader));
}
