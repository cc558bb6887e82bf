//! Acting: stop, signal, input.

use std::time::{Duration, Instant};

use outlast::core::ending::{End, Fact};
use outlast::core::record::Phase;
use outlast::core::request::Stdin;
use outlast::{Error, ErrorKind, Outcome, RunEvent, StopOptions};

use crate::world::{World, finished, in_world, processes_of, soon, start};

/// Covers: F1, F3, F7
#[test]
fn f1_a_stop_ends_the_tree_and_keeps_the_real_end() {
    in_world("f1", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "sleep 300 & setsid sleep 300 & wait").await;
        let began = Instant::now();
        let outcome = command.stop(StopOptions::by("model")).await.expect("a stop");
        assert!(began.elapsed() < Duration::from_secs(5));
        assert!(outcome.verified && !outcome.already_ended && outcome.alive.is_empty(), "{outcome:?}");
        let stopped = End::Stopped { by: "model".into(), fact: Some(Fact::Signaled(15)) };
        assert_eq!((outcome.snapshot.phase, outcome.snapshot.end), (Phase::Ended, Some(stopped.clone())));
        let again = command.stop(StopOptions::by("human")).await.expect("a second stop");
        assert_eq!((again.signals, again.already_ended, again.snapshot.end), (0, true, Some(stopped)));
    });
}

/// Covers: F2
#[test]
fn f2_what_ignores_term_gets_kill() {
    in_world("f2", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "trap '' TERM; touch ready; while :; do sleep 0.1; done").await;
        soon("the trap is set", async || world.work_dir.join("ready").exists()).await;
        let began = Instant::now();
        let outcome = command.stop(StopOptions::by("model")).await.expect("a stop");
        assert!(began.elapsed() >= Duration::from_secs(2));
        assert!(outcome.verified && outcome.signals >= 2, "{outcome:?}");
        assert_eq!(outcome.snapshot.exit_code, Some(137));
    });
}

/// Covers: F9
#[test]
fn f9_a_stop_by_a_token_ends_the_whole_tree_with_its_real_end() {
    in_world("f9", async |world: World| {
        let session = world.session().await;
        let begun = world.work_dir.join("begun");
        for line in ["setsid sleep 300 & touch begun; exec sleep 300", "sleep 300 & touch begun; wait"] {
            let token = soon("it runs", async || begun.exists());
            let outcome = session.run_until_stopped(world.shell(line), "harness", token).await.expect("a run");
            let done = finished(outcome);
            assert_eq!(done.exit.end, End::Stopped { by: "harness".into(), fact: Some(Fact::Signaled(15)) });
            assert_eq!((done.exit.end.exit_code(), done.exit.survivors.len()), (Some(143), 0));
            let left = processes_of(&world.state_dir);
            let named = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            assert!(!left.iter().any(|pid| named(pid) == "sleep\n"), "{left:?}");
            std::fs::remove_file(&begun).expect("our file");
        }
        // Raised before the start it means that nothing runs.
        let raised = std::future::ready(());
        let early = session.run_until_stopped(world.shell("touch begun"), "harness", raised).await;
        assert!(matches!(early, Err(Error::Cancelled)), "{early:?}");
        assert!(!begun.exists() && session.list(true).await.expect("a list").is_empty());
    });
}

/// Covers: F9
#[test]
fn f9_a_stop_is_noticed_at_once() {
    in_world("f9-soon", async |world: World| {
        let session = world.session().await;
        let mut took = Vec::new();
        // The quickest of several rounds: a machine that is busy with other things adds to each.
        for _ in 0..10 {
            let mut running = session.run(world.shell("exec sleep 300")).await.expect("a run");
            assert!(matches!(running.next().await, Ok(Some(RunEvent::Started { .. }))));
            let began = Instant::now();
            running.stop("harness").await.expect("a stop");
            assert!(matches!(running.next().await, Ok(Some(RunEvent::Ended(_)))));
            took.push(began.elapsed());
            running.told().await.expect("told");
        }
        assert!(took.iter().min() < Some(&Duration::from_millis(25)), "{took:?}");
    });
}

/// Covers: S8
#[test]
fn s8_input_reaches_the_command() {
    in_world("s8", async |world: World| {
        let session = world.session().await;
        let request = outlast::RunRequest { stdin: Stdin::Open, ..world.shell("cat; echo over") };
        let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
        let command = demotion.command;
        command.send(b"hello\n", false).await.expect("input");
        soon("the input comes back", async || command.snapshot().await.expect("a look").output.tail == b"hello\n")
            .await;
        command.close_input().await.expect("end of input");
        session.wait(std::slice::from_ref(&command), Default::default()).await.expect("a wait");
        assert_eq!(command.snapshot().await.expect("a look").output.tail, b"hello\nover\n");
        let ended = command.send(b"x", false).await.expect_err("a refusal");
        assert_eq!(ended.kind(), ErrorKind::Refused, "{ended}");
        let closed = start(&world, &session, "exec sleep 60").await;
        let refused = closed.send(b"x", false).await.expect_err("a refusal");
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
        closed.signal(15).await.expect("a signal");
        session.wait(std::slice::from_ref(&closed), Default::default()).await.expect("a wait");
        // A signal is not a stop.
        assert_eq!(closed.snapshot().await.expect("a look").end, Some(End::Signaled { signal: 15 }));
    });
}
