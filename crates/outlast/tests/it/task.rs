//! Tasks: work inside the owner's process, as commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast::core::ending::{End, Fact};
use outlast::core::record::Phase;
use outlast::{
    Piece, ReadOptions, Session, SessionOptions, StopOptions, Task, TaskContext, TaskRequest, Told, Via, WaitOptions,
};

use crate::world::{SOON, World, in_world, soon};

pub fn words() -> TaskRequest {
    TaskRequest::new(["do", "something"])
}

pub async fn text_of(task: &Task, offset: u64) -> (String, u64) {
    let command = task.command().expect("records");
    let mut reading = command.read(ReadOptions { offset, ..ReadOptions::default() }).await.expect("a read");
    let mut text = Vec::new();
    while let Some(piece) = reading.next().await.expect("a piece") {
        if let Piece::Bytes { bytes, .. } = piece {
            text.extend(bytes);
        }
    }
    (String::from_utf8(text).expect("text"), reading.next_offset())
}

async fn ended(task: &Task) -> outlast::Snapshot {
    tokio::time::timeout(SOON, task.ended()).await.expect("an end").expect("a look")
}

/// A body that waits for ever and does not heed its stop.
async fn deaf(_: TaskContext) -> Result<String, String> {
    std::future::pending().await
}

/// Covers: A15, R9
#[test]
fn a15_names_that_are_refused_are_a_task_that_ended() {
    in_world("a15", async |world: World| {
        let session = world.session().await;
        let canary = world.state_dir.parent().expect("a parent").join("etc");
        std::fs::write(&canary, "untouched").expect("a canary");
        for (kind, field) in
            [("", "kind"), ("..", "kind"), ("../../etc", "kind"), ("a\0b", "kind"), ("process", "kind")]
        {
            let ran = Arc::new(AtomicBool::new(false));
            let mark = Arc::clone(&ran);
            let request = TaskRequest { kind: kind.to_owned(), ..words() };
            let task = session.spawn_task(request, move |_| async move {
                mark.store(true, Ordering::SeqCst);
                Ok(String::new())
            });
            let task = task.await.expect("a handle");
            let report =
                session.wait(&[task.command().expect("records")], WaitOptions::default()).await.expect("a wait");
            let snapshot = &report.commands[0].snapshot;
            assert_eq!(
                snapshot.end,
                Some(End::SpawnFailed { step: "validate".into(), errno: "EINVAL".into() }),
                "{kind:?}"
            );
            assert!(snapshot.errors.iter().any(|why| why.contains(field)), "{kind:?}: {:?}", snapshot.errors);
            assert!(!ran.load(Ordering::SeqCst), "{kind:?}: its body ran");
            let pending = session.pending("model").await.expect("pending");
            assert!(pending.iter().any(|one| one.snapshot.id == *task.id()), "{kind:?}: no completion");
        }
        assert_eq!(std::fs::read_to_string(&canary).expect("the canary"), "untouched");
        std::fs::remove_file(canary).expect("removed");
        let consumer = TaskRequest { consumer: "a/b".into(), ..words() };
        let task = session.spawn_task(consumer, |_| async { Ok(String::new()) }).await.expect("a handle");
        assert!(ended(&task).await.errors.iter().any(|why| why.contains("consumer")));
        let fine = session.spawn_task(words(), |_| async { Ok(String::new()) }).await.expect("a task");
        assert_eq!(ended(&fine).await.end, Some(End::Exited { code: 0 }));
    });
}

/// Covers: A16
#[test]
fn a16_a_panic_is_the_end_of_the_task_and_of_nothing_else() {
    outlast::keep_panic_stacks();
    in_world("a16", async |world: World| {
        let session = world.session().await;
        let other = session.spawn_task(words(), |context| async move {
            context.stop.raised().await;
            Ok(String::new())
        });
        let other = other.await.expect("a task");
        let quiet = session.spawn_task(words(), |_| async { panic!("nothing was written") }).await.expect("a task");
        let snapshot = ended(&quiet).await;
        assert_eq!((snapshot.end, snapshot.ok), (Some(End::Exited { code: 101 }), Some(false)));
        let text = text_of(&quiet, 0).await.0;
        assert!(text.starts_with("panicked: nothing was written\nat crates/outlast/tests/it/task.rs:"), "{text}");
        assert!(text.contains("stack:") && text.contains("a16_a_panic_is_the_end"), "{text}");

        // Whoever holds the writer at that moment takes nothing with him.
        let loud = session.spawn_task(words(), |context| async move {
            let writer = context.output.clone();
            writer.write("before\n").expect("room");
            panic!("{} of {}", "one", 2);
        });
        let loud = loud.await.expect("a task");
        let snapshot = ended(&loud).await;
        let said = snapshot.result.expect("a text beside its output");
        assert!(said.starts_with("panicked: one of 2\n"), "{said}");
        assert_eq!(text_of(&loud, 0).await.0, "before\n");

        assert_eq!(other.snapshot().await.expect("a look").phase, Phase::Running);
        assert!(other.stop(StopOptions::by("model")).await.expect("a stop").verified);
        let later = session.spawn_task(words(), |_| async { Ok("fine".to_owned()) }).await.expect("a task");
        assert_eq!(ended(&later).await.ok, Some(true));
    });
}

