//! Completions: told once to each consumer.

use outlast::core::id::CommandId;
use outlast::{
    CompletionGuard, Delivery, Lane, Origin, Outcome, Provenance, Reach, Session, SessionOptions, Told, Trust, Via,
    WaitOptions,
};

use crate::world::{World, config, in_world, soon, start};

/// Covers: G1
#[test]
fn g1_each_order_tells_once() {
    in_world("g1", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "exit 3").await;
        session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
        // A wait without a consumer tells nobody; looking changes nothing.
        for _ in 0..2 {
            assert_eq!(session.pending("model").await.expect("pending").len(), 1);
        }
        let mut leased = session.lease("model").await.expect("a lease");
        assert_eq!(leased.len(), 1);
        assert_eq!(leased[0].completion().snapshot.exit_code, Some(3));
        assert!(session.lease("model").await.expect("a second lease").is_empty(), "it is being told");
        assert_eq!(session.commit("model", command.id(), Via::Read).await.expect("a commit"), Told::Elsewhere);
        // Given back, it is offered again.
        leased.clear();
        let leased = session.lease("model").await.expect("a lease").pop().expect("offered again");
        assert_eq!(leased.commit(Via::Inbox).await.expect("a commit"), Told::Now);
        let before = Told::Before { via: Some(Via::Inbox) };
        let read = session.commit("model", command.id(), Via::Read).await.expect("a commit");
        assert!(read == before || read == Told::Before { via: None }, "{read:?}");
        assert!(session.pending("model").await.expect("pending").is_empty());
        assert_eq!(session.commit("human", command.id(), Via::Read).await.expect("a commit"), Told::Now);
        let completed = session.trace().await.expect("a trace").into_iter().filter(|line| line.kind == "completed");
        let consumers: Vec<_> = completed.filter_map(|line| line.consumer).collect();
        assert_eq!(consumers, ["model", "human"]);
    });
}

/// Covers: G1, E9
#[test]
fn g1_a_read_against_a_lease_delivers_once() {
    in_world("g1-race", async |world: World| {
        let session = world.session().await;
        for round in 0..100 {
            let command = start(&world, &session, "true").await;
            session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
            let (reader, id) = (session.clone(), *command.id());
            let read = tokio::spawn(async move { reader.commit("model", &id, Via::Read).await.expect("a commit") });
            let leaser = session.clone();
            let lease = tokio::spawn(async move {
                let mut told = Vec::new();
                for guard in leaser.lease("model").await.expect("a lease") {
                    told.push(guard.commit(Via::Inbox).await.expect("a commit"));
                }
                told
            });
            let mut told = lease.await.expect("the lease");
            told.push(read.await.expect("the read"));
            let delivered = told.iter().filter(|told| **told == Told::Now).count();
            assert_eq!(delivered, 1, "round {round}: {told:?}");
            assert!(session.pending("model").await.expect("pending").is_empty());
        }
        assert_eq!(session.pending("human").await.expect("pending").len(), 100);
    });
}

/// Covers: G11
#[test]
fn g11_whoever_saw_an_end_finds_the_completion() {
    in_world("g11", async |world: World| {
        let session = world.session().await;
        for _ in 0..100 {
            let command = start(&world, &session, "true").await;
            let options = WaitOptions { consumer: Some("model".into()), ..WaitOptions::default() };
            session.wait(std::slice::from_ref(&command), options).await.expect("a wait");
            let mut drained = session.lease("human").await.expect("a lease");
            assert_eq!(drained.len(), 1);
            drained.remove(0).commit(Via::Inbox).await.expect("a commit");
        }
    });
}

/// Covers: G6
#[test]
fn g6_an_end_wakes_an_idle_consumer() {
    in_world("g6", async |world: World| {
        let session = world.session().await;
        let waiting = session.clone();
        let woken = tokio::spawn(async move {
            let guards = waiting.completions("model").await.expect("completions");
            guards.iter().map(|guard| guard.completion().snapshot.id).collect::<Vec<_>>()
        });
        let command = start(&world, &session, "sleep 1").await;
        assert_eq!(woken.await.expect("the consumer"), [*command.id()]);
        soon("it is offered again", async || session.pending("model").await.expect("pending").len() == 1).await;
    });
}

