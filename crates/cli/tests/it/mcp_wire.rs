//! The wire under the MCP server: lines that are wrong, numbers that come twice, and a client that does not read.

use std::time::Duration;

use outlast_testkit::mcp::{Client, Era};
use outlast_testkit::proc;
use serde_json::{Value, json};

use crate::support::{Signal, world};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The errors that a line is answered with.
#[track_caller]
fn errors(client: &mut Client, line: &str) -> Vec<Value> {
    let before = client.said().len();
    client.raw(line);
    client.ask("tools/list", json!({}));
    client.said()[before..].iter().filter(|one| one.has("/error")).map(|one| one.0.clone()).collect()
}

#[test]
fn every_line_that_asks_is_answered() {
    let world = world();
    let mut client = world.mcp(Era::Modern, &["--session", &world.session()]);
    // Half a character, as a client leaves that cuts its texts.
    let call = r#"{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"name":"run","arguments":{"command":"echo \ud83d"},"#;
    client.raw(&format!("{call}{META}}}}}"));
    assert_eq!(client.reply(900).command().output(), "\u{fffd}\n");
    for (line, code, id) in [
        ("{nope", -32700, Value::Null),
        ("17", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":901}"#, -32600, json!(901)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}"#, -32600, Value::Null),
        ("[]", -32600, Value::Null),
    ] {
        let errors = errors(&mut client, line);
        assert_eq!(errors.len(), 1, "{line}: {errors:?}");
        assert_eq!((&errors[0]["error"]["code"], &errors[0]["id"]), (&json!(code), &id), "{line}");
    }
    let part = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{META}}}}}"#);
    client.raw(&format!("[{},{}]", part(902), part(903)));
    let is_answered = |id: u64| client.said().iter().any(|one| one.0["id"] == id && one.has("/result/tools"));
    world.wait_until("both are answered", || is_answered(902) && is_answered(903));
    let long = format!("{{\"long\":\"{}\"}}", "x".repeat(17 << 20));
    assert_eq!(errors(&mut client, &long)[0]["error"]["code"], -32600);
    for malformed in [json!({"name": "run", "arguments": "x"}), json!({"name": 5})] {
        assert_eq!(client.ask("tools/call", malformed).int("/error/code"), -32602);
    }
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn a_number_that_is_in_use_is_refused_and_its_first_call_answered() {
    let world = world();
    let mut client = world.mcp(Era::Modern, &["--session", &world.session()]);
    let call = client.start("run", json!({"command": "sleep 1; echo done"}));
    client.raw(&format!(r#"{{"jsonrpc":"2.0","id":{call},"method":"tools/list","params":{{{META}}}}}"#));
    let answers = |client: &Client| client.said().into_iter().filter(|one| one.0["id"] == call).collect::<Vec<_>>();
    world.wait_until("both are answered", || answers(&client).len() == 2);
    let answers = answers(&client);
    assert_eq!(answers[0].int("/error/code"), -32600);
    assert!(answers[1].str("/result/content/0/text").contains("done"), "{answers:?}");
}

#[test]
fn a_client_that_does_not_read_cannot_hold_the_server() {
    let world = world();
    for signal in [None, Some(Signal::TERM)] {
        let (unread, output) = std::io::pipe().expect("a pipe");
        let session = world.session();
        let call = world.call(&["mcp", "--session", &session]).without("OUTLAST_SESSION").open_input();
        let mut front = call.stdout(output).spawn();
        for id in 0..60 {
            let line = "head -c 6000 /dev/zero | tr '\\\\0' x";
            let arguments = format!(r#""name":"run","arguments":{{"command":"{line}","unique":true}}"#);
            let params = format!("{{{arguments},{META}}}");
            let call = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n");
            front.write(call.as_bytes());
        }
        match signal {
            None => front.close_input(),
            Some(signal) => front.signal(signal),
        }
        assert!(proc::wait_gone(front.pid(), Duration::from_secs(20)), "it hangs");
        drop(unread);
        drop(front.wait_killed());
    }
}

/// Covers: L16, S5
#[test]
fn without_descriptors_no_command_that_ran_is_told_as_not_started() {
    for limit in [32, 64] {
        let world = world();
        let line = format!("ulimit -n {limit}; exec outlast mcp --session {}", world.session());
        let server = world.shell(&line).without("OUTLAST_SESSION").open_input().spawn();
        let mut client = Client::over(server, Era::Modern, "a-client");
        let calls: Vec<u64> = (0..40)
            .map(|n| {
                let line = format!("echo >began-{n}; sleep 0.5; echo out-{n}");
                client.start("run", json!({"command": line, "unique": true}))
            })
            .collect();
        let mut ran = 0;
        for (n, call) in calls.into_iter().enumerate() {
            let reply = client.reply(call);
            let began = world.file(&format!("began-{n}")).exists();
            assert_eq!(began, reply.text.contains(&format!("out-{n}\n")), "{n} of {limit}: {reply:?}");
            assert_eq!(began, !reply.is_error, "{n} of {limit}: {reply:?}");
            ran += usize::from(began);
        }
        assert!(ran > 0, "none of 40 could run with {limit} descriptors");
        assert!(client.tool("list", json!({})).news().is_empty());
        client.close();
    }
}

/// Covers: M4
#[test]
fn a_state_directory_that_is_replaced_is_found_again() {
    let world = outlast_testkit::World::bare(crate::support::BINARY, "state");
    let host = world.sleeper();
    let anchor = host.pid().to_string();
    let mut client = world.mcp(Era::Modern, &["--anchor", &anchor]);
    let id = client.background("sleep 300");
    client.tool("stop", json!({"id": id}));
    std::fs::rename(world.state(), world.root().join("gone")).expect("the state directory can be moved");
    let next = client.background("sleep 300");
    assert_eq!(client.tool("list", json!({})).commands()[0].str("/id"), next);
    std::fs::remove_dir_all(world.root().join("gone")).expect("it can be removed");
}

#[test]
fn a_reply_is_bounded_whatever_is_asked() {
    let world = world();
    let mut client = world.mcp(Era::Modern, &["--session", &world.session()]);
    let long = "x".repeat(100_000);
    let many: Vec<String> = (0..5000).map(|n| format!("w{n}")).collect();
    for (tool, arguments) in [
        ("run", json!({"command": "true", "label": long})),
        ("run", json!({"command": "true", "cwd": format!("/{long}")})),
        ("run", json!({"command": "true", "env": [long]})),
        ("run", json!({"command": "true", long.as_str(): 1})),
        ("wait", json!({"ids": many})),
        ("wait", json!({"until": format!("output:({long}")})),
        ("stop", json!({"ids": many})),
        ("read", json!({"id": long})),
    ] {
        let reply = client.tool(tool, arguments);
        assert!(reply.is_error && reply.text.len() < 2100, "{tool}: {} bytes", reply.text.len());
    }
    let id = client.background("seq 1000");
    let part = client.tool("read", json!({"id": id, "head": 3}));
    assert!(!part.text.contains("the last") && part.text.contains("shown: offset 0 to 6 of"), "{part:?}");
}
