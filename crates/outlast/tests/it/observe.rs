//! Observers of starts, and the parents that they and lists are told.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast::core::ending::End;
use outlast::core::id::CommandId;
use outlast::core::record::ExitRecord;
use outlast::{Event, Observed, Outcome, Outturn, Session, Starting, StopOptions, TaskRequest};

use crate::world::{SOON, World, adopted, config, finished, in_world, soon, start};

/// The start that was observed, if that is what was.
fn start_of(observed: &Observed) -> Option<Starting> {
    match &observed.event {
        Event::Starting(starting) => Some(starting.clone()),
        _ => None,
    }
}

/// Observes the starts of a session; what was seen comes out of the other end.
fn watch(session: &Session) -> (outlast::Observer, Receiver<Starting>) {
    let (tell, told) = channel();
    // A test that has seen enough does not listen any more.
    let observer = session.observe(move |seen| {
        if let Some(starting) = start_of(seen) {
            let _ = tell.send(starting);
        }
    });
    (observer.expect("an observer"), told)
}

async fn end_of(starting: &Starting) -> Arc<ExitRecord> {
    tokio::time::timeout(SOON, starting.ended()).await.expect("in time").expect("an end")
}

/// Covers: A17, O7
#[test]
fn a17_an_observer_sees_each_start_before_its_work_and_hears_its_end() {
    in_world("a17", async |world: World| {
        let session = world.session().await;
        let seen = Arc::new(Mutex::new(Vec::<CommandId>::new()));
        let (tell, told) = channel();
        let list = Arc::clone(&seen);
        let observer = session.observe(move |seen| {
            let Some(starting) = start_of(seen) else { return };
            list.lock().expect("whole").push(starting.id);
            tell.send(starting).expect("somebody listens");
        });
        let observer = observer.expect("an observer");
        let list = Arc::clone(&seen);
        let task = session.spawn_task(TaskRequest::new(["look"]), |context| async move {
            // Before its first byte of output it was seen.
            let known = list.lock().expect("whole").contains(&context.id);
            context.output.write(format!("{known}")).map_err(|error| error.to_string())?;
            context.stop.raised().await;
            Ok(String::new())
        });
        let task = task.await.expect("a task");
        let starting = told.try_recv().expect("it was told");
        assert_eq!((starting.id, starting.kind.as_str()), (*task.id(), "task"));
        soon("it has looked", async || task.snapshot().await.expect("a look").output.tail == b"true").await;
        // Although its body returned fine, it was stopped.
        task.stop(StopOptions::by("model")).await.expect("a stop");
        assert!(matches!(&end_of(&starting).await.end, End::Stopped { by, .. } if by == "model"));

        // A process that ends in the foreground, one in the background, and one that fails.
        let outcome = session.run_to_end(world.shell("exit 0")).await.expect("a run");
        assert!(matches!(outcome, Outcome::Finished(_)));
        assert_eq!(end_of(&told.try_recv().expect("told")).await.end, End::Exited { code: 0 });
        let command = start(&world, &session, "exit 3").await;
        let starting = told.try_recv().expect("told");
        assert_eq!((&starting.id, starting.kind.as_str()), (command.id(), "process"));
        assert_eq!(end_of(&starting).await.end, End::Exited { code: 3 });
        // A caller that goes away demotes it, and its end is told all the same.
        let running = session.run(world.shell("sleep 0.2; exit 4")).await.expect("a start");
        let starting = told.try_recv().expect("told");
        drop(running);
        assert_eq!(end_of(&starting).await.end, End::Exited { code: 4 });

        // Taken away, it hears nothing any more; nor does one of another session.
        let (_other, elsewhere) = watch(&world.session().await);
        drop(observer);
        session.run_to_end(world.shell("exit 0")).await.expect("a run");
        assert!(told.try_recv().is_err() && elsewhere.try_recv().is_err());
        assert_eq!(seen.lock().expect("whole").len(), 4);
    });
}