/// Covers: G1
#[test]
fn g1_a_command_in_the_making_is_not_passed_over() {
    in_world("g1-making", async |world: World| {
        let session = world.session().await;
        let path = session.path().expect("a path");
        let through = |consumer: &str| {
            let text = std::fs::read_to_string(path.join("inbox.json")).expect("the ledger");
            let ledger: serde_json::Value = serde_json::from_str(&text).expect("the ledger");
            ledger["consumers"][consumer]["through"].as_u64().expect("a watermark")
        };
        let tell = async || {
            let command = start(&world, &session, "true").await;
            session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
            // Its supervisor is the last that could still have something to say.
            soon("its capture is closed", async || !command.snapshot().await.expect("a look").output.capturing).await;
            assert_eq!(session.commit("model", command.id(), Via::Read).await.expect("a commit"), Told::Now);
        };
        tell().await;
        // A supervisor has given an alias, and has not put the records in their place yet.
        let making = path.join("work/.new-wrk_01234567891270008000000000000000");
        std::fs::create_dir(&making).expect("a directory");
        let aliases = path.join("aliases");
        let given = std::fs::read_to_string(&aliases).expect("aliases") + "wrk_01234567891270008000000000000000\n";
        std::fs::write(&aliases, given).expect("aliases");
        tell().await;
        assert_eq!(through("model"), 1, "what is about to be there would count as told");
        // It will never be there.
        std::fs::remove_dir(&making).expect("our directory");
        tell().await;
        assert_eq!(through("model"), 4);
    });
}

/// Covers: G2
#[test]
fn g2_a_completion_is_trusted_as_far_as_who_asked() {
    in_world("g2", async |world: World| {
        let options = SessionOptions { context: "the project".into(), ..SessionOptions::default() };
        let session = world.runtime.create_session(options).await.expect("a session");
        let unknown = world.shell("true").provenance;
        for (asked, trust) in [
            (unknown, Trust::Untrusted),
            (Origin::User.into(), Trust::Trusted),
            (Origin::Event.into(), Trust::Untrusted),
            (Origin::Peer.into(), Trust::Untrusted),
            (Provenance::derive(Origin::Peer, Some(Trust::Trusted)), Trust::Trusted),
        ] {
            let request = outlast::RunRequest { provenance: asked, ..world.shell("true") };
            let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
            session.wait(&[demotion.command], WaitOptions::default()).await.expect("a wait");
            let guard = session.lease("model").await.expect("a lease").pop().expect("one completion");
            let told = guard.completion().provenance();
            assert_eq!((told.origin(), told.lane(), told.trust()), (Origin::Completion, Lane::Background, trust));
            assert_eq!(guard.completion().snapshot.trust, trust, "{asked:?}");
            assert_eq!(guard.completion().context, "the project");
            guard.commit(Via::Inbox).await.expect("a commit");
        }
    });
}

/// Covers: G2
#[test]
fn g2_a_command_whose_trust_is_on_no_record_is_not_trusted() {
    in_world("g2-unknown", async |world: World| {
        let session = world.session().await;
        let request = outlast::RunRequest { provenance: Origin::User.into(), ..world.shell("true") };
        let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
        let id = *demotion.command.id();
        session.wait(&[demotion.command], WaitOptions::default()).await.expect("a wait");
        let path = session.path().expect("a path").join(format!("work/{id}/exit.json"));
        let mut exit: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).expect("a record")).expect("JSON");
        assert_eq!(exit["trust"], "trusted");
        exit.as_object_mut().expect("an object").remove("trust");
        std::fs::write(&path, exit.to_string()).expect("a record");
        let pending = session.pending("model").await.expect("pending");
        assert_eq!(pending[0].provenance().trust(), Trust::Untrusted);
    });
}

