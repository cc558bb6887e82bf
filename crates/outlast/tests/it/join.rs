//! Joining identical launches: one process, several callers.

use std::time::Duration;

use outlast::core::ending::End;
use outlast::core::record::Phase;
use outlast::core::wire::DemotedBy;
use outlast::{Error, ErrorKind, Finished, Outcome, RunEvent, RunRequest, Running, Session, StopOptions};

use crate::world::{World, finished, in_world, soon};

/// Notes that it was started, says X, and ends once the file `go` is there.
const GATED: &str = "echo started >>starts; printf X; while [ ! -e go ]; do sleep .01; done";

fn joining(world: &World, line: &str) -> RunRequest {
    RunRequest { join: true, ..world.shell(line) }
}

fn open_gate(world: &World) {
    std::fs::write(world.work_dir.join("go"), "").expect("a file");
}

/// How often the shell line of this test was started.
fn starts(world: &World) -> usize {
    std::fs::read_to_string(world.work_dir.join("starts")).unwrap_or_default().lines().count()
}

async fn launch(session: &Session, request: &RunRequest) -> Running {
    session.run(request.clone()).await.expect("a run")
}

/// The next event but the start: an end or a demotion.
async fn last(running: &mut Running) -> RunEvent {
    loop {
        match running.next().await.expect("an event").expect("an end or a demotion") {
            RunEvent::Started { .. } => {}
            event => return event,
        }
    }
}

async fn end(running: &mut Running) -> Finished {
    match last(running).await {
        RunEvent::Ended(finished) => *finished,
        other => panic!("no end: {other:?}"),
    }
}

async fn shown(mut running: Running) -> Finished {
    let finished = end(&mut running).await;
    running.told().await.expect("the end is told");
    finished
}

/// The outcomes of so many calls that run side by side.
async fn at_once(session: &Session, request: &RunRequest, calls: usize) -> Vec<Outcome> {
    let call = || {
        let (session, request) = (session.clone(), request.clone());
        tokio::spawn(async move { session.run_to_end(request).await })
    };
    let calls: Vec<_> = (0..calls).map(|_| call()).collect();
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.expect("no panic").expect("a run"));
    }
    outcomes
}

/// Covers: H2
#[test]
fn h2_identical_launches_are_one_process() {
    in_world("h2", async |world: World| {
        let session = world.session().await;
        let line = "echo started >>starts; sleep 0.2; printf X";
        let request = RunRequest { grace: Some(Duration::from_secs(30)), ..joining(&world, line) };
        let all = at_once(&session, &request, 3).await;
        assert_eq!((all.iter().filter(|one| one.joined()).count(), starts(&world)), (2, 1));
        let all: Vec<Finished> = all.into_iter().map(finished).collect();
        for one in &all {
            assert_eq!((one.output.as_slice(), &one.exit.end), (&b"X"[..], &End::Exited { code: 0 }));
            assert_eq!((one.exit.id, one.materialised, one.exit.demoted), (all[0].exit.id, false, false));
        }
        // Nobody joins who did not ask for it.
        let request = RunRequest { join: false, ..request };
        let all = at_once(&session, &request, 3).await;
        assert!(all.iter().all(|one| !one.joined()) && starts(&world) == 4);
    });
}

/// Covers: H2, H3, H5
#[test]
fn h2_an_end_that_a_caller_has_not_read_is_joined() {
    in_world("h2-ended", async |world: World| {
        let session = world.session().await;
        let request = joining(&world, "echo started >>starts; printf X");
        let mut first = launch(&session, &request).await;
        assert_eq!((end(&mut first).await.output.as_slice(), first.joined()), (&b"X"[..], false));
        let mut second = launch(&session, &request).await;
        assert!(second.joined() && second.id() == first.id());
        assert_eq!((first.generation(), second.generation()), (Some(1), Some(1)));
        // A background start wants a command that runs.
        let Outcome::Demoted(started) = session.start(request.clone()).await.expect("a start") else {
            panic!("no background start")
        };
        assert!(!started.joined && started.command.id() != first.id());
        session.wait(std::slice::from_ref(&started.command), Default::default()).await.expect("a wait");
        first.told().await.expect("told");
        let joined = end(&mut second).await;
        assert!(joined.joined && joined.output == b"X" && !joined.materialised);
        second.told().await.expect("told");
        // Released twice: nothing of it is left, on disk or to be joined.
        let third = launch(&session, &request).await;
        assert!(!third.joined() && third.id() != &joined.exit.id && third.generation() == Some(3));
        assert!(session.get(&joined.exit.id).await.expect("a look").is_none());
        shown(third).await;
        assert_eq!(starts(&world), 3);
    });
}

