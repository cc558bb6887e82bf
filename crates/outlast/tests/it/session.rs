//! Sessions: anchors, owners, ends, many threads.

use std::time::Duration;

use outlast::core::record::{Ownership, Phase};
use outlast::{Anchor, END_BOUND, Error, ErrorKind, Outcome, SessionOptions, StopOptions, WaitOptions};

use crate::lost::{signal, supervisor};
use crate::world::{SOON, World, adopted, config, finished, in_world, nothing_left, soon, start};

/// Covers: J3, A14
#[test]
fn j3_the_session_of_an_anchor_is_found_again() {
    in_world("anchor", async |world: World| {
        let own = std::process::id();
        assert!(world.runtime.find_session_for(own).await.expect("a look").is_none());
        let first = world.runtime.session_for(own).await.expect("a session");
        let again = world.runtime.session_for(own).await.expect("the session");
        assert_eq!(first.id(), again.id());
        assert_eq!(first.record().expect("a record").ownership, Ownership::OneShot);
        // Another runtime is another process to it.
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let found = other.find_session_for(own).await.expect("a look").expect("the session");
        let command = start(&world, &found, "exec sleep 60").await;
        assert_eq!(first.list(false).await.expect("a list").len(), 1);
        let report = first.end("human", END_BOUND, false).await.expect("an end");
        assert_eq!(report.commands.iter().map(|one| one.id).collect::<Vec<_>>(), [*command.id()]);
        let refused = first.run_to_end(world.shell("true")).await.expect_err("a refusal");
        assert!(matches!(refused, Error::SessionClosed { .. }), "{refused}");
        assert!(world.runtime.find_session_for(own).await.expect("a look").is_none());
    });
}

/// Covers: J6
#[test]
fn j6_a_child_has_no_session_until_it_is_given_one() {
    in_world("j6", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "exec sleep 300").await;
        // A child agent in the same process: another runtime, or the same one, and nothing handed over.
        let child = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        for runtime in [&child, &world.runtime] {
            assert!(runtime.find_session_for(std::process::id()).await.expect("a look").is_none());
        }
        let own = child.create_session(SessionOptions::default()).await.expect("a session of its own");
        assert!(own.list(true).await.expect("a list").is_empty() && own.command("w1").await.is_err());
        let given = child.open_session(session.id()).await.expect("the session that it is given");
        assert_eq!(given.command("w1").await.expect("a command").id(), command.id());
        command.stop(StopOptions::by("model")).await.expect("a stop");
    });
}

/// Covers: S3
#[test]
fn s3_the_last_handle_frees_the_owner_lock() {
    in_world("s3", async |world: World| {
        let session = world.session().await;
        let id = *session.id();
        let second = world.runtime.open_session(&id).await.expect("a second handle");
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let refused = other.adopt_session(&id).await.expect_err("a refusal");
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
        drop(session);
        assert!(second.summary().await.expect("a summary").owned);
        assert!(other.adopt_session(&id).await.is_err());
        let command = start(&world, &second, "exec sleep 60").await;
        drop((second, command));
        let adopted = adopted(&other, &id).await;
        assert!(adopted.summary().await.expect("a summary").owned);
        let listed = adopted.list(false).await.expect("a list");
        assert_eq!(listed.iter().map(|one| one.phase).collect::<Vec<_>>(), [Phase::Running]);
        adopted.end("human", END_BOUND, false).await.expect("an end");
        drop(adopted);
        let late = other.adopt_session(&id).await.expect_err("a refusal");
        assert!(matches!(late, Error::SessionClosed { .. }), "{late}");
    });
}

/// Covers: K1, K6
#[test]
fn k1_an_end_leaves_nothing_running() {
    in_world("k1", async |world: World| {
        let session = world.session().await;
        start(&world, &session, "sleep 300 & exec sleep 300").await;
        let survivor = start(&world, &session, "setsid sleep 300 >/dev/null 2>&1 & echo started").await;
        session.wait(&[survivor], WaitOptions::default()).await.expect("a wait");
        let report = session.end("human", END_BOUND, false).await.expect("an end");
        assert_eq!(report.by, "human");
        assert_eq!(report.commands.iter().map(|one| one.state.as_str()).collect::<Vec<_>>(), ["running", "ended"]);
        let again = session.end("human", END_BOUND, false).await.expect("a second end");
        assert_eq!(again, report);
        drop(session);
        nothing_left(&world.state_dir).await;
    });
}

