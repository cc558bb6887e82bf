//! Area E: wait.

use crate::support::*;

#[test]
fn e1_wait_ends_with_the_command() {
    let world = world();
    let id = bg_shell(&world, &[], "sleep .5; echo last; exit 7");
    let waited = world.outlast(&["wait", &id, "--timeout", "30s"]).exits(7);
    assert!(waited.text().trim_end().ends_with("last") || waited.text().contains("last\n"), "{waited:?}");
    let told = world.outlast(&["wait", &id, "--json"]).exits(7).json();
    told.ends("exited", 7);
    assert_eq!(told.str("/status"), "error");
    world.call(&["wait", &id, "--timeout", "0s"]).within(AT_ONCE).run().exits(7);
}

/// Covers: E2, E3
#[test]
fn e2_bound_consumes_nothing() {
    let world = world();
    let id = bg_shell(&world, &[], "echo $$ >p; exec sleep 60");
    let waited = world.outlast(&["wait", &id, "--timeout", "300ms", "--json"]).exits(124).json();
    waited.runs();
    let text = world.outlast(&["wait", &id, "--timeout", "0s"]).exits(124);
    assert!((text.text() + &text.err()).contains("running"), "{text:?}");
    proc::signal(world.wait_pids("p")[0], Signal::KILL);
    world.wait_until("it has ended", || world.status(&id).str("/phase") == "ended");
    for consumer in ["model", "human", "hook"] {
        assert_eq!(ids(&world.acked(consumer)), [id.as_str()], "{consumer}");
    }
    world.outlast(&["wait", "w99"]).exits(3);
}

#[test]
fn e4_waits_on_several() {
    let world = world();
    let (one, two) = (world.bg(&["sleep", "50"]), world.bg(&["sleep", "50"]));
    let waited = world.outlast(&["wait", &one, &two, "--timeout", "200ms", "--json"]).exits(124);
    assert_eq!(waited.json().each("/commands", "/phase"), ["running", "running"]);
    let unknown = world.outlast(&["wait", &one, "w99", "--timeout", "200ms"]).exits(124);
    assert!(unknown.err().contains("w99"), "the unknown id is not named: {unknown:?}");
    let short = bg_shell(&world, &[], "sleep .2; exit 7");
    let any = world.outlast(&["wait", &one, &short, "--any", "--json"]).exits(7).json();
    let ended: Vec<Json> = any.items("/commands").into_iter().filter(|one| one.str("/phase") == "ended").collect();
    assert_eq!(ids(&ended), [short.as_str()]);
    let fine = world.bg(&["true"]);
    world.outlast(&["wait", &fine, &short]).exits(1);
    let fine_too = world.bg(&["true"]);
    world.outlast(&["wait", &fine, &fine_too]).ok();
    world.outlast(&["wait", "w98", "w99"]).exits(3);
    world.outlast(&["wait"]).exits(2);
}

#[test]
fn e5_text_of_a_wait_names_each_command() {
    let world = world();
    let plain = bg_shell(&world, &[], "echo from-plain");
    let labelled = bg_shell(&world, &["--label", "api"], "echo from-api");
    let text = world.outlast(&["wait", &plain, &labelled]).ok().text();
    assert!(text.lines().any(|line| line.starts_with(&format!("[{plain}] ended"))), "{text}");
    assert!(text.lines().any(|line| line.starts_with(&format!("[{labelled} (api)] ended"))), "{text}");
    assert!(text.contains("from-plain") && text.contains("from-api"), "{text}");
}

#[test]
fn e6_text_of_a_wait_is_bounded() {
    let world = world();
    let id = bg_shell(&world, &[], "seq 1000000000 1000999999; echo LAST");
    let waited = world.outlast(&["wait", &id]).ok();
    assert!(waited.stdout.len() < 40_000, "{} bytes", waited.stdout.len());
    assert!(waited.text().contains("LAST"));
    let json = world.outlast(&["wait", &id, "--json"]).ok();
    assert!(json.stdout.len() < 40_000 && json.json().output().len() <= 16_384);
}

#[test]
fn e7_wait_until_output_matches() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "echo ready now; read x; echo done; exec sleep 50");
    for _ in 0..2 {
        world.outlast(&["wait", &id, "--until", "output:ready"]).ok();
    }
    let waiting = world.spawn(&["wait", &id, "--until", "output:^do.e$"]);
    world.outlast(&["send", &id, "go"]).ok();
    waiting.wait().ok();
    world.outlast(&["wait", &id, "--until", "output:never", "--timeout", "200ms"]).exits(124);
    world.status(&id).runs();
    let ended = bg_shell(&world, &[], "sleep .2; exit 7");
    world.outlast(&["wait", &ended, "--until", "output:never"]).exits(7);
    let fine = bg_shell(&world, &[], "sleep .2");
    let missed = world.outlast(&["wait", &fine, "--until", "output:never"]).exits(1);
    assert!((missed.text() + &missed.err()).contains("ended"), "{missed:?}");
    world.outlast(&["wait", &id, "--until", "output:("]).exits(2);
    world.outlast(&["wait", &id, "--until", "nonsense"]).exits(2);
}

