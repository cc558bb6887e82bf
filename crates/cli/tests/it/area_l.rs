//! Area L: reconciliation, as the next session and every later look see it.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::*;

/// Starts a command and kills everyone who could know how it ends. Returns its id.
fn lose(world: &World, name: &str) -> String {
    let id = bg_shell(world, &[], &format!("echo $PPID $$ >{name}; exec sleep 300"));
    let (supervisor, leader, keeper) = family(world, name);
    proc::signal(keeper, Signal::KILL);
    proc::signal(supervisor, Signal::KILL);
    assert!(proc::wait_gone(leader, AT_ONCE));
    id
}

fn inbox(world: &World, session: &str) -> String {
    world.call(&["inbox"]).session(session).run().ok().text()
}

/// Covers: L1, L12
#[test]
fn l1_each_command_falls_into_one_group() {
    let world = world();
    let session = world.session();
    let told = bg_shell(&world, &[], "exit 5");
    world.outlast(&["wait", &told]).exits(5);
    let away = bg_shell(&world, &[], "exit 7");
    world.wait_until("it has ended", || world.status(&away).str("/phase") == "ended");
    let lost = lose(&world, "s");
    world.kill_anchor(&session, Signal::KILL);
    let next = world.resume(&session);
    let text = inbox(&world, &next);
    assert!(text.contains(&away) && text.contains(&lost), "{text}");
    assert!(!text.contains(&told), "told again: {text}");
    let json = world.call(&["inbox", "--ack", "--json"]).session(&next).run().ok().json();
    let entries = json.items("/completions");
    assert_eq!(ids(&entries), [away.as_str(), lost.as_str()], "in the order of their ids");
    entries[0].ends("exited", 7);
    entries[1].ends("lost", None);
    assert_eq!(inbox(&world, &next).matches("wrk_").count(), 0, "told once");
}

/// Covers: L2, L3, L9
#[test]
fn l3_verdict_holds_what_is_known_and_no_number() {
    let world = world();
    let session = world.session();
    let id = lose(&world, "s");
    world.kill_anchor(&session, Signal::KILL);
    let next = world.resume(&session);
    let verdict = world.record(&id, "verdict.json");
    assert_eq!((verdict.str("/session"), verdict.str("/id")), (session.as_str(), id.as_str()));
    assert_eq!(verdict.str("/verdict"), "lost");
    assert!(verdict.int("/demoted_at_ms") > 0);
    assert!(verdict.str("/program").ends_with("sh"), "{verdict:?}");
    for key in ["exit_code", "status", "duration_ms", "log", "bytes"] {
        assert!(verdict.0.get(key).is_none(), "{key} in {verdict:?}");
    }
    let lines: Vec<Json> = world.outlast(&["trace", &session, "--json"]).ok().json_lines();
    let lost: Vec<&Json> = lines.iter().filter(|line| line.str("/type") == "lost").collect();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].str("/session"), lost[0].str("/id")), (session.as_str(), id.as_str()));
    assert_eq!(lost[0].at("/report"), verdict.at("/report"));
    assert!(lines.iter().any(|line| line.at("/event") == lost[0].at("/parent")), "its parent is in the trace");

    let text = inbox(&world, &next);
    for words in [&id, "earlier session", "No exit code is known", "unknown"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert!(!text.contains("sleep 300") && !text.contains("/sessions/"), "{text}");
    let logs = world.call(&["logs", &id]).session(&next).run().ok();
    assert_eq!(logs.text(), "");
}

#[test]
fn l5_two_resumes_make_one_report() {
    let world = world();
    let session = world.session();
    let id = lose(&world, "s");
    world.kill_anchor(&session, Signal::KILL);
    let first = world.resume(&session);
    let told = world.call(&["inbox", "--ack"]).session(&first).run().ok().text();
    assert_eq!(told.matches(id.as_str()).count(), 1, "{told}");
    let second = world.resume(&session);
    assert!(!inbox(&world, &second).contains(&id), "reported twice");
    assert_eq!(world.trace("lost").len(), 1);
}

