//! Acting: stop, signal, input.

use std::time::{Duration, Instant};

use outlast::core::ending::{End, Fact};
use outlast::core::record::Phase;
use outlast::core::request::Stdin;
use outlast::{ErrorKind, Outcome, StopOptions};

use crate::world::{World, in_world, soon, start};

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
