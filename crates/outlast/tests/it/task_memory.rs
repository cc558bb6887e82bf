//! What ended tasks leave in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast::core::ending::End;
use outlast::{Session, StopOptions, Task, TaskRequest, TextPolicy};
use tokio::sync::Notify;

use crate::task::words;
use crate::world::{SOON, World, in_world, soon, start};

/// A task that has written `text` and said more, and has ended.
async fn ended(session: &Session, text: String) -> Task {
    let task = session.spawn_task(words(), |context| async move {
        context.output.write(text).map_err(|error| error.to_string())?;
        Ok("said".to_owned())
    });
    let task = task.await.expect("a task");
    tokio::time::timeout(SOON, task.ended()).await.expect("an end").expect("a look");
    task
}

/// A session of which no records can be made, so that what its tasks print is nowhere but in memory; and what is
/// in the way.
async fn without_records(world: &World) -> (Session, PathBuf) {
    let session = world.session().await;
    let work = session.path().expect("a path").join("work");
    std::fs::remove_dir(&work).expect("an empty directory");
    std::fs::write(&work, "in the way").expect("a file");
    (session, work)
}

fn with_records(work: &Path) {
    std::fs::remove_file(work).expect("our file");
    std::fs::create_dir(work).expect("made again");
}

/// Covers: I1, I2
#[test]
fn i1_the_start_of_any_command_is_a_look() {
    in_world("i1", async |world: World| {
        let (session, work) = without_records(&world).await;
        let other = world.session().await;
        let go = Arc::new(Notify::new());
        let mut tasks = Vec::new();
        for number in 0..65 {
            let going = Arc::clone(&go);
            let kind = ["even", "odd"][number % 2].to_owned();
            let task = session.spawn_task(TaskRequest { kind, ..words() }, |context| async move {
                going.notified().await;
                context.output.write("text\n").map_err(|error| error.to_string())?;
                Ok(String::new())
            });
            tasks.push(task.await.expect("a task"));
        }
        let mut waiting: Vec<_> = tasks.iter().map(|task| Box::pin(task.ended())).collect();
        for one in &mut waiting {
            assert!(tokio::time::timeout(Duration::ZERO, one).await.is_err(), "it runs");
        }
        go.notify_waiters();
        let held = || tasks.iter().filter(|task| task.held() > 0).count();
        for task in &tasks {
            tokio::time::timeout(SOON, task.ended()).await.expect("an end").expect("a look");
        }
        assert_eq!(held(), 65, "somebody waits for each of them");
        drop(waiting);
        let running = start(&world, &other, "exec sleep 300").await;
        assert_eq!(held(), 64);
        running.stop(StopOptions::by("model")).await.expect("a stop");
        with_records(&work);
    });
}

/// Covers: I1, I2, I4
#[test]
fn i2_text_of_64_ended_tasks_is_in_memory_and_that_of_others_in_their_records() {
    in_world("i2", async |world: World| {
        let recorded = ended(&world.session().await, "streamed\n".to_owned()).await;
        let (session, work) = without_records(&world).await;
        let go = Arc::new(Notify::new());
        let gone = Arc::clone(&go);
        let awaited = session.spawn_task(words(), |context| async move {
            gone.notified().await;
            context.output.write("awaited\n").map_err(|error| error.to_string())?;
            Ok(String::new())
        });
        let awaited = awaited.await.expect("a task");
        let mut waiting = Box::pin(awaited.ended());
        assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err(), "it runs");
        go.notify_one();
        soon("it has ended", async || awaited.snapshot().await.expect("a look").end.is_some()).await;
        let mut tasks = Vec::new();
        for number in 1..=65 {
            tasks.push(ended(&session, format!("text {number}\n")).await);
        }
        // With the one that is waited for and the one that has records there are 67.
        for (at, task) in tasks.iter().enumerate() {
            let (snapshot, number) = (task.snapshot().await.expect("a look"), at + 1);
            assert_eq!(snapshot.end, Some(End::Exited { code: 0 }), "how it ended stays known");
            let is_gone = number <= 2;
            assert_eq!((snapshot.pruned_at_ms.is_some(), snapshot.result.is_none()), (is_gone, is_gone), "{number}");
            let text = if is_gone { String::new() } else { format!("text {number}\n") };
            assert_eq!(String::from_utf8(snapshot.output.tail).expect("text"), text);
            assert_eq!((task.held(), snapshot.output.truncated), (text.len(), is_gone), "{number}");
        }
        let snapshot = waiting.await.expect("a look");
        assert_eq!((snapshot.output.tail.as_slice(), snapshot.pruned_at_ms), (&b"awaited\n"[..], None));
        let snapshot = recorded.snapshot().await.expect("a look");
        assert_eq!((snapshot.output.tail.as_slice(), snapshot.pruned_at_ms), (&b"streamed\n"[..], None));
        assert_eq!(snapshot.result.as_deref(), Some("said"), "read from its record");
        // Nobody waits for it any more: it is the oldest at the next end.
        assert_eq!(awaited.held(), "awaited\n".len());
        ended(&session, "one more\n".to_owned()).await;
        assert_eq!(awaited.held(), 0);
        with_records(&work);
    });
}

/// Covers: I2, C18
#[test]
fn i2_text_that_a_policy_let_through_goes_like_any_other_and_what_was_withheld_stays_so() {
    in_world("i2-policy", async |world: World| {
        let (session, work) = without_records(&world).await;
        let admit = |_: Option<&str>, text: &str| (!text.starts_with("no")).then(|| text.to_owned());
        world.runtime.set_text_policy(Some(TextPolicy::new(admit)));
        let mut tasks = Vec::new();
        for text in std::iter::once("no way".to_owned()).chain((1..=65).map(|number| format!("text {number}"))) {
            let task = session.spawn_task(words(), |_| async move { Ok(text) }).await.expect("a task");
            tokio::time::timeout(SOON, task.ended()).await.expect("an end").expect("a look");
            tasks.push(task);
        }
        for (number, task) in tasks.iter().enumerate() {
            let snapshot = task.snapshot().await.expect("a look");
            let text = (number > 1).then(|| format!("text {number}"));
            assert_eq!((snapshot.result, snapshot.withheld), (text, number == 0), "{number}");
            assert_eq!(snapshot.pruned_at_ms.is_some(), number == 1, "{number}");
        }
        with_records(&work);
    });
}
