//! What is known after the watchers were killed.

use std::time::Duration;

use outlast::core::ending::{BY_SUPERVISOR_LOST, End, Fact};
use outlast::core::record::Phase;
use outlast::{Command, Predecessor, Session, SessionOptions, StopOptions, WaitOptions};

use crate::world::{SOON, World, config, in_world, nothing_left, processes_of, soon, start};

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().expect("a pid")).expect("a pid");
    // One that is gone already is what is wanted.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

fn record(session: &Session, command: &Command, name: &str) -> serde_json::Value {
    let path = session.path().expect("a path").join(format!("work/{}/{name}", command.id()));
    serde_json::from_slice(&std::fs::read(path).expect(name)).expect(name)
}

pub fn supervisor(session: &Session, command: &Command) -> u32 {
    record(session, command, "lease")["pid"].as_u64().and_then(|pid| pid.try_into().ok()).expect("a pid")
}

/// Covers: K9
#[test]
fn k9_the_keeper_finishes_what_its_supervisor_left() {
    in_world("keeper", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "setsid sleep 300 & exec sleep 300").await;
        kill(supervisor(&session, &command));
        let options = WaitOptions { timeout: Some(Duration::from_secs(10)), ..WaitOptions::default() };
        let report = session.wait(std::slice::from_ref(&command), options).await.expect("a wait");
        let end = report.commands[0].snapshot.end.clone();
        assert_eq!(end, Some(End::Stopped { by: BY_SUPERVISOR_LOST.into(), fact: Some(Fact::Signaled(9)) }));
        assert_eq!(record(&session, &command, "exit.json")["recorded_by"], "keeper");
    });
}

#[test]
fn a_foreground_command_survives_the_loss_of_its_supervisor_as_a_fact() {
    in_world("vanish", async |world: World| {
        let session = world.session().await;
        let request = world.shell("touch begun; exec sleep 300");
        let begun = world.work_dir.join("begun");
        let killer = async {
            soon("it runs", async || begun.exists()).await;
            let parent = parent_of_leader(&world);
            kill(parent);
            std::future::pending::<()>().await;
        };
        let done = crate::world::finished(session.run_until(request, killer).await.expect("an end"));
        assert_eq!(done.exit.end, End::Stopped { by: BY_SUPERVISOR_LOST.into(), fact: Some(Fact::Signaled(9)) });
    });
}

/// The supervisor: the parent of the one process of this world that is a `sleep`.
fn parent_of_leader(world: &World) -> u32 {
    let stat = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let leader = processes_of(&world.state_dir)
        .into_iter()
        .map(stat)
        .find(|stat| stat.contains("(sleep)") || stat.contains("(sh)"));
    let leader = leader.expect("a leader");
    let (_, rest) = leader.rsplit_once(')').expect("a stat line");
    rest.split_whitespace().nth(1).and_then(|ppid| ppid.parse().ok()).expect("a parent")
}

