//! A task as other processes see it, and what becomes of it when its owner is killed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use outlast::core::ending::End;
use outlast::core::id::{CommandId, SessionId};
use outlast::core::record::Phase;
use outlast::{Anchor, Predecessor, SessionOptions, TaskContext, TaskRequest, WaitOptions};

use crate::world::{SOON, World, config, executable, in_world, processes_of, soon};

/// Says to a process of this test program which state directory it owns a session in.
const OWNS: &str = "TEST_OWNER_OF";

/// A process of its own that owns a session with one task. The task writes a text, echoes what is sent to it, and ends
/// with the word `done` when it is to stop.
struct Owner {
    child: Child,
    session: SessionId,
    task: CommandId,
}

/// What such a process does. As one test among others it has nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is this program that is started with the variable")]
fn owns_a_session_with_a_task() {
    let Some(state_dir) = std::env::var_os(OWNS) else { return };
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    tokio.expect("a tokio runtime").block_on(async {
        let runtime = outlast::Runtime::open(config(std::path::Path::new(&state_dir))).expect("a runtime");
        let session = runtime.create_session(SessionOptions::default()).await.expect("a session");
        let (hand, mut sent) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
        let request =
            TaskRequest { label: Some("an example".into()), ..TaskRequest::new(["echo", "what", "is", "sent"]) };
        let request = request.on_input(move |bytes| hand.send(bytes).expect("somebody echoes"));
        let task = session.spawn_task(request, |TaskContext { output, stop, .. }| async move {
            output.write("hello from a task\n").map_err(|error| error.to_string())?;
            let echo = output.clone();
            tokio::spawn(async move {
                while let Some(bytes) = sent.recv().await {
                    echo.write(bytes).expect("it runs");
                }
            });
            stop.raised().await;
            Ok("done".to_owned())
        });
        let task = task.await.expect("a task");
        eprintln!("{} {}", session.id(), task.id());
        std::future::pending::<()>().await;
    });
}

