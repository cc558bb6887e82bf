//! Notices: they say what happens, and hold nothing up.

use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use outlast::core::id::CommandId;
use outlast::core::record::Phase;
use outlast::{Event, Failures, Level, Notice, Outcome, StopOptions, TaskRequest, WaitOptions};

use crate::world::{SOON, World, finished, in_world, soon, start};

/// What was heard, in order.
struct Heard<T>(Arc<Mutex<Vec<T>>>);

impl<T: Clone + Send + 'static> Heard<T> {
    fn new() -> Self {
        Heard(Arc::default())
    }

    fn take(&self) -> impl Fn(&T) + Send + Sync + use<T> {
        let list = self.0.clone();
        move |one: &T| list.lock().expect("the list").push(one.clone())
    }

    fn all(&self) -> Vec<T> {
        self.0.lock().expect("the list").clone()
    }

    async fn wait(&self, count: usize) -> Vec<T> {
        soon("it was heard", async || self.all().len() >= count).await;
        self.all()
    }
}

/// Covers: O1
#[test]
fn o1_one_notice_of_silence_which_stops_nothing() {
    in_world("o1", async |world: World| {
        let session = world.session().await;
        let heard = Heard::<Notice>::new();
        session.listen(Some(Arc::new(heard.take())));
        let begin = async |line: &str, quiet: Duration| {
            let mut request = world.shell(line);
            request.quiet_after = Some(quiet);
            match session.start(request).await.expect("a start") {
                Outcome::Demoted(demotion) => demotion.command,
                Outcome::Finished(finished) => panic!("{:?}", finished.exit),
            }
        };
        let chatty = begin("while :; do echo x; sleep 0.02; done", Duration::from_secs(2)).await;
        let silent = begin("exec sleep 60", Duration::from_millis(50)).await;
        let off = begin("exec sleep 60", Duration::ZERO).await;
        let later = begin("exec sleep 60", Duration::from_secs(3)).await;
        let huge = begin("exec sleep 60", Duration::MAX).await;
        let of = |id: &CommandId| {
            let all = heard.all();
            all.into_iter().filter(|one| one.id == *id && one.level == Level::Warning).collect::<Vec<_>>()
        };
        soon("the last is noticed", async || !of(later.id()).is_empty()).await;
        let told = of(silent.id());
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].text.contains("after 1s without visible output; this is not an error"), "{told:?}");
        assert!(told[0].text.contains("of processor time"), "{told:?}");
        for command in [&chatty, &off, &huge] {
            assert_eq!(of(command.id()), []);
        }
        // The model hears it in its next note, once.
        let note = session.note("model").await.expect("a note").expect("something to say");
        assert!(note.text().contains(&told[0].text) && note.completions().count() == 0, "{}", note.text());
        drop(note);
        session.note("model").await.expect("a note").expect("still to say").commit().await.expect("a commit");
        assert!(session.note("model").await.expect("a note").is_none());
        for command in [&chatty, &silent, &off, &later, &huge] {
            assert_eq!(command.brief().await.expect("a look").phase, Phase::Running);
            command.stop(StopOptions::by("model")).await.expect("a stop");
        }
    });
}

/// Covers: O3
#[test]
fn o3_start_end_failure_and_stop_are_told() {
    in_world("o3", async |world: World| {
        let session = world.session().await;
        let heard = Heard::<Notice>::new();
        session.listen(Some(Arc::new(heard.take())));
        let fine = finished(session.run_to_end(world.shell("true")).await.expect("a run")).exit.id;
        let failed = start(&world, &session, "exit 3").await;
        session.wait(std::slice::from_ref(&failed), WaitOptions::default()).await.expect("a wait");
        soon("the failure is told", async || heard.all().len() == 4).await;
        let stopped = start(&world, &session, "exec sleep 60").await;
        stopped.stop(StopOptions::by("model")).await.expect("a stop");
        let all: Vec<_> = heard.wait(6).await.into_iter().map(|one| (one.level, one.text)).collect();
        let expected = [
            (Level::Info, format!("{fine} runs")),
            (Level::Info, format!("{fine} has ended")),
            (Level::Info, format!("{} runs", failed.id())),
            (Level::Warning, format!("{} has failed: exited, exit code 3", failed.id())),
            (Level::Info, format!("{} runs", stopped.id())),
            (Level::Info, format!("{} was stopped by model", stopped.id())),
        ];
        assert_eq!(all, expected);
        // A task is told like a process.
        let task = session.spawn_task(TaskRequest::new(["fails"]), |_| async { Err("no".to_owned()) });
        let task = *task.await.expect("a task").id();
        let all: Vec<_> = heard.wait(8).await.into_iter().skip(6).map(|one| (one.level, one.text)).collect();
        let failed = format!("{task} has failed: exited, exit code 1");
        assert_eq!(all, [(Level::Info, format!("{task} runs")), (Level::Warning, failed)]);
        // The end of a session is told by its report, and by no notice for each command.
        let abandoned = start(&world, &session, "exec sleep 60").await;
        heard.wait(9).await;
        let (tell, told) = channel();
        let _observer = world.runtime.observe(move |seen| drop(tell.send(seen.event.clone()))).expect("an observer");
        session.end("model", outlast::END_BOUND, false).await.expect("an end");
        let event = told.recv_timeout(SOON).expect("an event");
        assert!(matches!(&event, Event::Ended { id, .. } if id == abandoned.id()), "{event:?}");
        assert_eq!(heard.all().len(), 9);
    });
}

