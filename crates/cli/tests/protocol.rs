//! The MCP server from outside: the checks in scripts/mcp, which speak the protocol with nothing but Python's standard library.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use outlast_testkit::World;

/// A server over HTTP keeps its session for 30 s, for one that comes after it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs some checks in a world of their own, in which nothing is left afterwards.
#[track_caller]
fn holds(script: &str, parts: &[&str]) {
    let world = World::bare(env!("CARGO_BIN_EXE_outlast"), "state").patience(PATIENCE);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp").join(script);
    let done = Command::new("python3")
        .arg("-B")
        .arg(script)
        .args(parts)
        .env_clear()
        .envs(world.environment())
        .env("OUTLAST", env!("CARGO_BIN_EXE_outlast"))
        .current_dir(world.work())
        .output()
        .expect("python3 is installed, as CONTRIBUTING.md asks");
    let said = String::from_utf8_lossy(&done.stdout);
    let failed: Vec<&str> = said.lines().filter(|line| !line.starts_with("PASS")).collect();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("PASS"), "{}\n{errors}", failed.join("\n"));
    world.finish();
}

#[test]
fn todays_protocol_on_stdio() {
    holds("check_stdio.py", &["modern"]);
}

#[test]
fn older_protocols_on_stdio() {
    holds("check_stdio.py", &["legacy", "extension"]);
}

#[test]
fn the_end_of_input_and_signals_end_the_server() {
    holds("check_stdio.py", &["eof", "signals"]);
}

#[test]
fn lines_that_are_no_requests_do_not_end_the_server() {
    holds("check_stdio.py", &["misuse"]);
}

#[test]
fn only_messages_come_on_standard_output() {
    holds("check_stdio.py", &["purity"]);
}

#[test]
fn a_server_that_is_killed_is_followed_by_one_that_knows_its_commands() {
    holds("check_stdio.py", &["kill"]);
}

#[test]
fn a_probe_makes_no_file_and_starts_no_process() {
    holds("check_stdio.py", &["probe"]);
}

#[test]
fn the_protocol_over_http() {
    holds("check_http.py", &[]);
}