/// Covers: C13, E6, D5, C11
#[test]
fn c13_a_text_is_shown_once_and_a_stream_as_it_comes() {
    in_world("c13", async |world: World| {
        let session = world.session().await;
        let text = session.spawn_task(words(), |_| async { Ok("the answer".to_owned()) }).await.expect("a task");
        let waited = session.wait(&[text.command().expect("records")], WaitOptions::default()).await.expect("a wait");
        assert_eq!(waited.commands[0].snapshot.output.tail, b"the answer");
        let (first, next) = text_of(&text, 0).await;
        assert_eq!(first, "the answer");
        assert_eq!(text_of(&text, next).await.0, "", "and then nothing");

        let both = session.spawn_task(words(), |context| async move {
            context.output.write("a stream\n").map_err(|error| error.to_string())?;
            Ok("and a result".to_owned())
        });
        let both = both.await.expect("a task");
        let snapshot = ended(&both).await;
        assert_eq!((snapshot.output.tail.as_slice(), snapshot.shown().1), (&b"a stream\n"[..], &b"and a result"[..]));
        assert_eq!(text_of(&both, 0).await.0, "a stream\n");
        let waited = session.wait(&[both.command().expect("records")], WaitOptions::default()).await.expect("a wait");
        assert_eq!(waited.commands[0].snapshot.result.as_deref(), Some("and a result"));

        let failed = session.spawn_task(words(), |_| async { Err("no such page".to_owned()) }).await.expect("a task");
        let snapshot = ended(&failed).await;
        assert_eq!((snapshot.end, snapshot.ok), (Some(End::Exited { code: 1 }), Some(false)));
        assert_eq!(snapshot.output.tail, b"no such page");

        // Bounded, whatever is asked: a result, and a log.
        let long = session.spawn_task(words(), |context| async move {
            context.output.write("x").map_err(|error| error.to_string())?;
            Ok("r".repeat(1 << 20))
        });
        assert!(ended(&long.await.expect("a task")).await.shown().1.len() < 20_000);
        let log = session.spawn_task(words(), |context| async move {
            context.output.write("y".repeat(10 << 20)).map_err(|error| error.to_string())?;
            Ok(String::new())
        });
        let snapshot = ended(&log.await.expect("a task")).await;
        assert_eq!((snapshot.output.tail.len(), snapshot.output.bytes), (16_384, 10 << 20));
    });
}

/// Covers: C14
#[test]
fn c14_an_ended_task_holds_nothing_that_is_on_disk() {
    in_world("c14", async |world: World| {
        let session = world.session().await;
        let task = session.spawn_task(words(), |context| async move {
            for part in [65 * 1024, 1024] {
                context.output.write("z".repeat(part)).map_err(|error| error.to_string())?;
            }
            context.stop.raised().await;
            Ok(String::new())
        });
        let task = task.await.expect("a task");
        soon("it has written", async || task.snapshot().await.expect("a look").output.bytes == 66 * 1024).await;
        assert_eq!(task.held(), 64 * 1024);
        task.stop(StopOptions::by("model")).await.expect("a stop");
        ended(&task).await;
        assert_eq!(task.held(), 0);
        assert_eq!(text_of(&task, 0).await.0.len(), 66 * 1024);
    });
}