/// Covers: H3
#[test]
fn h3_a_caller_that_leaves_changes_nothing_for_the_others() {
    in_world("h3", async |world: World| {
        let session = world.session().await;
        let request = joining(&world, GATED);
        let (first, second) = (launch(&session, &request).await, launch(&session, &request).await);
        drop(first);
        open_gate(&world);
        let left = shown(second).await;
        assert!(left.output == b"X" && left.joined && !left.materialised && !left.exit.demoted);
        assert!(session.list(true).await.expect("a list").is_empty());
        // The last one that leaves demotes it.
        std::fs::remove_file(world.work_dir.join("go")).expect("the gate");
        let (third, fourth) = (launch(&session, &request).await, launch(&session, &request).await);
        let id = *third.id();
        drop((third, fourth));
        soon("it is in the background", async || session.get(&id).await.expect("a look").is_some()).await;
        open_gate(&world);
        let command = session.get(&id).await.expect("a look").expect("the command");
        session.wait(&[command], Default::default()).await.expect("a wait");
        assert_eq!(session.pending("model").await.expect("pending").len(), 1);
    });
}

/// Covers: H4
#[test]
fn h4_the_grace_of_one_caller_is_not_that_of_another() {
    in_world("h4", async |world: World| {
        let session = world.session().await;
        let patient = joining(&world, GATED);
        let hasty = RunRequest { grace: Some(Duration::from_millis(100)), ..patient.clone() };
        let mut first = launch(&session, &patient).await;
        let mut second = launch(&session, &hasty).await;
        let RunEvent::Demoted(demotion) = last(&mut second).await else { panic!("no demotion") };
        assert!(demotion.joined && demotion.by == DemotedBy::Grace && demotion.command.id() == first.id());
        // It is a background command now. Whoever joins it waits for its own grace and no longer.
        let RunEvent::Demoted(demotion) = last(&mut launch(&session, &hasty).await).await else {
            panic!("no demotion")
        };
        assert_eq!((demotion.by, demotion.joined), (DemotedBy::Grace, true));
        let leaves = launch(&session, &patient).await;
        assert!(leaves.joined());
        drop(leaves);
        let asks = &mut launch(&session, &patient).await;
        asks.demote().await.expect("asked");
        let RunEvent::Demoted(demotion) = last(asks).await else { panic!("no demotion") };
        assert_eq!(demotion.by, DemotedBy::Asked);
        let listed = session.list(false).await.expect("a list");
        assert_eq!((listed.len(), listed[0].phase, listed[0].demoted), (1, Phase::Running, true));
        open_gate(&world);
        // Who still waited has the end inline, and it is told by that.
        let inline = end(&mut first).await;
        assert!(inline.exit.demoted && inline.output == b"X" && !inline.joined);
        first.told().await.expect("told");
        assert!(session.pending("model").await.expect("pending").is_empty());
        assert_eq!((session.pending("human").await.expect("pending").len(), starts(&world)), (1, 1));
    });
}

/// Covers: H4
#[test]
fn h4_a_background_start_that_joins_makes_a_background_command() {
    in_world("h4-start", async |world: World| {
        let session = world.session().await;
        let request = joining(&world, GATED);
        let first = launch(&session, &request).await;
        for _ in 0..2 {
            let outcome = session.start(request.clone()).await.expect("a start");
            let Outcome::Demoted(demotion) = outcome else { panic!("no background start") };
            assert!(demotion.joined && demotion.by == DemotedBy::Background && demotion.command.id() == first.id());
        }
        let id = *first.id();
        drop(first);
        let followed = RunRequest { follow: true, ..request };
        let mut late = launch(&session, &followed).await;
        let RunEvent::Output { bytes, .. } = last(&mut late).await else { panic!("no output") };
        assert_eq!(bytes, b"X");
        drop(late);
        let command = session.get(&id).await.expect("a look").expect("the command");
        assert_eq!(command.brief().await.expect("a look").phase, Phase::Running);
        open_gate(&world);
        session.wait(&[command], Default::default()).await.expect("a wait");
        assert_eq!((session.pending("model").await.expect("pending").len(), starts(&world)), (1, 1));
    });
}