/// Starts `true` with this form of delivery, and waits for its end.
async fn end_of(world: &World, session: &Session, delivery: Delivery) -> CommandId {
    let request = outlast::RunRequest { delivery, ..world.shell("true") };
    let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
    let id = *demotion.command.id();
    session.wait(&[demotion.command], WaitOptions::default()).await.expect("a wait");
    id
}

fn ids(guards: &[CompletionGuard]) -> Vec<CommandId> {
    guards.iter().map(|guard| guard.completion().snapshot.id).collect()
}

/// How each end was told to a consumer, by the trace.
async fn ways(session: &Session) -> Vec<(CommandId, String)> {
    let lines = session.trace().await.expect("a trace").into_iter().filter(|line| line.kind == "completed");
    lines.filter_map(|line| Some((line.id?, line.delivered_via?))).collect()
}

/// Covers: G14, T2
#[test]
fn g14_a_task_wakes() {
    in_world("g14-task", async |world: World| {
        let session = world.session().await;
        let task = end_of(&world, &session, Delivery::Task).await;
        let mut woken = session.completions("model").await.expect("completions");
        assert_eq!(ids(&woken), [task]);
        assert_eq!(woken.remove(0).commit(Via::Task).await.expect("a commit"), Told::Now);
        assert_eq!(ways(&session).await, [(task, "task".to_owned())]);
    });
}

/// Covers: G14, G6
#[test]
fn g14_a_note_is_handed_over_and_wakes_nobody() {
    in_world("g14-note", async |world: World| {
        let session = world.session().await;
        let note = end_of(&world, &session, Delivery::Note).await;
        let waiting = session.clone();
        let woken = tokio::spawn(async move { ids(&waiting.completions("model").await.expect("completions")) });
        let task = end_of(&world, &session, Delivery::Task).await;
        assert_eq!(woken.await.expect("the consumer"), [task], "only what was to wake it");
        let reach = Reach { queue: true, wake: false };
        assert_eq!(ids(&session.lease_pushed("model", reach).await.expect("a lease")), [note, task]);
    });
}

/// Covers: G14
#[test]
fn g14_poll_is_never_pushed_and_stays_pending_for_reads() {
    in_world("g14-poll", async |world: World| {
        let session = world.session().await;
        let poll = end_of(&world, &session, Delivery::Poll).await;
        let waiting = session.clone();
        let woken = tokio::spawn(async move { ids(&waiting.completions("model").await.expect("completions")) });
        let task = end_of(&world, &session, Delivery::Task).await;
        assert_eq!(woken.await.expect("the consumer"), [task]);
        let reach = Reach { queue: true, wake: true };
        assert_eq!(ids(&session.lease_pushed("model", reach).await.expect("a lease")), [task]);
        assert_eq!(session.pending("model").await.expect("pending").len(), 2);
        assert_eq!(ids(&session.lease("model").await.expect("a lease")), [poll, task], "who asks is told");
        assert_eq!(session.commit("model", &poll, Via::Read).await.expect("a commit"), Told::Now);
        // The records hold it, so it means the same to a program that did not start the command.
        let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
        let seen = other.open_session(session.id()).await.expect("the session");
        let pending = seen.pending("human").await.expect("pending");
        assert_eq!(
            pending.iter().map(|one| one.snapshot.delivery).collect::<Vec<_>>(),
            [Delivery::Poll, Delivery::Task]
        );
    });
}

/// Covers: G5
#[test]
fn g5_each_host_is_handed_what_it_can_receive() {
    in_world("g5", async |world: World| {
        let session = world.session().await;
        let mut all = Vec::new();
        for form in [Delivery::Task, Delivery::Note, Delivery::Poll] {
            all.push(end_of(&world, &session, form).await);
        }
        for (queue, wake, handed_over) in
            [(true, true, &all[..2]), (true, false, &all[..2]), (false, true, &[]), (false, false, &[])]
        {
            let guards = session.lease_pushed("model", Reach { queue, wake }).await.expect("a lease");
            assert_eq!(ids(&guards), handed_over, "queue {queue}, wake {wake}");
            drop(guards);
            assert_eq!(session.pending("model").await.expect("pending").len(), 3, "elsewhere it stays pending");
        }
    });
}

