//! Receipts: what commands changed, told to each consumer once.

use std::str::FromStr;
use std::time::Duration;

use outlast::core::retention::{Limits, SessionBounds};
use outlast::{
    Change, Command, Consumed, Outcome, ReadOptions, ReceiptLease, Receipts, RunRequest, Session, SessionOptions,
    StopOptions, TaskRequest, Told, TurnKind, Via, WaitOptions,
};

use crate::world::{World, adopted, executable, finished, in_world, soon};

/// A shell line that can call `outlast` of this build in this state directory.
fn line(world: &World, line: &str) -> RunRequest {
    let outlast = executable();
    let mut request = world.shell(&line.replace("outlast", outlast.to_str().expect("a path in UTF-8")));
    request.env.push(("OUTLAST_STATE_DIR".into(), world.state_dir.clone().into()));
    request
}

async fn started(session: &Session, request: RunRequest) -> Command {
    match session.start(request).await.expect("a background start") {
        Outcome::Demoted(demotion) => demotion.command,
        Outcome::Finished(finished) => panic!("it ended at once: {:?}", finished.exit),
    }
}

async fn ended(session: &Session, command: &Command) {
    session.wait(std::slice::from_ref(command), WaitOptions::default()).await.expect("a wait");
}

fn write(world: &World, names: &[&str]) -> Vec<Change> {
    vec![Change::Write { paths: names.iter().map(|name| world.work_dir.join(name).into_os_string().into()).collect() }]
}

fn ready(lease: ReceiptLease) -> Receipts {
    match lease {
        ReceiptLease::Ready(receipts) => receipts,
        ReceiptLease::NotReady => panic!("it is not ready"),
    }
}

/// Covers: N1, N4, N8
#[test]
fn n1_what_is_published_is_merged_and_shows_after_the_end() {
    in_world("n1", async |world: World| {
        let session = world.session().await;
        let gate = world.work_dir.join("gate");
        let script =
            "outlast receipt a b; outlast receipt b c; touch published; while [ ! -e gate ]; do sleep 0.05; done";
        let command = started(&session, line(&world, script)).await;
        soon("it has published", async || world.work_dir.join("published").exists()).await;
        let lease = session.lease_receipts("model", command.id()).await.expect("a lease");
        assert_eq!(lease, ReceiptLease::NotReady);
        assert_eq!(session.pending_receipts("model").await.expect("a list"), []);
        assert_eq!(command.snapshot().await.expect("a look").changes, []);
        // Another command in another directory, which has nothing to say.
        let other = world.work_dir.join("other");
        std::fs::create_dir(&other).expect("a directory");
        let mut elsewhere = line(&world, "outlast receipt x");
        elsewhere.cwd.clone_from(&other);
        let elsewhere = started(&session, elsewhere).await;
        let silent = started(&session, line(&world, "outlast receipt")).await;
        std::fs::write(gate, "").expect("the gate");
        for command in [&command, &elsewhere, &silent] {
            ended(&session, command).await;
        }
        let expected = [
            Receipts { id: *command.id(), root: world.work_dir.clone(), changes: write(&world, &["a", "b", "c"]) },
            Receipts { id: *elsewhere.id(), root: other, changes: write(&world, &["other/x"]) },
        ];
        // Nobody waited for them: they are listed at each turn, in order, for everybody.
        for consumer in ["model", "model", "human"] {
            assert_eq!(session.pending_receipts(consumer).await.expect("a list"), expected, "{consumer}");
        }
        assert_eq!(command.snapshot().await.expect("a look").changes, expected[0].changes);
        let nothing = ready(session.lease_receipts("model", silent.id()).await.expect("a lease"));
        assert_eq!(nothing.changes, [], "ended, and nothing is known to have been changed");
        assert_eq!(session.commit_receipts("model", silent.id()).await.expect("a commit"), Consumed::Nothing);
    });
}