#[test]
fn l5_looks_at_the_same_time_write_one_verdict() {
    let world = world();
    let id = lose(&world, "s");
    let looks: Vec<_> = (0..8).map(|_| world.spawn(&["status", &id, "--json"])).collect();
    for look in looks {
        look.wait().ok().json().ends("lost", None);
    }
    assert_eq!(world.trace("lost").len(), 1);
}

#[test]
fn l6_bad_names_open_nothing() {
    let world = world();
    let canary = world.root().join("canary");
    fs::create_dir(&canary).expect("a new directory");
    let before = tree(&world.root());
    for name in ["../../canary", "ses_..", "ses_a/b", "ses_a\\b", "other", ""] {
        let refused = world.outlast(&["session", "resume", name]);
        assert!(matches!(refused.code, Some(2 | 3)), "{refused:?}");
        let refused = world.outlast(&["ps", "--session", name]);
        assert!(matches!(refused.code, Some(2 | 3)), "{refused:?}");
    }
    assert_eq!(tree(&world.root()), before);
    fs::remove_dir(canary).expect("our directory");
}

#[test]
fn l7_torn_trace_hides_nothing() {
    let world = world();
    let session = world.session();
    world.bg(&["true"]);
    let path = world.session_dir(&session).join("trace.jsonl");
    let whole = fs::read(&path).expect("a trace");
    let torn = [whole.as_slice(), b"\xff\xfe not text\n{\"type\":\"demo"].concat();
    fs::write(&path, torn).expect("our file");
    let id = world.bg(&["true"]);
    world.outlast(&["wait", &id]).ok();
    let after = fs::read(&path).expect("a trace");
    assert!(after.starts_with(&whole));
    let lines = world.outlast(&["trace", &session]).ok();
    assert!(lines.text().contains(&id), "{lines:?}");
    let parsed: Vec<Json> = String::from_utf8_lossy(&after)
        .lines()
        .filter(|line| line.starts_with('{') && line.ends_with('}'))
        .map(Json::parse)
        .collect();
    let of_it: Vec<&str> =
        parsed.iter().filter(|line| line.has("/id") && line.str("/id") == id).map(|l| l.str("/type")).collect();
    assert_eq!(of_it, ["demoted", "completed"], "a new line continued the torn one");
}

#[test]
fn l10_records_are_complete_when_the_id_is_told() {
    let world = world();
    for round in 0..15 {
        let front = world.spawn(&["run", "--grace", "0s", "sleep", "300"]);
        let told = front.wait_stderr("the id", |text| text.contains('\n'));
        front.signal(Signal::KILL);
        drop(front.wait_killed());
        let start = told.find("wrk_").expect("an id");
        let id = &told[start..start + 36];
        for name in ["request.json", "status.json", "lease", "output.log", "control.sock"] {
            assert!(world.dir(id).join(name).exists(), "round {round}: no {name}");
        }
        let line = world.trace("demoted").into_iter().any(|line| line.str("/id") == id);
        assert!(line, "round {round}: no line in the trace");
    }
    world.outlast(&["stop", "--all", "--grace", "0s"]).ok();
}

#[test]
fn l11_demotion_stands_without_its_trace_line() {
    let world = world();
    let path = world.session_dir(&world.session()).join("trace.jsonl");
    let aside = world.session_dir(&world.session()).join("trace.aside");
    fs::rename(&path, &aside).expect("our file");
    fs::create_dir(&path).expect("a directory in its place");
    let output = world.outlast(&["run", "--grace", "0s", "--json", "sleep", "300"]).exits(75);
    let id = output.json().str("/id").to_owned();
    assert!(output.err().contains("trace"), "silent about the trace: {output:?}");
    world.status(&id).runs();
    fs::remove_dir(&path).expect("our directory");
    fs::rename(&aside, &path).expect("our file");
    world.stop(&id);
    assert_eq!(ids(&world.acked("human")), [id]);
}

