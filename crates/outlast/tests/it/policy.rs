//! Policies in the library: what is shown of commands, and what stays on disk.

use std::sync::mpsc::channel;
use std::time::Duration;

use outlast::core::policy::AtRest;
use outlast::core::record::Phase;
use outlast::{Config, Event, Policy, ReadOptions, Runtime, Session, SessionOptions, Task, TaskRequest, WaitOptions};

use crate::task::text_of;
use crate::world::{SOON, World, config, in_world};

/// A token by its public form.
const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// A session under this policy.
async fn session(world: &World, policy: Policy) -> Session {
    let runtime = Runtime::open(Config { policy, ..config(&world.state_dir) }).expect("a runtime");
    runtime.create_session(SessionOptions::default()).await.expect("a session")
}

async fn ended(task: &Task) -> outlast::Snapshot {
    tokio::time::timeout(SOON, task.ended()).await.expect("an end").expect("a look")
}

/// Covers: R5
#[test]
fn r5_whatever_is_shown_of_a_task_is_masked() {
    in_world("r5-task", async |world: World| {
        for redact in [true, false] {
            let session = session(&world, Policy { redact, ..Policy::default() }).await;
            let (tell, told) = channel();
            let observer = session.observe(move |observed| {
                if let Event::Starting(starting) = &observed.event {
                    tell.send(starting.clone()).expect("somebody listens");
                }
            });
            let observer = observer.expect("an observer");
            let request = TaskRequest { label: Some(TOKEN.to_owned()), ..TaskRequest::new(["look", TOKEN]) };
            let task = session.spawn_task(request, |work| async move {
                work.receipts.publish([format!("/tmp/{TOKEN}")]).map_err(|error| error.to_string())?;
                work.output.write(format!("it is {TOKEN}\n")).map_err(|error| error.to_string())?;
                Err(format!("not with {TOKEN}"))
            });
            let task = task.await.expect("a task");
            let snapshot = ended(&task).await;
            let starting = told.try_recv().expect("told");
            let end = tokio::time::timeout(SOON, starting.ended()).await.expect("in time").expect("an end");
            let report = session.wait(&[task.command().expect("records")], WaitOptions::default()).await;
            let waited = report.expect("a wait").commands.remove(0).snapshot;
            assert!(waited.result.as_deref().is_some_and(|text| text.starts_with("not with ")), "{waited:?}");
            let mut seen = vec![format!("{starting:?}"), format!("{end:?}"), text_of(&task, 0).await.0];
            for snapshot in [snapshot, waited] {
                seen.push(format!("{:?} {:?} {:?}", snapshot.command, snapshot.label, snapshot.result));
                seen.push(String::from_utf8_lossy(&snapshot.output.tail).into_owned());
            }
            for listed in session.list(true).await.expect("a list") {
                seen.push(format!("{:?} {:?} {:?}", listed.command, listed.label, listed.result));
            }
            let id = task.id();
            seen.push(format!("{:?}", session.lease_receipts("model", id).await.expect("receipts")));
            seen.push(format!("{:?}", session.trace().await.expect("a trace")));
            seen.push(format!("{:?}", session.end("human", SOON, false).await.expect("an end")));
            drop(observer);
            let shown: Vec<bool> = seen.iter().map(|text| text.contains(TOKEN)).collect();
            let expected =
                if redact { shown.iter().all(|shown| !shown) } else { shown[..9].iter().all(|shown| *shown) };
            assert!(expected, "redact {redact}: {shown:?} {seen:#?}");
        }
    });
}

/// Covers: O5, R5
#[test]
fn o5_the_label_of_progress_is_masked() {
    in_world("o5-masked", async |world: World| {
        for redact in [true, false] {
            let session = session(&world, Policy { redact, ..Policy::default() }).await;
            let mut running = session.run(world.shell(&format!(": {TOKEN}"))).await.expect("a run");
            let label = running.progress().label;
            assert_eq!((label.starts_with("sh -c : "), label.contains(TOKEN)), (true, !redact), "{label}");
            while running.next().await.expect("an event").is_some() {}
            running.told().await.expect("told");
        }
    });
}

