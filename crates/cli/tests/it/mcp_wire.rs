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
    ] {
        let errors = errors(&mut client, line);
        assert_eq!(errors.len(), 1, "{line}: {errors:?}");
        assert_eq!((&errors[0]["error"]["code"], &errors[0]["id"]), (&json!(code), &id), "{line}");
    }
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
