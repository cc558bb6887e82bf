//! The tasks extension: a command under its own id, for clients that ask for it.

use outlast_testkit::mcp::{Client, Era, Reply};
use outlast_testkit::{Json, proc};
use serde_json::json;

use crate::support::{AT_ONCE, Signal, World, world};

const TASKS: &str = "io.modelcontextprotocol/tasks";

#[track_caller]
fn server(world: &World) -> Client {
    let mut client = world.mcp(Era::Modern, &["--session", &world.session()]);
    client.tasks = true;
    client
}

/// Starts a command that goes on as a task: the task.
#[track_caller]
fn start(client: &mut Client, arguments: serde_json::Value) -> Json {
    let answer = client.ask("tools/call", json!({"name": "run", "arguments": arguments}));
    let task = Json(answer.at("/result").clone());
    assert_eq!(task.str("/resultType"), "task", "{task:?}");
    task
}

#[track_caller]
fn get(client: &mut Client, id: &str) -> Json {
    let answer = client.ask("tasks/get", json!({"taskId": id}));
    let task = Json(answer.at("/result").clone());
    assert_eq!((task.str("/resultType"), task.str("/taskId")), ("complete", id));
    task
}

/// Asks until the task is in another state.
#[track_caller]
fn settled(world: &World, client: &mut Client, id: &str) -> Json {
    let mut task = get(client, id);
    world.wait_until("the task is over", || {
        task = get(client, id);
        task.str("/status") != "working"
    });
    task
}

/// Covers: G6, T2
#[test]
fn a_task_is_the_command_under_its_own_id() {
    let world = world();
    let mut client = server(&world);
    assert_eq!(world.shell("mkfifo gate").run().code, Some(0));
    let task = start(&mut client, json!({"command": "echo early; read x <gate; echo late; exit 5", "grace": "200ms"}));
    assert_eq!(task.str("/status"), "working");
    assert!(task.null("/ttlMs") && task.int("/pollIntervalMs") > 0 && !task.has("/content"), "{task:?}");
    let id = task.str("/taskId").to_owned();
    let working = get(&mut client, &id);
    assert_eq!(working.str("/status"), "working");
    assert!(working.str("/statusMessage").contains("bytes of output"), "{working:?}");
    assert_eq!(working.str("/createdAt"), task.str("/createdAt"));
    assert_eq!(world.shell(": >gate").run().code, Some(0));
    let task = settled(&world, &mut client, &id);
    assert_eq!(task.str("/status"), "completed");
    let result = Reply::of(Json(task.at("/result").clone()));
    assert!(!result.is_error, "a non-zero exit is no error: {result:?}");
    assert!(
        result.first_line().starts_with(&format!("[{id}] ended: exited, exit code 5, error, after ")),
        "{result:?}"
    );
    assert!(result.text.contains("\n[exit:5]\n") && result.text.contains("late\n"), "{result:?}");
    result.command().ends("exited", 5);
    // It was told by that answer, and can be fetched again.
    assert!(client.tool("list", json!({})).news().is_empty());
    assert_eq!(get(&mut client, &id).str("/status"), "completed");
    let told = world.trace("completed");
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].str("/consumer"), told[0].str("/delivered_via")), ("model", "task"));
}

#[test]
fn a_command_that_ends_in_the_foreground_is_no_task() {
    let world = world();
    let mut client = server(&world);
    let reply = client.tool("run", json!({"command": "exit 3"}));
    assert_eq!(reply.result.str("/resultType"), "complete");
    let failed = client.tool("run", json!({"command": "true", "cwd": "/no/such/place", "background": true}));
    assert!(failed.is_error && failed.result.str("/resultType") == "complete", "{failed:?}");
    // The other tools never become one.
    start(&mut client, json!({"command": "sleep 300", "background": true}));
    let waited = client.tool("wait", json!({"id": "w1", "timeout": "1s"}));
    assert_eq!(waited.result.str("/resultType"), "complete");
}

#[test]
fn only_a_modern_request_that_declares_it_becomes_a_task() {
    let world = world();
    let mut client = server(&world);
    client.tasks = false;
    let plain = client.tool("run", json!({"command": "sleep 300", "background": true}));
    let id = plain.command().str("/id").to_owned();
    let refused = client.ask("tasks/get", json!({"taskId": id}));
    assert_eq!(refused.int("/error/code"), -32021);
    assert!(refused.0["error"]["data"]["requiredCapabilities"]["extensions"].get(TASKS).is_some(), "{refused:?}");
    // An older client that declares it cannot read one.
    let session = world.session();
    let call = world.call(&["mcp", "--session", &session]).without("OUTLAST_SESSION").open_input().spawn();
    let mut old = Client::over(call, Era::Modern, "old");
    old.raw(
        &json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"extensions": {TASKS: {}}},
        "clientInfo": {"name": "old", "version": "0"}}})
        .to_string(),
    );
    old.raw(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
    old.raw(
        &json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {
        "name": "run", "arguments": {"command": "sleep 301", "background": true}}})
        .to_string(),
    );
    assert!(old.reply(77).text.starts_with("Started in the background"));
}