/// Covers: A17, O7, S6
#[test]
fn o7_a_slow_or_panicking_observer_hurts_nobody() {
    in_world("o7", async |world: World| {
        let session = world.session().await;
        let panics = session.observe(|_| panic!("an observer panics")).expect("an observer");
        let (free, stuck) = channel::<()>();
        let slow = session
            .observe(move |_| {
                let _ = stuck.recv();
            })
            .expect("an observer");
        let (_sees, told) = watch(&session);
        let began = Instant::now();
        for _ in 0..3 {
            let task = session.spawn_task(TaskRequest::new(["go"]), |_| async { Ok(String::new()) });
            let task = task.await.expect("a task");
            assert_eq!(task.ended().await.expect("an end").end, Some(End::Exited { code: 0 }));
        }
        assert_eq!(told.try_iter().count(), 3, "the third one sees all");
        assert!(began.elapsed() < Duration::from_secs(5), "nobody waits for the slow one again and again");
        session.run_to_end(world.shell("exit 0")).await.expect("a run");
        drop((panics, slow, free));
    });
}

/// Covers: S9
#[test]
fn s9_parents_are_told_and_never_hide_a_command() {
    in_world("s9", async |world: World| {
        let session = world.session().await;
        let other = world.session().await;
        let (_observer, told) = watch(&session);
        let first = start(&world, &session, "exec sleep 300").await;
        let mut request = world.shell("exec sleep 300");
        (request.parent_command, request.parent_session) = (Some(*first.id()), Some(*other.id()));
        let Outcome::Demoted(second) = session.start(request).await.expect("a start") else { panic!("it ended") };
        assert_eq!(told.try_recv().expect("told").parent_command, None);
        let starting = told.try_recv().expect("told");
        assert_eq!((starting.parent_command, starting.parent_session), (Some(*first.id()), Some(*other.id())));
        let orphan =
            TaskRequest { parent_command: Some(CommandId::from_parts(1, 0, 1)), ..TaskRequest::new(["alone"]) };
        let orphan = session.spawn_task(orphan, |_| async { Ok(String::new()) }).await.expect("a task");
        orphan.ended().await.expect("an end");

        // A cycle, as only damaged records have one.
        let path = session.path().expect("a path").join(format!("work/{}/request.json", first.id()));
        let text = std::fs::read_to_string(&path).expect("a record");
        let parent = format!(",\"parent_command\":\"{}\"}}\n", second.command.id());
        std::fs::write(&path, text.trim_end().trim_end_matches('}').to_owned() + &parent).expect("written");
        let listed = session.list(true).await.expect("a list");
        let parents: Vec<_> = listed.iter().map(|one| (one.id, one.parent_command)).collect();
        let (first_id, second_id) = (*first.id(), *second.command.id());
        assert_eq!(
            parents,
            [
                (first_id, Some(second_id)),
                (second_id, Some(first_id)),
                (*orphan.id(), Some(CommandId::from_parts(1, 0, 1)))
            ]
        );
        let stop = StopOptions { grace: Some(Duration::ZERO), ..StopOptions::by("model") };
        session.stop_all(stop, false).await.expect("a stop");
    });
}

/// What an observer took down: of each command that it started, and how it ended.
fn book(session: &Session) -> (outlast::Observer, Receiver<(CommandId, Option<Outturn>)>) {
    let (tell, told) = channel();
    let observer = session.observe(move |seen| {
        let line = match &seen.event {
            Event::Starting(starting) => (starting.id, None),
            Event::Ended { id, outturn, .. } => (*id, Some(*outturn)),
            _ => return,
        };
        let _ = tell.send(line);
    });
    (observer.expect("an observer"), told)
}

/// Covers: O7
#[test]
fn o7_starts_and_ends_are_taken_down_once_each() {
    in_world("o7-book", async |world: World| {
        let session = world.session().await;
        let run = async |line: &str| finished(session.run_to_end(world.shell(line)).await.expect("a run")).exit.id;
        run("true").await;
        let (observer, told) = book(&session);
        let next = || told.recv_timeout(SOON).expect("a line");
        let fine = run("true").await;
        assert_eq!([next(), next()], [(fine, None), (fine, Some(Outturn::Ended))]);
        let failed = *start(&world, &session, "exit 3").await.id();
        assert_eq!([next(), next()], [(failed, None), (failed, Some(Outturn::Failed))]);
        // It ended well after the stop: stopped all the same.
        let stopped = start(&world, &session, "trap 'exit 0' TERM; touch ready; while :; do sleep 0.02; done").await;
        soon("it is ready", async || world.work_dir.join("ready").exists()).await;
        stopped.stop(StopOptions::by("model")).await.expect("a stop");
        assert_eq!([next(), next()], [(*stopped.id(), None), (*stopped.id(), Some(Outturn::Stopped))]);
        let task = session.spawn_task(TaskRequest::new(["fails"]), |_| async { Err("no".to_owned()) });
        let task = task.await.expect("a task");
        task.ended().await.expect("an end");
        assert_eq!([next(), next()], [(*task.id(), None), (*task.id(), Some(Outturn::Failed))]);
        // Another one that panics changes nothing; taken away it hears nothing.
        let panics = session.observe(|_| panic!("an observer that panics")).expect("an observer");
        let fine = run("true").await;
        assert_eq!([next(), next()], [(fine, None), (fine, Some(Outturn::Ended))]);
        drop(observer);
        run("true").await;
        assert!(told.recv().is_err());
        drop(panics);
    });
}

