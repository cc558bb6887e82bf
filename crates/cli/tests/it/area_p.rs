//! Area P: limits and attribution.

use crate::support::*;

const TRICKLE: &str = "while :; do echo x; sleep .1; done";

#[test]
fn p1_every_byte_starts_the_idle_clock_anew() {
    let world = world();
    let finite = "for i in 1 2 3 4 5 6 7 8 9; do echo x; sleep .1; done";
    shell_json(&world, &["--idle-limit", "600ms"], finite).ends("exited", 0);
    let capped = bg_shell(&world, &["--idle-limit", "600ms", "--max-log", "1KiB"], &format!("seq 10000; {finite}"));
    world.wait(&capped).ends("exited", 0);
    let silent = world.outlast(&["run", "--json", "--idle-limit", "400ms", "-c", "echo x; sleep 50"]).exits(124);
    silent.json().ends("timed_out", 124).detail("idle");
    assert!(silent.json().output().contains('x'));
}

#[test]
fn p2_wall_limit_holds_on_top() {
    let world = world();
    let words = ["run", "--json", "--limit", "500ms", "--idle-limit", "400ms", "-c", TRICKLE];
    world.outlast(&words).exits(124).json().ends("timed_out", 124).detail("wall");
    let words = ["run", "--json", "--limit", "30s", "--idle-limit", "300ms", "sleep", "50"];
    world.outlast(&words).exits(124).json().ends("timed_out", 124).detail("idle");
}

#[test]
fn p3_spelling_plays_no_part() {
    let world = world();
    let rows = ["VAR=x sleep 50", "cd / && sleep 50", "while :; do sleep 50; done", "nohup sleep 50"];
    for line in rows {
        shell_json(&world, &["--limit", "200ms"], line).ends("timed_out", 124).detail("wall");
    }
}

#[test]
fn p4_limit_keeps_output_and_names_what_was_alive() {
    let world = world();
    let output = world.outlast(&["run", "--limit", "600ms", "-c", "printf A; sleep 47; : the whole line"]).exits(124);
    assert!(output.text().starts_with('A'), "{output:?}");
    let told = output.text() + &output.err();
    let marker = told.lines().find(|line| line.contains("sleep 47")).expect("one line names what was alive");
    assert!(marker.contains("600ms") && !marker.contains("the whole line"), "{told}");
    let idle = world.outlast(&["run", "--idle-limit", "300ms", "-c", "printf A; sleep 47"]).exits(124);
    assert!((idle.text() + &idle.err()).contains("without new output"), "{idle:?}");
}

#[test]
fn p5_nothing_is_killed_by_default() {
    let world = world();
    let demoted = world.outlast(&["run", "--json", "--grace", "200ms", "sleep", "50"]).exits(75).json();
    let background = world.bg(&["sleep", "50"]);
    world.outlast(&["run", "--", "sleep", "0.5"]).ok();
    world.status(demoted.str("/id")).runs();
    world.status(&background).runs();
}

#[test]
fn p6_stopped_and_continued_children_have_not_ended() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "echo $$ >p; read x; exit 7");
    let leader = world.wait_pids("p")[0];
    proc::signal(leader, Signal::STOP);
    world.wait_until("it is stopped", || proc::stat(leader).is_some_and(|one| one.state == 'T'));
    world.status(&id).runs();
    proc::signal(leader, Signal::CONT);
    world.outlast(&["send", &id, "go"]).ok();
    world.wait(&id).ends("exited", 7);
}

/// Covers: P7
#[test]
fn p7_only_the_command_that_hit_its_limit_says_so() {
    let world = world();
    let plain = shell_json(&world, &[], "exit 3");
    assert!(plain.ends("exited", 3).null("/end/detail"));
    let hog = ["--", "python3", "-c", "x = b'x' * (300 << 20); import time; time.sleep(50)"];
    let limited = world.bg(&[&["--memory", "64MiB"], &hog[..]].concat());
    let neighbour = world.bg(&hog);
    world.wait(&limited).detail("memory");
    world.status(&neighbour).runs();
}