#[test]
fn a_cancelled_task_is_stopped_and_its_end_is_told_by_the_next_reply() {
    let world = world();
    let mut client = server(&world);
    let task = start(&mut client, json!({"command": "echo printed; sleep 300", "background": true}));
    let id = task.str("/taskId").to_owned();
    world.wait_until("it has printed", || world.raw(&id) == b"printed\n");
    for _ in 0..2 {
        let answer = client.ask("tasks/cancel", json!({"taskId": id}));
        assert_eq!(answer.at("/result"), &json!({"resultType": "complete"}));
    }
    let task = settled(&world, &mut client, &id);
    assert_eq!(task.str("/status"), "cancelled");
    assert!(!task.has("/result"), "{task:?}");
    let message = task.str("/statusMessage");
    assert!(message.contains("TERM") && message.contains("8 bytes of output") && message.contains(&id), "{message}");
    world.nothing_left_of(&id);
    let news = client.tool("list", json!({}));
    assert!(news.news().iter().any(|line| line.contains("w1 has ended: stopped")), "{news:?}");
    // One that has ended by itself stays what it is.
    let task = start(&mut client, json!({"command": "exit 4", "background": true}));
    let id = task.str("/taskId").to_owned();
    settled(&world, &mut client, &id);
    client.ask("tasks/cancel", json!({"taskId": id}));
    assert_eq!(get(&mut client, &id).str("/status"), "completed");
}

#[test]
fn a_task_outlives_its_server_and_its_session() {
    let world = world();
    let mut client = server(&world);
    let id =
        start(&mut client, json!({"command": "echo out; sleep 300", "background": true})).str("/taskId").to_owned();
    proc::signal(client.pid(), Signal::KILL);
    client.wait();
    // A server of another session, as after a restart of the host.
    let other = world.new_session(&[]);
    let mut client = world.mcp(Era::Modern, &["--session", &other]);
    client.tasks = true;
    assert_eq!(get(&mut client, &id).str("/status"), "working");
    world.kill_anchor(&world.session(), Signal::KILL);
    let task = settled(&world, &mut client, &id);
    let result = Reply::of(Json(task.at("/result").clone()));
    assert!(!result.is_error && result.first_line().contains("ended: abandoned"), "{result:?}");
    assert!(result.text.contains("\nout\n"), "{result:?}");
}

#[test]
fn unknown_tasks_are_told_and_nothing_else_is_there() {
    let world = world();
    let mut client = server(&world);
    for id in ["nope", "wrk_00000000000000000000000000000000", "w1", ""] {
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let answer = client.ask(method, json!({"taskId": id, "inputResponses": {}}));
            assert_eq!(answer.int("/error/code"), -32602, "{method} {id}");
        }
    }
    let id = start(&mut client, json!({"command": "sleep 300", "background": true})).str("/taskId").to_owned();
    let answer = client.ask("tasks/update", json!({"taskId": id, "inputResponses": {"nobody-asked": {}}}));
    assert_eq!(answer.at("/result"), &json!({"resultType": "complete"}));
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(client.ask(method, json!({"taskId": id})).int("/error/code"), -32601, "{method}");
    }
}

/// Kills keeper and supervisor of a command, in this order, and waits until its leader is gone with them.
#[track_caller]
fn kill_watchers(world: &World, id: &str) {
    let status = world.record(id, "status.json");
    let pid = |pointer: &str| i32::try_from(status.int(pointer)).expect("process ids fit");
    let (supervisor, leader) = (pid("/supervisor/pid"), pid("/leader/pid"));
    for pid in [proc::parent_of(supervisor), supervisor] {
        proc::signal(pid, Signal::KILL);
        assert!(proc::wait_gone(pid, AT_ONCE), "{pid} is still there");
    }
    assert!(proc::wait_gone(leader, AT_ONCE), "the leader is still there");
}

/// Covers: C4, L16
#[test]
fn what_was_printed_is_shown_although_nobody_closed_the_log() {
    for killed in [false, true] {
        let world = world();
        let mut client = server(&world);
        let task = start(&mut client, json!({"command": "echo printed; sleep 300", "background": true}));
        let id = task.str("/taskId").to_owned();
        world.wait_until("it has printed", || world.raw(&id) == b"printed\n");
        if killed {
            proc::signal(client.pid(), Signal::KILL);
            client.wait();
            client = server(&world);
        }
        kill_watchers(&world, &id);
        let read = client.tool("read", json!({"id": id}));
        assert!(read.text.contains("output: 8 bytes, all shown") && read.text.contains("\nprinted\n"), "{read:?}");
        assert_eq!(read.command().int("/output/bytes"), 8);
        assert_eq!(client.tool("list", json!({"all": true})).commands()[0].int("/output/bytes"), 8);
        assert_eq!(world.raw(&id), b"printed\n");
    }
}

#[test]
fn what_nobody_knows_is_an_error_on_one_line() {
    let world = world();
    let mut client = server(&world);
    let id = start(&mut client, json!({"command": "sleep 300", "background": true})).str("/taskId").to_owned();
    proc::signal(client.pid(), Signal::KILL);
    client.wait();
    // All who could know are killed; the next look finds that nobody does.
    kill_watchers(&world, &id);
    let mut client = server(&world);
    let task = settled(&world, &mut client, &id);
    assert_eq!(task.str("/status"), "completed");
    let result = Reply::of(Json(task.at("/result").clone()));
    result.command().ends("lost", None);
    assert!(result.is_error && result.text.lines().count() == 1 && result.text.contains(&id), "{result:?}");
}
