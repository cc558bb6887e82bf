//! A planned change of the owner.

use std::sync::mpsc::channel;
use std::time::Duration;

use outlast::core::record::Phase;
use outlast::{Error, Event, Session, StopOptions, TaskRequest, Told, Via, WaitOptions};

use crate::world::{World, adopted, config, in_world, soon, start};

fn refused(error: &Error) {
    assert_eq!(error.kind(), outlast::ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("owner is being replaced"), "{error}");
}

/// Covers: S2, S3
#[test]
fn s2_an_owner_is_replaced_while_commands_run() {
    in_world("s2", async |world: World| {
        let old = world.session().await;
        let id = *old.id();
        let mut commands = Vec::new();
        for number in 0..3 {
            commands.push(start(&world, &old, &format!("echo {number}; exec sleep 300")).await);
        }
        let done = start(&world, &old, "exit 3").await;
        old.wait(std::slice::from_ref(&done), WaitOptions::default()).await.expect("a wait");
        let seal = old.seal().await.expect("a seal");

        // From here, from another process's view, and as a task: nothing starts.
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let guest = other.open_session(&id).await.expect("the session");
        for session in [&old, &guest] {
            refused(&session.start(world.shell("touch begun")).await.expect_err("sealed"));
            refused(&session.run(world.shell("touch begun")).await.err().expect("sealed"));
        }
        refused(&old.spawn_task(TaskRequest::new(["x"]), |_| async { Ok(String::new()) }).await.expect_err("sealed"));
        assert!(old.seal().await.is_err(), "one change at a time");
        assert!(!world.work_dir.join("begun").exists());
        // Everything else goes on.
        assert_eq!(old.commit("model", done.id(), Via::Read).await.expect("a commit"), Told::Now);
        let stopped = commands.pop().expect("the third");
        let now = StopOptions { grace: Some(Duration::ZERO), ..StopOptions::by("model") };
        assert!(stopped.stop(now.clone()).await.expect("a stop").verified);

        // A takeover that does not come about changes nothing.
        assert!(matches!(other.adopt_session(&id).await, Err(Error::Owned { .. })));
        let waiting = {
            let (other, guest) = (other.clone(), guest.clone());
            tokio::spawn(async move { other.own_when_free(&guest).await })
        };
        let ids: Vec<_> = commands.iter().map(|one| *one.id()).collect();
        drop((old, commands, done, stopped));
        // The seal alone holds no ownership.
        let new: Session = waiting.await.expect("a call").expect("the new owner");
        drop(seal);
        let listed = new.list(false).await.expect("a list");
        let running: Vec<_> = ids.iter().map(|id| (*id, Phase::Running)).collect();
        assert_eq!(listed.iter().map(|one| (one.id, one.phase)).collect::<Vec<_>>(), running);
        for (number, id) in ids.iter().enumerate() {
            let command = new.get(id).await.expect("a look").expect("the command");
            assert_eq!(command.snapshot().await.expect("a look").output.tail, format!("{number}\n").as_bytes());
        }
        let next = start(&world, &new, "true").await;
        new.wait(std::slice::from_ref(&next), WaitOptions::default()).await.expect("it starts again");

        // Replaced twice, and at last the session is ended meanwhile.
        let again = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let seal = new.seal().await.expect("a seal");
        drop((new, next));
        let third = adopted(&again, &id).await;
        drop(seal);
        assert_eq!(third.list(false).await.expect("a list").len(), 2);
        let waiting = {
            let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
            let guest = other.open_session(&id).await.expect("the session");
            tokio::spawn(async move { other.own_when_free(&guest).await })
        };
        third.end("human", Duration::from_secs(10), false).await.expect("an end");
        drop(third);
        assert!(matches!(waiting.await.expect("a call"), Err(Error::SessionClosed { .. })));
    });
}

/// Covers: S2
#[test]
fn s2_running_tasks_forbid_a_change_and_a_seal_is_lifted_once() {
    in_world("s2-tasks", async |world: World| {
        let session = world.session().await;
        let task = session.spawn_task(TaskRequest::new(["x"]), |context| async move {
            context.stop.raised().await;
            Ok(String::new())
        });
        let task = task.await.expect("a task");
        let error = session.seal().await.expect_err("a task runs");
        assert_eq!(error.kind(), outlast::ErrorKind::Refused);
        assert!(error.to_string().contains(&task.id().to_string()), "{error}");
        task.stop(StopOptions::by("model")).await.expect("a stop");
        task.ended().await.expect("an end");
        let seal = session.seal().await.expect("none runs any more");
        drop(seal);
        // Lifted: the keeper sees it by the connection that closed.
        soon("commands start again", async || session.run_to_end(world.shell("exit 0")).await.is_ok()).await;
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let guest = other.open_session(session.id()).await.expect("the session");
        assert!(guest.seal().await.is_err(), "only the owner seals");
        let refused = guest.spawn_task(TaskRequest::new(["x"]), |_| async { Ok(String::new()) }).await;
        assert_eq!(refused.expect_err("only the owner has tasks").kind(), outlast::ErrorKind::Refused);
    });
}

/// Covers: S4
#[test]
fn s4_observers_hear_of_the_new_owner_once_it_is_that() {
    in_world("s4", async |world: World| {
        let old = world.session().await;
        let (tell, old_hears) = channel();
        let _old = old
            .observe(move |seen| {
                if let Event::Starting(one) = &seen.event {
                    let _ = tell.send(one.id);
                }
            })
            .expect("an observer");
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let guest = other.open_session(old.id()).await.expect("the session");
        let (tell, new_hears) = channel();
        let _new = guest
            .observe(move |seen| {
                if let Event::Starting(one) = &seen.event {
                    let _ = tell.send(one.id);
                }
            })
            .expect("an observer");

        assert!(other.adopt_session(old.id()).await.is_err(), "its owner lives");
        let first = start(&world, &old, "true").await;
        assert_eq!(old_hears.try_recv(), Ok(*first.id()));
        assert!(new_hears.try_recv().is_err(), "the takeover has failed");

        let id = *old.id();
        old.wait(std::slice::from_ref(&first), WaitOptions::default()).await.expect("a wait");
        drop((old, first));
        let new = adopted(&other, &id).await;
        let second = start(&world, &new, "true").await;
        assert_eq!(new_hears.try_recv(), Ok(*second.id()));
        assert!(old_hears.try_recv().is_err(), "only the new ones");
        new.wait(std::slice::from_ref(&second), WaitOptions::default()).await.expect("a wait");
    });
}
