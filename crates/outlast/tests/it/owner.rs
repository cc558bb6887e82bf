//! Several front ends of one session: a new owner, and many at a time.

use std::time::Duration;

use outlast::core::record::Phase;
use outlast::{SessionOptions, StopOptions, Told, Via, WaitOptions};

use crate::lost::{signal, supervisor};
use crate::world::{World, adopted, config, in_world, start};

/// Covers: M7, J2
#[test]
fn m7_a_new_owner_adopts_everything_but_what_does_not_answer() {
    in_world("m7", async |world: World| {
        let session = world.session().await;
        let mut commands = Vec::new();
        for line in ["exec sleep 300", "exit 3", "exec sleep 300", "exit 4", "exec sleep 300"] {
            commands.push(start(&world, &session, line).await);
        }
        let ended = [commands[1].clone(), commands[3].clone()];
        session.wait(&ended, WaitOptions::default()).await.expect("a wait");
        let (id, ids) = (*session.id(), commands.iter().map(|one| *one.id()).collect::<Vec<_>>());
        let blocked = supervisor(&session, &commands[2]);
        signal(blocked, rustix::process::Signal::STOP);
        drop((session, commands, ended));

        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let adopted = adopted(&other, &id).await;
        let listed = adopted.list(true).await.expect("a list");
        assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), ids);
        let aliases: Vec<_> = listed.iter().map(|one| one.alias.expect("an alias").to_string()).collect();
        assert_eq!(aliases, ["w1", "w2", "w3", "w4", "w5"]);
        let phases = [Phase::Running, Phase::Ended, Phase::Running, Phase::Ended, Phase::Running];
        assert_eq!(listed.iter().map(|one| one.phase).collect::<Vec<_>>(), phases);
        // The one behind the blocked door is said to be, and hides no other.
        for one in listed.iter().filter(|one| one.phase == Phase::Running) {
            let said = one.note.as_ref().is_some_and(|note| note.contains(&blocked.to_string()));
            assert_eq!(said, one.id == ids[2], "{:?}", one.note);
        }
        let findings = other.doctor().await.expect("a look at the machine").findings;
        let bad: Vec<_> = findings.iter().filter(|finding| !finding.ok).map(|finding| &finding.name).collect();
        assert_eq!(bad, [&ids[2].to_string()], "{findings:?}");
        let pending = adopted.pending("model").await.expect("pending");
        assert_eq!(pending.iter().map(|one| one.snapshot.id).collect::<Vec<_>>(), [ids[1], ids[3]]);
        let codes: Vec<_> = pending.iter().map(|one| one.snapshot.exit_code).collect();
        assert_eq!(codes, [Some(3), Some(4)]);
        for id in [ids[0], ids[4]] {
            let command = adopted.get(&id).await.expect("a look").expect("the command");
            assert!(command.stop(StopOptions::by("model")).await.expect("a stop").verified);
        }

        signal(blocked, rustix::process::Signal::CONT);
        let command = adopted.get(&ids[2]).await.expect("a look").expect("the command");
        assert!(command.stop(StopOptions::by("model")).await.expect("a stop").verified);
        let next = start(&world, &adopted, "true").await;
        adopted.wait(std::slice::from_ref(&next), WaitOptions::default()).await.expect("a wait");
        let alias = next.snapshot().await.expect("a look").alias.expect("an alias");
        assert_eq!(alias.to_string(), "w6", "no alias is given twice");
    });
}

/// Covers: M8, S5
#[test]
fn m8_two_front_ends_never_wait_for_each_other_for_ever() {
    in_world("m8", async |world: World| {
        let options = SessionOptions { context: "project".into(), ..SessionOptions::default() };
        let owner = world.runtime.create_session(options).await.expect("a session");
        let id = *owner.id();
        let second = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let guest = second.open_session(&id).await.expect("the session");
        let tasks = (0..32).map(|number| {
            let (session, request) = match number % 2 {
                0 => (owner.clone(), world.shell("echo out; exit 3")),
                _ => (guest.clone(), world.shell("echo out; exit 4")),
            };
            let other = if number % 2 == 0 { guest.clone() } else { owner.clone() };
            tokio::spawn(async move {
                let outlast::Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else {
                    panic!("it ended")
                };
                let command = demotion.command;
                other.list(true).await.expect("a list");
                session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
                // Ledger, trace, aliases and leases, from both sides at once.
                let looking = session.clone();
                let look = tokio::spawn(async move {
                    looking.runtime().reconcile(looking.id(), None, "human").await.expect("a look back");
                });
                let told = other.commit("model", command.id(), Via::Read).await.expect("a commit");
                assert_eq!(told, Told::Now);
                look.await.expect("a task");
                drop(other.lease("hook").await.expect("a lease"));
                session.trace().await.expect("a trace");
            })
        });
        let all = async {
            for task in tasks.collect::<Vec<_>>() {
                task.await.expect("a task");
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("no deadlock");
        let lines = owner.trace().await.expect("a trace");
        assert_eq!(lines.iter().filter(|line| line.kind == "completed").count(), 32);
        for session in [&owner, &guest] {
            assert!(session.pending("model").await.expect("pending").is_empty());
            assert_eq!(session.pending("human").await.expect("pending").len(), 32);
        }
    });
}
