//! Area G: completions.

use crate::support::*;

fn ended(world: &World, options: &[&str], line: &str) -> String {
    let id = bg_shell(world, options, line);
    world.wait_until("it has ended", || world.status(&id).str("/phase") == "ended");
    id
}

#[test]
fn g1_told_once_to_each_consumer() {
    let world = world();
    let id = ended(&world, &[], "exit 3");
    for consumer in ["model", "human", "hook"] {
        assert_eq!(ids(&world.acked(consumer)), [id.as_str()], "{consumer}");
        assert!(world.acked(consumer).is_empty(), "{consumer}");
    }
}

#[test]
fn g1_showing_is_not_telling_and_a_wait_is() {
    let world = world();
    let id = ended(&world, &[], "exit 3");
    for _ in 0..2 {
        let shown = world.outlast(&["inbox", "--json"]).ok().json();
        assert_eq!(shown.each("/completions", "/id"), [id.as_str()]);
        assert!(!shown.items("/completions")[0].bool("/redelivered"));
    }
    world.outlast(&["wait", &id]).exits(3);
    assert!(world.acked("model").is_empty());
    assert_eq!(ids(&world.acked("human")), [id.as_str()]);
}

#[test]
fn g1_stop_that_tells_the_end_consumes_it() {
    let world = world();
    let id = world.bg(&["sleep", "50"]);
    world.stop(&id);
    assert!(world.acked("model").is_empty());
    assert_eq!(ids(&world.acked("human")), [id.as_str()]);
}

#[test]
fn g1_consumer_is_taken_from_the_environment() {
    let world = world();
    let id = ended(&world, &[], "exit 3");
    let ack = |words: &[&str]| world.call(words).env("OUTLAST_CONSUMER", "hook").run().ok().json();
    assert_eq!(ack(&["inbox", "--ack", "--json"]).each("/completions", "/id"), [id.as_str()]);
    assert!(ack(&["inbox", "--ack", "--json"]).items("/completions").is_empty());
    assert_eq!(ids(&world.acked("model")), [id.as_str()]);
}

#[test]
fn g1_race_of_waits_and_acks_tells_once() {
    let world = world();
    for round in 0..10 {
        let id = bg_shell(&world, &["--stdin"], "read x");
        world.outlast(&["send", &id, "go"]).ok();
        let acks: Vec<_> = (0..3).map(|_| world.spawn(&["inbox", "--ack", "--json"])).collect();
        world.outlast(&["wait", &id]).ok();
        for ack in acks {
            ack.wait().ok();
        }
        assert!(world.acked("model").is_empty());
        let lines = world.trace("completed");
        let told = lines.iter().filter(|line| line.str("/id") == id && line.str("/consumer") == "model").count();
        assert_eq!(told, 1, "round {round}");
    }
}

#[test]
fn g3_text_of_a_completion_has_one_form() {
    let world = world();
    let notice = |options: &[&str], line: &str| {
        let id = ended(&world, options, line);
        let text = world.outlast(&["inbox"]).ok().text();
        assert_eq!(ids(&world.acked("model")), [id.as_str()]);
        assert!(text.contains(&id), "{text}");
        text
    };
    let ok = notice(&[], "echo UTTERED");
    let error = notice(&[], "echo UTTERED; exit 7");
    let limited = notice(&["--limit", "200ms"], "echo UTTERED; sleep 50");
    let texts = [&ok, &error, &limited];
    for text in texts {
        assert_eq!(text.lines().next(), ok.lines().next(), "opening lines differ");
        assert_eq!(text.trim_end().lines().last(), ok.trim_end().lines().last(), "closing lines differ");
        assert!(!text.contains("UTTERED"), "output or command in a notice: {text}");
        assert!(text.contains("/output.log"), "{text}");
    }
    assert!(ok.contains("ok") && error.contains("error") && error.contains('7'), "{ok}{error}");
    assert!(limited.contains("limit") && limited.contains("124") && limited.contains("error"), "{limited}");
}

/// Covers: G3, G13
#[test]
fn g13_completion_names_what_runs_on() {
    let world = world();
    let id = ended(&world, &[], "sleep 60 >/dev/null 2>&1 & nohup sleep 61 >/dev/null 2>&1 & echo started");
    let text = world.outlast(&["inbox"]).ok().text();
    let told = &world.acked("model")[0];
    assert_eq!(told.str("/id"), id);
    assert_eq!(told.survivors(), ["sleep", "sleep"]);
    for one in told.items("/survivors") {
        assert!(text.contains(&one.int("/pid").to_string()), "{text}");
    }
    let killed = ended(&world, &["--survivors", "kill"], "sleep 60 >/dev/null & echo $! >p; echo started");
    let pid = world.wait_file("p");
    let text = world.outlast(&["inbox"]).ok().text();
    assert!(text.contains(&killed) && text.contains(&pid), "silent about whom it ended: {text}");
}