/// Covers: O6
#[test]
fn o6_observers_see_numbered_events_without_a_gap() {
    in_world("o6", async |world: World| {
        // Without an observer everything works.
        let session = world.session().await;
        finished(session.run_to_end(world.shell("true")).await.expect("a run"));
        let (tell, told) = channel();
        let _quick = world.runtime.observe(move |seen| drop(tell.send(seen.clone()))).expect("an observer");
        let (free, stuck) = channel::<()>();
        let slow = world.runtime.observe(move |_| {
            let _ = stuck.recv();
        });
        let slow = slow.expect("an observer");
        let id = *session.id();
        let mut number = 0;
        let mut next = || {
            let seen = told.recv_timeout(SOON).expect("an event");
            number += 1;
            assert_eq!((seen.number, seen.session), (number, id));
            seen.event
        };
        let mut both = async |line: &str, code| {
            let run = finished(session.run_to_end(world.shell(line)).await.expect("a run")).exit.id;
            assert!(matches!(next(), Event::Starting(starting) if starting.id == run));
            assert!(
                matches!(next(), Event::Ended { id, end: End::Exited { code: ended }, .. } if (id, ended) == (run, code))
            );
        };
        both("true", 0).await;
        both("exit 2", 2).await;
        // A start that is refused, and an identical one that is joined, are no commands.
        let mut joined = world.shell("while [ ! -e gate ]; do sleep 0.02; done");
        joined.join = true;
        let first = session.run(joined.clone()).await.expect("a run");
        assert!(matches!(next(), Event::Starting(starting) if starting.id == *first.id()));
        let second = session.run(joined).await.expect("a run");
        let Event::Starting(other) = next() else { panic!("no start") };
        assert!(matches!(next(), Event::NotStarted { id } if id == other.id));
        assert!(other.ended().await.is_none() && second.joined() && second.id() == first.id());
        let shared = *first.id();
        std::fs::write(world.work_dir.join("gate"), "").expect("the gate");
        for mut caller in [first, second] {
            while caller.next().await.expect("an event").is_some() {}
            caller.told().await.expect("told");
        }
        assert!(matches!(next(), Event::Ended { id, .. } if id == shared));

        // What another owner has started is heard of by the one that adopts it, and after a planned change.
        let left = world.runtime.clone();
        drop(session);
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let old = adopted(&other, &id).await;
        let lines = ["one", "two"].map(|gate| format!("while [ ! -e {gate} ]; do sleep 0.02; done; exit 7"));
        let one = *start(&world, &old, &lines[0]).await.id();
        let two = *start(&world, &old, &lines[1]).await.id();
        drop(old);
        let session = adopted(&left, &id).await;
        assert!(matches!(next(), Event::Adopted));
        let open = |gate: &str| std::fs::write(world.work_dir.join(gate), "").expect("the gate");
        open("one");
        assert!(matches!(next(), Event::Ended { id, outturn: Outturn::Failed, .. } if id == one));
        let after = other.open_session(&id).await.expect("the session");
        let seal = session.seal().await.expect("a seal");
        let waiting = {
            let (other, after) = (other.clone(), after.clone());
            tokio::spawn(async move { other.own_when_free(&after).await })
        };
        let (tell, new_hears) = channel();
        let _new = other.observe(move |seen| drop(tell.send(seen.clone()))).expect("an observer");
        drop(session);
        let new = waiting.await.expect("a call").expect("the new owner");
        drop(seal);
        open("two");
        let heard: Vec<Observed> = (0..2).map(|_| new_hears.recv_timeout(SOON).expect("an event")).collect();
        assert_eq!(heard.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 2]);
        assert!(matches!(heard[0].event, Event::Replaced));
        assert!(matches!(heard[1].event, Event::Ended { id, .. } if id == two));
        assert!(told.try_recv().is_err(), "it is not the owner any more");
        drop((free, slow, new, after));
    });
}