/// Covers: L1, L2, L3, L5, L16, L17
#[test]
fn l1_all_watchers_killed_is_lost_and_said_once() {
    in_world("lost", async |world: World| {
        let options = SessionOptions { context: "project".into(), ..SessionOptions::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        let away = start(&world, &session, "exit 3").await;
        session.wait(std::slice::from_ref(&away), WaitOptions::default()).await.expect("a wait");
        let lost = start(&world, &session, "setsid sleep 300 & exec sleep 300").await;
        // No handle of the owner is left, which would know more than that it is lost.
        let (id, gone) = (*session.id(), *lost.id());
        drop((session, lost, away));
        // The stray carries the id and lives on; the next look finds it.
        kill_watchers(&world).await;

        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let context = Predecessor::Context("project".into());
        let (next, report) = other.resume(&context, SessionOptions::default(), "model").await.expect("a resume");
        assert_eq!(report.session, Some(id), "{report:?}");
        assert_eq!(report.ended.iter().map(|one| one.exit_code).collect::<Vec<_>>(), [Some(3)]);
        assert_eq!(report.lost.iter().map(|one| one.id).collect::<Vec<_>>(), [gone], "{report:?}");
        let old =
            other.open_session(&id).await.expect("a look").get(&gone).await.expect("a look").expect("the command");
        assert_eq!(report.trust, Some(outlast::Trust::Untrusted));
        let verdict = record(old.session(), &old, "verdict.json");
        assert_eq!(verdict["report"].as_str(), report.report.as_deref());
        assert_eq!(verdict["reconciled_by"], next.id().to_string());
        assert_eq!(verdict["leftovers"][0]["done"], "ended", "{verdict}");
        for absent in ["exit_code", "status", "duration_ms", "log", "bytes"] {
            assert!(verdict.get(absent).is_none(), "{absent}");
        }
        let lines = old.session().trace().await.expect("a trace");
        assert_eq!(lines.iter().filter(|line| line.kind == "lost").count(), 1);

        let pending = next.pending("model").await.expect("pending");
        assert_eq!(pending.len(), 2, "both are still to be told");
        for guard in next.lease("model").await.expect("a lease") {
            guard.commit(outlast::Via::Inbox).await.expect("a commit");
        }
        let again = other.reconcile(&id, None, "model").await.expect("a second look");
        assert!(again.is_empty() && again.report.is_none(), "{again:?}");
        let looked = old.snapshot().await.expect("a look");
        assert_eq!((looked.phase, looked.end, looked.exit_code), (Phase::Ended, Some(End::Lost), None));
        let named = next.command(&old.id().to_string()).await.expect_err("an earlier session");
        assert!(matches!(named, outlast::Error::EarlierSession { .. }), "{named}");
        drop((next, old));
        nothing_left(&world.state_dir).await;
    });
}

/// Kills keeper and supervisors together, and waits until they are gone. They are halted first, so that none has time to
/// see another one go.
pub async fn kill_watchers(world: &World) {
    let watches =
        |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with(b"outlast-keeper");
    let watchers: Vec<u32> = processes_of(&world.state_dir).into_iter().filter(watches).collect();
    assert!(!watchers.is_empty());
    watchers.iter().for_each(|pid| signal(*pid, rustix::process::Signal::STOP));
    watchers.iter().copied().for_each(kill);
    soon("the watchers are gone", async || !watchers.iter().any(watches)).await;
}

#[test]
fn twenty_looks_at_a_time_make_one_verdict() {
    in_world("verdict", async |world: World| {
        let session = world.session().await;
        let (id, command) = (*session.id(), *start(&world, &session, "setsid sleep 300 & exec sleep 300").await.id());
        drop(session);
        kill_watchers(&world).await;
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let session = other.open_session(&id).await.expect("the session");
        let command = session.get(&command).await.expect("a look").expect("the command");
        let looks = (0..20).map(|_| {
            let command = command.clone();
            tokio::spawn(async move { command.snapshot().await.expect("a look") })
        });
        for look in looks.collect::<Vec<_>>() {
            assert_ne!(look.await.expect("a task").phase, Phase::Running);
        }
        assert_eq!(command.snapshot().await.expect("a look").end, Some(End::Lost));
        let lines = session.trace().await.expect("a trace");
        assert_eq!(lines.iter().filter(|line| line.kind == "lost").count(), 1);
    });
}

/// Covers: K9
#[test]
fn k9_an_owner_knows_the_end_of_what_it_started_when_all_watchers_are_gone() {
    in_world("pidfd", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "setsid sleep 300 & exec sleep 300").await;
        kill_watchers(&world).await;
        session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
        let ended = command.snapshot().await.expect("a look");
        let killed = End::Stopped { by: BY_SUPERVISOR_LOST.into(), fact: Some(Fact::Signaled(9)) };
        assert!(ended.end == Some(killed) || ended.end == Some(End::Lost), "{:?}", ended.end);
        // A kernel before 6.15 does not tell how a process ended that somebody else has reaped.
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
        if (numbers.next(), numbers.next()) >= (Some(6), Some(15)) {
            assert_eq!(record(&session, &command, "exit.json")["recorded_by"], "runtime");
        }
    });
}

/// Another process waits for what the watchers of a living owner left: that one is told of the death of its keeper, though
/// nobody looks through it.
///
/// Covers: K9
#[test]
fn k9_an_owner_finishes_what_its_watchers_left_while_another_waits() {
    in_world("k9_other", async |world: World| {
        let owner = world.session().await;
        let command = start(&world, &owner, "exec sleep 300").await;
        let waiting = waits_elsewhere(&world, &command).await;
        kill_watchers(&world).await;
        let snapshot = waiting.await;
        let killed = End::Stopped { by: BY_SUPERVISOR_LOST.into(), fact: Some(Fact::Signaled(9)) };
        assert!(snapshot.end == Some(killed) || snapshot.end == Some(End::Lost), "{:?}", snapshot.end);
        drop(owner);
    });
}

