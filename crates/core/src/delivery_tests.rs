//! Orders and races of telling, by table and against a model.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn command(n: u32) -> Subject {
    let id = CommandId::from_parts(1_700_000_000_000 + u64::from(n), 0, 1);
    Subject { id, alias: Some(Alias(n)) }
}

fn alive(_: &str) -> bool {
    true
}

fn dead(_: &str) -> bool {
    false
}

const TAKEN: LeaseOutcome = LeaseOutcome::Taken { redelivered: false };

/// Covers: G1, E9
#[test]
fn g1_one_claim_per_consumer() {
    let mut ledger = Ledger::default();
    let w1 = command(1);
    assert_eq!(ledger.pending("model", &[w1]), [w1.id]);
    assert_eq!(ledger.commit("model", w1, Via::Read, 5, None, alive), CommitOutcome::Committed);
    let told = Some(Via::Read);
    assert_eq!(ledger.commit("model", w1, Via::Wait, 6, None, alive), CommitOutcome::AlreadyTold { via: told });
    assert_eq!(ledger.lease("model", w1, "h", 7, alive), LeaseOutcome::AlreadyTold { via: told });
    assert!(ledger.pending("model", &[w1]).is_empty() && ledger.is_told("model", w1));
    assert_eq!(ledger.pending("human", &[w1]), [w1.id], "consumed for no other consumer");
}

/// Covers: G1
#[test]
fn g1_a_lease_and_a_read_race() {
    let mut ledger = Ledger::default();
    let w1 = command(1);
    assert_eq!(ledger.lease("model", w1, "a", 1, alive), TAKEN);
    assert_eq!(ledger.lease("model", w1, "b", 2, alive), LeaseOutcome::HeldBy("a".to_owned()));
    assert_eq!(ledger.lease("model", w1, "a", 2, alive), LeaseOutcome::HeldBy("a".to_owned()));
    assert_eq!(ledger.lease("human", w1, "b", 2, alive), TAKEN);
    assert_eq!(ledger.commit("model", w1, Via::Read, 3, None, alive), CommitOutcome::HeldBy("a".to_owned()));
    assert_eq!(ledger.pending("model", &[w1]), [w1.id], "a lease is not a commit");
    assert_eq!(ledger.commit("model", w1, Via::Inbox, 4, Some("a"), alive), CommitOutcome::Committed);
    assert_eq!(
        ledger.commit("model", w1, Via::Read, 5, None, alive),
        CommitOutcome::AlreadyTold { via: Some(Via::Inbox) }
    );
}

/// Covers: G1
#[test]
fn g1_a_lease_whose_holder_died_is_offered_again() {
    let mut ledger = Ledger::default();
    let w1 = command(1);
    ledger.lease("model", w1, "a", 1, alive);
    let again = LeaseOutcome::Taken { redelivered: true };
    assert_eq!(ledger.lease("model", w1, "b", 2, dead), again);
    // The one who was thought dead comes too late.
    assert_eq!(ledger.commit("model", w1, Via::Task, 3, Some("a"), alive), CommitOutcome::HeldBy("b".to_owned()));
    ledger.release("model", w1.id, "a");
    assert_eq!(ledger.lease("model", w1, "c", 4, alive), LeaseOutcome::HeldBy("b".to_owned()));
    ledger.release("model", w1.id, "b");
    assert_eq!(ledger.lease("model", w1, "c", 4, alive), again, "the mark outlives a release");
    assert_eq!(ledger.commit("model", w1, Via::Task, 5, Some("c"), alive), CommitOutcome::Committed);
    assert!(ledger.consumers["model"].leases.is_empty());

    // A release by one who never showed it leaves no mark, and a read may follow a dead holder.
    let w2 = command(2);
    ledger.lease("model", w2, "a", 1, alive);
    ledger.release("model", w2.id, "a");
    assert_eq!(ledger.lease("model", w2, "b", 2, alive), TAKEN);
    assert_eq!(ledger.commit("model", w2, Via::Read, 3, None, dead), CommitOutcome::Committed);
}

/// Covers: T2
#[test]
fn t2_each_commit_is_traced_once() {
    let mut ledger = Ledger::default();
    let (w1, w2) = (command(1), command(2));
    ledger.commit("model", w1, Via::Wait, 1, None, alive);
    ledger.commit("human", w1, Via::Inbox, 2, None, alive);
    ledger.lease("model", w2, "a", 3, alive);
    let open: Vec<(&str, Via)> = ledger.untraced().map(|one| (one.consumer, one.commit.via)).collect();
    assert_eq!(open, [("human", Via::Inbox), ("model", Via::Wait)]);
    ledger.mark_traced("model", w1.id);
    ledger.mark_traced("nobody", w1.id);
    assert_eq!(ledger.untraced().count(), 1);
}

