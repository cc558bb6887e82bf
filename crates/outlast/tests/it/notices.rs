//! Notices, observers and recorders: they hear what happens, and hold nothing up.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use outlast::core::id::CommandId;
use outlast::core::record::Phase;
use outlast::{Event, Failures, Level, Notice, Observed, Outcome, Outturn, Recorder, StopOptions, WaitOptions};

use crate::world::{World, adopted, config, finished, in_world, soon, start};

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
        // The end of a session is told by its report, and by no notice for each command.
        let abandoned = start(&world, &session, "exec sleep 60").await;
        heard.wait(7).await;
        let recorded = Heard::<Observed>::new();
        world.runtime.observe(Arc::new(recorded.take()));
        session.end("model", outlast::END_BOUND, false).await.expect("an end");
        let events = recorded.wait(1).await;
        assert!(matches!(&events[0].event, Event::Ended { id, .. } if id == abandoned.id()), "{events:?}");
        assert_eq!(heard.all().len(), 7);
    });
}

/// Covers: O4
#[test]
fn o4_notices_wait_and_come_in_order() {
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
        let mut ids = Vec::new();
        for _ in 0..2 {
            ids.push(finished(session.run_to_end(world.shell("true")).await.expect("a run")).exit.id);
        }
        assert!(first.all().is_empty());
        world.runtime.pause_notices();
        *gate.0.lock().expect("the gate") = true;
        gate.1.notify_all();
        // The one that was on its way arrives, the rest waits for who comes next.
        first.wait(1).await;
        session.listen(Some(Arc::new(second.take())));
        ids.push(finished(session.run_to_end(world.shell("true")).await.expect("a run")).exit.id);
        assert!(second.all().is_empty());
        world.runtime.resume_notices();
        let all = [first.all(), second.wait(5).await].concat();
        let expected: Vec<String> =
            ids.iter().flat_map(|id| [format!("{id} runs"), format!("{id} has ended")]).collect();
        assert_eq!(all.into_iter().map(|one| one.text).collect::<Vec<_>>(), expected);
        assert_eq!(first.all().len(), 1);
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

/// Covers: O6
#[test]
fn o6_observers_see_numbered_events_without_a_gap() {
    in_world("o6", async |world: World| {
        // Without an observer everything works.
        let session = world.session().await;
        finished(session.run_to_end(world.shell("true")).await.expect("a run"));
        let (slow, quick) = (Heard::<Observed>::new(), Heard::<Observed>::new());
        world.runtime.observe(Arc::new(slow.take()));
        world.runtime.observe(Arc::new(|_| panic!("an observer that panics")));
        world.runtime.observe(Arc::new(quick.take()));
        let inline = finished(session.run_to_end(world.shell("true")).await.expect("a run")).exit.id;
        let id = *session.id();
        drop(session);
        let session = adopted(&world.runtime, &id).await;
        let command = start(&world, &session, "exit 1").await;
        let events = quick.wait(5).await;
        assert_eq!(events.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(events.iter().all(|one| one.session == id));
        let kinds: Vec<Event> = events.into_iter().map(|one| one.event).collect();
        let exited = |code| outlast::core::ending::End::Exited { code };
        let expected = [
            Event::Started { id: inline },
            Event::Ended { id: inline, end: exited(0) },
            Event::Adopted,
            Event::Started { id: *command.id() },
            Event::Ended { id: *command.id(), end: exited(1) },
        ];
        assert_eq!(kinds, expected);
        assert_eq!(slow.wait(5).await.len(), 5);
    });
}

#[derive(Default)]
struct Book(Mutex<Vec<(CommandId, Option<Outturn>)>>);

impl Recorder for Book {
    fn started(&self, id: &CommandId) {
        self.0.lock().expect("the book").push((*id, None));
    }

    fn ended(&self, id: &CommandId, outturn: Outturn) {
        self.0.lock().expect("the book").push((*id, Some(outturn)));
    }
}

struct Panics;

impl Recorder for Panics {
    fn started(&self, _: &CommandId) {
        panic!("a recorder that panics");
    }

    fn ended(&self, _: &CommandId, _: Outturn) {
        panic!("a recorder that panics");
    }
}

/// Covers: O7
#[test]
fn o7_recorders_are_best_effort() {
    in_world("o7", async |world: World| {
        let session = world.session().await;
        let run = async |line: &str| finished(session.run_to_end(world.shell(line)).await.expect("a run")).exit.id;
        run("true").await;
        let book = Arc::new(Book::default());
        world.runtime.record_with(Some(book.clone()));
        let fine = run("true").await;
        let failed = start(&world, &session, "exit 3").await;
        session.wait(std::slice::from_ref(&failed), WaitOptions::default()).await.expect("a wait");
        let entries = || book.0.lock().expect("the book").clone();
        soon("the failure is taken down", async || entries().len() == 4).await;
        // It ended well after the stop: stopped all the same.
        let stopped = start(&world, &session, "trap 'exit 0' TERM; touch ready; while :; do sleep 0.02; done").await;
        soon("it is ready", async || world.work_dir.join("ready").exists()).await;
        stopped.stop(StopOptions::by("model")).await.expect("a stop");
        soon("all are taken down", async || entries().len() == 6).await;
        let expected = [
            (fine, None),
            (fine, Some(Outturn::Ended)),
            (*failed.id(), None),
            (*failed.id(), Some(Outturn::Failed)),
            (*stopped.id(), None),
            (*stopped.id(), Some(Outturn::Stopped)),
        ];
        assert_eq!(entries(), expected);
        world.runtime.record_with(Some(Arc::new(Panics)));
        run("true").await;
        world.runtime.record_with(None);
        run("true").await;
        assert_eq!(entries().len(), 6);
        // Another runtime has its own.
        assert!(outlast::Runtime::open(config(&world.state_dir)).is_ok());
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
