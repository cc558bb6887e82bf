//! Area R: security and policy.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use outlast_testkit::mcp::{Client, Era};
use serde_json::json;

use crate::support::*;

/// Two tokens: one known by its form, one by the name of its variable.
const TOKEN: &str = "ghp_000000000000000000000000000000000000";
const WORD: &str = "correct-horse-battery";

/// A policy file with this text.
fn policy(world: &World, text: &str) -> String {
    let path = world.root().join("policy.toml");
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

#[track_caller]
fn hides(text: &str) {
    for secret in [TOKEN, WORD] {
        let half = &secret[secret.len() / 2 - 4..secret.len() / 2 + 4];
        assert!(!text.contains(half), "{half} of a secret in {text}");
    }
    assert!(text.contains("********"), "nothing is masked: {text}");
}

fn server(world: &World) -> Client {
    world.mcp(Era::Modern, &["--session", &world.session()])
}

/// Covers: R5
#[test]
fn case_118_secrets_in_text_for_a_model() {
    let world = world();
    let (known, word) = (format!("X_TOKEN={TOKEN}"), format!("MY_PASSWORD={WORD}"));
    let env = ["-e", &known, "-e", &word];
    let line = "printenv X_TOKEN MY_PASSWORD; printenv X_TOKEN MY_PASSWORD >seen";
    let run = |options: &[&str]| world.outlast(&[&["run"], options, &env, &["-c", line]].concat()).ok();
    let seen = || fs::read_to_string(world.file("seen")).expect("what the command saw");
    // In the foreground, as text and as JSON; the command saw the real ones.
    hides(&run(&[]).text());
    assert_eq!(seen(), format!("{TOKEN}\n{WORD}\n"));
    let object = run(&["--json"]).json();
    hides(object.str("/output/text"));
    // In the background, by every way out, in another process: of that only the form is known.
    let label = format!("uses {TOKEN}");
    let id = run(&["-b", "--label", &label]).text().split_whitespace().nth(1).expect("an id").to_owned();
    world.wait(&id);
    for call in [
        &["status", &id][..],
        &["status", &id, "--json"],
        &["logs", &id],
        &["logs", &id, "--raw"],
        &["logs", &id, "-f"],
        &["logs", &id, "--tail", "2"],
        &["logs", &id, "--grep", "."],
        &["logs", &id, "--offset", "0", "--bytes", "20"],
        &["logs", &id, "--offset", "20", "--raw"],
        &["wait", &id, "--json"],
        &["ps", "-a", "--json"],
    ] {
        let out = world.call(call).env("MY_PASSWORD", WORD).run();
        hides(&out.text());
    }
    let log = world.dir(&id).join("output.log");
    let text = fs::read_to_string(&log).expect("a log");
    assert!(text.contains(TOKEN) && text.contains(WORD), "on disk it is as it came: {text}");
    assert_eq!(log.metadata().expect("a log").permissions().mode() & 0o777, 0o600);
}

/// Covers: R5
#[test]
fn r5_every_reply_of_the_server_is_masked() {
    let world = world();
    let mut client = server(&world);
    let entry = format!("MY_PASSWORD={WORD}");
    let line = format!("printenv MY_PASSWORD; echo {TOKEN}; : {WORD}");
    let reply = client.tool("run", json!({"command": line, "env": [entry]}));
    hides(&reply.text);
    let started = json!({"command": line, "env": [entry], "background": true, "label": format!("by {TOKEN}")});
    let id = client.tool("run", started).command().str("/id").to_owned();
    world.wait(&id);
    for (tool, arguments) in [
        ("list", json!({"all": true})),
        ("read", json!({"id": id})),
        ("read", json!({"id": id, "raw": true})),
        ("read", json!({"id": id, "head": 1})),
        ("read", json!({"id": id, "grep": "."})),
        ("read", json!({"id": id, "offset": 10, "bytes": 30})),
        ("wait", json!({"id": id})),
        ("stop", json!({"id": id})),
    ] {
        client.tool(tool, arguments);
    }
    // With everything beside the text that programs read.
    hides(&client.front().stdout());
}

/// Covers: R5
#[test]
fn r5_a_live_read_between_two_halves_shows_none_of_them() {
    let world = world();
    fs::write(world.file("one"), format!("x {}", &TOKEN[..20])).expect("a file");
    fs::write(world.file("two"), format!("{}\n", &TOKEN[20..])).expect("a file");
    let line = "cat one; echo >p; while [ ! -e go ]; do sleep .05; done; cat two; echo >q; exec sleep 300";
    let id = bg_shell(&world, &[], line);
    world.wait_file("p");
    world.wait_until("the first half was captured", || world.status(&id).int("/output/bytes") == 22);
    let reads = [&["logs", &id][..], &["logs", &id, "--raw"], &["status", &id], &["status", &id, "--json"]];
    let shown = || -> Vec<String> { reads.iter().map(|call| world.outlast(call).ok().text()).collect() };
    shown().iter().for_each(|text| hides(text));
    fs::write(world.file("go"), "").expect("a file");
    world.wait_file("q");
    world.wait_until("the rest was captured", || world.status(&id).int("/output/bytes") == 43);
    shown().iter().for_each(|text| hides(text));
    for from in 2..42 {
        let text = world.outlast(&["logs", &id, "--raw", "--offset", &from.to_string(), "--bytes", "9"]).ok().text();
        assert!(!text.contains('0') && !text.contains("ghp"), "from {from}: {text}");
    }
}

/// Covers: R5
#[test]
fn r5_it_can_be_switched() {
    let world = world();
    let file = policy(&world, "redact = false\n");
    let echo = ["run", "--", "echo", TOKEN];
    assert_eq!(world.call(&echo).env("OUTLAST_POLICY", file).run().ok().text(), format!("{TOKEN}\n"));
    // A person reads what came.
    assert_eq!(world.call(&echo).env("OUTLAST_CONSUMER", "human").run().ok().text(), format!("{TOKEN}\n"));
    let file = policy(&world, "redact = true\n");
    hides(&world.call(&echo).env("OUTLAST_CONSUMER", "human").env("OUTLAST_POLICY", file).run().ok().text());
    let broken = policy(&world, "redact = perhaps\n");
    let refused = world.call(&echo).env("OUTLAST_POLICY", broken.clone()).run().exits(2);
    assert!(refused.err().contains(&broken) && refused.text().is_empty(), "{refused:?}");
}

/// Covers: R5, R8
#[test]
fn r8_what_was_masked_is_traced_once_without_the_text() {
    let world = world();
    let id = world.bg(&["-c", &format!("echo {TOKEN}; echo {TOKEN}; echo postgres://me:hunter22@host/db")]);
    world.wait(&id);
    for _ in 0..3 {
        world.outlast(&["logs", &id]).ok();
        world.status(&id);
    }
    let raw = fs::read_to_string(world.session_dir(&world.session()).join("trace.jsonl")).expect("a trace");
    let lines: Vec<&str> = raw.lines().filter(|line| line.contains(r#""type":"redacted""#)).collect();
    assert_eq!(lines.len(), 1, "{raw}");
    assert!(lines[0].contains(&id) && lines[0].contains(r#""github":"#) && !lines[0].contains(TOKEN), "{}", lines[0]);
    // The trace as it is shown hides what the command line has.
    hides(&world.outlast(&["trace", "--json"]).ok().text());
    hides(&world.outlast(&["trace"]).ok().text());
}

/// Covers: R5
#[test]
fn r5_the_report_of_a_session_is_masked() {
    let world = world();
    let session = world.session();
    bg_shell(&world, &["--label", &format!("by {TOKEN}")], &format!("exec sleep 300 # {TOKEN}"));
    hides(&world.outlast(&["session", "end", &session, "--json"]).ok().text());
    hides(&world.outlast(&["session", "end", &session, "--json"]).ok().text());
    let report = fs::read_to_string(world.session_dir(&session).join("closed.json")).expect("a report");
    assert!(report.contains(TOKEN), "on disk it is as it came: {report}");
}

/// Covers: C21
#[test]
fn c21_withheld_output_comes_with_the_end() {
    let world = world();
    let file = policy(&world, "live_output = \"withheld\"\n");
    let call = |args: &[&str]| world.call(args).env("OUTLAST_POLICY", file.clone()).run();
    let id = bg_shell(&world, &[], "echo visible; echo >p; while [ ! -e go ]; do sleep .05; done; echo later");
    world.wait_file("p");
    world.wait_until("it was captured", || world.status(&id).int("/output/bytes") == 8);
    assert_eq!(world.status(&id).str("/output/text"), "visible\n", "by default it is shown");
    let object = call(&["status", &id, "--json"]).ok().json();
    assert_eq!((object.str("/output/text"), object.int("/output/bytes")), ("", 8));
    assert!(object.bool("/output/withheld"), "{object:?}");
    for args in [&["status", &id][..], &["logs", &id], &["logs", &id, "--raw"], &["wait", &id, "--timeout", "100ms"]] {
        assert!(!call(args).text().contains("visible"), "{args:?}");
    }
    fs::write(world.file("go"), "").expect("a file");
    world.wait(&id);
    let object = call(&["status", &id, "--json"]).ok().json();
    assert_eq!(object.str("/output/text"), "visible\nlater\n");
    assert!(!object.bool("/output/withheld"));
    assert_eq!(call(&["logs", &id]).ok().text(), "visible\nlater\n");
    // In the foreground it comes at the end, all of it.
    assert_eq!(call(&["run", "-c", "echo one; echo two >&2"]).ok().text(), "one\ntwo\n");
}

/// A token no part of which stands anywhere by chance.
const MIXED: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// Everything that is stored in the state directory, whatever its name.
fn stored(world: &World) -> String {
    let mut dirs = vec![world.state()];
    let mut all = String::new();
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).expect("a directory").flatten() {
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                all += &String::from_utf8_lossy(&fs::read(entry.path()).expect("a file"));
            }
        }
    }
    all
}

/// Covers: R5
#[test]
fn r5_at_rest_nothing_has_a_secret_where_that_is_the_policy() {
    let world = world();
    let file = policy(&world, "at_rest = \"redacted\"\n");
    let (known, word) = (format!("X_TOKEN={MIXED}"), format!("MY_PASSWORD={WORD}"));
    // In two halves, on both streams, and without an end of line; the command sees the real ones.
    for (name, text) in [("a", &MIXED[..20]), ("b", &WORD[..9]), ("c", &MIXED[20..]), ("d", &WORD[9..])] {
        fs::write(world.file(name), text).expect("a file");
    }
    let line = "printenv X_TOKEN MY_PASSWORD >seen; printf before; cat a; cat b >&2; \
                while [ ! -e go ]; do sleep .05; done; cat c; cat d >&2; exit 3";
    let run = |options: &[&str]| {
        let words = [&["run"], options, &["-e", &known, "-e", &word, "--label", MIXED, "-c", line]].concat();
        world.call(&words).env("OUTLAST_POLICY", &file).env("OUTLAST_CONSUMER", "human")
    };
    let id = run(&["-b", "--json", "--streams", "separate"]).run().ok().json().str("/id").to_owned();
    world.wait_until("it has printed the first half", || world.status(&id).int("/output/bytes") >= 6);
    hides_all(&world.outlast(&["logs", &id, "--raw"]).ok().text());
    fs::write(world.file("go"), "").expect("a file");
    world.wait(&id).ends("exited", 3);
    assert_eq!(fs::read_to_string(world.file("seen")).expect("what it saw"), format!("{MIXED}\n{WORD}\n"));
    let all = stored(&world);
    hides_all(&all);
    let log = fs::read_to_string(world.dir(&id).join("output.log")).expect("the log");
    let output = log.split("\n\n").nth(1).expect("the output");
    assert_eq!(output.len(), 6 + MIXED.len() + WORD.len(), "a mask changes no length: {output}");
    assert!(all.contains("\"type\":\"redacted\""), "it is in the trace: {all}");
    // In the foreground it is the same, also where no records are made.
    let told = run(&["--streams", "separate"]).run().exits(3);
    hides_all(&(told.text() + &told.err()));
    assert!(told.text().starts_with("before****"), "{told:?}");
    hides_all(&stored(&world));
    // What waits for its end, which does not come, is not lost.
    for options in [&[][..], &["--json"], &["-b", "--json"]] {
        let words = [&["run"], options, &["--", "printf", "x ghp_"]].concat();
        let output = world.call(&words).env("OUTLAST_POLICY", &file).run().ok();
        let text = match options {
            [] => output.text(),
            ["--json"] => output.json().output().to_owned(),
            _ => world.wait(output.json().str("/id")).output().to_owned(),
        };
        assert_eq!(text, "x ghp_", "{options:?}");
    }
    // Off: what came is stored, in private files.
    world.shell(&format!("outlast run -b -e {word} -c 'printenv MY_PASSWORD'")).run().ok();
    world.wait_until("the log has it", || stored(&world).contains(WORD));
}

#[track_caller]
fn hides_all(text: &str) {
    for secret in [MIXED, WORD] {
        for part in [&secret[..9], &secret[secret.len() - 9..]] {
            assert!(!text.contains(part), "{part} of a secret in {text}");
        }
    }
}

/// Covers: R5
#[test]
fn r5_no_form_of_printing_shows_a_secret() {
    let world = world();
    let file = policy(&world, "at_rest = \"redacted\"\n");
    let (known, word) = (format!("X_TOKEN={MIXED}"), format!("MY_PASSWORD={WORD}"));
    let (one, two) = MIXED.split_at(20);
    let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let lines = [
        "printf '\\033]0;%s\\007v\\n' $X_TOKEN".to_owned(),
        "printf '\\033]8;;http://x/%s\\033\\\\v\\n' $MY_PASSWORD".to_owned(),
        format!("printf '{one}\\302\\2330m{two}\\n'"),
        format!("printf '{one}\\2330m{two}\\n'"),
        format!("printf '{{\"log\":\"line\\\\n{MIXED}\"}} token%%3D{MIXED}\\n'"),
        format!("printf 'x {key}' | sed 's/^x /-----BEGIN PRIVATE KEY----- /'; echo"),
        format!("printf -- '-----BEGIN RSA PRIVATE KEY-----\\n{key}\\n' | cat -n"),
    ];
    for line in &lines {
        let call = || world.call(&["run", "-e", &known, "-e", &word, "-c", line]);
        let shown = call().run().ok().text();
        hides_all(&shown);
        assert!(shown.contains("*******") && !shown.contains(&key[..9]), "{line}: {shown}");
        let stored_too = call().env("OUTLAST_POLICY", &file).env("OUTLAST_CONSUMER", "human").run().ok().text();
        hides_all(&stored_too);
        assert_eq!(stored_too, shown, "{line}");
        let id = world.bg(&["-e", &known, "-e", &word, "-c", line]);
        world.wait(&id);
        for call in [&["logs", &id][..], &["logs", &id, "--raw"], &["logs", &id, "-f", "--raw"], &["status", &id]] {
            let text = world.call(call).env("MY_PASSWORD", WORD).run().ok().text();
            hides_all(&text.replace(line, ""));
            assert!(!text.replace(line, "").contains(&key[..9]), "{line} by {call:?}: {text}");
        }
    }
}

/// Covers: R5, C21
#[test]
fn r5_what_may_become_a_secret_is_not_shown_before() {
    let world = world();
    let word = format!("MY_PASSWORD={WORD}");
    fs::write(world.file("one"), "https://u:12345678").expect("a file");
    let line = "cat one; echo >p; while [ ! -e go ]; do sleep .05; done; printf '@host/\\n'; printf cor; echo >q; \
                while [ ! -e on ]; do sleep .05; done; echo rect-horse-battery";
    let id = bg_shell(&world, &["-e", &word], line);
    let reads = |expected: &str| {
        for call in [&["logs", &id][..], &["logs", &id, "--raw"]] {
            assert_eq!(world.call(call).env("MY_PASSWORD", WORD).run().ok().text(), expected, "{call:?}");
        }
    };
    world.wait_file("p");
    world.wait_until("the first part was captured", || world.status(&id).int("/output/bytes") == 18);
    reads("https://u:********");
    fs::write(world.file("go"), "").expect("a file");
    world.wait_file("q");
    world.wait_until("the second was captured", || world.status(&id).int("/output/bytes") == 28);
    reads("https://u:********@host/\n***");
    fs::write(world.file("on"), "").expect("a file");
    world.wait(&id);
    reads("https://u:********@host/\n*********************\n");
}

/// Covers: R5, C21
#[test]
fn r5_a_wait_for_output_says_nothing_of_what_is_not_shown() {
    let world = world();
    let word = format!("MY_PASSWORD={WORD}");
    let line = "printenv MY_PASSWORD; echo visible; echo >p; while [ ! -e go ]; do sleep .05; done; printf tail";
    let id = bg_shell(&world, &["-e", &word], line);
    let wait = |until: &str, time: &str| {
        let call = world.call(&["wait", &id, "--until", until, "--timeout", time]);
        call.env("MY_PASSWORD", WORD)
    };
    world.wait_file("p");
    wait("output:^[*]{21}$", "60s").run().ok();
    let file = policy(&world, "live_output = \"withheld\"\n");
    wait("output:visible", "200ms").env("OUTLAST_POLICY", &file).run().exits(124);
    wait("output:^c", "200ms").run().exits(124);
    fs::write(world.file("go"), "").expect("a file");
    world.wait(&id);
    for (until, code) in [("visible", 0), ("tail$", 0), ("^c", 1), ("horse", 1), ("^[*]{21}$", 0)] {
        wait(&format!("output:{until}"), "60s").run().exits(code);
        wait(&format!("output:{until}"), "60s").env("OUTLAST_POLICY", &file).run().exits(code);
    }
}

/// Covers: R5
#[test]
fn r5_two_streams_that_take_turns_show_no_half() {
    let world = world();
    let word = format!("MY_PASSWORD={WORD}");
    fs::write(world.file("a"), &WORD[..9]).expect("a file");
    fs::write(world.file("b"), &WORD[9..]).expect("a file");
    let wait = |file: &str| format!("while [ ! -e {file} ]; do sleep .05; done");
    let line = format!("cat a; {}; echo E >&2; {}; cat b; echo; echo end", wait("one"), wait("two"));
    let id = bg_shell(&world, &["--streams", "separate", "-e", &word], &line);
    let came = |bytes| world.wait_until("it was captured", || world.status(&id).int("/output/bytes") == bytes);
    let shown = || {
        for call in [
            &["status", &id][..],
            &["status", &id, "--json"],
            &["logs", &id],
            &["logs", &id, "--raw"],
            &["logs", &id, "--stream", "stdout"],
            &["logs", &id, "--offset", "4", "--raw"],
            &["logs", &id, "--offset", "11"],
        ] {
            let text = world.call(call).env("MY_PASSWORD", WORD).run().ok().text();
            for part in [&WORD[4..9], &WORD[9..14]] {
                assert!(!text.contains(part), "{part} by {call:?}: {text}");
            }
        }
    };
    came(9);
    shown();
    fs::write(world.file("one"), "").expect("a file");
    came(11);
    shown();
    fs::write(world.file("two"), "").expect("a file");
    let ended = world.call(&["wait", &id, "--json"]).env("MY_PASSWORD", WORD).run().ok().json();
    assert_eq!(ended.str("/output/text"), "*********E\n************\nend\n");
    shown();
    let text = world.call(&["logs", &id, "-f", "--offset", "4"]).env("MY_PASSWORD", WORD).run().ok().text();
    assert!(!text.contains(&WORD[4..9]) && !text.contains(&WORD[12..]), "{text}");
    // In the foreground, where there is no log.
    let object = world.outlast(&["run", "--json", "--streams", "separate", "-e", &word, "-c", &line]).ok().json();
    assert!(!object.str("/output/text").contains(&WORD[4..9]), "{object:?}");
}

/// Covers: R5
#[test]
fn r5_names_of_processes_and_sessions_are_masked() {
    let world = world();
    // A process is named by the file it is made of, of which the kernel keeps 15 bytes.
    let name = "zqxwvutsrqpon9m8";
    let word = format!("MY_PASSWORD={name}");
    fs::copy("/bin/sleep", world.file(name)).expect("a copy");
    let call = |args: &[&str]| world.call(args).env("MY_PASSWORD", name).run();
    let mut shown = Vec::new();
    for form in [&["--json"][..], &[]] {
        let words = [&["run"], form, &["-e", &word, "-c", "./$MY_PASSWORD 300 & exit 0"]].concat();
        let told = call(&words).ok();
        shown.push(told.text());
        shown.push(told.err());
    }
    let id = outlast_testkit::Json::parse(&shown[0]).str("/id").to_owned();
    for args in [&["ps"][..], &["ps", "--json"], &["status", &id], &["status", &id, "--json"], &["trace"]] {
        shown.push(call(args).ok().text());
    }
    for args in [&["stop", &id][..], &["stop", "--all", "--json"]] {
        let told = call(args).ok();
        shown.push(told.text() + &told.err());
    }
    shown.iter().for_each(|text| assert!(!text.contains(&name[..6]), "{text}"));
    assert!(shown[0].contains("***************"), "{}", shown[0]);
    let started = call(&["session", "start", "--context", name, "--json"]).ok();
    let session = outlast_testkit::Json::parse(&started.text()).str("/id").to_owned();
    let bound = world.root().join(name);
    fs::create_dir(&bound).expect("a directory");
    call(&["session", "bind", &session, &bound.display().to_string()]).ok();
    let listed = [&["session", "list"][..], &["session", "list", "--json"], &["session", "show", &session, "--json"]];
    let mut shown: Vec<String> = listed.iter().map(|args| call(args).ok().text()).collect();
    shown.push(started.text());
    for text in shown {
        assert!(!text.contains(&name[..6]) && text.contains("******"), "{text}");
    }
    call(&["session", "end", &session]).ok();
}

/// Covers: R5
#[test]
fn r5_an_error_that_repeats_an_argument_is_masked() {
    let world = world();
    for args in [
        &["status", WORD][..],
        &["status", TOKEN],
        &["logs", WORD, "--session", &world.session()],
        &["stop", TOKEN],
        &["ps", "--session", WORD],
        &["run", "--limit", WORD, "--", "true"],
        &["run", "--right", TOKEN, "--", "true"],
        &["wait", WORD],
    ] {
        let failed = world.call(args).env("MY_PASSWORD", WORD).run();
        let text = failed.text() + &failed.err();
        assert!(!text.contains(&WORD[4..12]) && !text.contains(&TOKEN[..12]), "{args:?}: {text}");
        assert!(text.contains("*******"), "{args:?}: {text}");
    }
}