#[test]
fn e7_wait_until_quiet_or_exit() {
    let world = world();
    let chatty = bg_shell(&world, &[], "while :; do echo x; sleep .05; done");
    world.outlast(&["wait", &chatty, "--until", "quiet:2s", "--timeout", "500ms"]).exits(124);
    world.outlast(&["wait", &chatty, "--until", "exit", "--timeout", "300ms"]).exits(124);
    let silent = bg_shell(&world, &[], "echo once; exec sleep 50");
    world.outlast(&["wait", &silent, "--until", "quiet:300ms"]).ok();
    world.status(&silent).runs();
}

#[test]
fn e7_wait_until_a_port_is_open() {
    let world = world();
    // It has the port from the beginning, and listens there when it is told to.
    let server = "import socket, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\n\
                  print(s.getsockname()[1], file=open('port', 'w'), flush=True)\n\
                  input()\ns.listen()\ntime.sleep(50)";
    let id = world.bg(&["--stdin", "--", "python3", "-c", server]);
    let until = format!("port:{}", world.wait_file("port").trim());
    world.outlast(&["wait", &id, "--until", &until, "--timeout", "300ms"]).exits(124);
    let waiting = world.spawn(&["wait", &id, "--until", &until]);
    world.outlast(&["send", &id, "go"]).ok();
    waiting.wait().ok();
    let there = world.outlast(&["wait", &id, "--until", &until, "--json"]).ok().json();
    assert!(there.bool("/met"), "{there:?}");
    there.runs();
    // Whoever may listen there now: nobody of this command does.
    world.stop(&id);
    world.outlast(&["wait", &id, "--until", &until]).exits(143);
    let other = bg_shell(&world, &[], "sleep .3; exit 7");
    world.outlast(&["wait", &other, "--until", &until]).exits(7);
    for wrong in ["port:0", "port:http", "port:65536"] {
        world.outlast(&["wait", &id, "--until", wrong]).exits(2);
    }
}

#[test]
fn e7_a_server_that_moves_itself_into_the_background_has_its_port() {
    let world = world();
    let server = "import os, socket, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\n\
                  print(s.getsockname()[1], file=open('port', 'w'), flush=True)\n\
                  input()\ns.listen()\nif os.fork(): os._exit(0)\ntime.sleep(50)";
    let id = world.bg(&["--stdin", "--", "python3", "-c", server]);
    let until = format!("port:{}", world.wait_file("port").trim());
    let waiting = world.spawn(&["wait", &id, "--until", &until, "--json"]);
    // It is waiting by then; were it not, it would find the port open.
    world.outlast(&["wait", &id, "--until", &until, "--timeout", "300ms"]).exits(124);
    world.outlast(&["send", &id, "go"]).ok();
    let met = waiting.wait().ok().json();
    assert!(met.bool("/met"), "{met:?}");
}

#[test]
fn e9_wait_consumes_for_its_consumer_only() {
    let world = world();
    for _ in 0..10 {
        let id = bg_shell(&world, &["--stdin"], "read x");
        let waits = [world.spawn(&["wait", &id]), world.spawn(&["wait", &id])];
        world.outlast(&["send", &id, "go"]).ok();
        for wait in waits {
            wait.wait().ok();
        }
        assert!(world.acked("model").is_empty(), "a wait told it already");
        assert_eq!(ids(&world.acked("human")), [id.as_str()]);
        let lines = world.trace("completed");
        let told = lines.iter().filter(|line| line.str("/id") == id && line.str("/consumer") == "model");
        assert_eq!(told.map(|line| line.str("/delivered_via").to_owned()).collect::<Vec<_>>(), ["wait"]);
    }
}

/// Covers: E1
#[test]
fn e1_many_waits_end_together() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "read x; exit 7");
    let waits: Vec<_> = (0..10).map(|_| world.spawn(&["wait", &id])).collect();
    world.call(&["ps"]).within(AT_ONCE).run().ok();
    world.outlast(&["send", &id, "--eof"]).ok();
    for wait in waits {
        wait.wait().exits(7);
    }
}
