//! Commands in the foreground: inline ends, demotion, cancel.

use std::time::{Duration, Instant};

use outlast::core::ending::End;
use outlast::core::record::Phase;
use outlast::core::request::Streams;
use outlast::core::wire::DemotedBy;
use outlast::{Error, ErrorKind, Outcome, RunEvent, StopOptions, Stream};

use crate::world::{World, finished, in_world, soon};

/// Covers: A1
#[test]
fn a1_an_end_in_the_foreground_leaves_nothing() {
    in_world("a1", async |world: World| {
        let session = world.session().await;
        for (line, text, code) in [("echo hi", "hi\n", 0), ("echo no; exit 3", "no\n", 3)] {
            let request = world.shell(line);
            let done = finished(
                session
                    .run_to_end(outlast::RunRequest { grace: Some(Duration::from_secs(10)), ..request })
                    .await
                    .expect(line),
            );
            assert_eq!((done.output.as_slice(), done.truncated, done.materialised), (text.as_bytes(), false, false));
            assert_eq!(done.exit.end, End::Exited { code });
            assert!(!done.exit.demoted && done.log.is_none());
        }
        assert!(session.list(true).await.expect("a list").is_empty());
        assert!(session.pending("model").await.expect("pending").is_empty());
        let work = session.path().expect("a directory").join("work");
        assert_eq!(std::fs::read_dir(work).expect("work").count(), 0);
    });
}

/// Covers: A3
#[test]
fn a3_without_a_grace_there_is_no_clock() {
    in_world("a3", async |world: World| {
        let session = world.session().await;
        let began = Instant::now();
        let done = finished(session.run_to_end(world.shell("sleep 3; echo finished")).await.expect("a run"));
        assert!(began.elapsed() >= Duration::from_secs(3));
        assert_eq!((done.output.as_slice(), done.materialised), (&b"finished\n"[..], false));
    });
}

/// Covers: A4
#[test]
fn a4_without_records_nothing_is_demoted() {
    in_world("a4", async |world: World| {
        let file = world.work_dir.join("a-file");
        std::fs::write(&file, "").expect("a file");
        let runtime = outlast::Runtime::open(crate::world::config(&file)).expect("a runtime");
        assert!(runtime.records().is_err());
        let session = runtime.session_for(std::process::id()).await.expect("a session nowhere");
        let began = Instant::now();
        let request =
            outlast::RunRequest { grace: Some(Duration::from_millis(200)), ..world.shell("sleep 2; echo done") };
        let done = finished(session.run_to_end(request).await.expect("a run"));
        assert!(began.elapsed() >= Duration::from_secs(2));
        assert_eq!(done.output, b"done\n");
        let refused = session.start(world.shell("touch started")).await.expect_err("a refusal");
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
        assert!(refused.to_string().contains("a-file"), "{refused}");
        assert!(!world.work_dir.join("started").exists());
        assert_eq!(std::fs::read_dir(&world.work_dir).expect("work").count(), 1);
    });
}

/// Covers: A5
#[test]
fn a5_a_caller_that_cannot_be_told_runs_to_the_end() {
    in_world("a5", async |world: World| {
        let session = world.session().await;
        let request = |line: &str| outlast::RunRequest {
            can_be_told: false,
            grace: Some(Duration::from_millis(100)),
            ..world.shell(line)
        };
        let done = finished(session.run_to_end(request("sleep 1; echo done")).await.expect("a run"));
        assert_eq!(done.output, b"done\n");
        // A cancel forces the demotion, which is the error of this call, with the id.
        let cancel = tokio::time::timeout(Duration::from_millis(300), std::future::pending::<()>());
        let forced = session.run_until(request("sleep 60"), async { drop(cancel.await) }).await;
        let Err(Error::DemotedUnasked { id }) = forced else { panic!("no error of a forced demotion") };
        let command = session.get(&id).await.expect("a look").expect("the command");
        assert_eq!(command.snapshot().await.expect("a snapshot").phase, Phase::Running);
        command.stop(StopOptions::by("model")).await.expect("a stop");
    });
}

/// Covers: A6
#[test]
fn a6_a_cancel_before_the_start_means_that_nothing_runs() {
    in_world("a6", async |world: World| {
        let session = world.session().await;
        let outcome = session.run_until(world.shell("touch marker"), std::future::ready(())).await;
        assert!(matches!(outcome, Err(Error::Cancelled)));
        // A future that is dropped before it was polled was never a call.
        drop(session.run_to_end(world.shell("touch marker")));
        finished(session.run_to_end(world.shell("true")).await.expect("a later run"));
        assert!(!world.work_dir.join("marker").exists());
        assert!(session.list(true).await.expect("a list").is_empty());
    });
}

