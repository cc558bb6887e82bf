//! Area D: status and lists.

use crate::support::*;

#[test]
fn d1_first_line_is_the_fact_that_matters() {
    let world = world();
    let id = bg_shell(&world, &["--streams", "separate"], "echo out; echo err >&2; echo >p; exec sleep 300");
    world.wait_file("p");
    let text = world.outlast(&["status", &id]).ok().text();
    let (head, body) = text.split_once("\n\n").expect("an empty line before the text");
    assert!(text.lines().next().is_some_and(|line| line.contains("running")), "{text}");
    assert!(head.contains('8') && head.contains("all"), "bytes and whether all is shown: {head}");
    assert!(body.contains("out\n") && body.contains("err\n") && !body.contains("Exit code"), "{body}");
    world.stop(&id);
    let text = world.outlast(&["status", &id]).ok().text();
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains("stopped") && text.contains("143"), "{text}");
    let quiet = bg_shell(&world, &[], "exit 7");
    world.wait(&quiet);
    let text = world.outlast(&["status", &quiet]).ok().text();
    assert!(text.contains("exited") && text.contains('7') && text.contains("error"), "{text}");
}

#[test]
fn d2_unknown_is_an_answer_of_its_own() {
    let world = world();
    world.bg(&["sleep", "50"]);
    world.bg(&["sleep", "50"]);
    for verb in ["status", "logs", "wait", "stop", "send"] {
        for id in ["wrk_00000000000070008000000000000000", "w99", "ses_nothing", "wrk_zz", &"w1".repeat(200)] {
            let output = world.outlast(&[verb, id, "--eof"][..if verb == "send" { 3 } else { 2 }]).exits(3);
            let named: String = id.chars().take(40).collect();
            assert!(output.err().contains(&named), "{verb}: the id is not named as given: {output:?}");
            assert_eq!(output.text(), "", "{verb} {id}");
        }
    }
    let prefix = "wrk_0";
    let both = ids(&world.list());
    let ambiguous = world.outlast(&["status", prefix]).exits(2);
    assert!(both.iter().all(|id| ambiguous.err().contains(id)), "the matches are not named: {ambiguous:?}");
    let length = (1..36).find(|length| both[0][..*length] != both[1][..*length]).expect("two ids differ");
    let first = world.outlast(&["status", &both[0][..length], "--json"]).ok().json();
    assert_eq!(first.str("/id"), both[0]);
}

#[test]
fn d3_elapsed_of_an_ended_command_stands_still() {
    let world = world();
    let id = world.bg(&["sleep", "0.2"]);
    let told = world.wait(&id);
    assert!(told.int("/duration_ms") >= 200);
    world.outlast(&["run", "--", "sleep", "0.2"]).ok();
    assert_eq!(world.status(&id).at("/duration_ms"), told.at("/duration_ms"));
    assert_eq!(world.acked("human")[0].at("/duration_ms"), told.at("/duration_ms"));
}

/// Covers: D4, F3
#[test]
fn d4_stop_of_an_ended_command_changes_nothing() {
    let world = world();
    let id = bg_shell(&world, &[], "exit 7");
    let before = world.wait(&id);
    world.outlast(&["stop", &id]).ok();
    let after = world.status(&id);
    after.ends("exited", 7);
    assert_eq!(after.at("/end"), before.at("/end"));
}

#[test]
fn d5_status_word_of_each_end() {
    let world = world();
    let rows: [(&[&str], &str, &str); 5] = [
        (&["-c", "exit 0"], "exited", "ok"),
        (&["-c", "exit 1"], "exited", "error"),
        (&["-c", "kill -TERM $$"], "signaled", "error"),
        (&["--limit", "100ms", "-c", "trap 'exit 0' TERM; while :; do sleep .05; done"], "timed_out", "error"),
        (&["--", "no-such-program"], "spawn_failed", "error"),
    ];
    for (args, kind, status) in rows {
        let told = world.outlast(&[&["run", "--json"], args].concat()).json();
        assert_eq!((told.str("/end/kind"), told.str("/status")), (kind, status), "{args:?}");
    }
    let id = bg_shell(&world, &[], "trap 'exit 0' TERM; echo >p; while :; do sleep .05; done");
    assert!(world.status(&id).null("/status"));
    world.wait_file("p");
    world.stop(&id);
    let told = world.status(&id);
    told.ends("stopped", 0);
    assert_eq!(told.str("/status"), "error");
}

#[test]
fn d6_asking_is_not_failing() {
    let world = world();
    let running = world.bg(&["sleep", "50"]);
    let clean = bg_shell(&world, &[], "exit 0");
    let failed = bg_shell(&world, &[], "exit 7");
    let stopped = world.bg(&["sleep", "50"]);
    world.stop(&stopped);
    for (id, mark) in [(&running, None), (&clean, None), (&failed, Some("[exit:7]")), (&stopped, Some("[exit:143]"))] {
        if *id != running {
            world.wait(id);
        }
        let text = world.outlast(&["status", id]).ok().text();
        let found = text.lines().find(|line| line.starts_with("[exit:"));
        assert_eq!(found, mark, "{text}");
    }
}

#[test]
fn d8_lists_are_in_start_order_and_in_one_line_each() {
    let world = world();
    let long = format!("first {}", "word ".repeat(30));
    world.bg(&["--label", &long, "sleep", "50"]);
    bg_shell(&world, &[], "sleep 50\n: a second line\n: a third line that goes on and on and on and on and on");
    let list = world.list();
    assert!(list[0].int("/started_at_ms") <= list[1].int("/started_at_ms"));
    assert!(list[0].str("/id") < list[1].str("/id"));
    let text = world.outlast(&["ps"]).ok().text();
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("w1") || line.contains("w2")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows.iter().all(|row| row.contains('…')), "{text}");
    let shown: String = long.chars().take(49).collect();
    assert!(rows[0].contains("first word") && !rows[0].contains(&shown), "a label over 48 characters: {text}");
    assert!(!text.contains("goes on and on"), "{text}");
}

/// Covers: D9, D10
#[test]
fn d10_lists_hold_every_materialised_command() {
    let world = world();
    assert!(world.list().is_empty());
    world.outlast(&["ps", "-a"]).ok();
    let all: Vec<String> = (0..5).map(|_| world.bg(&["sleep", "50"])).collect();
    for id in &all[..3] {
        world.stop(id);
    }
    let list = world.list();
    assert_eq!(ids(&list), all);
    for (index, one) in list.iter().enumerate() {
        assert_eq!(one.str("/phase"), if index < 3 { "ended" } else { "running" });
        assert!(one.has("/output/log") && one.int("/output/bytes") == 0);
    }
    let running = world.outlast(&["ps", "--json"]).ok().json();
    assert_eq!(ids(&running.items("/commands")), all[3..]);
}