#[test]
fn p7_cpu_and_file_size_are_known_by_their_signals() {
    let world = world();
    // The command sets the limits itself; the kernel's signal is the evidence.
    let cpu = shell_json(&world, &[], "ulimit -c 0; ulimit -S -t 1; exec sh -c 'while :; do :; done'");
    let size = shell_json(&world, &[], "ulimit -c 0; ulimit -f 1; exec head -c 100000 /dev/zero >big");
    for (told, detail, signal) in [(&cpu, "cpu", "XCPU"), (&size, "file_size", "XFSZ")] {
        assert_eq!((told.str("/end/kind"), told.str("/end/detail")), ("limit", detail), "{told:?}");
        assert_eq!(told.str("/end/signal"), signal);
    }
}

/// A first caller that has little of everything starts a keeper that serves others as well as any.
/// Covers: P8
#[test]
fn limits_of_the_first_caller_do_not_bind_the_session() {
    let world = world();
    let line = "ulimit -S -f 1; ulimit -S -n 32; exec outlast run -b --json -- sleep 50";
    world.shell(line).run().ok();
    let next = world.wait(&world.bg(&["sh", "-c", "seq 1 2000; ulimit -Sf"]));
    next.ends("exited", 0);
    assert!(next.0["errors"].as_array().is_some_and(Vec::is_empty), "{next:?}");
    assert!(next.output().ends_with("2000\nunlimited\n"), "{next:?}");
}

/// The policy is off: limits are those of the caller, and not of whoever started the keeper.
#[test]
fn p8_limits_are_those_of_the_caller() {
    let world = world();
    world.bg(&["sleep", "50"]);
    for options in ["", "-b --json"] {
        let line = format!("ulimit -n 77; exec outlast run {options} -- sh -c 'ulimit -Sn; ulimit -Hn'");
        let output = world.shell(&line).run().ok();
        let text = match options {
            "" => output.text(),
            _ => world.wait(output.json().str("/id")).output().to_owned(),
        };
        assert_eq!(text, "77\n77\n", "{options}");
    }
}

/// Covers: P10
#[test]
fn p10_bounds_of_the_tree_are_kept_and_the_answer_says_by_whom() {
    let world = world();
    let hog = ["python3", "-c", "import time; time.sleep(1); x = b'x' * (300 << 20); time.sleep(50)"];
    let storm = ["sh", "-c", "sleep 1; for i in $(seq 100); do sleep 50 & done; wait"];
    let rows: [(&[&str], &[&str], &str, &str); 2] = [
        (&["--memory", "64MiB"], &hog, "memory", "memory is bounded"),
        (&["--pids", "32"], &storm, "pids", "processes"),
    ];
    for (options, command, resource, words) in rows {
        let id = world.bg(&[options, &["--"], command].concat());
        let running = world.status(&id);
        running.runs();
        let by = running.str("/limits_kept_by").to_owned();
        let said = match by.as_str() {
            "kernel" => "by the kernel",
            "sampling" => "by sampling",
            _ => panic!("{running:?}"),
        };
        let doctor = world.outlast(&["doctor"]).text();
        assert!(doctor.contains(&format!("{words} {said}")), "{doctor}");
        // Who was refused a fork by the kernel may go on without it; by sampling the tree is stopped.
        let ended = world.wait(&id);
        assert_eq!(ended.str("/limits_kept_by"), by);
        assert_eq!((ended.str("/end/kind"), ended.str("/end/detail")), ("limit", resource), "{ended:?}");
        assert_eq!(ended.str("/status"), "error");
        world.nothing_left_of(&id);
    }
    let unbounded = shell_json(&world, &[], "exit 0");
    assert!(unbounded.null("/limits_kept_by"), "nothing is kept that nobody asked for");
}