/// Covers: A7, A8
#[test]
fn a7_a_failed_start_is_told_by_its_call() {
    in_world("a7", async |world: World| {
        let session = world.session().await;
        let mut missing = world.shell("");
        missing.argv = vec!["no-such-program".into()];
        missing.grace = Some(Duration::ZERO);
        for outcome in [session.run_to_end(missing.clone()).await, session.start(missing).await] {
            let done = finished(outcome.expect("an end"));
            assert_eq!(done.exit.end, End::SpawnFailed { step: "exec".into(), errno: "ENOENT".into() });
            assert!(!done.materialised);
        }
        let mut nowhere = world.shell("true");
        nowhere.cwd = world.work_dir.join("missing");
        let done = finished(session.run_to_end(nowhere).await.expect("an end"));
        let End::SpawnFailed { step, errno } = done.exit.end else { panic!("{:?}", done.exit.end) };
        assert_eq!((step.as_str(), errno.as_str()), ("cwd", "ENOENT"));
        assert!(session.list(true).await.expect("a list").is_empty());
    });
}

/// Covers: A12
#[test]
fn a12_an_empty_command_is_refused() {
    in_world("a12", async |world: World| {
        let session = world.session().await;
        for argv in [vec![], vec![""], vec!["  ", "x"], vec!["a\0b"]] {
            let request = outlast::RunRequest { argv: argv.iter().map(Into::into).collect(), ..world.shell("") };
            let error = session.run_to_end(request).await.expect_err("a refusal");
            assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        }
    });
}

/// Covers: B1, B12
#[test]
fn b1_the_grace_demotes() {
    in_world("b1", async |world: World| {
        let session = world.session().await;
        let began = Instant::now();
        let request =
            outlast::RunRequest { grace: Some(Duration::from_secs(1)), ..world.shell("sleep 3; printf done") };
        let Outcome::Demoted(demotion) = session.run_to_end(request).await.expect("a run") else {
            panic!("it was not demoted")
        };
        assert!(began.elapsed() < Duration::from_secs(3));
        assert_eq!(demotion.by, DemotedBy::Grace);
        let listed = session.list(false).await.expect("a list");
        assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [*demotion.command.id()]);
        let report = session.wait(&[demotion.command], Default::default()).await.expect("a wait");
        let end = &report.commands[0].snapshot;
        assert_eq!((end.exit_code, end.output.tail.as_slice()), (Some(0), &b"done"[..]));
        assert!(end.duration_ms >= 3000 && end.demoted_at_ms.is_some(), "{end:?}");
        assert!(end.output.log.as_ref().is_some_and(|log| log.is_absolute() && log.starts_with(&world.state_dir)));
    });
}

/// Covers: B4
#[test]
fn b4_a_caller_that_goes_away_demotes_at_once() {
    in_world("b4", async |world: World| {
        let session = world.session().await;
        let mut running = session.run(world.shell("exec sleep 60")).await.expect("a run");
        assert!(matches!(running.next().await, Ok(Some(RunEvent::Started { .. }))));
        let id = *running.id();
        drop(running);
        let began = Instant::now();
        soon("the command is in the list", async || {
            session.list(false).await.expect("a list").iter().any(|one| one.id == id && one.demoted)
        })
        .await;
        assert!(began.elapsed() < Duration::from_secs(1));
        let command = session.get(&id).await.expect("a look").expect("the command");
        assert_eq!(command.snapshot().await.expect("a snapshot").phase, Phase::Running);
        command.stop(StopOptions::by("model")).await.expect("a stop");

        // After the end nothing changes, but whoever did not hear of it is told.
        let mut running = session.run(world.shell("echo out")).await.expect("a run");
        while !matches!(running.next().await, Ok(Some(RunEvent::Ended(_)))) {}
        let id = *running.id();
        drop(running);
        soon("the end is pending", async || {
            session.pending("model").await.expect("pending").iter().any(|one| one.snapshot.id == id)
        })
        .await;
    });
}

/// Covers: B5
#[test]
fn b5_a_cancel_while_it_runs_demotes_at_once() {
    in_world("b5", async |world: World| {
        let session = world.session().await;
        let request =
            outlast::RunRequest { grace: Some(Duration::from_secs(60)), ..world.shell("touch begun; exec sleep 31") };
        let begun = world.work_dir.join("begun");
        let cancel = soon("it runs", async || begun.exists());
        let began = Instant::now();
        let Outcome::Demoted(demotion) = session.run_until(request, cancel).await.expect("a run") else {
            panic!("it was not demoted")
        };
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(demotion.by, DemotedBy::Asked);
        assert_eq!(demotion.command.snapshot().await.expect("a snapshot").phase, Phase::Running);
        demotion.command.stop(StopOptions::by("model")).await.expect("a stop");
    });
}