/// Covers: G10, G14, T2
#[test]
fn g10_all_ends_are_one_line_and_told_once() {
    in_world("g10", async |world: World| {
        let (session, other) = (world.session().await, world.session().await);
        assert!(session.note("model").await.expect("a note").is_none());
        let all = [end_of(&world, &session, Delivery::Task).await, end_of(&world, &session, Delivery::Note).await];
        let elsewhere = end_of(&world, &other, Delivery::Note).await;
        let polled = end_of(&world, &session, Delivery::Poll).await;
        // One that was not shown, because its reader went away, is offered again.
        drop(session.note("model").await.expect("a note").expect("two ends"));
        let note = session.note("model").await.expect("a note").expect("two ends");
        assert!(session.note("model").await.expect("a note").is_none(), "it is being told");
        let text = note.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(all.iter().all(|id| text.contains(&id.to_string())), "{text}");
        assert!(![elsewhere, polled].iter().any(|id| text.contains(&id.to_string())), "{text}");
        assert!(text.contains("exit code 0 (ok)") && !text.contains("true"), "{text}");
        assert_eq!(note.completions().map(|one| one.snapshot.id).collect::<Vec<_>>(), all);
        note.commit().await.expect("a commit");
        assert!(session.note("model").await.expect("a note").is_none(), "drained twice: empty");
        assert_eq!(ways(&session).await, all.map(|id| (id, "note".to_owned())));
        // Nobody else was told: not another consumer, not another session, not who asks for what is never pushed.
        assert_eq!(session.note("human").await.expect("a note").expect("two ends").completions().count(), 2);
        let theirs = other.note("model").await.expect("a note").expect("one end");
        assert!(theirs.text().contains(&elsewhere.to_string()), "{}", theirs.text());
        assert_eq!(ids(&session.lease("model").await.expect("a lease")), [polled]);
    });
}

/// Covers: J5
#[test]
fn j5_a_listener_hears_of_its_own_session_only() {
    in_world("j5", async |world: World| {
        let (one, other) = (world.session().await, world.session().await);
        let waiting = other.clone();
        let listener = tokio::spawn(async move {
            let guards = waiting.completions("model").await.expect("completions");
            guards.iter().map(|guard| guard.completion().snapshot.id).collect::<Vec<_>>()
        });
        let ours = start(&world, &one, "true").await;
        one.wait(std::slice::from_ref(&ours), WaitOptions::default()).await.expect("a wait");
        let theirs = start(&world, &other, "sleep 0.5").await;
        assert_eq!(listener.await.expect("the listener"), [*theirs.id()]);
        // Nobody listened to the first session: its end is still to be told.
        let pending = one.pending("model").await.expect("pending");
        assert_eq!(pending.iter().map(|one| one.snapshot.id).collect::<Vec<_>>(), [*ours.id()]);
    });
}

/// Covers: G1
#[test]
fn g1_a_claim_of_a_dead_process_is_offered_again_and_marked() {
    in_world("g1-dead", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "true").await;
        session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
        let guard = session.lease("model").await.expect("a lease").pop().expect("one completion");
        assert!(!guard.completion().redelivered);
        // As if this process had died before it committed: the start time is that of no process.
        let path = session.path().expect("a path").join("inbox.json");
        let text = std::fs::read_to_string(&path).expect("the ledger");
        let mut ledger: serde_json::Value = serde_json::from_str(&text).expect("the ledger");
        let leases = ledger["consumers"]["model"]["leases"].as_object_mut().expect("leases");
        let lease = leases.values_mut().next().expect("the lease");
        let holder = lease["holder"].as_str().expect("a holder").replacen(' ', " 1", 1);
        lease["holder"] = holder.into();
        std::fs::write(&path, ledger.to_string()).expect("the ledger");
        let again = session.lease("model").await.expect("a lease").pop().expect("offered again");
        assert!(again.completion().redelivered);
        drop(guard);
        assert_eq!(again.commit(Via::Inbox).await.expect("a commit"), Told::Now);
    });
}