/// Covers: T2
#[test]
fn t2_words_and_form_of_the_stored_ledger() {
    let mut ledger = Ledger::default();
    ledger.lease("model", command(2), "holder", 7, alive);
    ledger.commit("model", command(1), Via::Read, 5, None, alive);
    let (one, two) = (command(1).id, command(2).id);
    let json = serde_json::to_string(&ledger).expect("plain values");
    assert_eq!(
        json,
        format!(
            r#"{{"schema":"outlast.ledger/1","consumers":{{"model":{{"through":0,"leases":{{"{two}":{{"holder":"holder","at_ms":7,"redelivered":false}}}},"commits":{{"{one}":{{"via":"read","at_ms":5,"traced":false}}}}}}}}}}"#
        )
    );
    let newer = json.replace("\"at_ms\":5", "\"at_ms\":5,\"mood\":\"new\"");
    assert_eq!(serde_json::from_str::<Ledger>(&newer).expect("unknown keys are passed over"), ledger);
    let words = [Via::Read, Via::Wait, Via::Stop, Via::Task, Via::Note, Via::Hook, Via::Inbox];
    assert_eq!(
        serde_json::to_string(&words).expect("plain values"),
        r#"["read","wait","stop","task","note","hook","inbox"]"#
    );
}

/// Covers: G1, L1
#[test]
fn g1_the_ledger_stays_small() {
    let mut ledger = Ledger::default();
    let all: Vec<(Alias, CommandId, bool)> = (1..=10_000).map(|n| (Alias(n), command(n).id, n % 10 != 0)).collect();
    for n in 1..=10_000 {
        if n % 10 != 0 {
            ledger.commit("model", command(n), Via::Read, 1, None, alive);
        }
    }
    ledger.compact("model", &all);
    assert_eq!(ledger.consumers["model"].through, 0, "no line of the trace is lost by it");
    let ids: Vec<CommandId> = all.iter().map(|(_, id, _)| *id).collect();
    ids.iter().for_each(|id| ledger.mark_traced("model", *id));
    ledger.compact("model", &all);
    assert_eq!(ledger.consumers["model"].through, 10_000);
    assert!(serde_json::to_string(&ledger).expect("plain values").len() < 100);
    assert!(ledger.pending("model", &[command(1), command(9_999)]).is_empty());
    assert_eq!(ledger.commit("model", command(1), Via::Read, 2, None, alive), CommitOutcome::AlreadyTold { via: None });
}

/// A command that started long before, and is demoted only now, has a smaller id than those that were
/// told; its alias is higher.
#[test]
fn g1_a_late_demotion_is_not_taken_for_told() {
    let mut ledger = Ledger::default();
    let late = Subject { id: command(1).id, alias: Some(Alias(2)) };
    let early = Subject { id: command(9).id, alias: Some(Alias(1)) };
    ledger.commit("model", early, Via::Read, 1, None, alive);
    ledger.mark_traced("model", early.id);
    ledger.compact("model", &[(Alias(1), early.id, true)]);
    assert_eq!(ledger.consumers["model"].through, 1);
    assert_eq!(ledger.pending("model", &[late, early]), [late.id]);
    let damaged = Subject { alias: None, ..early };
    assert_eq!(ledger.pending("model", &[damaged]), [early.id], "rather told twice than never");
}

/// Covers: G1
#[test]
fn g1_a_gap_of_aliases_stops_the_watermark() {
    let mut ledger = Ledger::default();
    for n in [1, 3] {
        ledger.commit("model", command(n), Via::Read, 1, None, alive);
        ledger.mark_traced("model", command(n).id);
    }
    let given = [(Alias(1), command(1).id, true), (Alias(3), command(3).id, true)];
    ledger.compact("model", &given);
    assert_eq!(ledger.consumers["model"].through, 1);
    assert!(ledger.is_told("model", command(3)) && !ledger.is_told("model", command(2)));
}

/// What a random walk knows about each consumer without looking into the ledger.
#[derive(Default)]
struct Model {
    told: BTreeSet<CommandId>,
    holder: BTreeMap<CommandId, String>,
    shown_by_the_dead: BTreeSet<CommandId>,
}

/// A small generator of numbers (Marsaglia, xorshift64), so that a walk can be repeated by its seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Covers: G1, E9, T2
#[test]
fn g1_random_walks_agree_with_a_model() {
    for seed in 1..=50 {
        walk(seed);
    }
}