/// Covers: C21
#[test]
fn c21_the_output_of_a_task_can_be_withheld_until_its_end() {
    in_world("c21-task", async |world: World| {
        let policy = Policy { live_output: outlast::LiveOutput::Withheld, ..Policy::default() };
        let session = session(&world, policy).await;
        let task = session.spawn_task(TaskRequest::new(["speak"]), |work| async move {
            work.output.write("spoken\n").map_err(|error| error.to_string())?;
            work.stop.raised().await;
            Ok(String::new())
        });
        let task = task.await.expect("a task");
        let command = task.command().expect("records");
        crate::world::soon("it has spoken", async || task.snapshot().await.expect("a look").output.bytes == 7).await;
        let bound = WaitOptions { timeout: Some(Duration::ZERO), ..WaitOptions::default() };
        for snapshot in [
            task.snapshot().await.expect("a look"),
            session.wait(std::slice::from_ref(&command), bound).await.expect("a wait").commands.remove(0).snapshot,
        ] {
            assert_eq!((snapshot.phase, snapshot.output.withheld), (Phase::Running, true));
            assert!(snapshot.output.tail.is_empty());
        }
        assert_eq!(text_of(&task, 0).await.0, "");
        task.stop(outlast::StopOptions::by("human")).await.expect("a stop");
        assert_eq!(text_of(&task, 0).await.0, "spoken\n");
        assert!(!command.read(ReadOptions::default()).await.expect("a read").withheld());
    });
}

/// Covers: R5
#[test]
fn r5_at_rest_a_task_leaves_no_secret_where_that_is_the_policy() {
    in_world("r5-rest", async |world: World| {
        for (at_rest, kept) in [(AtRest::Redacted, false), (AtRest::Raw, true)] {
            let policy = Policy { at_rest, secrets: vec![b"correct-horse".to_vec()], ..Policy::default() };
            let session = session(&world, policy).await;
            let request = TaskRequest { label: Some(TOKEN.to_owned()), ..TaskRequest::new(["look", TOKEN]) };
            let task = session.spawn_task(request, |work| async move {
                work.receipts.publish([format!("/tmp/{TOKEN}")]).map_err(|error| error.to_string())?;
                let (one, two) = TOKEN.split_at(20);
                for part in ["it is ", one, two, " correct-", "horse"] {
                    work.output.write(part).map_err(|error| error.to_string())?;
                }
                Err(format!("not with {TOKEN}"))
            });
            let task = task.await.expect("a task");
            let snapshot = ended(&task).await;
            assert_eq!(snapshot.output.bytes as usize, 6 + TOKEN.len() + 14, "a mask changes no length");
            let dir = world.state_dir.join("sessions").join(session.id().to_string());
            let mut all = std::fs::read_to_string(dir.join("trace.jsonl")).expect("the trace");
            assert_eq!(all.contains("redacted"), !kept, "{all}");
            for name in ["request.json", "output.log", "exit.json", "receipts.jsonl"] {
                let path = dir.join("work").join(task.id().to_string()).join(name);
                all += &std::fs::read_to_string(path).expect("a record");
            }
            let found = [TOKEN, &TOKEN[..20], &TOKEN[20..], "correct-horse"].map(|secret| all.contains(secret));
            assert_eq!(found, [kept; 4], "{all}");
        }
    });
}

/// Covers: R5
#[test]
fn r5_a_long_result_is_not_cut_through_a_secret() {
    in_world("r5-cut", async |world: World| {
        let session = session(&world, Policy { redact: true, ..Policy::default() }).await;
        // Wherever it is cut, there is one.
        let text = format!("{TOKEN} ").repeat(1024);
        let task = session.spawn_task(TaskRequest::new(["look"]), |work| async move {
            work.output.write("x").map_err(|error| error.to_string())?;
            Ok(text)
        });
        let result = ended(&task.await.expect("a task")).await.result.expect("a result");
        assert!(result.contains("****") && !result.contains("ghp_") && !result.contains("0123"), "{result}");
    });
}