/// Covers: H2
#[test]
fn h2_each_caller_sees_the_output_in_its_own_way() {
    in_world("h2-follow", async |world: World| {
        let session = world.session().await;
        let plain = joining(&world, "printf X; while [ ! -e go ]; do sleep .01; done; printf Y");
        let followed = RunRequest { follow: true, ..plain.clone() };
        let mut first = launch(&session, &followed).await;
        let RunEvent::Output { bytes, .. } = last(&mut first).await else { panic!("no output") };
        assert_eq!(bytes, b"X");
        let (second, mut third) = (launch(&session, &plain).await, launch(&session, &followed).await);
        let RunEvent::Output { bytes, .. } = last(&mut third).await else { panic!("no output") };
        assert_eq!(bytes, b"X");
        open_gate(&world);
        for mut one in [first, third] {
            let RunEvent::Output { bytes, .. } = last(&mut one).await else { panic!("no output") };
            assert_eq!((bytes.as_slice(), shown(one).await.output.as_slice()), (&b"Y"[..], &b"XY"[..]));
        }
        assert_eq!(shown(second).await.output, b"XY");
    });
}

/// Covers: H5
#[test]
fn h5_a_late_writer_of_the_old_command_never_touches_the_new_one() {
    in_world("h5", async |world: World| {
        let session = world.session().await;
        let number = world.work_dir.join("number");
        let line = "cat number; if [ -e again ]; then while [ ! -e go ]; do sleep .01; done; exit; fi; \
                    (while [ ! -e late ]; do sleep .01; done; echo LATE; : >written) &";
        std::fs::write(&number, "1\n").expect("a file");
        let request = joining(&world, line);
        let first = launch(&session, &request).await;
        assert_eq!(first.generation(), Some(1));
        let old = shown(first).await;
        assert_eq!((old.output.as_slice(), old.exit.survivors.is_empty()), (&b"1\n"[..], false));
        std::fs::write(&number, "2\n").expect("a file");
        std::fs::write(world.work_dir.join("again"), "").expect("a file");
        let second = launch(&session, &request).await;
        assert_eq!((second.joined(), second.generation()), (false, Some(2)));
        assert_ne!(second.id(), &old.exit.id);
        std::fs::write(world.work_dir.join("late"), "").expect("a file");
        soon("the old writer wrote", async || world.work_dir.join("written").exists()).await;
        open_gate(&world);
        assert_eq!(shown(second).await.output, b"2\n");
        let old = session.get(&old.exit.id).await.expect("a look").expect("the old command");
        soon("the old text is whole", async || old.snapshot().await.expect("a look").output.tail == b"1\nLATE\n").await;
    });
}

/// Covers: H6
#[test]
fn h6_many_fast_callers_all_return() {
    in_world("h6", async |world: World| {
        let session = world.session().await;
        let request = RunRequest { grace: Some(Duration::from_secs(30)), ..joining(&world, "printf X") };
        for _ in 0..5 {
            for outcome in at_once(&session, &request, 8).await {
                let done = finished(outcome);
                assert_eq!((done.output.as_slice(), done.exit.demoted), (&b"X"[..], false));
            }
        }
        assert!(session.list(true).await.expect("a list").is_empty());
    });
}

/// Covers: H7
#[test]
fn h7_a_stop_by_one_of_several_needs_force() {
    in_world("h7", async |world: World| {
        let session = world.session().await;
        let request = joining(&world, GATED);
        let (mut first, mut second) = (launch(&session, &request).await, launch(&session, &request).await);
        second.stop("model").await.expect("asked");
        let refused = loop {
            match second.next().await {
                Ok(Some(RunEvent::Started { .. })) => {}
                Err(error) => break error,
                Ok(other) => panic!("no refusal: {other:?}"),
            }
        };
        assert!(matches!(refused, Error::OthersWait { others: 1, .. }), "{refused}");
        assert_eq!(refused.kind(), ErrorKind::Refused);
        let forced = StopOptions { force: true, ..StopOptions::by("model") };
        second.stop_with(forced.clone()).await.expect("asked");
        for one in [&mut first, &mut second] {
            assert!(matches!(end(one).await.exit.end, End::Stopped { .. }));
        }
        for one in [first, second] {
            one.told().await.expect("told");
        }
        // From outside, where it can be addressed; nobody who waits alone has to be asked.
        let Outcome::Demoted(started) = session.start(request.clone()).await.expect("a start") else {
            panic!("no background start")
        };
        let (mut third, fourth) = (launch(&session, &request).await, launch(&session, &request).await);
        assert!(third.joined() && third.id() == started.command.id());
        let refused = started.command.stop(StopOptions::by("human")).await.expect_err("a refusal");
        assert!(matches!(refused, Error::OthersWait { others: 2, .. }), "{refused}");
        assert_eq!(started.command.brief().await.expect("a look").phase, Phase::Running);
        drop(fourth);
        started.command.stop(StopOptions::by("human")).await.expect("a stop");
        assert!(matches!(end(&mut third).await.exit.end, End::Stopped { .. }));
        third.told().await.expect("told");
        // One that is ended by its session asks nobody.
        let waiting = [launch(&session, &request).await, launch(&session, &request).await];
        let ending = tokio::spawn(async move { session.end("model", Duration::from_secs(10), false).await });
        for one in waiting {
            assert!(matches!(shown(one).await.exit.end, End::Abandoned { .. }));
        }
        ending.await.expect("no panic").expect("an end");
    });
}