/// Covers: P10
#[test]
fn p10_start_that_fails_with_a_limit_names_its_step() {
    let world = world();
    std::fs::write(world.file("plain"), "no program").expect("a file");
    let rows = [("cwd", "/no/such", "true"), ("exec", "/", "/no/such"), ("exec", "/", "WORK/plain")];
    for (step, cwd, program) in rows {
        let program = program.replace("WORK", &world.work().display().to_string());
        let words = ["run", "--json", "--memory", "64MiB", "--pids", "32", "--cwd", cwd, "--", &program];
        let told = world.outlast(&words).json();
        assert_eq!(told.str("/end/kind"), "spawn_failed", "{told:?}");
        assert!(told.str("/end/detail").starts_with(&format!("{step}:")), "{told:?}");
        assert!(told.null("/pid") && world.list().is_empty());
    }
}

/// Covers: P8
#[test]
fn p8_every_command_is_bounded_where_that_is_the_policy() {
    let world = world();
    let under = |text: &str, ulimit: &str, options: &[&str], line: &str| {
        let path = world.root().join("policy.toml");
        std::fs::write(&path, text).expect("a file");
        let words = [options, &["--", "sh", "-c", &format!("'{line}'")]].concat().join(" ");
        let call = world.shell(&format!("{ulimit}; exec outlast run {words}"));
        call.env("OUTLAST_POLICY", path.display().to_string()).run().ok().text()
    };
    let all = "ulimit -Sn; ulimit -Hn; ulimit -Sf; ulimit -Hv; ulimit -Ht; ulimit -c; ulimit -Hp";
    let bounded = under("[limits]\nbounded = true\nfiles = 64\n", "true", &[], all);
    let numbers: Vec<&str> = bounded.lines().collect();
    // In files, blocks of 512 bytes, KiB, and seconds of which the kernel kills one after it has warned.
    assert_eq!(numbers[..6], ["64", "64", "8388608", "2097152", "3601", "0"]);
    let processes: u64 = numbers[6].parse().expect("a number");
    assert!(processes > 128, "beyond those that there are: {processes}");
    // A hard limit that is inherited and lower stays; one that the call asks for holds where it is narrower.
    let files = "ulimit -Sn; ulimit -Hn";
    assert_eq!(under("[limits]\nbounded = true\nfiles = 64\n", "ulimit -n 33", &[], files), "33\n33\n");
    let recorded = |options: &[&str], text: &str| {
        let path = world.root().join("policy.toml");
        std::fs::write(&path, text).expect("a file");
        let call = world.call(&[&["run", "-b", "--json"], options, &["--", "true"]].concat());
        let told = call.env("OUTLAST_POLICY", path.display().to_string()).run().ok().json();
        let record = world.record(told.str("/id"), "request.json");
        assert_eq!(record.bool("/limits/throttled"), text.contains("bounded"), "{text}");
        ["pids", "memory", "core", "files"].map(|limit| record.at(&format!("/limits/{limit}")).as_u64())
    };
    let narrow = recorded(&["--pids", "8", "--memory", "1TiB"], "[limits]\nbounded = true\n");
    assert_eq!(narrow, [Some(8), Some(4 << 30), Some(0), Some(1024)]);
    // Off: as in the caller.
    assert_eq!(under("", "ulimit -n 99", &[], files), "99\n99\n");
    assert_eq!(recorded(&["--pids", "8"], ""), [Some(8), None, None, None]);
}

/// Covers: P3
#[test]
fn p3_a_limit_that_is_cut_is_said() {
    let world = world();
    let call = |args: &[&str]| world.call(args).env("OUTLAST_MAX_LIMIT", "60s").run();
    let told = call(&["run", "--limit", "10h", "--json", "--", "true"]).ok();
    assert!(told.json().str("/note").contains("limit 10h was cut to 1m"), "{told:?}");
    assert!(told.err().contains("limit 10h was cut to 1m"), "{told:?}");
    let told = call(&["run", "--limit", "10s", "--json", "--", "true"]).ok();
    assert!(told.json().at("/note").is_null() && told.err().is_empty(), "{told:?}");
}