/// Covers: K9
#[test]
fn k9_an_owner_that_is_gone_ends_its_commands_after_the_linger() {
    in_world("k9", async |world: World| {
        let options = SessionOptions { linger: Duration::from_secs(1), ..SessionOptions::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        let id = *session.id();
        let command = *start(&world, &session, "exec sleep 300").await.id();
        drop(session);
        nothing_left(&world.state_dir).await;
        let session = world.runtime.open_session(&id).await.expect("the session");
        let ended =
            session.get(&command).await.expect("a look").expect("the command").snapshot().await.expect("a look");
        let end = ended.end.expect("an end");
        assert_eq!((end.kind(), end.exit_code()), ("stopped", Some(143)), "{end:?}");
    });
}

/// Covers: K9
#[test]
fn k9_an_owner_that_its_keeper_never_heard_of_keeps_what_others_started() {
    in_world("k9_lock", async |world: World| {
        k9_owner_by_its_lock(&world, false).await;
    });
}

/// Covers: K9
#[test]
fn k9_and_so_it_does_where_that_keeper_was_killed() {
    in_world("k9_orphan", async |world: World| {
        k9_owner_by_its_lock(&world, true).await;
    });
}

async fn k9_owner_by_its_lock(world: &World, keeper_is_killed: bool) {
    let options = SessionOptions { linger: Duration::from_millis(300), ..SessionOptions::default() };
    let mut owner = Some(world.runtime.create_session(options).await.expect("a session"));
    let id = *owner.as_ref().expect("a session").id();
    // Another runtime is another process to it. The keeper is its, and the owner has no connection to that.
    let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
    let session = other.open_session(&id).await.expect("the session");
    let brief = start(world, &session, "sleep 2; exit 7").await;
    let long = start(world, &session, "exec sleep 300").await;
    if keeper_is_killed {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", supervisor(&session, &long))).expect("a supervisor");
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        signal(parent.expect("a parent"), rustix::process::Signal::KILL);
    }
    for (command, expected) in [(brief, ("exited", Some(7))), (long, ("stopped", Some(143)))] {
        let waited = session.wait(&[command], WaitOptions::default()).await.expect("a wait");
        let end = waited.commands[0].snapshot.end.clone().expect("an end");
        assert_eq!((end.kind(), end.exit_code()), expected, "{end:?}");
        // The second one ends because its owner is gone.
        drop(owner.take());
    }
}

/// Covers: S1
#[test]
fn s1_a_cap_refuses_the_new_start() {
    in_world("s1", async |world: World| {
        let options = SessionOptions { running_cap: 3, ..SessionOptions::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        let starts = (0..12).map(|_| {
            let (session, request) = (session.clone(), world.shell("exec sleep 60"));
            tokio::spawn(async move { session.start(request).await })
        });
        let mut refused = 0;
        for start in starts.collect::<Vec<_>>() {
            match start.await.expect("a task") {
                Ok(Outcome::Demoted(_)) => {}
                Ok(Outcome::Finished(done)) => panic!("{:?}", done.exit),
                Err(Error::Cap { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        let open: Vec<_> = session.running().await.expect("a list").iter().map(|one| *one.id()).collect();
        assert_eq!((refused, open.len()), (9, 3));
        let Err(Error::Cap { mut running, reason }) = session.start(world.shell("true")).await else {
            panic!("no refusal")
        };
        running.sort();
        assert_eq!(running, open, "{reason}");
        session.stop_all(StopOptions::by("model"), false).await.expect("stops");
    });
}

/// Covers: S5
#[test]
fn s5_many_threads_lose_no_end() {
    in_world("s5", async |world: World| {
        let options = SessionOptions { running_cap: 0, ..SessionOptions::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        let tasks = (0..24).map(|number| {
            let (session, request) = (session.clone(), world.shell(&format!("echo {number}; exit {number}")));
            tokio::spawn(async move {
                for round in 0..6 {
                    if round % 2 == 0 {
                        let Ok(Outcome::Finished(done)) = session.run_to_end(request.clone()).await else {
                            panic!("no end in the foreground")
                        };
                        assert_eq!(done.exit.end.exit_code(), Some(number));
                        continue;
                    }
                    let Outcome::Demoted(demotion) = session.start(request.clone()).await.expect("a start") else {
                        panic!("it ended")
                    };
                    session.list(true).await.expect("a list");
                    let stopped = demotion.command.stop(StopOptions::by("model")).await.expect("a stop");
                    assert!(stopped.verified);
                    let options = WaitOptions { consumer: Some("model".into()), ..WaitOptions::default() };
                    let report = session.wait(&[demotion.command], options).await.expect("a wait");
                    assert_eq!(report.commands[0].snapshot.phase, Phase::Ended);
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("a task");
        }
        assert_eq!(session.list(true).await.expect("a list").len(), 24 * 3);
        assert!(session.pending("model").await.expect("pending").is_empty());
        assert_eq!(session.pending("human").await.expect("pending").len(), 24 * 3);
    });
}

#[test]
fn an_anchor_must_live() {
    in_world("anchor-gone", async |world: World| {
        let mut anchor = std::process::Command::new("sleep").arg("300").spawn().expect("an anchor");
        let options = SessionOptions {
            anchor: Anchor::Process(anchor.id()),
            ownership: Ownership::OneShot,
            ..SessionOptions::default()
        };
        let session = world.runtime.create_session(options).await.expect("a session");
        let command = start(&world, &session, "exec sleep 300").await;
        anchor.kill().expect("the anchor can be killed");
        anchor.wait().expect("the anchor can be reaped");
        soon("the session is closed", async || session.closed().await.expect("a look").is_some()).await;
        let end = command.snapshot().await.expect("a look").end.expect("an end");
        assert_eq!(end.kind(), "abandoned");
        let refused = session.run_to_end(world.shell("true")).await.expect_err("a refusal");
        assert_eq!(refused.kind(), ErrorKind::Refused);
    });
}

/// Covers: B3
#[test]
fn b3_an_end_misses_no_start() {
    in_world("b3", async |world: World| {
        for _ in 0..20 {
            let session = world.session().await;
            finished(session.run_to_end(world.shell("true")).await.expect("a first run"));
            let (starter, request) = (session.clone(), world.shell("exec sleep 300"));
            let started = tokio::spawn(async move { starter.start(request).await });
            session.end("human", END_BOUND, false).await.expect("an end");
            match started.await.expect("the start") {
                Ok(Outcome::Demoted(demotion)) => {
                    let options = WaitOptions { timeout: Some(SOON), ..WaitOptions::default() };
                    let report = session.wait(&[demotion.command], options).await.expect("a wait");
                    assert_eq!(report.commands[0].snapshot.phase, Phase::Ended);
                }
                Ok(Outcome::Finished(done)) => panic!("{:?}", done.exit),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{error}"),
            }
            drop(session);
        }
        nothing_left(&world.state_dir).await;
    });
}