/// Covers: C15, C14, E6
#[test]
fn c15_without_records_the_task_runs_and_says_so() {
    in_world("c15", async |world: World| {
        let session = world.session().await;
        let work = session.path().expect("a path").join("work");
        std::fs::remove_dir(&work).expect("an empty directory");
        std::fs::write(&work, "in the way").expect("a file");
        let task = session.spawn_task(words(), |context| async move {
            context.output.write("streamed\n").map_err(|error| error.to_string())?;
            Ok("and done".to_owned())
        });
        let task = task.await.expect("it runs all the same");
        assert!(task.command().is_none() && task.alias().is_none());
        let snapshot = ended(&task).await;
        assert_eq!(snapshot.end, Some(End::Exited { code: 0 }), "a failed record never makes it fail");
        assert_eq!(snapshot.ok, Some(false));
        assert_eq!((snapshot.output.tail.as_slice(), snapshot.shown().1), (&b"streamed\n"[..], &b"and done"[..]));
        let line = snapshot.records_incomplete().expect("a line");
        assert!(line.starts_with("records incomplete: ") && line.contains("work"), "{line}");
        assert_eq!(task.held(), "streamed\n".len(), "what is nowhere else is kept");
        std::fs::remove_file(&work).expect("removed");
        std::fs::create_dir(&work).expect("made again");
    });
}

/// Covers: F6, F12, K6, D5
#[test]
fn f6_a_body_that_ignores_its_stop_is_stopping_until_it_is_gone() {
    in_world("f6-task", async |world: World| {
        let session = world.session().await;
        let request = TaskRequest { stop_grace: Duration::from_secs(1), ..words() };
        let task = session.spawn_task(request, deaf).await.expect("a task");
        let stopper = task.clone();
        let stop = tokio::spawn(async move { stopper.stop(StopOptions::by("model")).await });
        soon("it is stopping", async || task.snapshot().await.expect("a look").phase == Phase::Stopping).await;
        let listed = session.list(false).await.expect("a list");
        assert_eq!(listed.iter().map(|one| one.stopping_by.clone()).collect::<Vec<_>>(), [Some("model".to_owned())]);
        let outcome = stop.await.expect("a call").expect("an answer");
        assert!(outcome.verified && !outcome.already_ended);
        let end = ended(&task).await.end;
        assert_eq!(
            end,
            Some(End::Stopped { by: "model".into(), fact: Some(Fact::Signaled(9)) }),
            "its body was dropped"
        );
        let again = task.stop(StopOptions::by("human")).await.expect("a stop");
        assert!(again.already_ended && again.snapshot.end == end, "a second stop changes nothing");

        // One that heeds it keeps what it made of that.
        let heeds = session.spawn_task(words(), |context| async move {
            context.stop.raised().await;
            Ok("tidied up".to_owned())
        });
        let heeds = heeds.await.expect("a task");
        heeds.command().expect("records").stop(StopOptions::by("model")).await.expect("a stop");
        let snapshot = ended(&heeds).await;
        assert_eq!(snapshot.end, Some(End::Stopped { by: "model".into(), fact: Some(Fact::Exited(0)) }));
        assert_eq!((snapshot.ok, snapshot.output.tail.as_slice()), (Some(false), &b"tidied up"[..]));

        // One that blocks its thread cannot be dropped: no answer waits for it longer than its bound.
        let (free, blocked) = std::sync::mpsc::channel::<()>();
        let request = TaskRequest { stop_grace: Duration::ZERO, ..words() };
        let (begin, begun) = tokio::sync::oneshot::channel();
        let blocks = session.spawn_task(request, |_| async move {
            begin.send(()).expect("somebody waits");
            let _ = blocked.recv();
            Ok("late".to_owned())
        });
        let blocks = blocks.await.expect("a task");
        begun.await.expect("it blocks");
        let began = Instant::now();
        let outcome = blocks.stop(StopOptions::by("model")).await.expect("an answer");
        assert!(!outcome.verified && outcome.snapshot.phase == Phase::Stopping, "{outcome:?}");
        assert!(began.elapsed() < SOON);
        free.send(()).expect("it waits");
        assert!(matches!(ended(&blocks).await.end, Some(End::Stopped { .. })));
    });
}

