//! Tasks from many threads at once.

use std::time::Duration;

use outlast::{Session, SessionOptions, StopOptions, Via, WaitOptions};

use crate::task::{text_of, words};
use crate::world::{World, in_world};

/// Covers: S5, S6
#[test]
fn s5_tasks_from_many_threads_lose_no_end() {
    in_world("s5-tasks", async |world: World| {
        let options = SessionOptions { running_cap: 0, ..SessionOptions::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        // A callback that panics now and then, with everybody else at work.
        let _observer = session.observe(|one| assert!(one.number % 7 != 0, "an observer panics"));
        let tokio = tokio::runtime::Handle::current();
        let threads: Vec<_> = (0..24)
            .map(|number| {
                let (session, tokio) = (session.clone(), tokio.clone());
                std::thread::spawn(move || tokio.block_on(rounds(&session, number)))
            })
            .collect();
        let joined =
            tokio::task::spawn_blocking(|| threads.into_iter().map(std::thread::JoinHandle::join).collect::<Vec<_>>());
        for thread in
            tokio::time::timeout(Duration::from_secs(120), joined).await.expect("no deadlock").expect("joined")
        {
            thread.expect("no thread failed");
        }
        assert_eq!(session.list(true).await.expect("a list").len(), 24 * ROUNDS);
        // What one thread was told while another had it leased is still to be told.
        for guard in session.lease("model").await.expect("a lease") {
            guard.commit(Via::Inbox).await.expect("a commit");
        }
        assert!(session.pending("model").await.expect("pending").is_empty());
        let lines = session.trace().await.expect("a trace");
        assert_eq!(lines.iter().filter(|line| line.kind == "completed").count(), 24 * ROUNDS, "each is told once");
        assert_eq!(session.pending("human").await.expect("pending").len(), 24 * ROUNDS);
    });
}

/// Of each of 24 threads, so that there are 200 in all.
const ROUNDS: usize = 9;

async fn rounds(session: &Session, number: usize) {
    for round in 0..ROUNDS {
        let task = session.spawn_task(words(), move |context| async move {
            context.output.write(format!("{number} {round}")).map_err(|error| error.to_string())?;
            if round % 3 == 0 {
                context.stop.raised().await;
            }
            if round % 3 == 1 {
                panic!("of thread {number}");
            }
            Ok(String::new())
        });
        let task = task.await.expect("a task");
        let command = task.command().expect("records");
        session.list(false).await.expect("a list");
        if round % 3 == 0 {
            assert!(command.stop(StopOptions::by("model")).await.expect("a stop").verified);
        }
        let options = WaitOptions { consumer: Some("model".into()), ..WaitOptions::default() };
        let report = session.wait(std::slice::from_ref(&command), options).await.expect("a wait");
        let end = report.commands[0].snapshot.end.clone().expect("an end");
        let expected = ["stopped", "exited", "exited"][round % 3];
        assert_eq!((end.kind(), end.exit_code()), (expected, Some([0, 101, 0][round % 3])));
        assert_eq!(text_of(&task, 0).await.0, format!("{number} {round}"));
        drop(session.lease("model").await.expect("a lease"));
    }
}