fn walk(seed: u64) {
    const COMMANDS: u32 = 6;
    let mut numbers = Numbers(seed);
    let mut ledger = Ledger::default();
    let mut models: [(&str, Model); 2] = [("model", Model::default()), ("human", Model::default())];
    let mut living: BTreeSet<String> = BTreeSet::new();
    for step in 0..400 {
        let (consumer, model) = &mut models[numbers.below(2) as usize];
        let subject = command(1 + numbers.below(u64::from(COMMANDS)) as u32);
        let id = subject.id;
        let is_alive = |holder: &str| living.contains(holder);
        let held = model.holder.get(&id).filter(|holder| living.contains(*holder)).cloned();
        let told = model.told.contains(&id);
        match numbers.below(6) {
            0 => {
                let holder = format!("claim {step}");
                let outcome = ledger.lease(consumer, subject, &holder, step, is_alive);
                match (told, &held) {
                    (true, _) => assert!(matches!(outcome, LeaseOutcome::AlreadyTold { .. })),
                    (_, Some(held)) => assert_eq!(outcome, LeaseOutcome::HeldBy(held.clone())),
                    (false, None) => {
                        if model.holder.contains_key(&id) {
                            model.shown_by_the_dead.insert(id);
                        }
                        let redelivered = model.shown_by_the_dead.contains(&id);
                        assert_eq!(outcome, LeaseOutcome::Taken { redelivered }, "seed {seed}");
                        model.holder.insert(id, holder.clone());
                        living.insert(holder);
                    }
                }
            }
            1 | 2 => {
                let by_holder = numbers.below(2) == 0;
                let holder = held.clone().filter(|_| by_holder);
                let outcome = ledger.commit(consumer, subject, Via::Read, step, holder.as_deref(), is_alive);
                match (told, held) {
                    (true, _) => assert!(matches!(outcome, CommitOutcome::AlreadyTold { .. })),
                    (_, Some(held)) if !by_holder => assert_eq!(outcome, CommitOutcome::HeldBy(held)),
                    _ => {
                        assert_eq!(outcome, CommitOutcome::Committed, "seed {seed}");
                        model.told.insert(id);
                        model.holder.remove(&id);
                    }
                }
            }
            3 => {
                if let Some(holder) = held {
                    ledger.release(consumer, id, &holder);
                    model.holder.remove(&id);
                }
            }
            4 => {
                if let Some(holder) = held {
                    living.remove(&holder);
                }
            }
            _ => {
                let open: Vec<(String, CommandId)> =
                    ledger.untraced().map(|one| (one.consumer.to_owned(), one.id)).collect();
                open.iter().for_each(|(consumer, id)| ledger.mark_traced(consumer, *id));
                let all: Vec<_> = (1..=COMMANDS).map(|n| (Alias(n), command(n).id, true)).collect();
                ledger.compact(consumer, &all);
                let json = serde_json::to_string(&ledger).expect("plain values");
                ledger = serde_json::from_str(&json).expect("as written");
            }
        }
        for (consumer, model) in &models {
            let all: Vec<Subject> = (1..=COMMANDS).rev().map(command).collect();
            let expected: Vec<CommandId> =
                (1..=COMMANDS).map(|n| command(n).id).filter(|id| !model.told.contains(id)).collect();
            assert_eq!(ledger.pending(consumer, &all), expected, "seed {seed}, step {step}");
        }
    }
}

/// Covers: O8
#[test]
fn o8_lines_are_heard_once_and_in_their_time() {
    let mut ledger = Ledger::default();
    let [one, two] = [1, 2].map(|n| command(n).id);
    assert_eq!(ledger.heard("a", one), Heard::default());
    assert!(Heard::default().is_due(0));
    let heard = Heard { through: 10, at_ms: Some(5_000) };
    assert!(ledger.hear("a", one, 0, heard, |_| true));
    assert_eq!((ledger.heard("a", one), ledger.heard("b", one)), (heard, Heard::default()));
    // Whoever looked at the same lines meanwhile was too late.
    assert!(!ledger.hear("a", one, 0, Heard { through: 20, at_ms: None }, |_| true));
    for (now_ms, due) in [(5_000, false), (14_999, false), (15_000, true), (4_999, true)] {
        assert_eq!(heard.is_due(now_ms), due, "{now_ms}");
    }
    assert!(ledger.hear("a", two, 0, heard, |id| id != one));
    assert_eq!(ledger.heard("a", one), Heard::default(), "it does not run any more");
}