/// Covers: T7
#[test]
fn t7_a_cancel_stops_nothing_that_was_demoted() {
    in_world("t7", async |world: World| {
        let session = world.session().await;
        // The turn is cancelled once this file is there.
        let cancelled = world.work_dir.join("cancelled");
        let cancel = || soon("the turn is cancelled", async || cancelled.exists());
        let demoted = |outcome| match outcome {
            Outcome::Demoted(demotion) => demotion,
            Outcome::Finished(done) => panic!("{:?}", done.exit),
        };
        let request = outlast::RunRequest { grace: Some(Duration::from_millis(100)), ..world.shell("exec sleep 300") };
        let first = demoted(session.run_until(request, cancel()).await.expect("a run"));
        // The turn goes on with another command, and is cancelled over it.
        let request = world.shell("touch cancelled; exec sleep 300");
        let second = demoted(session.run_until(request, cancel()).await.expect("a run"));
        assert_eq!((first.by, second.by), (DemotedBy::Grace, DemotedBy::Asked));
        let running = session.list(false).await.expect("a list");
        assert_eq!(running.iter().map(|one| one.id).collect::<Vec<_>>(), [*first.command.id(), *second.command.id()]);
        assert!(running.iter().all(|one| one.phase == Phase::Running), "{running:?}");
        session.stop_all(StopOptions::by("model"), false).await.expect("stops");
    });
}

/// Covers: C5
#[test]
fn c5_overflow_keeps_head_and_tail_and_a_whole_log() {
    in_world("c5", async |world: World| {
        let session = world.session().await;
        let line = "echo first; i=0; while [ $i -lt 2000 ]; do echo 123456789; i=$((i+1)); done; echo last";
        let done = finished(session.run_to_end(world.shell(line)).await.expect("a run"));
        let all = 6 + 2000 * 10 + 5;
        assert!(done.materialised && done.truncated);
        assert_eq!(done.exit.output.bytes, all);
        assert_eq!(done.shown_from, all - 16_384);
        assert!(done.output.ends_with(b"last\n") && done.output.len() == 16_384);
        let [excerpt] = done.excerpts.as_slice() else { panic!("{} excerpts", done.excerpts.len()) };
        assert!(excerpt.head.starts_with(b"first\n") && excerpt.tail.ends_with(b"last\n"));
        assert_eq!(excerpt.missing, all - 16_384);
        let log = std::fs::read(done.log.expect("a log")).expect("the log");
        assert!(log.windows(6).any(|part| part == b"first\n") && log.windows(5).any(|part| part == b"last\n"));
        assert!(session.pending("model").await.expect("pending").is_empty());
    });
}

/// Covers: C1, C6
#[test]
fn c1_separate_streams_come_apart() {
    in_world("c1", async |world: World| {
        let session = world.session().await;
        let request = |line| outlast::RunRequest { streams: Streams::Separate, ..world.shell(line) };
        let done = finished(session.run_to_end(request("echo out; echo err >&2")).await.expect("a run"));
        let texts: Vec<_> = done.excerpts.iter().map(|one| (one.stream, one.head.as_slice())).collect();
        assert_eq!(texts, [(Stream::Stdout, &b"out\n"[..]), (Stream::Stderr, &b"err\n"[..])]);
        let line = "head -c 10000000 /dev/zero >&2; echo out";
        let done = finished(session.run_to_end(request(line)).await.expect("a run"));
        assert_eq!(done.exit.end, End::Exited { code: 0 });
        assert_eq!(done.excerpts[0].head, b"out\n");
        assert_eq!(done.excerpts[1].missing, 10_000_000 - 16_384);
    });
}

#[test]
fn followed_output_comes_whole_and_in_order() {
    in_world("follow", async |world: World| {
        let session = world.session().await;
        let line = "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done";
        let request = outlast::RunRequest { follow: true, ..world.shell(line) };
        let mut running = session.run(request).await.expect("a run");
        let mut seen = Vec::new();
        loop {
            match running.next().await.expect("an event").expect("an end") {
                RunEvent::Output { bytes, .. } => seen.extend(bytes),
                RunEvent::Ended(done) => {
                    assert_eq!(done.exit.output.bytes, seen.len() as u64);
                    break;
                }
                RunEvent::OutputGap { .. } | RunEvent::Demoted(_) | RunEvent::NotDemoted { .. } => panic!("unexpected"),
                RunEvent::Started { .. } | RunEvent::InputTaken { .. } => {}
            }
        }
        running.told().await.expect("told");
        let expected: String = (0..20_000).map(|n| format!("{n}\n")).collect();
        assert!(seen == expected.as_bytes());
    });
}
