//! Policies on the final texts of tasks.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use outlast::{FinalText, Runtime, Session, Snapshot, Task, TaskRequest, TextPolicy, WaitOptions};

use crate::task::text_of;
use crate::world::{SOON, World, config, in_world, soon};

async fn spawn(session: &Session, project: Option<&str>, text: &str) -> Task {
    let request = TaskRequest { project: project.map(str::to_owned), ..TaskRequest::new(["say"]) };
    let text = text.to_owned();
    session.spawn_task(request, |_| async move { Ok(text) }).await.expect("a task")
}

async fn end_of(task: &Task) -> Snapshot {
    tokio::time::timeout(SOON, task.ended()).await.expect("an end").expect("a look")
}

/// The end of a task that says this.
async fn said(session: &Session, project: Option<&str>, text: &str) -> (Task, Snapshot) {
    let task = spawn(session, project, text).await;
    let snapshot = end_of(&task).await;
    (task, snapshot)
}

/// What the trace says of final texts.
async fn traced(session: &Session) -> Vec<String> {
    let lines = session.trace().await.expect("a trace");
    lines.into_iter().filter(|line| line.kind == "text").map(|line| line.detail.expect("why")).collect()
}

/// Lets through what does not begin with `no`, without what stands in it of the project.
fn polite() -> TextPolicy {
    TextPolicy::new(|project, text| {
        let text = project.map_or(text.to_owned(), |project| text.replace(project, "it"));
        (!text.starts_with("no")).then_some(text)
    })
}

/// Covers: C18, R7, R8
#[test]
fn c18_what_a_text_policy_does_not_let_through_is_withheld() {
    in_world("c18", async |world: World| {
        let session = world.session().await;
        // Off: the text is the output.
        let (task, _) = said(&session, None, "no way").await;
        assert_eq!((text_of(&task, 0).await.0.as_str(), world.runtime.text_epoch()), ("no way", 0));

        world.runtime.set_text_policy(Some(polite().with_notice("a machine wrote this")));
        let (task, snapshot) = said(&session, None, "no way").await;
        assert_eq!((snapshot.result.as_deref(), snapshot.withheld), (Some("a machine wrote this\n"), true));
        // However often and by whomever it is looked at; and it is no output either.
        let other = Runtime::open(config(&world.state_dir)).expect("a runtime");
        let guest = other.open_session(session.id()).await.expect("the session");
        let command = guest.get(task.id()).await.expect("a look").expect("the command");
        for _ in 0..3 {
            let report = guest.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
            let snapshot = &report.commands[0].snapshot;
            assert_eq!((snapshot.shown(), snapshot.withheld), ((21, &b"a machine wrote this\n"[..]), true));
        }
        assert_eq!(text_of(&task, 0).await.0, "");
        assert_eq!(command.final_text().await.expect("a look"), None);
        let (task, snapshot) = said(&session, Some("acme"), "acme works").await;
        assert_eq!((snapshot.result.as_deref(), snapshot.withheld), (Some("a machine wrote this\nit works"), false));
        let (_, snapshot) = said(&session, None, "fine").await;
        assert_eq!((snapshot.result.as_deref(), snapshot.withheld), (Some("a machine wrote this\nfine"), false));

        // A notice stays after a scrub; of a stream nothing is touched.
        let command = task.command().expect("records");
        let held = command.final_text().await.expect("a look").expect("a text");
        command.scrub_text(&held).await.expect("a scrub");
        let snapshot = task.snapshot().await.expect("a look");
        assert_eq!((snapshot.result.as_deref(), snapshot.withheld), (Some("a machine wrote this\n"), true));
        let task = session.spawn_task(TaskRequest::new(["say"]), |work| async move {
            work.output.write("no stream").map_err(|error| error.to_string())?;
            Err("no text".to_owned())
        });
        let task = task.await.expect("a task");
        assert!(end_of(&task).await.withheld);
        assert_eq!(text_of(&task, 0).await.0, "no stream");

        // One that needs a project, and one that panics, let nothing through without one.
        world.runtime.set_text_policy(Some(polite().by_project()));
        assert!(said(&session, None, "fine").await.1.withheld);
        assert_eq!(said(&session, Some("acme"), "fine").await.1.result.as_deref(), Some("fine"));
        world.runtime.set_text_policy(Some(TextPolicy::new(|_, _| panic!("no policy"))));
        let (_, snapshot) = said(&session, None, "fine").await;
        assert_eq!((snapshot.result, snapshot.withheld), (None, true));
        // Each was traced once, at that point, without its text.
        assert_eq!(traced(&session).await, ["blocked", "changed", "scrubbed", "blocked", "no project", "blocked"]);
        let raw = session.raw_trace().await.expect("a trace");
        let raw = String::from_utf8(raw).expect("text");
        assert!(["no way", "works", "no text"].iter().all(|text| !raw.contains(text)), "{raw}");
    });
}