/// Covers: O4
#[test]
fn o4_notices_wait_while_the_owner_is_replaced_and_come_in_order() {
    in_world("o4", async |world: World| {
        let session = world.session().await;
        let (first, second) = (Heard::<Notice>::new(), Heard::<Notice>::new());
        // A listener that is held up holds up no command.
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (hear, held) = (first.take(), gate.clone());
        session.listen(Some(Arc::new(move |notice| {
            let open = held.0.lock().expect("the gate");
            drop(held.1.wait_while(open, |open| !*open).expect("the gate"));
            hear(notice);
        })));
        let mut running = Vec::new();
        for number in 0..3 {
            running.push(start(&world, &session, &format!("while [ ! -e {number} ]; do sleep 0.02; done")).await);
        }
        assert!(first.all().is_empty());
        *gate.0.lock().expect("the gate") = true;
        gate.1.notify_all();
        first.wait(3).await;
        let seal = session.seal().await.expect("a seal");
        let (tell, ends) = channel();
        let observer = session.observe(move |seen| {
            let _ = tell.send(seen.number);
        });
        let _observer = observer.expect("an observer");
        for number in 0..3 {
            std::fs::write(world.work_dir.join(number.to_string()), "").expect("the gate");
            ends.recv_timeout(SOON).expect("its end");
        }
        // Given meanwhile, they wait for who comes next.
        session.listen(Some(Arc::new(second.take())));
        assert!(second.all().is_empty());
        drop(seal);
        let told = second.wait(3).await;
        let expected: Vec<String> = running.iter().map(|one| format!("{} has ended", one.id())).collect();
        assert_eq!(told.into_iter().map(|one| one.text).collect::<Vec<_>>(), expected);
        assert_eq!(first.all().len(), 3);
    });
}

/// Covers: O5
#[test]
fn o5_progress_has_elapsed_grace_and_label() {
    in_world("o5", async |world: World| {
        let session = world.session().await;
        let mut request = world.shell(&format!("read line # {}", "x".repeat(80)));
        request.stdin = outlast::core::request::Stdin::Open;
        request.grace = Some(Duration::from_secs(30));
        let mut running = session.run(request).await.expect("a run");
        let before = running.progress();
        running.next().await.expect("an event");
        let after = running.progress();
        assert!(after.elapsed > before.elapsed);
        assert_eq!((after.total, &after.label), (Some(Duration::from_secs(30)), &before.label));
        assert!(after.label.starts_with("sh -c read line # xxx") && after.label.chars().count() <= 60, "{after:?}");
        running.close_input().await.expect("the end of input");
        while running.next().await.expect("an event").is_some() {}
        running.told().await.expect("told");
    });
}

/// Covers: J5
#[test]
fn j5_notices_go_to_the_listener_of_their_session() {
    in_world("j5-notices", async |world: World| {
        let (one, two) = (world.session().await, world.session().await);
        let heard = Heard::<Notice>::new();
        two.listen(Some(Arc::new(heard.take())));
        let mut silent = world.shell("exec sleep 60");
        silent.quiet_after = Some(Duration::from_millis(50));
        let Outcome::Demoted(other) = one.start(silent).await.expect("a start") else { panic!("it ended") };
        soon("the silence is noticed", async || one.note("model").await.expect("a note").is_some()).await;
        assert!(two.note("model").await.expect("a note").is_none());
        other.command.stop(StopOptions::by("model")).await.expect("a stop");
        finished(two.run_to_end(world.shell("true")).await.expect("a run"));
        assert!(heard.wait(2).await.iter().all(|notice| notice.id != *other.command.id()));
        // What is pending is so whether or not anybody listens.
        assert_eq!(one.pending("model").await.expect("pending").len(), 1);
    });
}

