//! Hooks of agent hosts: what is told, in which form, and what a hook never does.

use crate::support::*;

/// Runs a shell script whose shell stands in for an agent host: under a name that is no wrapper. `$S` is a session
/// that is anchored on it, and `event NAME [JSON]` a file with that event.
fn host(world: &World, script: &str) -> Output {
    let host = world.file("fakehost");
    if !host.exists() {
        std::fs::copy("/bin/sh", &host).expect("there is a shell");
    }
    let text = format!(
        "S=$(outlast session start --context fake --anchor $$ | grep -o 'ses_[0-9a-f]*' | head -n 1)\n\
         event() {{ printf '{{\"hook_event_name\":\"%s\"%s}}' \"$1\" \"$2\" >event.json; }}\n\
         ended() {{ outlast wait --session $S --consumer human \"$@\" >/dev/null; }}\n\
         start() {{ outlast run --session $S -b \"$@\" | grep -o 'wrk_[0-9a-f]*' | head -n 1; }}\n\
         files() {{ find $OUTLAST_STATE_DIR ! -name 'keeper*' ! -name 'exit.tmp' | sort; \
         cat $(find $OUTLAST_STATE_DIR -name inbox.json) /dev/null; }}\n\
         {script}\n:\n"
    );
    std::fs::write(world.file("script"), text).expect("a file");
    world.shell("./fakehost script").run()
}

fn bare() -> World {
    World::bare(BINARY, "state")
}

/// The answers of a script that printed nothing else, one object a line.
#[track_caller]
fn answers(out: &Output) -> Vec<Json> {
    out.text().lines().map(Json::parse).collect()
}

/// The text for the model, without what differs from run to run.
#[track_caller]
fn context(answer: &Json, event: &str) -> String {
    assert_eq!(answer.str("/hookSpecificOutput/hookEventName"), event);
    plain(answer.str("/hookSpecificOutput/additionalContext"))
}

fn plain(text: &str) -> String {
    let shown = text.lines().map(|line| {
        let word = |word: &str| if word.starts_with("wrk_") { "ID".to_owned() } else { word.trim_end().to_owned() };
        match line.split_once(": ") {
            Some((name @ ("duration" | "log"), _)) => format!("{name}: X"),
            _ if line.starts_with("- wrk_") => line
                .split(", for ")
                .next()
                .map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" "))
                .unwrap_or_default(),
            _ => line.split(' ').map(word).collect::<Vec<_>>().join(" "),
        }
    });
    shown.collect::<Vec<_>>().join("\n")
}

const ENDED: &str = "Machine event of outlast: a background command has ended.\n\
                     command: ID label \"the \\\"build\\\"\"\n\
                     end: exited\n\
                     exit code: 3 (error)\n\
                     duration: X\n\
                     log: X\n\
                     End of the machine event; no person wrote it.";

const RUNS: &str = "Machine event of outlast: background commands of this session still run.\n\
                    - ID label \"server\"\n\
                    End of the machine event; no person wrote it.";

/// Covers: G1, G5, T2
#[test]
fn g5_each_host_is_told_an_end_once_in_its_own_form() {
    for (name, events) in [
        ("claude", ["UserPromptSubmit", "PostToolUse"]),
        ("codex", ["UserPromptSubmit", "PostToolUse"]),
        ("gemini", ["BeforeAgent", "AfterTool"]),
    ] {
        for event in events {
            let world = bare();
            let out = host(
                &world,
                &format!(
                    "W=$(start --label 'the \"build\"' -c 'echo UTTERED; exit 3'); ended $W\n\
                     event {event}; outlast hook {name} <event.json; outlast hook {name} <event.json\n\
                     outlast trace $S --json >trace"
                ),
            );
            let told = answers(&out.ok());
            assert_eq!(told.len(), 1, "{name} {event}: told once, and then nothing");
            assert_eq!(context(&told[0], event), ENDED, "{name}");
            let trace = std::fs::read_to_string(world.file("trace")).expect("a trace");
            let lines: Vec<Json> = trace.lines().map(Json::parse).collect();
            let hooked =
                lines.iter().filter(|line| line.str("/type") == "completed" && line.str("/consumer") == "model");
            let ways: Vec<&str> = hooked.map(|line| line.str("/delivered_via")).collect();
            assert_eq!(ways, ["hook"], "{name} {event}");
        }
    }
}

