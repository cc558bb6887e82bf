//! The wait of a session's end.

use std::time::{Duration, Instant};

use outlast::{END_BOUND, Session};

use crate::world::{World, in_world, nothing_left, soon, start};

/// Starts a command that lives on for the stop grace of two seconds.
async fn stubborn(world: &World, session: &Session) {
    start(world, session, "trap '' TERM; touch ready; while :; do sleep 0.1; done").await;
    soon("the trap is set", async || world.work_dir.join("ready").exists()).await;
}

/// What the report says of each command.
fn states(report: &outlast::core::record::ClosedRecord) -> Vec<&str> {
    report.commands.iter().map(|one| one.state.as_str()).collect()
}

/// Covers: K8
#[test]
fn k8_an_end_that_waits_for_all() {
    in_world("k8-all", async |world: World| {
        let session = world.session().await;
        start(&world, &session, "exec sleep 300").await;
        stubborn(&world, &session).await;
        let began = Instant::now();
        let report = session.end("human", END_BOUND, false).await.expect("an end");
        assert_eq!(states(&report), ["running", "running"]);
        assert!(began.elapsed() >= Duration::from_secs(2) && began.elapsed() < END_BOUND);
        assert!(session.running().await.expect("a list").is_empty());
    });
}

/// Covers: K8
#[test]
fn k8_a_caller_that_goes_away_takes_nothing_back() {
    in_world("k8-away", async |world: World| {
        let session = world.session().await;
        stubborn(&world, &session).await;
        let end = session.end("human", END_BOUND, false);
        assert!(tokio::time::timeout(Duration::from_millis(300), end).await.is_err());
        soon("the session is closed", async || session.closed().await.expect("a look").is_some()).await;
        let report = session.closed().await.expect("a look").expect("a report");
        // It was waited for all the same, so nothing is said of a bound.
        assert_eq!((report.by.as_str(), states(&report)), ("human", vec!["running"]));
        drop(session);
        nothing_left(&world.state_dir).await;
    });
}

/// Covers: K8, K6
#[test]
fn k8_a_bound_that_is_reached_is_said_once() {
    in_world("k8-bound", async |world: World| {
        let session = world.session().await;
        start(&world, &session, "exec sleep 300").await;
        stubborn(&world, &session).await;
        let began = Instant::now();
        let report = session.end("human", Duration::from_millis(500), false).await.expect("an end");
        assert!(began.elapsed() < Duration::from_secs(2));
        assert_eq!(states(&report), ["running", "unwinding"]);
        let unwinding = &report.commands[1];
        assert!(unwinding.exit.is_none() && unwinding.running_ms >= 500, "{unwinding:?}");
        assert_eq!(session.end("human", END_BOUND, false).await.expect("a second end"), report);
        let lines = session.trace().await.expect("a trace");
        assert_eq!(lines.iter().filter(|line| line.kind == "abandoned").count(), 2);
        drop(session);
        nothing_left(&world.state_dir).await;
    });
}