/// Covers: T5
#[test]
fn t5_a_failure_counts_once() {
    in_world("t5", async |world: World| {
        let session = world.session().await;
        finished(session.run_to_end(world.shell("exit 1")).await.expect("a run"));
        assert_eq!(world.runtime.failures(), Failures::default(), "nobody asked for it");
        world.runtime.count_failures();
        let counted = async |timeouts, commands| {
            let wanted = Failures { timeouts, commands };
            soon("it is counted", async || world.runtime.failures() == wanted).await;
        };
        for line in ["true", "exit 3"] {
            finished(session.run_to_end(world.shell(line)).await.expect("a run"));
        }
        counted(0, 1).await;
        start(&world, &session, "exit 3").await;
        counted(0, 2).await;
        let mut late = world.shell("exec sleep 60");
        late.limits.wall_ms = Some(100);
        finished(session.run_to_end(late).await.expect("a run"));
        counted(1, 2).await;
        let stopped = start(&world, &session, "exec sleep 60").await;
        stopped.stop(StopOptions::by("model")).await.expect("a stop");
        // Three that wait for one command, and then the same command again.
        for round in 1..=2 {
            let mut joined = world.shell("while [ ! -e gate ]; do sleep 0.02; done; exit 5");
            joined.join = true;
            let mut callers = Vec::new();
            for _ in 0..3 {
                callers.push(session.run(joined.clone()).await.expect("a run"));
            }
            std::fs::write(world.work_dir.join("gate"), "").expect("the gate");
            for mut caller in callers {
                while caller.next().await.expect("an event").is_some() {}
                caller.told().await.expect("told");
            }
            std::fs::remove_file(world.work_dir.join("gate")).expect("the gate");
            counted(1, 2 + round).await;
        }
    });
}

/// Covers: O8
#[test]
fn o8_lines_that_match_are_told_to_who_listens_and_in_a_note() {
    in_world("o8", async |world: World| {
        let session = world.session().await;
        let heard = Heard::<Notice>::new();
        session.listen(Some(Arc::new(heard.take())));
        let warnings = || heard.all().into_iter().filter(|one| one.level == Level::Warning).collect::<Vec<_>>();
        let gate = |name: &str| std::fs::write(world.work_dir.join(name), "").expect("the gate");
        let mut request = world.shell(
            "echo E0; echo fine; printf E; while [ ! -e more ]; do sleep 0.02; done
             seq -f E%g 1 5000; while [ ! -e last ]; do sleep 0.02; done; echo E-last",
        );
        request.notify = vec!["^E".into(), "^never".into()];
        let began = Instant::now();
        let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
        let (command, id) = (demotion.command.clone(), *demotion.command.id());
        soon("the first line is told", async || warnings().len() == 1).await;
        let first = format!(
            "{id} is still running and has printed 1 line that matches \"^E\": \"E0\". `read` shows its output."
        );
        assert_eq!((warnings()[0].id, &warnings()[0].text), (id, &first));
        // The consumer hears it in its note, whatever was told to who listens; nobody else hears it.
        let note = async || session.note("model").await.expect("a note");
        assert_eq!(note().await.expect("something to say").text(), first);
        assert_eq!(session.heads_ups("human").await.expect("a look").len(), 0);
        note().await.expect("it was not committed").commit().await.expect("a commit");
        assert!(note().await.is_none());
        gate("more");
        // What comes in the ten seconds after that is told together, and to who asks at once.
        let mut found = Vec::new();
        soon("they are printed", async || {
            found = session.heads_ups("model").await.expect("a look");
            found.first().is_some_and(|one| one.matches.lines == 5_000)
        })
        .await;
        let matches = &found[0].matches;
        assert_eq!((matches.first, matches.last.as_str(), matches.missing), (8, "E5000", 0));
        let (unasked, noticed) = (note().await, warnings().len());
        // On a machine that is slower than that it may be told again by now.
        assert!((unasked.is_none() && noticed == 1) || began.elapsed() >= Duration::from_secs(10), "told too often");
        drop(unasked);
        // Its time is over ten seconds after the first.
        let next = async {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            while warnings().len() < 2 {
                ticks.tick().await;
            }
        };
        tokio::time::timeout(3 * SOON, next).await.expect("it is told");
        assert!(warnings()[1].text.contains("has printed 5000 lines that match"), "{:?}", warnings());
        // Somebody else has told it by the time that this one did.
        let again = session.heads_ups("model").await.expect("a look").remove(0);
        assert!(found.remove(0).commit().await.expect("a commit"));
        assert!(!again.commit().await.expect("a commit"));
        // After its end only its end is told.
        gate("last");
        session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
        assert_eq!(session.heads_ups("model").await.expect("a look").len(), 0);
        soon("the end is told", async || heard.all().iter().any(|one| one.text.ends_with("has ended"))).await;
        assert_eq!(warnings().len(), 2);
    });
}

/// Covers: O8
#[test]
fn o8_what_cannot_be_watched_for_is_refused() {
    in_world("o8_refused", async |world: World| {
        let session = world.session().await;
        let refused = async |notify: &[&str], join: bool, why: &str| {
            let mut request = world.shell("true");
            request.notify = notify.iter().map(|one| (*one).to_owned()).collect();
            request.join = join;
            let error = session.run_to_end(request).await.expect_err("it makes no sense").to_string();
            assert!(error.contains(why), "{error}");
        };
        refused(&["("], false, "unclosed group").await;
        refused(&["x"; 17], false, "at most 16").await;
        refused(&["x"], true, "`join`").await;
    });
}
