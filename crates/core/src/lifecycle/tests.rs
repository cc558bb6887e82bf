//! Truth tables of the life of a command.

use std::time::Duration;

use super::*;
use crate::id::{CommandId, SessionId};
use crate::request::{Delivery, Lifetime, Limits, LogCap, OsText, OverCap, Stdin, Streams};

const MS: Duration = Duration::from_millis(1);

fn request() -> Request {
    Request {
        id: CommandId::from_parts(1, 0, 0),
        session: SessionId::from_parts(1, 0, 0),
        argv: vec![OsText::from("true")],
        cwd: OsText::from("/"),
        env: Vec::new(),
        stdin: Stdin::Null,
        streams: Streams::Merged,
        grace_ms: Some(100),
        background: false,
        can_be_told: true,
        follow: false,
        limits: Limits::default(),
        stop_grace_ms: 2000,
        lifetime: Lifetime::Session,
        survivors: Survivors::Keep,
        cap: LogCap::default(),
        over_cap: OverCap::Drop,
        hold: 16_384,
        label: None,
        consumer: "model".into(),
        trust: crate::origin::Trust::Trusted,
        delivery: Delivery::Task,
        turn: None,
        parent_command: None,
        parent_session: None,
        conceal: None,
        trace_all: false,
        notify: Vec::new(),
        track_changes: None,
        umask: None,
        inherited: Vec::new(),
    }
}

fn stop_by(by: &str) -> Event {
    Event::Stop { cause: Cause::Stop { by: by.into() }, grace: None }
}

fn exit(code: i32, tree_left: bool) -> Event {
    Event::LeaderReaped { fact: Fact::Exited(code), tree_left }
}

/// Runs a script of (milliseconds, event, expected actions).
fn check(request: &Request, script: &[(u32, Event, &[Action])]) -> Life {
    let mut life = Life::begin(request, Duration::ZERO);
    for (at, event, expected) in script {
        assert_eq!(life.step(event.clone(), MS * *at), *expected, "at {at} ms, {event:?}, {life:?}");
    }
    life
}

use Action::{Close, Demote, Record, Signal, Sweep};

/// Covers: B1, A1
#[test]
fn b1_whichever_is_seen_first_wins() {
    let life =
        check(&request(), &[(50, Event::Tick, &[]), (60, exit(0, false), &[Record, Close]), (100, Event::Tick, &[])]);
    assert!(!life.is_demoted());
    let by = DemotedBy::Grace;
    let life = check(&request(), &[(100, Event::Tick, &[Demote(by)]), (101, exit(3, false), &[Record, Close])]);
    assert!(life.is_demoted());
    assert_eq!(life.end(None), Some(End::Exited { code: 3 }));
}

/// Covers: A3, A5
#[test]
fn a3_without_a_grace_there_is_no_clock() {
    let mut without = request();
    without.grace_ms = None;
    assert_eq!(Life::begin(&without, Duration::ZERO).deadline(), None);
    let mut untold = request();
    untold.can_be_told = false;
    check(&untold, &[(1000, Event::Tick, &[])]);
}

/// Covers: A4
#[test]
fn a4_a_refused_demotion_is_not_tried_again_by_the_clock() {
    let mut life = check(&request(), &[(100, Event::Tick, &[Demote(DemotedBy::Grace)])]);
    life.refuse_demotion();
    assert_eq!(life.step(Event::Tick, MS * 200), []);
    assert!(!life.is_demoted());
}

/// Covers: F1, F2
#[test]
fn f1_term_then_grace_then_kill_then_sweep() {
    let mut plain = request();
    plain.grace_ms = None;
    let life = check(
        &plain,
        &[
            (10, stop_by("model"), &[Signal]),
            (2009, Event::Tick, &[]),
            (2010, Event::Tick, &[Sweep]),
            (2015, Event::Tick, &[Sweep]),
            (2016, Event::LeaderReaped { fact: Fact::Signaled(9), tree_left: true }, &[]),
            (2020, Event::TreeEmpty, &[Record, Close]),
        ],
    );
    assert_eq!(life.end(None), Some(End::Stopped { by: "model".into(), fact: Some(Fact::Signaled(9)) }));
}

/// Covers: F1
#[test]
fn f1_the_leaders_death_does_not_end_the_escalation() {
    let mut plain = request();
    plain.grace_ms = None;
    check(
        &plain,
        &[
            (0, stop_by("x"), &[Signal]),
            (5, Event::LeaderReaped { fact: Fact::Signaled(15), tree_left: true }, &[]),
            (1999, Event::Tick, &[]),
            (2000, Event::Tick, &[Sweep]),
            (2001, Event::TreeEmpty, &[Record, Close]),
        ],
    );
}

/// Covers: D4, F3, F11
#[test]
fn d4_a_stop_after_the_reap_leaves_the_end_as_it_is() {
    let life = check(
        &request(),
        &[(5, exit(0, true), &[]), (6, stop_by("model"), &[Signal]), (9, Event::TreeEmpty, &[Record, Close])],
    );
    assert_eq!(life.end(None), Some(End::Exited { code: 0 }));
}

/// Covers: D4, F6, K11
#[test]
fn k11_stopping_until_the_tree_is_gone() {
    let mut life = check(&request(), &[(5, stop_by("model"), &[Signal])]);
    assert_eq!(life.phase(), Phase::Stopping);
    life.step(Event::LeaderReaped { fact: Fact::Signaled(15), tree_left: true }, MS * 6);
    assert_eq!(life.phase(), Phase::Stopping);
    life.step(Event::TreeEmpty, MS * 7);
    assert_eq!(life.phase(), Phase::Ended);
}