/// Covers: N1
#[test]
fn n1_a_command_in_the_foreground_publishes_as_well() {
    in_world("n1-foreground", async |world: World| {
        let session = world.session().await;
        let inline =
            finished(session.run_to_end(line(&world, "outlast receipt a; outlast receipt b")).await.expect("a run"));
        assert_eq!((inline.exit.end.exit_code(), inline.materialised), (Some(0), false), "{:?}", inline.output);
        assert_eq!(inline.changes, write(&world, &["a", "b"]));
        // Output that outgrows what is held makes records; the end is still told here, and to nobody else.
        let mut loud = line(&world, "outlast receipt a; yes | head -c 300000; outlast receipt b");
        loud.hold = 1024;
        let loud = finished(session.run_to_end(loud).await.expect("a run"));
        assert!(loud.materialised);
        assert_eq!(loud.changes, write(&world, &["a", "b"]));
        assert_eq!(session.pending_receipts("model").await.expect("a list"), []);
        assert_eq!(session.commit_receipts("model", &loud.exit.id).await.expect("a commit"), Consumed::Before);
        // What was published before a demotion is in the records after it.
        let script = "outlast receipt a; touch published; while [ ! -e gate ]; do sleep 0.05; done; outlast receipt b";
        let published = async {
            soon("it has published", async || world.work_dir.join("published").exists()).await;
        };
        let Outcome::Demoted(demotion) = session.run_until(line(&world, script), published).await.expect("a run")
        else {
            panic!("it was not demoted");
        };
        std::fs::write(world.work_dir.join("gate"), "").expect("the gate");
        ended(&session, &demotion.command).await;
        let receipts = ready(session.lease_receipts("model", demotion.command.id()).await.expect("a lease"));
        assert_eq!(receipts.changes, write(&world, &["a", "b"]));
    });
}

/// Covers: N1
#[test]
fn n1_a_task_publishes_while_it_runs() {
    in_world("n1-task", async |world: World| {
        let session = world.session().await;
        let (a, b, c) = (world.work_dir.join("a"), world.work_dir.join("b"), world.work_dir.join("c"));
        let (paths, dir) = ([a.clone(), b.clone()], world.work_dir.clone());
        let request = TaskRequest { cwd: dir, ..TaskRequest::new(["edit"]) };
        let (give, kept) = std::sync::mpsc::channel();
        let task = session.spawn_task(request, |context| async move {
            let published = context.receipts.publish(paths).map_err(|error| error.to_string());
            give.send(context.receipts.clone()).map_err(|error| error.to_string())?;
            context.stop.raised().await;
            published.map(|()| "done".to_owned())
        });
        let task = task.await.expect("a task");
        let receipts = kept.recv().expect("the task published");
        assert!(receipts.publish(["relative"]).is_err());
        // By its id, as a command that it started would.
        session.publish(task.id(), vec![b, c]).await.expect("published");
        assert_eq!(session.lease_receipts("model", task.id()).await.expect("a lease"), ReceiptLease::NotReady);
        assert_eq!(task.snapshot().await.expect("a look").changes, []);
        task.stop(StopOptions::by("model")).await.expect("a stop");
        let expected = write(&world, &["a", "b", "c"]);
        assert_eq!(task.ended().await.expect("an end").changes, expected);
        let pending = session.pending_receipts("model").await.expect("a list");
        assert_eq!((pending.len(), &pending[0].changes), (1, &expected));
        assert!(receipts.publish([a]).is_err(), "it has ended");
        assert_eq!(session.commit_receipts("model", task.id()).await.expect("a commit"), Consumed::Now);
        assert_eq!(session.pending_receipts("model").await.expect("a list"), []);
    });
}