/// Covers: K6, K2, K11
#[test]
fn k6_the_end_of_a_session_names_a_task_that_still_unwinds() {
    in_world("k6-task", async |world: World| {
        let session = world.session().await;
        let (free, blocked) = std::sync::mpsc::channel::<()>();
        let request = TaskRequest { label: Some("the slow one".into()), kind: "agent".into(), ..words() };
        let (begin, begun) = tokio::sync::oneshot::channel();
        let slow = session.spawn_task(request, |_| async move {
            begin.send(()).expect("somebody waits");
            let _ = blocked.recv();
            Ok(String::new())
        });
        let slow = slow.await.expect("a task");
        begun.await.expect("it blocks");
        let quick = session.spawn_task(words(), |context| async move {
            context.stop.raised().await;
            Ok(String::new())
        });
        let quick = quick.await.expect("a task");
        let report = session.end("human", Duration::from_millis(500), false).await.expect("an end");
        let named: Vec<_> = report.commands.iter().map(|one| (one.id, one.kind.as_str(), one.state.as_str())).collect();
        assert_eq!(named, [(*slow.id(), "agent", "unwinding"), (*quick.id(), "task", "running")]);
        assert_eq!(report.commands[0].label.as_deref(), Some("the slow one"));
        let again = session.end("human", Duration::from_millis(500), false).await.expect("an end");
        assert_eq!(again, report, "twice is the same as once");
        assert!(matches!(ended(&quick).await.end, Some(End::Abandoned { fact: Some(Fact::Exited(0)) })));
        let refused = session.spawn_task(words(), deaf).await.expect_err("it is over");
        assert_eq!(refused.kind(), outlast::ErrorKind::Refused);
        free.send(()).expect("it waits");
        assert!(matches!(ended(&slow).await.end, Some(End::Abandoned { .. })));
    });
}

/// Covers: P1, P2
#[test]
fn limits_stop_a_task_like_a_process() {
    in_world("task-limits", async |world: World| {
        let session = world.session().await;
        let wall = TaskRequest { limit: Some(Duration::from_millis(50)), stop_grace: Duration::ZERO, ..words() };
        let wall = session.spawn_task(wall, deaf).await.expect("a task");
        let snapshot = ended(&wall).await;
        assert!(
            matches!(snapshot.end, Some(End::TimedOut { clock: outlast::core::ending::Clock::Wall, .. })),
            "{snapshot:?}"
        );
        assert!(snapshot.limit.is_some());
        let idle = TaskRequest { idle_limit: Some(Duration::from_millis(200)), stop_grace: Duration::ZERO, ..words() };
        let idle = session.spawn_task(idle, |context| async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(50));
            for _ in 0..10 {
                ticks.tick().await;
                context.output.write(".").map_err(|error| error.to_string())?;
            }
            std::future::pending().await
        });
        let snapshot = ended(&idle.await.expect("a task")).await;
        assert!(
            matches!(snapshot.end, Some(End::TimedOut { clock: outlast::core::ending::Clock::Idle, .. })),
            "{snapshot:?}"
        );
        assert_eq!(snapshot.output.bytes, 10, "output puts the end off");
    });
}

/// Covers: S8, F12
#[test]
fn s8_what_is_sent_reaches_the_callback_of_a_task() {
    in_world("s8-task", async |world: World| {
        let session = world.session().await;
        let (hand, mut sent) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
        let request = words().on_input(move |bytes| {
            assert_ne!(bytes, b"panic");
            hand.send(bytes).expect("the body listens");
        });
        let task = session.spawn_task(request, |context| async move {
            while let Some(bytes) = sent.recv().await {
                context.output.write(bytes).map_err(|error| error.to_string())?;
            }
            // Its callback is dropped only by a close, or at its end.
            Ok(String::new())
        });
        let task = task.await.expect("a task");
        let command = task.command().expect("records");
        command.send(b"one ", false).await.expect("delivered from outside");
        task.send(b"two".to_vec(), false).expect("delivered from here");
        let refused = task.send(b"panic".to_vec(), false).expect_err("it panics").to_string();
        assert!(refused.contains("panicked"), "{refused}");
        let refused = command.signal(10).await.expect_err("a task takes no signal").to_string();
        assert!(refused.contains("no signals"), "{refused}");
        command.close_input().await.expect("closed");
        assert_eq!(ended(&task).await.output.tail, b"one two");
        let refused = task.send(b"late".to_vec(), false).expect_err("it has ended").to_string();
        assert!(refused.contains("has ended"), "{refused}");

        let held = Arc::new(());
        let callback = Arc::clone(&held);
        let parked = words().on_input(move |_| drop(Arc::clone(&callback)));
        let parked = session.spawn_task(parked, |_| async { std::future::pending().await }).await.expect("a task");
        assert_eq!(Arc::strong_count(&held), 2);
        let again = parked.command().expect("records");
        again.close_input().await.expect("closed");
        let refused = again.send(b"x", false).await.expect_err("it is closed").to_string();
        assert!(refused.contains("closed"), "{refused}");
        let stop = StopOptions { grace: Some(Duration::ZERO), ..StopOptions::by("model") };
        assert!(again.stop(stop.clone()).await.expect("a stop").verified);
        assert!(matches!(ended(&parked).await.end, Some(End::Stopped { .. })), "parked on its input, and stopped");
        assert_eq!(Arc::strong_count(&held), 1, "closed, the callback is dropped");
        let callback = Arc::clone(&held);
        let open = words().on_input(move |_| drop(Arc::clone(&callback)));
        let open = session.spawn_task(open, |_| async { Ok(String::new()) }).await.expect("a task");
        ended(&open).await;
        assert_eq!(Arc::strong_count(&held), 1, "and so it is at the end");

        let silent = session.spawn_task(words(), deaf).await.expect("a task");
        let refused = silent.send(b"x".to_vec(), false).expect_err("no callback").to_string();
        assert!(refused.contains("takes no input"), "{refused}");
        silent.stop(stop).await.expect("a stop");
        let elsewhere = world.session().await;
        assert!(elsewhere.get(task.id()).await.expect("a look").is_none(), "another session does not know it");
    });
}

