//! The rules of `outlast.command/1` and its sister schemas (docs/contract.md, "The command line"), as one
//! check of any printed JSON.

use serde_json::Value;

/// Checks everything that one call with `--json` printed. `fail` gets the story of the first breach.
pub fn check_printed(verb: &str, stdout: &str) -> Result<(), String> {
    let values = serde_json::Deserializer::from_str(stdout).into_iter::<Value>();
    for value in values {
        let value = value.map_err(|error| format!("stdout is not JSON: {error}"))?;
        // The trace prints its lines as they are stored; they have a type instead of a schema.
        if verb != "trace" {
            check_value(&value).map_err(|breach| format!("{breach}\nin {value:#}"))?;
        }
    }
    Ok(())
}

fn check_value(value: &Value) -> Result<(), String> {
    match value["schema"].as_str() {
        Some("outlast.command/1") => check_command(value, true),
        Some("outlast.list/1") => check_entries(&value["commands"]),
        Some("outlast.inbox/1") => {
            check_entries(&value["completions"])?;
            let entries = value["completions"].as_array().expect("checked just before");
            rule(entries.iter().all(|entry| entry["redelivered"].is_boolean()), "redelivered is a bool")?;
            rule(entries.iter().all(|entry| entry["output"].get("text").is_none()), "no output text in an inbox")
        }
        Some(other) if is_plain_schema(other) => Ok(()),
        other => Err(format!("unknown schema {other:?}")),
    }
}

fn is_plain_schema(name: &str) -> bool {
    ["outlast.session/1", "outlast.sessions/1", "outlast.stats/1", "outlast.gc/1", "outlast.doctor/1"].contains(&name)
}

fn check_entries(entries: &Value) -> Result<(), String> {
    let entries = entries.as_array().ok_or("a list holds an array")?;
    entries.iter().try_for_each(|entry| check_command(entry, false))
}

const KEYS: [&str; 22] = [
    "id",
    "alias",
    "session",
    "label",
    "command",
    "cwd",
    "phase",
    "demoted",
    "end",
    "exit_code",
    "status",
    "started_at_ms",
    "demoted_at_ms",
    "ended_at_ms",
    "duration_ms",
    "output",
    "pid",
    "survivors",
    "containment",
    "joined",
    "trust",
    "schema",
];

/// Checks one command object. `with_text`: it is printed for itself, so it has the text of the output.
pub fn check_command(command: &Value, with_text: bool) -> Result<(), String> {
    for key in KEYS {
        rule(command.get(key).is_some(), &format!("key {key} is there"))?;
    }
    rule(command["schema"] == "outlast.command/1", "the schema is named")?;
    rule(is_id(&command["id"], "wrk_"), "id is wrk_ and 32 hex digits")?;
    rule(is_id(&command["session"], "ses_"), "session is ses_ and 32 hex digits")?;
    let phase = command["phase"].as_str().unwrap_or_default();
    rule(["running", "stopping", "ended"].contains(&phase), "phase is one of three words")?;
    rule(command["demoted"].is_boolean(), "demoted is a bool")?;
    rule(command["joined"].is_boolean(), "joined is a bool")?;
    rule(command["trust"].is_string(), "trust is a word")?;
    rule(command["command"].as_array().is_some_and(|words| !words.is_empty()), "command is a list of words")?;
    check_output(&command["output"], with_text)?;
    let survivors = command["survivors"].as_array().ok_or("survivors is an array")?;
    let named = |one: &Value| one["pid"].is_i64() && one["name"].is_string();
    rule(survivors.iter().all(named), "a survivor has pid and name")?;
    rule(phase != "running" || command["end"].is_null(), "end is null while running")?;
    rule(phase != "ended" || command["end"].is_object(), "an ended command has an end")?;
    if command["end"].is_null() { check_open(command) } else { check_end(command) }
}

fn check_open(command: &Value) -> Result<(), String> {
    for key in ["exit_code", "status", "ended_at_ms"] {
        rule(command[key].is_null(), &format!("{key} is null before the end"))?;
    }
    Ok(())
}

fn check_end(command: &Value) -> Result<(), String> {
    let end = &command["end"];
    for key in ["kind", "code", "signal", "detail", "by"] {
        rule(end.get(key).is_some(), &format!("key end.{key} is there"))?;
    }
    rule(command["pid"].is_null(), "pid is null after the end")?;
    let kind = end["kind"].as_str().unwrap_or_default();
    let real = real_number(end)?;
    let shown = command["exit_code"].as_i64();
    let agree = match kind {
        "exited" => real.is_some() && end["signal"].is_null() && shown == real,
        "signaled" => real.is_some() && end["code"].is_null() && shown == real,
        "timed_out" => shown == Some(124) && end["detail"].is_string(),
        "stopped" => shown == real && end["by"].is_string(),
        "limit" => (shown == real || shown == Some(124)) && end["detail"].is_string(),
        "spawn_failed" => matches!(shown, Some(126 | 127)) && real.is_none() && end["detail"].is_string(),
        "abandoned" => real.is_none() || shown == real,
        "lost" | "interrupted" => shown.is_none() && real.is_none(),
        other => return Err(format!("unknown kind of end {other:?}")),
    };
    rule(agree, "end and exit_code agree")?;
    let status = command["status"].as_str().unwrap_or_default();
    rule(["ok", "error"].contains(&status), "status is ok or error after the end")?;
    rule(status != "ok" || (kind == "exited" && shown == Some(0)), "status is ok only for exit 0")
}

/// What the kernel said, as a shell would render it.
fn real_number(end: &Value) -> Result<Option<i64>, String> {
    match (&end["code"], &end["signal"]) {
        (Value::Null, Value::Null) => Ok(None),
        (code, Value::Null) => code.as_i64().map(Some).ok_or("end.code is a number".into()),
        (Value::Null, signal) => {
            let name = signal.as_str().ok_or("end.signal is a name")?;
            signal_number(name).map(|number| Some(128 + number)).ok_or(format!("unknown signal {name}"))
        }
        _ => Err("code and signal exclude each other".into()),
    }
}

/// The number of a signal by its name without SIG (signal(7), the layout of x86 and arm).
pub fn signal_number(name: &str) -> Option<i64> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let index = NAMES.iter().position(|known| *known == name)?;
    Some(i64::try_from(index + 1).expect("31 fits"))
}

fn check_output(output: &Value, with_text: bool) -> Result<(), String> {
    rule(output["bytes"].is_u64(), "output.bytes is a number")?;
    for key in ["shown_from", "truncated", "gap", "unwritten", "withheld", "log"] {
        rule(output.get(key).is_some(), &format!("key output.{key} is there"))?;
    }
    rule(output["log"].as_str().is_none_or(|log| log.starts_with('/')), "the log is an absolute path")?;
    if !with_text {
        return Ok(());
    }
    let text = output["text"].as_str().ok_or("output.text is a string")?;
    rule(text.len() <= 64 * 1024, "output.text is bounded")?;
    let hidden = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    rule(!text.contains(hidden), "output.text has no control characters")
}

fn is_id(value: &Value, prefix: &str) -> bool {
    let digits = value.as_str().and_then(|text| text.strip_prefix(prefix));
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| b"0123456789abcdef".contains(&byte)))
}

fn rule(holds: bool, words: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("broken rule: {words}")) }
}