/// Covers: Q2, Q3
#[test]
fn q2_kept_survivors_after_a_drain_that_data_prolongs_up_to_a_bound() {
    let mut life = check(&request(), &[(0, exit(0, true), &[]), (40, Event::Output, &[]), (60, Event::Tick, &[])]);
    assert_eq!(life.step(Event::Tick, MS * 90), [Record]);
    assert_eq!((life.stage(), life.phase()), (Stage::Kept, Phase::Ended));
    assert_eq!(life.step(Event::TreeEmpty, MS * 500), [Close]);

    let mut chatty = Life::begin(&request(), Duration::ZERO);
    chatty.step(exit(0, true), Duration::ZERO);
    let mut recorded = Vec::new();
    for at in 0..210 {
        chatty.step(Event::Output, MS * 10 * at);
        recorded.extend(chatty.step(Event::Tick, MS * 10 * at).into_iter().filter(|a| *a == Record).map(|_| at * 10));
    }
    assert_eq!(recorded, [2000]);
}

/// Covers: Q2, Q4
#[test]
fn q2_the_policy_kill_ends_survivors() {
    let mut kill = request();
    kill.survivors = Survivors::Kill;
    kill.grace_ms = None;
    let life = check(
        &kill,
        &[
            (0, exit(0, true), &[]),
            (50, Event::Tick, &[Signal]),
            (2050, Event::Tick, &[Sweep]),
            (2051, Event::TreeEmpty, &[Record, Close]),
        ],
    );
    assert!(life.killed_survivors());
    assert_eq!(life.end(None), Some(End::Exited { code: 0 }));
}

/// Covers: P1, P2, P4
#[test]
fn p1_every_byte_starts_the_idle_limit_anew_and_the_first_clock_wins() {
    let mut limited = request();
    limited.grace_ms = None;
    limited.limits = Limits { wall_ms: Some(900), idle_ms: Some(400), ..Limits::default() };
    let life = check(
        &limited,
        &[
            (300, Event::Output, &[]),
            (600, Event::Tick, &[]),
            (700, Event::Tick, &[Signal]),
            (701, exit(0, false), &[Record, Close]),
        ],
    );
    assert_eq!(life.end(None), Some(End::TimedOut { clock: Clock::Idle, fact: Some(Fact::Exited(0)) }));
    let mut life = Life::begin(&limited, Duration::ZERO);
    for at in 1..10 {
        life.step(Event::Output, MS * 100 * at);
    }
    assert_eq!(life.step(Event::Tick, MS * 950), [Signal]);
    assert_eq!(life.cause(), Some(&Cause::Clock(Clock::Wall)));
}

/// Covers: F5, P7
#[test]
fn p7_a_limit_is_named_from_kernel_evidence_only_and_a_stop_drops_it() {
    let stop = Cause::Stop { by: "human".into() };
    let cases = [
        (None, Fact::Signaled(24), None, "limit"),
        (None, Fact::Signaled(25), None, "limit"),
        (None, Fact::Signaled(9), Some(Resource::Memory), "limit"),
        (None, Fact::Exited(1), Some(Resource::Pids), "limit"),
        (None, Fact::Exited(3), None, "exited"),
        (None, Fact::Signaled(9), None, "signaled"),
        (Some(&stop), Fact::Signaled(24), Some(Resource::Memory), "stopped"),
        (Some(&Cause::SessionEnd), Fact::Signaled(15), None, "abandoned"),
    ];
    for (cause, fact, evidence, kind) in cases {
        assert_eq!(end_of(cause, fact, evidence).kind(), kind, "{cause:?} {fact:?}");
    }
}

/// Covers: B4, B5
#[test]
fn b4_asking_twice_or_after_the_end_changes_nothing() {
    let by = DemotedBy::CallerGone;
    check(&request(), &[(1, Event::Demote(by), &[Demote(by)]), (2, Event::Demote(by), &[])]);
    check(&request(), &[(1, exit(0, false), &[Record, Close]), (2, Event::Demote(by), &[])]);
}

#[test]
fn a_detached_command_ends_by_its_time_to_live() {
    let mut detached = request();
    detached.grace_ms = None;
    detached.lifetime = Lifetime::Detached { ttl_ms: 1000 };
    let life = check(&detached, &[(999, Event::Tick, &[]), (1000, Event::Tick, &[Signal])]);
    assert_eq!(life.cause(), Some(&Cause::Clock(Clock::Ttl)));
}

#[test]
fn a_stop_without_grace_kills_at_once_and_a_second_stop_can_shorten() {
    let now = Event::Stop { cause: Cause::Stop { by: "x".into() }, grace: Some(Duration::ZERO) };
    check(&request(), &[(1, now.clone(), &[Sweep])]);
    let life = check(&request(), &[(1, stop_by("first"), &[Signal]), (2, now, &[Sweep])]);
    assert_eq!(life.cause(), Some(&Cause::Stop { by: "first".into() }));
}

/// Covers: K9
#[test]
fn k9_what_the_death_of_a_supervisor_sends_is_no_end_of_its_own() {
    let cases = [
        (None, "stopped"),
        (Some(Fact::Signaled(1)), "stopped"),
        (Some(Fact::Signaled(9)), "stopped"),
        (Some(Fact::Signaled(13)), "stopped"),
        (Some(Fact::Signaled(11)), "signaled"),
        (Some(Fact::Exited(5)), "exited"),
    ];
    for (fact, kind) in cases {
        assert_eq!(end_without_supervisor(fact).kind(), kind, "{fact:?}");
    }
}