/// Covers: C18, R7
#[test]
fn r7_a_policy_that_changes_before_the_text_is_kept_drops_it() {
    in_world("r7", async |world: World| {
        let session = world.session().await;
        let (tell, asked) = channel();
        let (answer, answers) = channel::<()>();
        let answers = Mutex::new(answers);
        world.runtime.set_text_policy(Some(TextPolicy::new(move |_, text| {
            tell.send(()).expect("somebody listens");
            answers.lock().expect("whole").recv().expect("an answer");
            Some(text.to_owned())
        })));
        for changes in [false, true] {
            let task = spawn(&session, None, "fine").await;
            tokio::task::block_in_place(|| asked.recv_timeout(SOON)).expect("the policy is asked");
            if changes {
                let epoch = world.runtime.text_epoch();
                assert_eq!(world.runtime.set_text_policy(Some(polite())), epoch + 1);
            }
            answer.send(()).expect("the policy waits");
            let snapshot = end_of(&task).await;
            assert_eq!((snapshot.result.is_none(), snapshot.withheld), (changes, changes));
        }
        assert_eq!(traced(&session).await, ["the policy changed"]);
    });
}

/// Covers: R6
#[test]
fn r6_only_who_holds_the_same_text_replaces_or_scrubs_it() {
    in_world("r6", async |world: World| {
        let session = world.session().await;
        let runs = session.spawn_task(TaskRequest::new(["run"]), |work| async move {
            work.stop.raised().await;
            Ok(String::new())
        });
        let runs = runs.await.expect("a task");
        let epoch = world.runtime.set_text_policy(Some(polite()));
        let (task, _) = said(&session, None, "one").await;
        let command = task.command().expect("records");
        let shown = async || task.snapshot().await.expect("a look").result;
        let one = command.final_text().await.expect("a look").expect("a text");
        assert_eq!(one, FinalText { revision: 0, text: "one".to_owned() });

        // Of another revision, or with another text: refused, and nothing is changed.
        for other in [FinalText { revision: 1, ..one.clone() }, FinalText { text: "on".to_owned(), ..one.clone() }] {
            let refused = command.replace_text(&other, "two", epoch).await.expect_err("another text");
            assert!(refused.to_string().contains("not the one that is held"), "{refused}");
            command.scrub_text(&other).await.expect_err("another text");
        }
        assert_eq!(shown().await.as_deref(), Some("one"));
        let two = command.replace_text(&one, "two", epoch).await.expect("replaced");
        assert_eq!((two.revision, shown().await.as_deref()), (1, Some("two")));
        command.replace_text(&one, "three", epoch).await.expect_err("it was replaced meanwhile");

        // The epoch changes while the lock is waited for.
        let dir = world.state_dir.join("sessions").join(session.id().to_string()).join("work");
        let lock = std::fs::File::open(dir.join(task.id().to_string()).join("text.lock")).expect("the lock");
        lock.lock().expect("locked");
        let (waiting, held) = (command.clone(), two.clone());
        let replaces = tokio::spawn(async move { waiting.replace_text(&held, "three", epoch).await });
        let waits = || {
            let locks = std::fs::read_to_string("/proc/locks").expect("the locks");
            locks.lines().any(|line| line.contains("->") && line.contains(&format!(" {} ", std::process::id())))
        };
        soon("it waits for the lock", async || waits()).await;
        world.runtime.set_text_policy(None);
        drop(lock);
        let refused = replaces.await.expect("it is over").expect_err("another epoch");
        assert!(refused.to_string().contains("epoch"), "{refused}");
        assert_eq!(shown().await.as_deref(), Some("two"));
        // Scrubbing is always allowed, and final.
        command.scrub_text(&two).await.expect("scrubbed");
        let snapshot = task.snapshot().await.expect("a look");
        assert_eq!((snapshot.result, snapshot.withheld), (None, true));
        command.replace_text(&two, "three", world.runtime.text_epoch()).await.expect_err("there is no such text");
        assert_eq!(traced(&session).await, ["replaced", "scrubbed"]);
        // All the while what ran ran on.
        assert!(runs.snapshot().await.expect("a look").end.is_none());
        runs.stop(outlast::StopOptions::by("human")).await.expect("a stop");
    });
}