impl Owner {
    fn start(world: &World) -> Owner {
        let mut command = std::process::Command::new(std::env::current_exe().expect("the path of this test"));
        command.args(["--exact", "task_seen::owns_a_session_with_a_task", "--nocapture"]);
        command.env(OWNS, &world.state_dir).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("what it says")).read_line(&mut line).expect("a line");
        let mut ids = line.split_whitespace();
        let session = ids.next().and_then(|id| id.parse().ok()).expect("the id of a session");
        let task = ids.next().and_then(|id| id.parse().ok()).expect("the id of a task");
        Owner { child, session, task }
    }

    fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it is reaped");
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // One that was killed is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls the command line in the owner's session.
async fn outlast(world: &World, owner: &Owner, arguments: &[&str]) -> Output {
    let mut command = std::process::Command::new(executable());
    command.args(arguments).env_clear().env("OUTLAST_STATE_DIR", &world.state_dir).stdin(Stdio::null());
    command.env("OUTLAST_SESSION", owner.session.to_string());
    tokio::task::spawn_blocking(move || command.output()).await.expect("a call").expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Covers: S8, C13
#[test]
fn the_command_line_looks_at_a_task_of_a_living_owner_and_stops_it() {
    in_world("task-seen", async |world: World| {
        let owner = Owner::start(&world);
        let listed = outlast(&world, &owner, &["ps", "--json"]).await;
        let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
        let one = &listed["commands"][0];
        assert_eq!((&one["kind"], &one["phase"], &one["alias"]), (&"task".into(), &"running".into(), &"w1".into()));
        assert_eq!(one["label"], "an example");

        let sent = outlast(&world, &owner, &["send", "w1", "typed"]).await;
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let until = outlast(&world, &owner, &["wait", "w1", "--until", "output:typed", "--timeout", "10s"]).await;
        assert_eq!(until.status.code(), Some(0), "{}", text(&until.stderr));
        let logs = outlast(&world, &owner, &["logs", "w1", "--raw"]).await;
        assert_eq!(text(&logs.stdout), "hello from a task\ntyped\n");
        let status = outlast(&world, &owner, &["status", "w1"]).await;
        assert!(text(&status.stdout).contains("typed"), "{}", text(&status.stdout));
        let signal = outlast(&world, &owner, &["send", "w1", "--signal", "USR1"]).await;
        assert_eq!(signal.status.code(), Some(4), "{}", text(&signal.stderr));

        let stopped = outlast(&world, &owner, &["stop", "w1", "--json"]).await;
        assert_eq!(stopped.status.code(), Some(0), "{}", text(&stopped.stderr));
        let stopped: serde_json::Value = serde_json::from_slice(&stopped.stdout).expect("JSON");
        assert_eq!((&stopped["end"]["kind"], &stopped["end"]["code"]), (&"stopped".into(), &0.into()), "{stopped}");
        assert_eq!(stopped["verified"], true);
        let waited = outlast(&world, &owner, &["wait", "w1", "--json"]).await;
        let waited: serde_json::Value = serde_json::from_slice(&waited.stdout).expect("JSON");
        assert_eq!(waited["output"]["text"], "done", "its result, beside what it wrote");
        let late = outlast(&world, &owner, &["send", "w1", "late"]).await;
        assert_eq!(late.status.code(), Some(4), "{}", text(&late.stderr));
        owner.kill();
    });
}

/// Covers: K2, K6, K10
#[test]
fn k6_another_process_ends_the_session_with_its_task() {
    in_world("task-ended", async |world: World| {
        let owner = Owner::start(&world);
        let ended = outlast(&world, &owner, &["session", "end", &owner.session.to_string(), "--json"]).await;
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        let ended: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("JSON");
        assert_eq!(ended["discarded"][0]["kind"], "task", "{ended}");
        let status = outlast(&world, &owner, &["status", "w1", "--json"]).await;
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
        assert_eq!(status["end"]["kind"], "abandoned", "{status}");
        owner.kill();
    });
}

/// Covers: L1, L13, L3, L5, K9
#[test]
fn l1_a_task_whose_owner_is_killed_is_interrupted() {
    in_world("interrupted", async |world: World| {
        let owner = Owner::start(&world);
        let (session, task) = (owner.session, owner.task);
        let looking = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");

        // A living owner: untouched, whoever looks.
        let report = looking.reconcile(&session, None, "model").await.expect("a look back");
        assert_eq!(report.running.iter().map(|one| one.id).collect::<Vec<_>>(), [task]);
        assert!(report.lost.is_empty() && report.deferred.is_empty(), "{report:?}");
        let work = world.state_dir.join(format!("sessions/{session}/work/{task}"));
        assert!(!work.join("verdict.json").exists());

        owner.kill();
        let waiting = looking.open_session(&session).await.expect("the session");
        let command = waiting.get(&task).await.expect("a look").expect("its records");
        let options = WaitOptions { timeout: Some(SOON), ..WaitOptions::default() };
        let waited = waiting.wait(&[command], options).await.expect("a wait");
        assert_eq!(waited.commands[0].snapshot.end, Some(End::Interrupted));
        let verdict: serde_json::Value =
            serde_json::from_slice(&std::fs::read(work.join("verdict.json")).expect("a verdict")).expect("JSON");
        assert_eq!((&verdict["verdict"], &verdict["program"]), (&"interrupted".into(), &"task".into()));
        assert!(verdict.get("exit_code").is_none() && verdict.get("duration_ms").is_none(), "{verdict}");
        let lines = waiting.trace().await.expect("a trace");
        assert_eq!(lines.iter().filter(|line| line.kind == "interrupted").count(), 1);
        let entries = waiting.entries().await.expect("entries");
        assert_eq!(
            entries.iter().map(|one| (one.end, one.complete)).collect::<Vec<_>>(),
            [(Some("interrupted"), false)]
        );
    });
}

/// Covers: L1, L2, L13
#[test]
fn l1_a_resume_tells_each_group_in_its_own_words() {
    in_world("groups", async |world: World| {
        let options = || SessionOptions { context: "groups".into(), ..SessionOptions::default() };
        let owner = Owner::start(&world);
        let (session, task) = (owner.session, owner.task);
        owner.kill();
        let looking = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let (next, report) =
            looking.resume(&Predecessor::Session(session), options(), "model").await.expect("a resume");
        assert_eq!(
            report.lost.iter().map(|one| (one.id, one.end.clone())).collect::<Vec<_>>(),
            [(task, Some(End::Interrupted))]
        );
        assert!(report.ended.is_empty() && report.killed.is_empty() && report.running.is_empty(), "{report:?}");
        assert!(report.report.is_some());
        drop(next);
        let (_, again) = looking.resume(&Predecessor::Session(session), options(), "model").await.expect("a resume");
        assert!(again.is_empty(), "once: {again:?}");
    });
}

/// Covers: L13
#[test]
fn l13_a_task_is_repaired_only_under_the_owner_lock_and_told_after_that() {
    in_world("l13-task", async |world: World| {
        let owner = Owner::start(&world);
        let (session, task) = (owner.session, owner.task);
        owner.kill();
        let dir = world.state_dir.join(format!("sessions/{session}"));
        let lock = std::fs::File::open(dir.join("owner.lock")).expect("the lock");
        soon("the dead owner's lock is free", async || lock.try_lock().is_ok()).await;
        let looking = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let report = looking.reconcile(&session, None, "model").await.expect("a look back");
        assert_eq!((report.deferred.len(), report.lost.len()), (1, 0), "held elsewhere: {report:?}");
        assert!(!dir.join(format!("work/{task}/verdict.json")).exists());
        drop(lock);

        // The repair cannot be written: not told, one warning, tried again.
        let work: PathBuf = dir.join(format!("work/{task}"));
        let in_the_way = work.join("verdict.json");
        std::fs::create_dir(&in_the_way).expect("something in its place");
        let report = looking.reconcile(&session, None, "model").await.expect("a look back");
        assert_eq!((report.notes.len(), report.lost.len()), (1, 0), "{report:?}");
        std::fs::remove_dir(&in_the_way).expect("out of the way");
        let report = looking.reconcile(&session, None, "model").await.expect("a look back");
        assert_eq!(report.lost.iter().map(|one| (one.id, one.phase)).collect::<Vec<_>>(), [(task, Phase::Ended)]);
    });
}

/// Covers: L13
#[test]
fn l13_a_task_of_an_owner_that_shuts_its_tokio_down_is_interrupted() {
    in_world("l13-closed", async |world: World| {
        let dir = world.state_dir.clone();
        let made = tokio::task::spawn_blocking(move || {
            let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let threads = threads.expect("a tokio runtime");
            let ids = threads.block_on(async {
                let runtime = outlast::Runtime::open(config(&dir)).expect("a runtime");
                let session = runtime.create_session(SessionOptions::default()).await.expect("a session");
                let task = session.spawn_task(TaskRequest::new(["wait"]), |_| async { std::future::pending().await });
                let task = task.await.expect("a task");
                (*session.id(), *task.id())
            });
            threads.shutdown_timeout(Duration::from_secs(5));
            ids
        });
        let (session, task) = made.await.expect("it was shut down");
        let looking = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let report = looking.reconcile(&session, None, "model").await.expect("a look back");
        assert_eq!(
            report.lost.iter().map(|one| (one.id, one.end.clone())).collect::<Vec<_>>(),
            [(task, Some(End::Interrupted))]
        );
    });
}

/// The keeper of the one session of this world, where one lives.
pub fn keeper(world: &World) -> Option<u32> {
    let comm = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    processes_of(&world.state_dir).into_iter().find(|pid| comm(pid).trim_end() == "outlast-keeper")
}

/// Covers: K6, K2, L13
#[test]
fn a_task_is_in_the_charge_of_the_next_keeper_when_its_own_is_killed() {
    in_world("task-keeper", async |world: World| {
        let session = world.session().await;
        let task = session.spawn_task(TaskRequest::new(["wait"]), |context| async move {
            context.stop.raised().await;
            Ok(String::new())
        });
        let task = task.await.expect("a task");
        let first = keeper(&world).expect("a keeper");
        crate::lost::signal(first, rustix::process::Signal::KILL);
        soon("another keeper is there", async || keeper(&world).is_some_and(|pid| pid != first)).await;
        let snapshot = task.snapshot().await.expect("a look");
        assert_eq!((snapshot.phase, snapshot.errors), (Phase::Running, Vec::new()), "it goes on");
        // As any other process would end it.
        let looking = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let guest = looking.open_session(session.id()).await.expect("the session");
        let ended = async || {
            let report = guest.end("human", SOON, false).await.expect("an end");
            report.commands.iter().map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(ended().await, [*task.id()]);
        let end = tokio::time::timeout(SOON, task.ended()).await.expect("in time").expect("a look").end;
        assert!(matches!(end, Some(End::Abandoned { .. })), "{end:?}");
    });
}

/// The lease of a task is its owner's: who cannot reach the task signals nobody for it.
///
/// Covers: K6
#[test]
fn the_owner_of_a_task_that_lost_its_door_is_not_signalled() {
    in_world("task-doorless", async |world: World| {
        let mut owner = Owner::start(&world);
        let session = world.state_dir.join("sessions").join(owner.session.to_string());
        std::fs::remove_file(session.join("work").join(owner.task.to_string()).join("control.sock")).expect("its door");
        let first = keeper(&world).expect("a keeper");
        crate::lost::signal(first, rustix::process::Signal::KILL);
        soon("another keeper is there", async || keeper(&world).is_some_and(|pid| pid != first)).await;
        let ended = outlast(&world, &owner, &["session", "end", &owner.session.to_string()]).await;
        assert_ne!(ended.status.code(), Some(2), "{ended:?}");
        assert!(owner.child.try_wait().expect("it is our child").is_none(), "its owner was ended: {ended:?}");
        owner.kill();
    });
}

/// Covers: K10
#[test]
fn k10_a_task_ends_with_the_anchor_of_its_session() {
    in_world("task-anchor", async |world: World| {
        let mut anchor = std::process::Command::new("sleep").arg("300").spawn().expect("an anchor");
        let options = SessionOptions { anchor: Anchor::Process(anchor.id()), ..SessionOptions::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        let task = session.spawn_task(TaskRequest::new(["wait"]), |context| async move {
            context.stop.raised().await;
            Ok(String::new())
        });
        let task = task.await.expect("a task");
        anchor.kill().expect("it lives");
        anchor.wait().expect("it is reaped");
        let end = tokio::time::timeout(SOON, task.ended()).await.expect("in time").expect("a look").end;
        assert!(matches!(end, Some(End::Abandoned { .. })), "{end:?}");
    });
}
