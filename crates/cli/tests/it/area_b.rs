//! Area B: demotion.

use std::io::Read;

use crate::support::*;

#[test]
fn b1_demoted_at_the_end_of_the_grace() {
    let world = world();
    let front = world.outlast(&["run", "--grace", "300ms", "-c", "sleep 1; printf PRINTED"]).exits(75);
    assert_eq!((front.text().as_str(), front.err().lines().count()), ("", 1), "{front:?}");
    let list = world.list();
    assert_eq!(list.len(), 1);
    let id = list[0].str("/id");
    list[0].runs();
    assert!(front.err().contains(id));
    assert_eq!(world.trace("demoted")[0].int("/grace_ms"), 300);
    world.wait_until("it has ended", || world.status(id).str("/phase") == "ended");
    let inbox = world.outlast(&["inbox"]).ok().text();
    assert!(inbox.contains(id) && !inbox.contains("PRINTED"), "{inbox}");
    let told = &world.acked("model")[0];
    told.ends("exited", 0);
    assert!(told.str("/output/log").starts_with(&world.state().display().to_string()));
    assert_eq!((told.int("/output/bytes"), world.raw(id).as_slice()), (7, &b"PRINTED"[..]));
}

#[test]
fn b2_grace_of_zero_demotes_at_once() {
    let world = world();
    world.call(&["run", "--grace", "0s", "sleep", "50"]).within(AT_ONCE).run().exits(75);
    assert_eq!(world.trace("demoted")[0].int("/grace_ms"), 0);
}

#[test]
fn b3_registered_before_its_id_is_returned() {
    let world = world();
    let id = world.outlast(&["run", "--json", "--grace", "0s", "sleep", "50"]).exits(75).json();
    let list = world.outlast(&["ps", "--json"]).ok().json().items("/commands");
    assert_eq!(ids(&list), [id.str("/id")]);
}

#[test]
fn b3_start_races_the_end_of_its_session() {
    let world = world();
    for _ in 0..10 {
        let session = world.new_session(&[]);
        let start = world.call(&["run", "-b", "--json", "sleep", "9999"]).session(&session).spawn();
        let end = world.spawn(&["session", "end", &session]);
        end.wait().ok();
        let started = start.wait();
        // Either it was too late and refused, or its id is known and has ended with the session.
        if started.code == Some(0) {
            let id = started.json().str("/id").to_owned();
            assert_eq!(world.wait(&id).str("/end/kind"), "abandoned");
        } else {
            started.exits(4);
        }
    }
    world.wait_until("no process is left", || world.processes().is_empty());
}

#[test]
fn b4_caller_that_goes_away_demotes() {
    let world = world();
    for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
        let name = format!("p{}", signal.as_raw());
        let front = world.spawn(&["run", "--grace", "60s", "-c", &format!("echo $$ >{name}; exec sleep 300")]);
        let leader = world.wait_pids(&name)[0];
        front.signal(signal);
        let output = front.wait_killed();
        assert!(proc::alive(leader), "{signal:?} at the front end stopped the command");
        let is_it = |one: &Json| one.str("/phase") == "running" && one.at("/pid").as_i64() == Some(i64::from(leader));
        world.wait_until("it is listed", || world.list().iter().any(is_it));
        if signal != Signal::KILL {
            let id = world.list().iter().find(|one| is_it(one)).expect("just seen").str("/id").to_owned();
            assert!(output.err().contains(&id), "{signal:?}: the id is not told: {output:?}");
        }
    }
}

#[test]
fn b4_closed_output_demotes() {
    let world = world();
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let line = "echo first; while [ ! -e go ]; do sleep .05; done; echo second; echo >said; exec sleep 300";
    let front = world.call(&["run", "--grace", "60s", "-c", line]).stdout(writer).spawn();
    let mut first = [0; 6];
    reader.read_exact(&mut first).expect("the first line");
    assert_eq!(&first, b"first\n");
    drop(reader);
    std::fs::write(world.file("go"), "").expect("a file");
    world.wait_file("said");
    world.wait_until("it is listed", || !world.list().is_empty());
    front.wait();
    let id = ids(&world.list())[0].clone();
    world.status(&id).runs();
    assert_eq!(world.raw(&id), b"first\nsecond\n");
}

