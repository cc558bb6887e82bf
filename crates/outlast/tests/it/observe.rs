//! Observers of starts, and the parents that they and lists are told.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast::core::ending::End;
use outlast::core::id::CommandId;
use outlast::core::record::ExitRecord;
use outlast::{Outcome, Session, Starting, StopOptions, TaskRequest};

use crate::world::{SOON, World, in_world, soon, start};

/// Observes a session; what was seen comes out of the other end.
fn watch(session: &Session) -> (outlast::Observer, Receiver<Starting>) {
    let (tell, told) = channel();
    // A test that has seen enough does not listen any more.
    let observer = session.observe(move |starting| drop(tell.send(starting.clone())));
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
        let observer = session.observe(move |starting| {
            list.lock().expect("whole").push(starting.id);
            tell.send(starting.clone()).expect("somebody listens");
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