#[test]
fn g5_the_plugin_of_opencode_gets_bare_words() {
    let world = bare();
    let out = host(
        &world,
        "W=$(start --label 'the \"build\"' -c 'exit 3'); ended $W; R=$(start --label server -- sleep 60)\n\
         event session.start; outlast hook opencode <event.json\n\
         event experimental.session.compacting; outlast hook opencode <event.json\n\
         event session.idle; outlast hook opencode <event.json\n\
         event tool.execute.before ',\"tool_name\":\"bash\",\"tool_input\":{\"command\":\"make\"}'\n\
         outlast hook opencode --redirect <event.json\n\
         event chat.message; outlast hook opencode <event.json",
    )
    .ok();
    let told = answers(&out);
    assert_eq!(plain(told[0].str("/context")), format!("{ENDED}\n{RUNS}"));
    assert_eq!(plain(told[1].str("/context")), RUNS);
    assert!(told[2].str("/notice").contains("1 command of this session still runs: wrk_"), "{told:?}");
    assert!(told[3].str("/deny").contains("the `run` tool of outlast"), "{told:?}");
    assert_eq!(told.len(), 4, "{told:?}");
}

#[test]
fn g5_after_a_start_or_a_compaction_what_runs_is_named_again() {
    for (name, event) in [("claude", "SessionStart"), ("codex", "SessionStart"), ("gemini", "SessionStart")] {
        let world = bare();
        let script = format!(
            "R=$(start --label server -- sleep 60)\nevent {event} ',\"source\":\"compact\"'\n\
             outlast hook {name} <event.json; outlast hook {name} <event.json; event UserPromptSubmit\n\
             outlast hook claude <event.json"
        );
        let told = answers(&host(&world, &script).ok());
        let shown: Vec<String> = told.iter().map(|one| context(one, event)).collect();
        assert_eq!(shown, [RUNS, RUNS], "{name}: at each start, and at no prompt");
    }
}

/// Covers: G6
#[test]
fn g6_a_stop_wakes_the_model_once_for_an_end() {
    let world = bare();
    let out = host(
        &world,
        "W=$(start --label 'the \"build\"' -c 'exit 3'); ended $W; R=$(start --label server -- sleep 60)\n\
         event Stop ',\"stop_hook_active\":false'; outlast hook codex <event.json; outlast hook claude <event.json\n\
         event Stop ',\"stop_hook_active\":true'; outlast hook claude <event.json\n\
         event Stop ',\"stop_hook_active\":false'; outlast hook claude <event.json",
    )
    .ok();
    let told = answers(&out);
    assert_eq!(told.len(), 3, "never while a stop is already put off: {told:?}");
    let person = |one: &Json| {
        let line = one.str("/systemMessage").to_owned();
        assert!(line.starts_with("outlast: 1 command of this session still runs: wrk_"), "{line}");
        assert!(line.ends_with(" \"server\""), "{line}");
        assert!(!one.has("/decision") && !one.has("/continue"), "a stop is never blocked: {one:?}");
    };
    told.iter().for_each(person);
    assert!(!told[0].has("/hookSpecificOutput"), "the model of Codex reads nothing at a stop: {told:?}");
    assert_eq!(context(&told[1], "Stop"), ENDED);
    assert!(!told[2].has("/hookSpecificOutput"), "told before: {told:?}");
}