/// The same for a command that the owner has nothing to do with.
///
/// Covers: K9
#[test]
fn k9_an_owner_that_knows_of_nothing_keeps_nobody_waiting() {
    in_world("k9_foreign", async |world: World| {
        let owner = world.session().await;
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let guest = other.open_session(owner.id()).await.expect("the session");
        let command = start(&world, &guest, "exec sleep 300").await;
        let waiting = waits_elsewhere(&world, &command).await;
        kill_watchers(&world).await;
        assert_eq!(waiting.await.end, Some(End::Lost));
        drop(owner);
    });
}

/// Waits for a command as another process does, from now on.
async fn waits_elsewhere(world: &World, command: &Command) -> impl Future<Output = outlast::Snapshot> {
    let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
    let session = other.open_session(command.session().id()).await.expect("the session");
    let command = session.get(command.id()).await.expect("a look").expect("the command");
    let waiting = tokio::spawn(async move {
        let options = WaitOptions { timeout: Some(SOON), ..WaitOptions::default() };
        session.wait(&[command], options).await.expect("a wait").commands.remove(0).snapshot
    });
    async { waiting.await.expect("no panic") }
}

/// A keeper that was killed is replaced by the owner, so that what runs ends with its session all the same.
///
/// Covers: K9
#[test]
fn k9_an_owner_replaces_a_keeper_that_was_killed() {
    in_world("k9_replaced", async |world: World| {
        let owner = world.session().await;
        let command = start(&world, &owner, "exec sleep 300").await;
        for _ in 0..2 {
            let first = crate::task_seen::keeper(&world).expect("a keeper");
            kill(first);
            soon("another keeper is there", async || crate::task_seen::keeper(&world).is_some_and(|pid| pid != first))
                .await;
        }
        assert_eq!(command.snapshot().await.expect("a look").phase, Phase::Running);
        let report = owner.end("human", SOON, false).await.expect("an end");
        assert_eq!(report.commands.iter().map(|one| one.id).collect::<Vec<_>>(), [*command.id()]);
    });
}

pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("a signal");
}

#[test]
fn a_supervisor_that_is_stopped_is_named_within_the_bound() {
    in_world("stopped", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "echo there; exec sleep 300").await;
        soon("its output", async || command.snapshot().await.expect("a look").output.bytes > 0).await;
        let pid = supervisor(&session, &command);
        signal(pid, rustix::process::Signal::STOP);
        let began = std::time::Instant::now();
        let looked = command.snapshot().await.expect("a look");
        assert!(looked.note.as_ref().is_some_and(|note| note.contains(&pid.to_string())), "{looked:?}");
        assert_eq!((looked.phase, looked.output.tail.as_slice()), (Phase::Running, &b"there\n"[..]));
        assert_eq!(session.list(false).await.expect("a list").len(), 1);
        assert!(began.elapsed() < Duration::from_secs(5));
        let options = StopOptions { grace: Some(Duration::ZERO), ..StopOptions::by("model") };
        let stopped = command.stop(options).await.expect("a stop");
        assert!(!stopped.verified && !stopped.alive.is_empty(), "{stopped:?}");
        let doctor = world.runtime.doctor().await.expect("a look at the machine");
        let bad: Vec<_> = doctor.findings.iter().filter(|finding| !finding.ok).map(|finding| &finding.name).collect();
        assert_eq!(bad, [&command.id().to_string()], "{:?}", doctor.findings);
        signal(pid, rustix::process::Signal::CONT);
        // The stop was accepted all the same.
        session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
        assert_eq!(command.snapshot().await.expect("a look").end.map(|end| end.kind()), Some("stopped"));
    });
}

/// Covers: A6
#[test]
fn a6_a_start_that_waits_for_a_supervisor_can_be_cancelled() {
    in_world("queued", async |world: World| {
        let session = world.session().await;
        crate::world::finished(session.run_to_end(world.shell("true")).await.expect("a run"));
        let watchers = processes_of(&world.state_dir);
        watchers.iter().for_each(|pid| signal(*pid, rustix::process::Signal::STOP));
        let cancel =
            async { drop(tokio::time::timeout(Duration::from_millis(100), std::future::pending::<()>()).await) };
        let began = std::time::Instant::now();
        let outcome = session.run_until(world.shell("touch marker"), cancel).await;
        assert!(matches!(outcome, Err(outlast::Error::Cancelled)), "{outcome:?}");
        assert!(began.elapsed() < Duration::from_secs(2));
        watchers.iter().for_each(|pid| signal(*pid, rustix::process::Signal::CONT));
        crate::world::finished(session.run_to_end(world.shell("true")).await.expect("a later run"));
        assert!(!world.work_dir.join("marker").exists());
        assert!(session.list(true).await.expect("a list").is_empty());
    });
}