/// Covers: B6, B7, B8, B9
#[test]
fn b6_text_of_a_demotion_is_constant_but_for_the_id() {
    let world = world();
    let long = format!("yes UTTERED | head -c 200000; sleep 50; : {}", "argument ".repeat(10_000));
    let rows: [&[&str]; 3] = [
        &["--grace", "100ms", "--", "sleep", "50"],
        &["--grace", "300ms", "--label", "LABEL", "-c", &long],
        &["--grace", "100ms", "-c", "printf UTTERED; sleep 50"],
    ];
    let mut texts = Vec::new();
    for row in rows {
        let output = world.outlast(&[&["run"], row].concat()).exits(75);
        let id = world.list().last().expect("it is listed").str("/id").to_owned();
        let text = output.err();
        assert!(text.len() < 400 && text.lines().count() == 1, "{text}");
        for words in [&id, "still runs", "not an error", "grace", "output is kept", "logs", "stop", "session"] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
        assert!(!text.contains("notified"), "nobody can be relied on to notify: {text}");
        for words in ["UTTERED", "LABEL", "argument", "sleep", "/"] {
            assert!(!text.contains(words), "{words:?} is in {text}");
        }
        texts.push(text.replace(&id, "ID"));
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:#?}");
    world.outlast(&["stop", "--all"]).ok();
}

#[test]
fn b8_reply_of_a_demotion_carries_its_data() {
    let world = world();
    let output = world.outlast(&["run", "--json", "--grace", "100ms", "sleep", "50"]).exits(75);
    let told = output.json();
    told.runs();
    assert!(told.bool("/demoted") && !told.bool("/output/truncated"));
    assert!(told.null("/end") && told.null("/status") && told.null("/exit_code"));
    assert_eq!(told.str("/alias"), "w1");
}

#[test]
fn b10_demotion_keeps_the_order() {
    let world = world();
    let line = "for i in $(seq 40); do echo o$i; echo e$i >&2; sleep .01; done";
    let expected: String = (1..=40).map(|i| format!("o{i}\ne{i}\n")).collect();
    let merged = world.outlast(&["run", "--json", "--grace", "150ms", "-c", line]).exits(75).json();
    world.wait(merged.str("/id"));
    assert_eq!(String::from_utf8_lossy(&world.raw(merged.str("/id"))), expected);
    let words = ["run", "--json", "--grace", "150ms", "--streams", "separate", "-c", line];
    let separate = world.outlast(&words).exits(75).json();
    let id = separate.str("/id");
    world.wait(id);
    for (name, mark) in [("stdout", 'o'), ("stderr", 'e')] {
        let text = world.outlast(&["logs", id, "--raw", "--stream", name]).ok().text();
        assert_eq!(text, (1..=40).map(|i| format!("{mark}{i}\n")).collect::<String>());
    }
    assert_eq!(world.raw(id).len(), expected.len(), "the index covers every byte once");
}

#[test]
fn b11_log_has_its_header_while_the_command_runs() {
    let world = world();
    let told =
        world.outlast(&["run", "--json", "--grace", "100ms", "-c", "printf OUT; exec sleep 50"]).exits(75).json();
    let log = std::fs::read(world.dir(told.str("/id")).join("output.log")).expect("a log");
    assert_eq!(String::from_utf8_lossy(&log), "Command: sh -c printf OUT; exec sleep 50\n\nOUT");
}

#[test]
fn b11_log_that_cannot_be_opened_is_the_completions_error() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: this user may not mount a small file system");
        return;
    };
    let world = World::with_state(BINARY, disk.0.join("state").to_str().expect("a text"));
    // The command line is long. There is room for the request and for the end, and none for the log, which
    // begins with it.
    let long = "x".repeat(100_000);
    let room = 8 * 1024 + 2 * 16_384 + 2 * long.len() + long.len() + 60_000;
    disk.leave(room);
    let words = ["run", "--json", "--grace", "300ms", "--", "sh", "-c", "printf KEPT; sleep 1; printf TAIL", &long];
    let told = world.outlast(&words).exits(75).json();
    let id = told.str("/id");
    disk.make_room();
    world.status(id).runs();
    let ended = world.wait(id);
    ended.ends("exited", 0);
    assert_eq!((ended.str("/status"), ended.output()), ("error", "KEPTTAIL"), "{ended:?}");
    assert!(ended.at("/errors").to_string().contains("output.log"), "{ended:?}");
    assert_eq!(ids(&world.acked("human")), [id]);
}

#[test]
fn b12_duration_counts_from_the_spawn() {
    let world = world();
    let told = world.outlast(&["run", "--json", "--grace", "300ms", "sleep", "1"]).exits(75).json();
    let ended = world.wait(told.str("/id"));
    assert!(ended.int("/duration_ms") >= 1000, "{ended:?}");
    assert!(ended.int("/demoted_at_ms") >= ended.int("/started_at_ms") + 300, "{ended:?}");
    assert_eq!(ended.at("/started_at_ms"), told.at("/started_at_ms"));
}