/// Covers: H7
#[test]
fn h7_a_caller_whose_stop_is_refused_leaves() {
    in_world("h7-until", async |world: World| {
        let session = world.session().await;
        let request = joining(&world, GATED);
        let first = launch(&session, &request).await;
        let soon_after = tokio::time::timeout(Duration::from_millis(300), std::future::pending::<()>());
        let stopped = session.run_until_stopped(request, "model", async { drop(soon_after.await) }).await;
        assert!(matches!(stopped, Err(Error::OthersWait { others: 1, .. })), "{stopped:?}");
        open_gate(&world);
        assert_eq!(shown(first).await.exit.end, End::Exited { code: 0 });
    });
}

/// Covers: H8
#[test]
fn h8_joining_crosses_neither_session_nor_trust_nor_environment() {
    in_world("h8", async |world: World| {
        let (session, other) = (world.session().await, world.session().await);
        let request = joining(&world, GATED);
        let first = launch(&session, &request).await;
        let mut trusted = request.clone();
        trusted.provenance = outlast::core::origin::Origin::User.into();
        let mut with_more = request.clone();
        with_more.env.push(("MORE".into(), "1".into()));
        let unique = RunRequest { join: false, ..request.clone() };
        let others = [
            launch(&other, &request).await,
            launch(&session, &trusted).await,
            launch(&session, &with_more).await,
            launch(&session, &unique).await,
        ];
        assert!(others.iter().all(|one| !one.joined() && one.id() != first.id()));
        let joins = launch(&session, &request).await;
        assert!(joins.joined() && joins.id() == first.id());
        open_gate(&world);
        for one in others.into_iter().chain([first, joins]) {
            assert_eq!(shown(one).await.output, b"X");
        }
        assert_eq!(starts(&world), 5);
    });
}

/// Covers: C17
#[test]
fn c17_64_callers_get_the_raw_result_and_the_next_the_stored_text() {
    in_world("c17", async |world: World| {
        let session = world.session().await;
        let request = joining(&world, GATED);
        let mut callers = Vec::new();
        for _ in 0..65 {
            callers.push(launch(&session, &request).await);
        }
        open_gate(&world);
        let mut raw = 0;
        for caller in callers {
            let done = shown(caller).await;
            assert_eq!((done.output.as_slice(), done.exit.demoted), (&b"X"[..], false));
            raw += usize::from(done.log.is_none());
        }
        assert_eq!((raw, starts(&world)), (64, 1));
        // The stored text stays for later reads, and nothing of it is news.
        assert_eq!(session.list(true).await.expect("a list").len(), 1);
        assert!(session.pending("model").await.expect("pending").is_empty());
    });
}

/// Covers: H2
#[test]
fn h2_the_death_of_the_supervisor_is_told_to_all_who_joined() {
    in_world("h2-killed", async |world: World| {
        let session = world.session().await;
        let request = joining(&world, GATED);
        let (mut first, second) = (launch(&session, &request).await, launch(&session, &request).await);
        let Some(RunEvent::Started { leader, .. }) = first.next().await.expect("an event") else { panic!("no start") };
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", leader.pid)).expect("the leader");
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).expect("its parent");
        let supervisor = rustix::process::Pid::from_raw(parent.parse().expect("a number")).expect("a process");
        rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).expect("a signal");
        for one in [first, second] {
            assert!(matches!(shown(one).await.exit.end, End::Stopped { .. }));
        }
        let next = launch(&session, &request).await;
        assert!(!next.joined());
        open_gate(&world);
        assert_eq!(shown(next).await.output, b"X");
    });
}