#[test]
fn g4_end_time_is_the_reap() {
    let world = world();
    let id = ended(&world, &[], "sleep 60 & echo X");
    let first = world.status(&id).int("/ended_at_ms");
    world.outlast(&["run", "--", "sleep", "0.3"]).ok();
    assert_eq!(world.status(&id).int("/ended_at_ms"), first);
    assert_eq!(world.acked("model")[0].int("/ended_at_ms"), first);
    assert_eq!(world.record(&id, "exit.json").int("/ended_at_ms"), first);
    let told = world.status(&id);
    assert!(told.int("/duration_ms") < 2000, "the drain counts as running: {told:?}");
}

/// Covers: G5, G8
#[test]
fn g5_foreground_session_has_no_notices() {
    let world = world();
    for _ in 0..3 {
        world.outlast(&["run", "--", "true"]).ok();
    }
    assert!(!world.session_dir(&world.session()).join("inbox.json").exists());
    let id = ended(&world, &[], "exit 3");
    assert!(world.dir(&id).join("exit.json").exists(), "nobody listens, but the record is there");
}

/// Covers: G1
#[test]
fn g1_what_is_said_into_a_closed_output_stays_to_be_told() {
    let world = world();
    let id = ended(&world, &[], "exit 3");
    for verb in ["inbox --ack", "inbox --ack --json", &format!("wait {id}")] {
        world.shell(&format!("outlast {verb} >&-")).run();
        assert_eq!(world.outlast(&["inbox", "--json"]).ok().json().items("/completions").len(), 1, "{verb}");
    }
    // Whoever throws it away has asked for that.
    world.shell("outlast inbox --ack >/dev/null").run().ok();
    assert!(world.outlast(&["inbox", "--json"]).ok().json().items("/completions").is_empty());
}

#[test]
fn g14_the_form_of_delivery_is_kept_and_every_one_is_pending() {
    let world = world();
    let plain = ended(&world, &[], "exit 3");
    assert!(!world.record(&plain, "exit.json").has("/delivery"), "a record without a choice has no word of it");
    let mut all = vec![plain];
    for form in ["note", "poll"] {
        let id = ended(&world, &["--delivery", form], "exit 3");
        for record in ["request.json", "exit.json"] {
            assert_eq!(world.record(&id, record).str("/delivery"), form);
        }
        all.push(id);
    }
    world.outlast(&["wait", &all[2]]).exits(3);
    assert_eq!(ids(&world.acked("model")), all[..2], "the wait told the one that is never pushed");
    assert_eq!(ids(&world.acked("human")), all);
    world.outlast(&["run", "-b", "--delivery", "pigeon", "--", "true"]).exits(2);
}

/// Covers: G9, L2
#[test]
fn g9_batch_of_lost_work_is_one_notice() {
    let world = world();
    let session = world.session();
    let mut all = Vec::new();
    let mut watchers = Vec::new();
    for number in 0..10 {
        let name = format!("s{number}");
        all.push(bg_shell(&world, &[], &format!("echo $PPID $$ >{name}; exec sleep 300")));
        let (supervisor, leader, keeper) = family(&world, &name);
        watchers.push((supervisor, leader, keeper));
    }
    proc::signal(watchers[0].2, Signal::KILL);
    for (supervisor, leader, _) in &watchers {
        proc::signal(*supervisor, Signal::KILL);
        assert!(proc::wait_gone(*leader, AT_ONCE));
    }
    world.kill_anchor(&session, Signal::KILL);
    let next = world.resume(&session);
    let text = world.call(&["inbox"]).session(&next).run().ok().text();
    assert_eq!(text.matches("No exit code is known").count(), 1, "{text}");
    let places: Vec<usize> = all.iter().map(|id| text.find(id.as_str()).expect("it is named")).collect();
    assert!(places.is_sorted(), "in the order of their ids: {text}");
    let mut reports: Vec<String> =
        all.iter().map(|id| world.record(id, "verdict.json").str("/report").to_owned()).collect();
    reports.dedup();
    assert_eq!(reports.len(), 1);
    assert!(text.contains(&reports[0]), "{text}");
}

#[test]
fn g11_whoever_saw_the_end_finds_the_completion() {
    let world = world();
    for round in 0..30 {
        let id = bg_shell(&world, &[], "exit 3");
        world.outlast(&["wait", &id]).exits(3);
        assert_eq!(ids(&world.acked("human")), [id], "round {round}");
    }
}