/// Covers: S1
#[test]
fn s1_fifty_starts_of_one_kind_at_once() {
    in_world("s1-task", async |world: World| {
        let options = SessionOptions { running_cap: 3, ..SessionOptions::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        let starts: Vec<_> = (0..50)
            .map(|_| {
                let session = session.clone();
                tokio::spawn(async move { session.spawn_task(words(), deaf).await })
            })
            .collect();
        let (mut running, mut refusals) = (Vec::new(), Vec::new());
        for start in starts {
            match start.await.expect("a call") {
                Ok(task) => running.push(task),
                Err(outlast::Error::Cap { running, .. }) => refusals.push(running),
                Err(other) => panic!("{other}"),
            }
        }
        let mut ids: Vec<_> = running.iter().map(|task| *task.id()).collect();
        ids.sort_unstable();
        assert_eq!((ids.len(), refusals.len()), (3, 47));
        assert!(refusals.iter().all(|named| *named == ids), "each refusal names what runs");
        let other = TaskRequest { kind: "index".into(), ..words() };
        let other =
            session.spawn_task(other, |_| async { Ok(String::new()) }).await.expect("kinds count for themselves");
        ended(&other).await;
        let slow = StopOptions { grace: Some(Duration::from_millis(300)), ..StopOptions::by("model") };
        let stopping = running[0].clone();
        let stop = tokio::spawn(async move { stopping.stop(slow).await });
        soon("it is stopping", async || running[0].snapshot().await.expect("a look").phase == Phase::Stopping).await;
        assert!(session.spawn_task(words(), deaf).await.is_err(), "it counts until it is gone");
        stop.await.expect("a call").expect("a stop");
        let next = session.spawn_task(words(), deaf).await.expect("its place is free");
        let now = StopOptions { grace: Some(Duration::ZERO), ..StopOptions::by("model") };
        for task in running.iter().chain([&next]) {
            task.stop(now.clone()).await.expect("a stop");
        }
    });
}

/// A task has an alias, a completion for each consumer, and lines in the trace, as a process has.
#[test]
fn a_task_is_told_like_a_process() {
    in_world("task-told", async |world: World| {
        let session: Session = world.session().await;
        let task = session.spawn_task(words(), |_| async { Ok("x".to_owned()) }).await.expect("a task");
        assert_eq!(task.alias().expect("an alias").to_string(), "w1");
        ended(&task).await;
        let command = session.command("w1").await.expect("found by its alias");
        assert_eq!(session.commit("model", command.id(), Via::Read).await.expect("a commit"), Told::Now);
        assert!(session.pending("model").await.expect("pending").is_empty());
        assert_eq!(session.pending("human").await.expect("pending").len(), 1);
        let lines = session.trace().await.expect("a trace");
        let kinds: Vec<_> = lines.iter().map(|line| line.kind.as_str()).collect();
        assert_eq!(kinds, ["session", "demoted", "completed"]);
        let log =
            std::fs::read_to_string(command.brief().await.expect("a look").output.log.expect("a log")).expect("text");
        assert_eq!(log, "Command: task do something\n\nx\n\nExit code: 0\n");
    });
}
