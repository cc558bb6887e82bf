//! State directories that are removed when nobody uses them any more.

use std::time::Duration;

use outlast::{ErrorKind, Outcome, Runtime, SessionOptions, TaskRequest, Temporary};

use crate::world::{SOON, World, config, in_world, nothing_left, processes_of};

async fn removed(temporary: &mut Temporary) {
    tokio::time::timeout(SOON, temporary.removed()).await.expect("in time").expect("it is removed");
}

/// Covers: K6, M4
#[test]
fn k6_a_temporary_directory_is_removed_when_the_body_of_a_task_has_returned() {
    in_world("temporary-task", async |world: World| {
        let dir = world.work_dir.join("temporary");
        let (runtime, mut temporary) = Runtime::open_temporary(config(&dir)).expect("a runtime");
        let session = runtime.create_session(SessionOptions::default()).await.expect("a session");
        let (free, blocked) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let task = session.spawn_task(TaskRequest::new(["block"]), |_| async move {
            begin.send(()).expect("somebody waits");
            let _ = blocked.recv();
            Ok(String::new())
        });
        let id = *task.await.expect("a task").id();
        begun.await.expect("it blocks");
        // The body may sit on the thread that waits for input and output: another one is woken to take that over.
        tokio::spawn(async {}).await.expect("no panic");
        let report = session.end("human", Duration::from_millis(50), false).await.expect("an end");
        assert_eq!(report.commands.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
        drop((session, runtime));
        assert!(tokio::time::timeout(Duration::from_millis(300), temporary.removed()).await.is_err());
        assert!(dir.join("sessions").exists(), "never under a command that still unwinds");
        free.send(()).expect("it waits");
        removed(&mut temporary).await;
        assert!(!dir.exists());
        nothing_left(&dir).await;
    });
}

/// Covers: K6
#[test]
fn k6_a_temporary_directory_outlives_the_commands_in_it() {
    in_world("temporary-process", async |world: World| {
        let dir = world.work_dir.join("temporary");
        let (runtime, mut temporary) = Runtime::open_temporary(config(&dir)).expect("a runtime");
        let options = SessionOptions { linger: Duration::from_millis(300), ..SessionOptions::default() };
        let session = runtime.create_session(options).await.expect("a session");
        let transcript = world.work_dir.join("transcript");
        std::fs::create_dir(&transcript).expect("a directory");
        session.bind(&transcript).await.expect("a place");
        let started = session.start(world.shell("trap 'sleep .3; exit' TERM; while :; do sleep .05; done")).await;
        assert!(matches!(started, Ok(Outcome::Demoted(_))));
        let empty = runtime.create_session(SessionOptions::default()).await.expect("a session");
        drop((started, session, empty, runtime));
        // Nobody has ended the session: its keeper does, once no other owner came.
        assert!(!processes_of(&dir).is_empty() && dir.exists());
        removed(&mut temporary).await;
        assert!(!dir.exists());
        let left: Vec<_> = std::fs::read_dir(&transcript).expect("a directory").collect();
        assert!(left.is_empty(), "what lies beside a transcript belongs to it: {left:?}");
        nothing_left(&dir).await;
    });
}

#[test]
fn what_is_there_already_is_no_temporary_directory() {
    in_world("temporary-there", async |world: World| {
        let dir = world.work_dir.join("mine");
        std::fs::create_dir(&dir).expect("a directory");
        std::fs::write(dir.join("file"), "mine").expect("a file");
        let refused = Runtime::open_temporary(config(&dir)).expect_err("it is there");
        assert!(refused.to_string().contains("mine"), "{refused}");
        assert!(dir.join("file").exists());
        let relative = Runtime::open_temporary(outlast::Config::new("temporary")).expect_err("it is relative");
        assert_eq!(relative.kind(), ErrorKind::Usage);

        // One that somebody has put in its place is not removed for it.
        let dir = world.work_dir.join("temporary");
        let (runtime, mut temporary) = Runtime::open_temporary(config(&dir)).expect("a runtime");
        std::fs::rename(&dir, world.work_dir.join("aside")).expect("a directory");
        std::fs::create_dir(&dir).expect("another");
        drop(runtime);
        let told = tokio::time::timeout(SOON, temporary.removed()).await.expect("in time").expect_err("it stays");
        assert!(dir.exists() && told.to_string().contains("another directory"), "{told}");
    });
}