#[test]
fn l15_earlier_commands_can_be_read_and_not_stopped() {
    let world = world();
    let session = world.new_session(&["--context", "project"]);
    let words = ["run", "-b", "--json", "-c", "echo kept; exit 7"];
    let id = world.call(&words).session(&session).run().ok().json().str("/id").to_owned();
    world.call(&["wait", &id]).session(&session).run().exits(7);
    world.outlast(&["session", "end", &session]).ok();
    let next = world.resume(&session);
    let ask = |verb: &[&str]| world.call(verb).session(&next).run();
    ask(&["wait", &id]).exits(7);
    assert_eq!(ask(&["logs", &id]).ok().text(), "kept\n");
    let stopped = ask(&["stop", &id]).ok();
    assert!((stopped.text() + &stopped.err()).contains("earlier session"), "{stopped:?}");
    assert!(ask(&["ps", "-a", "--json"]).ok().json().items("/commands").is_empty());
    ask(&["status", "w1"]).exits(3);
    let by_alias = world.outlast(&["status", "w1", "--json", "--session", &session]).ok().json();
    assert_eq!(by_alias.str("/id"), id);
}

#[test]
fn l15_names_in_records_are_base_names() {
    let world = world();
    let session = world.session();
    let id = bg_shell(&world, &[], "echo mine");
    world.wait(&id);
    let log = world.dir(&id).join("output.log");
    fs::rename(&log, world.dir(&id).join("kept")).expect("our file");
    symlink("/etc/passwd", &log).expect("a link");
    let read = world.outlast(&["logs", &id, "--raw"]);
    assert!(!read.text().contains("root:"), "followed a link out of the records: {read:?}");
    assert!(read.code != Some(0) && read.err().contains("output.log"), "{read:?}");
    fs::remove_file(&log).expect("our link");
    fs::rename(world.dir(&id).join("kept"), &log).expect("our file");
    assert_eq!(world.raw(&id), b"mine\n");
    assert!(world.session_dir(&session).exists());
}

/// Covers: L16, K9
#[test]
fn l16_nothing_stays_running_when_nobody_runs_it() {
    let world = world();
    let id = lose(&world, "s");
    assert_eq!(world.record(&id, "status.json").str("/phase"), "running", "the stored phase is old");
    world.status(&id).ends("lost", None);
    assert!(world.outlast(&["ps", "--json"]).ok().json().items("/commands").is_empty());
}

#[test]
fn l17_look_ends_what_a_lost_command_left() {
    let world = world();
    let id = bg_shell(&world, &[], "setsid sleep 9999 & echo $PPID $$ $! >s; exec sleep 300");
    let pids = world.wait_pids("s");
    let keeper = proc::parent_of(pids[0]);
    let stranger = world.sleeper();
    proc::signal(keeper, Signal::KILL);
    proc::signal(pids[0], Signal::KILL);
    assert!(proc::wait_gone(pids[1], AT_ONCE));
    world.status(&id).ends("lost", None);
    world.wait_until("the straggler is ended", || world.of_command(&id).is_empty());
    let leftovers = world.record(&id, "verdict.json");
    assert_eq!(leftovers.each("/leftovers", "/name"), ["sleep"]);
    assert!(stranger.lives(), "a stranger was hit");
}

/// Covers: L17
#[test]
fn l17_the_cgroup_of_what_was_killed_goes_with_a_later_keeper() {
    let world = world();
    let id = bg_shell(&world, &[], "echo $PPID $$ >s; exec sleep 300");
    let (supervisor, leader, keeper) = family(&world, "s");
    let cgroups = fs::read_to_string(format!("/proc/{leader}/cgroup")).expect("its cgroup");
    let name = cgroups.lines().find_map(|line| line.strip_prefix("0::")?.rsplit('/').next()).unwrap_or_default();
    if world.status(&id).str("/containment") != "cgroup" {
        println!("skipped: no cgroup can be made here");
        return;
    }
    let name = name.to_owned();
    let is_there = || {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("the mounts");
        let trees = mounts.lines().filter(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let own = fs::read_to_string("/proc/self/cgroup").expect("our cgroup");
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
        trees.into_iter().any(|line| {
            let root = line.split(' ').nth(1).expect("a mount point");
            std::path::Path::new(root).join(&own).join(&name).is_dir()
        })
    };
    assert!(is_there(), "{name} is not found");
    proc::signal(keeper, Signal::KILL);
    proc::signal(supervisor, Signal::KILL);
    assert!(proc::wait_gone(leader, AT_ONCE));
    world.outlast(&["run", "--", "true"]).ok();
    world.wait_until("a later keeper has gone and took it along", || !is_there());
}
