//! Sessions under agent hosts: whose they are, how they are found again, and what a command gets of its host.

use std::fs;

use outlast_testkit::mcp::{Client, Era};
use outlast_testkit::{Front, Json, Sleeper, proc};
use serde_json::json;

use crate::support::{BINARY, Signal, World, tree};

fn hosted() -> (World, Sleeper) {
    let world = World::bare(BINARY, "state");
    let host = world.sleeper();
    (world, host)
}

#[track_caller]
fn server(world: &World, host: &Sleeper, vars: &[(&str, &str)]) -> Client {
    let anchor = host.pid().to_string();
    let call = world.call(&["mcp", "--anchor", &anchor]).open_input();
    let call = vars.iter().fold(call, |call, (key, value)| call.env(key, *value));
    Client::over(call.spawn(), Era::Legacy, "a-client")
}

/// The only session of this world.
#[track_caller]
fn session(world: &World) -> Json {
    let all = world.outlast(&["session", "list", "--json"]).ok().json().items("/sessions");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

/// A line that ends with this code once the gate is opened, so that its end comes after the reply of its start.
fn gated(code: u8) -> String {
    format!("while [ ! -e open ]; do sleep 0.05; done; exit {code}")
}

/// Opens the gate for all who wait at it.
fn open(world: &World) {
    fs::write(world.file("open"), "").expect("a file in the world");
}

#[test]
fn a_server_that_is_only_asked_what_it_can_do_leaves_nothing() {
    let world = World::bare(BINARY, "state");
    for era in [Era::Modern, Era::Legacy] {
        let mut client = world.mcp(era, &[]);
        if era == Era::Modern {
            let found = client.ask("server/discover", json!({}));
            assert!(found.has("/result/supportedVersions"), "{found:?}");
        }
        client.ask("tools/list", json!({}));
        assert_eq!(client.close().code, Some(0));
    }
    let files = tree(&world.root());
    assert!(files.iter().all(|path| !path.starts_with(world.state())), "{files:#?}");
}

#[test]
fn two_servers_of_a_host_are_in_one_session_and_either_may_go() {
    let (world, host) = hosted();
    let (mut first, mut second) = (server(&world, &host, &[]), server(&world, &host, &[]));
    let id = first.background("sleep 300");
    assert_eq!(second.tool("list", json!({})).commands()[0].str("/id"), id);
    let found = session(&world);
    assert_eq!(found.int("/anchor_pid"), i64::from(host.pid()));
    assert!(found.bool("/owned"));
    // The owner goes: the other one takes its place without being called.
    proc::signal(first.pid(), Signal::KILL);
    first.wait();
    world.wait_until("the session has an owner again", || session(&world).bool("/owned"));
    second.tool("list", json!({})).commands()[0].runs();
    assert_eq!(second.close().code, Some(0));
    assert!(!session(&world).bool("/owned"));
}

/// The host of the test: a shell under another name, which is no wrapper then.
#[track_caller]
fn host_that_starts(world: &World, line: &str) -> Front {
    let host = world.file("agent");
    fs::copy("/bin/sh", &host).expect("a copy of the shell");
    // The shell of the host stays in between as what it is: it does not become the server.
    world.shell(&format!("exec ./agent -c '{line}; exit 0'")).without("OUTLAST_SESSION").open_input().spawn()
}

#[test]
fn the_anchor_is_the_agent_host_and_no_shell_in_between() {
    for line in ["outlast mcp", "sh -c \"outlast mcp; true\"", "env sh -c \"timeout 600 outlast mcp; true\""] {
        let world = World::bare(BINARY, "state");
        let host = host_that_starts(&world, line);
        let pid = host.pid();
        let mut client = Client::over(host, Era::Modern, "a-client");
        let id = client.background("sleep 300");
        assert_eq!(session(&world).int("/anchor_pid"), i64::from(pid), "{line}");
        // The server itself is below the host; the command is not, so that no walk of the host's tree finds it.
        let below: Vec<i32> = proc::descendants(pid).into_iter().map(|one| one.pid).collect();
        assert!(!below.is_empty());
        assert!(world.of_command(&id).iter().all(|one| !below.contains(&one.pid)), "{line}: {below:?}");
        drop(client);
        world.wait_until("the command went with its host", || world.of_command(&id).is_empty());
    }
}

#[test]
fn a_resumed_conversation_hears_what_became_of_its_commands() {
    let (world, mut host) = hosted();
    let vars = [("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "conversation-1")];
    let mut client = server(&world, &host, &vars);
    let (killed, ended) = (client.background("echo out; sleep 300"), client.background(&gated(7)));
    open(&world);
    world.wait_until("it has ended", || world.status(&ended).str("/phase") == "ended");
    assert_eq!(session(&world).str("/context"), "claude:conversation-1");
    proc::signal(client.pid(), Signal::KILL);
    client.wait();
    host.end(Signal::KILL);
    world.wait_until("its session has ended", || world.status(&killed).str("/phase") == "ended");
    let host = world.sleeper();
    // Somebody else's conversation hears nothing.
    let stranger = world.sleeper();
    let mut other = server(&world, &stranger, &[("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "conversation-2")]);
    assert!(other.tool("list", json!({"all": true})).news().is_empty());
    let mut client = server(&world, &host, &vars);
    let reply = client.tool("list", json!({"all": true}));
    let news = reply.news().join("\n");
    assert!(news.contains(&format!("{killed} of an earlier session has ended: abandoned")), "{news}");
    assert!(news.contains(&format!("{ended} of an earlier session has ended: exited, exit code 7")), "{news}");
    assert!(client.tool("list", json!({})).news().is_empty(), "it was told twice");
    let read = client.tool("read", json!({"id": killed}));
    assert!(read.text.contains("earlier session") && read.text.contains("\nout\n"), "{read:?}");
    assert!(client.tool("wait", json!({"id": ended})).text.contains("exit code 7"));
    let stop = client.tool("stop", json!({"id": killed}));
    assert!(stop.text.contains("earlier session") && !stop.is_error, "{stop:?}");
    let none = client.tool("wait", json!({}));
    assert_eq!(none.text, "No background commands to wait for.\n");
}

#[test]
fn a_sub_agent_hears_of_its_own_and_the_model_of_all() {
    let (world, host) = hosted();
    let mut client = server(&world, &host, &[]);
    let origin = |thread: &str| json!({"sessionId": "s1", "threadId": thread, "x-codex-turn-metadata": {}});
    client.meta = origin("s1");
    let main = client.background(&gated(1));
    assert_eq!(session(&world).str("/context"), "codex:s1");
    client.meta = origin("t2");
    let sub = client.background(&gated(2));
    open(&world);
    for id in [&main, &sub] {
        world.wait_until("it has ended", || world.status(id).str("/phase") == "ended");
    }
    let news = client.tool("list", json!({}));
    assert!(news.news().len() == 1 && news.news()[0].contains("w2 has ended"), "{news:?}");
    client.meta = origin("s1");
    let news = client.tool("list", json!({}));
    assert_eq!(news.news().len(), 2, "{news:?}");
}

#[test]
fn more_news_than_lines_are_told_all_the_same() {
    let (world, host) = hosted();
    let mut client = server(&world, &host, &[]);
    let ids: Vec<String> = (0..30).map(|n| client.background(&gated(n))).collect();
    open(&world);
    for id in &ids {
        world.wait_until("it has ended", || world.status(id).str("/phase") == "ended");
    }
    let (mut told, mut replies) = (String::new(), 0);
    loop {
        let reply = client.tool("list", json!({}));
        if reply.news().is_empty() {
            break;
        }
        assert!(reply.news().len() <= 3, "{reply:?}");
        told.push_str(&reply.news().join("\n"));
        replies += 1;
    }
    assert!(replies >= 1);
    for number in 1..=30 {
        let name = format!("w{number} ");
        assert_eq!(told.matches(&name).count(), 1, "{name} in {told}");
    }
    let id = session(&world).str("/id").to_owned();
    let lines = world.outlast(&["trace", &id, "--json"]).ok().json_lines();
    assert_eq!(lines.iter().filter(|line| line.str("/type") == "completed").count(), 30);
}

/// Covers: Q6, Q8
#[test]
fn q6_a_command_gets_the_environment_of_its_host_but_for_the_keys_of_its_model() {
    let (world, host) = hosted();
    let vars = [
        ("ANTHROPIC_API_KEY", "secret"),
        ("OPENAI_API_KEY", "secret"),
        ("GITHUB_TOKEN", "mine"),
        ("CLAUDECODE", "1"),
        ("BASH_ENV", "/tmp/x"),
    ];
    let mut client = server(&world, &host, &vars);
    let env = client.tool("run", json!({"command": "env", "env": ["MODE=test", "PAGER=less"]}));
    let text = env.command().output().to_owned();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{key}=")));
    assert_eq!((value("ANTHROPIC_API_KEY"), value("OPENAI_API_KEY"), value("BASH_ENV")), (None, None, None));
    assert_eq!((value("GITHUB_TOKEN"), value("CLAUDECODE")), (Some("mine"), Some("1")));
    assert_eq!((value("MODE"), value("PAGER"), value("GIT_PAGER")), (Some("test"), Some("less"), Some("cat")));
    assert_eq!(value("GIT_TERMINAL_PROMPT"), Some("0"));
    assert!(value("OUTLAST_SESSION").is_some() && value("OUTLAST_WORK_ID").is_some());
    let cwd = client.tool("run", json!({"command": "pwd"}));
    assert_eq!(cwd.command().output().trim(), world.work().display().to_string());
}

#[test]
fn a_command_gets_the_limit_of_open_files_of_its_host() {
    let (world, host) = hosted();
    let line = format!("ulimit -Sn 300; exec outlast mcp --anchor {}", host.pid());
    let server = world.shell(&line).without("OUTLAST_SESSION").open_input().spawn();
    let mut client = Client::over(server, Era::Modern, "a-client");
    assert_eq!(client.tool("run", json!({"command": "ulimit -Sn"})).command().output(), "300\n");
}

/// Covers: A4
#[test]
fn a4_without_records_a_command_runs_in_the_foreground() {
    let world = World::bare(BINARY, "state");
    fs::write(world.state(), "in the way").expect("a file in the world");
    let mut client = world.mcp(Era::Modern, &[]);
    let reply = client.tool("run", json!({"command": "sleep 1; echo done", "grace": "100ms"}));
    assert_eq!(reply.command().ends("exited", 0).output(), "done\n");
    assert!(reply.first_line().contains("it stayed in the foreground"), "{reply:?}");
    let refused = client.tool("run", json!({"command": "true", "background": true}));
    assert!(refused.is_error && refused.text.contains("no records can be made"), "{refused:?}");
    fs::remove_file(world.state()).expect("it is there");
}