#[test]
fn the_shell_of_the_host_is_refused_only_on_request() {
    let world = bare();
    let before = |name: &str, event: &str, tool: &str, command: &str, more: &str| {
        let call = format!(
            r#"{{"hook_event_name":"{event}","tool_name":"{tool}","tool_input":{{"command":"{command}"}}{more}}}"#
        );
        let words = ["hook", name, "--redirect"];
        let plain = world.call(&words[..2]).input(call.clone()).run().ok().text();
        assert_eq!(plain, "", "{name}: unasked");
        world.call(&words).input(call).run().ok().text()
    };
    for name in ["claude", "codex"] {
        let denied = Json::parse(&before(name, "PreToolUse", "Bash", "make test", ""));
        assert_eq!(denied.str("/hookSpecificOutput/hookEventName"), "PreToolUse");
        assert_eq!(denied.str("/hookSpecificOutput/permissionDecision"), "deny");
        let reason = denied.str("/hookSpecificOutput/permissionDecisionReason");
        assert!(reason.contains("the `run` tool of outlast"), "{reason}");
        assert!(!reason.contains("make"), "the command is no part of a constant text: {reason}");
    }
    let denied = Json::parse(&before("gemini", "BeforeTool", "run_shell_command", "make", ""));
    assert_eq!(denied.str("/decision"), "deny");
    assert!(denied.str("/reason").contains("the `run` tool of outlast"));
    let calls = [("Bash", "outlast wait w1 2>&1", ""), ("Bash", "outlast logs w1 --grep 'a|b'", "")];
    for (tool, command, more) in
        calls.into_iter().chain([("Read", "make", ""), ("Bash", "make", r#","agent_id":"a1""#)])
    {
        assert_eq!(before("claude", "PreToolUse", tool, command, more), "", "{tool} {command} {more}");
    }
    assert!(!world.state().exists(), "a refusal needs no session");
}

/// Covers: G5, J6
#[test]
fn j6_a_hook_makes_no_session_and_tells_a_sub_agent_nothing() {
    let world = bare();
    for event in ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"] {
        let call = format!(r#"{{"hook_event_name":"{event}"}}"#);
        let out = world.call(&["hook", "claude"]).input(call).run().ok();
        assert_eq!((out.text(), out.err()), (String::new(), String::new()), "{event}");
    }
    assert!(!world.state().exists(), "nothing was made");
    let out = host(
        &world,
        "W=$(start -c 'exit 3'); ended $W; files >before\n\
         event PostToolUse ',\"agent_id\":\"a1\"'; outlast hook claude <event.json\n\
         files >after; cmp before after >&2\n\
         event PostToolUse; outlast hook claude <event.json",
    )
    .ok();
    assert_eq!(answers(&out).len(), 1, "the end is still there for the one whose session it is");
    assert_eq!(out.err(), "");
}

#[test]
fn g5_a_hook_with_nothing_to_say_changes_nothing() {
    let world = bare();
    let out = host(
        &world,
        "W=$(start -c 'exit 3'); ended $W; event PostToolUse; outlast hook claude <event.json >/dev/null\n\
         files >before; outlast hook claude <event.json; outlast hook claude <event.json; files >after\n\
         cmp before after >&2",
    )
    .ok();
    assert_eq!((out.text(), out.err()), (String::new(), String::new()));
}

#[test]
fn whatever_is_wrong_stops_no_host_and_is_said() {
    let world = bare();
    let large = format!(r#"{{"hook_event_name":"PostToolUse","tool_response":"{}"}}"#, "x".repeat(9 << 20));
    for (words, input, said) in [
        (&["hook", "claude"][..], String::new(), "not understood"),
        (&["hook", "claude"], "no JSON".to_owned(), "no JSON object"),
        (&["hook", "claude"], "[]".to_owned(), "understood: it is no JSON object"),
        (&["hook", "claude"], r#"{"hook_event_name":"Stop"} x"#.to_owned(), "trailing characters"),
        (&["hook", "claude"], "{\"hook_event_name\"".to_owned(), "EOF while parsing an object"),
        (&["hook", "claude"], r#"{"hook_event_name":"Stop","stop_hook_active":7}"#.to_owned(), "stop_hook_active: "),
        (&["hook", "claude"], r#"{"session_id":"x"}"#.to_owned(), "hook_event_name"),
        (&["hook", "claude"], r#"{"hook_event_name":"Novel"}"#.to_owned(), "Novel"),
        (&["hook", "claude"], large, "larger than"),
        (&["hook", "emacs"], "{}".to_owned(), "emacs"),
        (&["hook"], "{}".to_owned(), "HOST"),
        (&["hook", "claude", "--novel"], "{}".to_owned(), "--novel"),
    ] {
        let out = world.call(words).input(input).run().ok();
        assert_eq!(out.text(), "", "{words:?}");
        assert!(out.err().contains(said), "{words:?}: {}", out.err());
    }
    std::fs::write(world.state(), "a file").expect("a file");
    let call = r#"{"hook_event_name":"PostToolUse"}"#;
    let out = world.call(&["hook", "claude"]).input(call).run().ok();
    assert!(out.text().is_empty() && out.err().contains("state"), "{}", out.err());
    std::fs::remove_file(world.state()).expect("our file");
}

/// Covers: G1, T2
#[test]
fn t2_what_the_host_did_not_take_is_told_again() {
    let world = bare();
    let out = host(
        &world,
        "W=$(start --label 'the \"build\"' -c 'exit 3'); ended $W; event UserPromptSubmit\n\
         outlast hook claude <event.json >/dev/full; echo $?; outlast hook claude <event.json",
    )
    .ok();
    assert!(out.err().contains("the host took no answer"), "{}", out.err());
    let text = out.text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("0"));
    let again = context(&Json::parse(lines.next().expect("it is told again")), "UserPromptSubmit");
    assert!(again.starts_with(ENDED), "{again}");
    assert_eq!(lines.next(), None);
}

/// Covers: G9
#[test]
fn g9_a_reply_is_bounded_and_the_rest_comes_with_the_next() {
    let world = bare();
    let out = host(
        &world,
        "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do W=\"$W $(start -c 'exit 3')\"; done\n\
         ended $W; event PostToolUse; for n in 1 2 3; do outlast hook claude <event.json; done",
    )
    .ok();
    let told = answers(&out);
    let counts: Vec<usize> =
        told.iter().map(|one| context(one, "PostToolUse").matches("exit code: 3").count()).collect();
    assert_eq!(counts, [16, 4]);
    assert!(out.text().len() < 8 << 10, "{}", out.text().len());
}

/// Covers: G5, G14
#[test]
fn g14_a_hook_tells_a_form_only_where_it_is_pushed() {
    let world = bare();
    let out = host(
        &world,
        "P=$(start --delivery poll -c 'exit 3'); N=$(start --delivery note --label 'the \"build\"' -c 'exit 3')\n\
         ended $P $N; event Stop; outlast hook claude <event.json; event UserPromptSubmit\n\
         outlast hook claude <event.json; outlast hook claude <event.json; outlast inbox --session $S --consumer model --json >left",
    )
    .ok();
    let told = answers(&out);
    assert_eq!(told.len(), 1, "a note wakes nobody, and the other one is never pushed: {told:?}");
    assert_eq!(context(&told[0], "UserPromptSubmit"), ENDED);
    let left = Json::parse(&std::fs::read_to_string(world.file("left")).expect("an inbox"));
    assert_eq!(left.items("/completions").len(), 1, "it stays for whoever looks");
}

/// Covers: O8
#[test]
fn o8_hooks_tell_lines_that_match_but_never_at_a_stop() {
    for (name, event) in [("claude", "PostToolUse"), ("codex", "UserPromptSubmit"), ("gemini", "AfterTool")] {
        let world = bare();
        let out = host(
            &world,
            &format!(
                "W=$(start --notify '^E' -c 'echo E; exec sleep 60')\n\
                 outlast wait --session $S $W --until output:E >/dev/null\n\
                 event Stop; outlast hook claude <event.json\n\
                 event {event}; outlast hook {name} <event.json; outlast hook {name} <event.json"
            ),
        );
        let told = answers(&out.ok());
        let expected = "Machine event of outlast: background commands have printed what was asked for.\n\
                        - ID is still running and has printed 1 line that matches \"^E\": \"E\". `read` shows its \
                        output.\nEnd of the machine event; no person wrote it.";
        assert!(told[0].has("/systemMessage") && !told[0].has("/hookSpecificOutput"), "{name}: at a stop: {told:?}");
        assert_eq!(context(&told[1], event), expected, "{name}");
        assert_eq!(told.len(), 2, "{name}: told once");
    }
}
