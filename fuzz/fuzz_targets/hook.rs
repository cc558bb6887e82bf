//! What agent hosts send: events of hooks, which are answered with one line of JSON or not at all, and the arguments of
//! tools, of which each is read or refused by its name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_cli::hook::{Heard, Moment, form, hear};
use outlast_cli::mcp::arguments::{
    ListArguments, ReadArguments, RunArguments, SendArguments, StopArguments, WaitArguments, check_ids, ids, read,
    schema, until,
};
use outlast_fuzz::take;
use serde_json::{Map, Value, json};

const HOSTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    let how = take(&mut rest, 2);
    let [kind, host] = *how else { return };
    let host = HOSTS[usize::from(host) % HOSTS.len()];
    match kind {
        b'e' => event(host, rest),
        b's' => shell_line(host, &String::from_utf8_lossy(rest)),
        b'a' => arguments(rest),
        _ => {}
    }
});

fn event(host: &str, bytes: &[u8]) {
    let form = form(host).expect("it is one of them");
    let kept = hear(form, false, bytes);
    let redirected = hear(form, true, bytes);
    // What is not looked at may be no text.
    let is_object = bytes.trim_ascii().starts_with(b"{") && bytes.trim_ascii().ends_with(b"}");
    for heard in [&kept, &redirected] {
        match heard {
            // A hook that fails says why, to a person, and names nothing that is not there.
            Err(failure) => assert!(failure.message().is_some_and(|message| !message.is_empty())),
            Ok(Heard::Nothing) => assert!(is_object),
            Ok(Heard::News { event, moment }) => {
                assert!(is_object && form.moment(event) == Some(*moment));
                assert!(!matches!(moment, Moment::Nothing | Moment::BeforeTool), "{moment:?} has no news");
            }
            Ok(Heard::Answer(line)) => denies(host, line),
        }
    }
    assert!(!matches!(kept, Ok(Heard::Answer(_))), "a tool is refused that nobody redirects");
    assert_eq!(kept.is_err(), redirected.is_err());
}

/// An answer is one line of JSON in the form of its host.
fn denies(host: &str, line: &[u8]) {
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
    assert!(line.ends_with(b"\n"));
    let answer: Value = serde_json::from_slice(line).expect("JSON");
    let reason = match host {
        "claude" | "codex" => {
            let output = &answer["hookSpecificOutput"];
            assert_eq!(
                (&output["hookEventName"], &output["permissionDecision"]),
                (&json!("PreToolUse"), &json!("deny"))
            );
            &output["permissionDecisionReason"]
        }
        "gemini" => {
            assert_eq!(answer["decision"], "deny");
            &answer["reason"]
        }
        _ => &answer["deny"],
    };
    assert!(reason.as_str().is_some_and(|reason| reason.contains("`run`")), "{answer}");
}

/// Only a line that asks outlast and nothing else keeps the shell: with anything behind it, it does not.
fn shell_line(host: &str, line: &str) {
    let (event, tool) = match host {
        "claude" | "codex" => ("PreToolUse", "Bash"),
        "gemini" => ("BeforeTool", "run_shell_command"),
        _ => ("tool.execute.before", "bash"),
    };
    let form = form(host).expect("it is one of them");
    let is_denied = |line: &str| {
        let call = json!({"hook_event_name": event, "tool_name": tool, "tool_input": {"command": line}});
        match hear(form, true, call.to_string().as_bytes()).expect("a call") {
            Heard::Answer(_) => true,
            Heard::Nothing => false,
            Heard::News { .. } => panic!("news before a tool"),
        }
    };
    if is_denied(line) {
        return;
    }
    assert!(line.contains("outlast"), "{line:?} does not ask outlast");
    for more in ["; make", "\nmake", " && make", " | make", " $(make)", " `make`", " > file", " & make", " <(make)"] {
        assert!(is_denied(&format!("{line}{more}")), "{line:?} hides {more:?}");
    }
}

fn arguments(bytes: &[u8]) {
    let Ok(given) = serde_json::from_slice::<Map<String, Value>>(bytes) else { return };
    let known = |schema: Map<String, Value>| match &schema["properties"] {
        Value::Object(properties) => given.keys().all(|key| properties.contains_key(key)),
        _ => false,
    };
    let check = |tool: &str, read: Result<(), String>, is_known: bool| match read {
        Ok(()) => assert!(is_known, "`{tool}` took an argument that it does not have: {given:?}"),
        Err(error) => assert!(error.starts_with(&format!("`{tool}` was called wrongly: ")), "{error}"),
    };
    let same = || Some(given.clone());
    check("run", read::<RunArguments>("run", same()).map(drop), known(schema::<RunArguments>()));
    check("read", read::<ReadArguments>("read", same()).map(drop), known(schema::<ReadArguments>()));
    check("list", read::<ListArguments>("list", same()).map(drop), known(schema::<ListArguments>()));
    check("send", read::<SendArguments>("send", same()).map(drop), known(schema::<SendArguments>()));
    check("stop", read::<StopArguments>("stop", same()).map(drop), known(schema::<StopArguments>()));
    let wait = read::<WaitArguments>("wait", same());
    if let Ok(wait) = &wait {
        if let Err(error) = until(wait.until.as_deref()) {
            assert!(error.contains("argument `until`"), "{error}");
        }
        let mut all = ids(wait.id.clone(), wait.ids.clone());
        assert!(wait.id.iter().chain(&wait.ids).all(|id| all.contains(id)));
        assert_eq!(check_ids("wait", &all).is_ok(), all.len() <= 100);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "an id twice");
    }
    check("wait", wait.map(drop), known(schema::<WaitArguments>()));
}