/// Covers: N4, I5
#[test]
fn n4_what_a_consumer_of_receipts_has_not_taken_keeps_the_session() {
    in_world("n4-retention", async |world: World| {
        let options = SessionOptions { context: "c".into(), linger: Duration::ZERO, ..Default::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        let mut ids = Vec::new();
        for path in ["a", "b"] {
            let command = started(&session, line(&world, &format!("outlast receipt {path}"))).await;
            ended(&session, &command).await;
            assert_eq!(session.commit("model", command.id(), Via::Wait).await.expect("a commit"), Told::Now);
            ids.push(*command.id());
        }
        assert_eq!(session.commit_receipts("model", &ids[0]).await.expect("a commit"), Consumed::Now);
        session.end("human", outlast::END_BOUND, false).await.expect("an end");
        let path = session.path().expect("a directory");
        drop(session);
        // A newer one, so that the bound is broken.
        let newer = world.session().await;
        let bounds = SessionBounds::new(Some(1), None).expect("bounds");
        let limits = Limits { sessions: Some(bounds), ..Limits::default() };
        soon("its keeper is gone, and it would be next", async || {
            let kept = world.runtime.retain(&limits, false).await.expect("a look").kept;
            assert!(path.exists());
            !kept.is_empty()
        })
        .await;
        let earlier =
            outlast::core::id::SessionId::from_str(path.file_name().and_then(|name| name.to_str()).expect("an id"));
        let earlier = world.runtime.open_session(&earlier.expect("an id")).await.expect("the session");
        assert_eq!(earlier.commit_receipts("model", &ids[1]).await.expect("a commit"), Consumed::Now);
        drop(earlier);
        soon("nothing of it is left", async || {
            world.runtime.retain(&limits, false).await.expect("a look");
            !path.exists()
        })
        .await;
        drop(newer);
    });
}

/// Covers: N2
#[test]
fn n2_what_is_being_stopped_is_not_ready() {
    in_world("n2", async |world: World| {
        let session = world.session().await;
        let script = "trap 'while [ ! -e gate ]; do sleep 0.05; done; outlast receipt late; exit 0' TERM; \
                      outlast receipt early; touch published; while :; do sleep 0.05; done";
        let command = started(&session, line(&world, script)).await;
        soon("it has published", async || world.work_dir.join("published").exists()).await;
        let unknown = "wrk_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e".parse().expect("an id");
        assert_eq!(session.lease_receipts("model", &unknown).await.expect("a lease"), ReceiptLease::NotReady);
        let options = StopOptions { grace: Some(std::time::Duration::from_secs(20)), ..StopOptions::by("model") };
        let stopping = tokio::spawn({
            let command = command.clone();
            async move { command.stop(options).await }
        });
        soon("it is stopping", async || {
            command.brief().await.expect("a look").phase == outlast::core::record::Phase::Stopping
        })
        .await;
        assert_eq!(session.lease_receipts("model", command.id()).await.expect("a lease"), ReceiptLease::NotReady);
        assert_eq!(session.commit_receipts("model", command.id()).await.expect("a commit"), Consumed::NotReady);
        std::fs::write(world.work_dir.join("gate"), "").expect("the gate");
        stopping.await.expect("the stop").expect("a stop");
        // Leases consume nothing, also not those that were taken too early.
        for _ in 0..2 {
            let receipts = ready(session.lease_receipts("model", command.id()).await.expect("a lease"));
            assert_eq!(receipts.changes, write(&world, &["early", "late"]));
        }
        // Whoever survived the end has nothing to add: all was told.
        let late = session.publish(command.id(), vec![world.work_dir.join("z")]).await;
        assert!(late.expect_err("it has ended").to_string().contains("has ended"));
    });
}

/// Covers: N3
#[test]
fn n3_a_commit_consumes_for_good() {
    in_world("n3", async |world: World| {
        let session = world.session().await;
        let id = *session.id();
        let kept = started(&session, line(&world, "outlast receipt kept")).await;
        let taken = started(&session, line(&world, "outlast receipt taken")).await;
        for command in [&kept, &taken] {
            ended(&session, command).await;
        }
        session.lease_receipts("model", kept.id()).await.expect("a lease");
        // A ledger that must not be written here: offered again, and said.
        let ledger = session.path().expect("a path").join("inbox.json");
        std::fs::write(&ledger, r#"{"schema":"outlast.ledger/2"}"#).expect("a newer ledger");
        match session.commit_receipts("model", taken.id()).await.expect("a commit") {
            Consumed::Unrecorded { reason } => assert!(reason.contains("inbox.json"), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(session.pending_receipts("model").await.expect("a list").len(), 2);
        let turn = session.begin_turn("model", TurnKind::Acting).await.expect("a turn");
        turn.wait(std::slice::from_ref(&taken), WaitOptions::default()).await.expect("a wait");
        assert_eq!((turn.receipts().len(), turn.notes().len()), (1, 1));
        std::fs::remove_file(&ledger).expect("the ledger");
        assert_eq!(session.pending_receipts("model").await.expect("a list").len(), 2);
        for expected in [Consumed::Now, Consumed::Before, Consumed::Before] {
            assert_eq!(session.commit_receipts("model", taken.id()).await.expect("a commit"), expected);
        }
        drop((session, kept, taken));
        let session = adopted(&world.runtime, &id).await;
        let pending = session.pending_receipts("model").await.expect("a list");
        assert_eq!(pending.iter().map(|one| one.changes.clone()).collect::<Vec<_>>(), [write(&world, &["kept"])]);
        assert_eq!(session.pending_receipts("human").await.expect("a list").len(), 2, "another consumer");
    });
}

/// Covers: N6
#[test]
fn n6_only_paths_are_stored() {
    in_world("n6", async |world: World| {
        let session = world.session().await;
        let mut request = line(&world, "outlast receipt path; echo hunter2");
        request.argv.push("hunter2".into());
        request.label = Some("hunter2".into());
        let command = started(&session, request).await;
        let silent = started(&session, world.shell("echo hunter2")).await;
        for command in [&command, &silent] {
            ended(&session, command).await;
        }
        let work = session.path().expect("a path").join("work");
        let stored = std::fs::read_to_string(work.join(command.id().to_string()).join("receipts.jsonl"));
        let path = world.work_dir.join("path");
        let wanted = format!("{{\"schema\":\"outlast.receipts/1\",\"paths\":[{path:?}]}}\n");
        assert_eq!(stored.expect("what is stored"), wanted);
        assert!(!work.join(silent.id().to_string()).join("receipts.jsonl").exists());
    });
}

/// Covers: N5
#[test]
fn n5_a_turn_takes_receipts_exactly_once() {
    in_world("n5", async |world: World| {
        let session = world.session().await;
        let command = started(&session, line(&world, "outlast receipt a")).await;
        let all = std::slice::from_ref(&command);
        // Without a turn nothing is consumed.
        session.wait(all, WaitOptions::default()).await.expect("a wait");
        command.read(ReadOptions::default()).await.expect("a read");
        assert_eq!(session.pending_receipts("model").await.expect("a list").len(), 1);
        // In a turn that only reads it is deferred.
        let reading = session.begin_turn("model", TurnKind::ReadOnly).await.expect("a turn");
        reading.wait(all, WaitOptions::default()).await.expect("a wait");
        reading.read(&command, ReadOptions::default()).await.expect("a read");
        assert_eq!(reading.receipts(), []);
        assert_eq!(session.pending_receipts("model").await.expect("a list").len(), 1);
        // The next turn has it once, whatever is asked and how often, also at the same time.
        let turn = session.begin_turn("model", TurnKind::Acting).await.expect("a turn");
        let turn = std::sync::Arc::new(turn);
        let waiting = tokio::spawn({
            let (turn, command) = (turn.clone(), command.clone());
            async move { turn.wait(&[command], WaitOptions::default()).await.map(|_| ()) }
        });
        turn.read(&command, ReadOptions::default()).await.expect("a read");
        waiting.await.expect("the wait").expect("a wait");
        turn.read(&command, ReadOptions::default()).await.expect("a read");
        assert_eq!(turn.receipts().iter().map(|one| one.changes.clone()).collect::<Vec<_>>(), [write(&world, &["a"])]);
        assert_eq!(session.pending_receipts("model").await.expect("a list"), []);
        let later = session.begin_turn("model", TurnKind::Acting).await.expect("a turn");
        later.read(&command, ReadOptions::default()).await.expect("a read");
        assert_eq!(later.receipts(), []);
    });
}

/// Covers: T6, T7
#[test]
fn t6_a_cancelled_turn_names_what_still_runs() {
    in_world("t6", async |world: World| {
        let session = world.session().await;
        let idle = session.begin_turn("model", TurnKind::Acting).await.expect("a turn");
        let answer = idle.cancel().await.expect("a cancel");
        assert_eq!(serde_json::to_string(&answer).expect("plain data"), "{}");
        let turn = session.begin_turn("model", TurnKind::Acting).await.expect("a turn");
        let mut request = world.shell("exec sleep 60");
        request.turn = Some(turn.event().to_owned());
        let command = started(&session, request).await;
        let answer = turn.cancel().await.expect("a cancel");
        assert_eq!(answer.residue.len(), 1);
        let (residue, snapshot) = (&answer.residue[0], command.brief().await.expect("a look"));
        assert_eq!((residue.id, residue.kind.as_str()), (*command.id(), "process"));
        assert_eq!(residue.command, "sh -c exec sleep 60");
        assert_eq!((&residue.program, residue.started_at_ms), (&snapshot.program, snapshot.started_at_ms));
        assert_eq!(snapshot.end, None, "it still runs");
        // Over is over.
        assert_eq!(turn.cancel().await.expect("a cancel").residue, []);
        let ended = session.begin_turn("model", TurnKind::Acting).await.expect("a turn");
        ended.end();
        assert_eq!(ended.cancel().await.expect("a cancel").residue, []);
        let lines = session.trace().await.expect("a trace");
        let cancelled: Vec<_> = lines.iter().filter(|line| line.kind == "cancelled").collect();
        assert_eq!(cancelled.len(), 2);
        assert_eq!((&cancelled[0].running, &cancelled[1].running), (&vec![], &vec![*command.id()]));
        let demoted = lines.iter().find(|line| line.kind == "demoted").expect("its demotion");
        assert_eq!(demoted.parent.as_deref(), Some(turn.event()));
        assert!(lines.iter().any(|line| line.kind == "turn" && line.event == turn.event()), "every parent is there");
        command.stop(StopOptions::by("model")).await.expect("a stop");
    });
}
