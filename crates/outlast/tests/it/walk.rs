//! A long walk of random calls by several consumers, compared at each step with a model that shares nothing with the
//! product: who is told what, who joins whom, what retention may take.

mod model;

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::time::Duration;

use outlast::core::ending::End;
use outlast::core::id::CommandId;
use outlast::core::retention::Limits;
use outlast::{
    Change, Claim, Command, CompletionGuard, Consumed, Error, ErrorKind, Outcome, ReceiptLease, RunEvent, RunRequest,
    Running, Runtime, Session, StopOptions, Told, TurnKind, Via, WaitOptions,
};

use crate::world::{World, adopted, config, executable, finished, in_world, soon};
use model::{Consumer, Expected, Model, Receipt};

const CONSUMERS: [Consumer; 3] = ["model", "human", "reviewer"];
const GATES: u64 = 3;
const STEPS: u64 = 150;
const SOON: Duration = Duration::from_secs(30);

/// Covers: G1, H2, H4, H7, I4, E9, N2, N3, N4, N5
#[test]
fn g1_a_random_walk_agrees_with_the_model() {
    walk("walk-1", seed().wrapping_add(1));
}

/// Covers: G1, H2, H4, H7, I4, M7, N3, N4
#[test]
fn g1_a_second_random_walk_agrees_with_the_model() {
    walk("walk-2", seed().wrapping_add(2));
}

/// What the walks are made from: OUTLAST_WALK_SEED, or the clock.
#[expect(clippy::disallowed_methods, reason = "the person who runs a test has no other way to it")]
fn seed() -> u64 {
    let by_chance = || std::time::UNIX_EPOCH.elapsed().map_or(1, |time| u64::from(time.subsec_nanos()));
    std::env::var("OUTLAST_WALK_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(by_chance)
}

fn walk(name: &str, seed: u64) {
    in_world(name, async |world: World| {
        let session = world.session().await;
        let World { state_dir, work_dir, runtime } = world;
        let world = World { state_dir, work_dir, runtime: runtime.clone() };
        let mut walk = Walk {
            dice: Dice(seed | 1),
            story: Story { seed, lines: Vec::new() },
            world,
            session,
            runtime,
            model: Model::default(),
            guards: Vec::new(),
            callers: Vec::new(),
            started: 0,
        };
        for _ in 0..STEPS {
            walk.step().await;
        }
        walk.arrive().await;
    });
}

/// Numbers that look random and can be had again (SplitMix64, Steele, Lea and Flood 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let bound = u64::try_from(of.len()).expect("few");
        (bound > 0).then(|| &of[usize::try_from(self.below(bound)).expect("few")])
    }
}

/// What was done so far, printed when the walk fails.
struct Story {
    seed: u64,
    lines: Vec<String>,
}

impl Drop for Story {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = self.lines.len().saturating_sub(40);
            eprintln!(
                "OUTLAST_WALK_SEED: this walk has {}; its last steps:\n{}",
                self.seed,
                self.lines[last..].join("\n")
            );
        }
    }
}

struct Walk {
    dice: Dice,
    story: Story,
    world: World,
    session: Session,
    runtime: Runtime,
    model: Model,
    /// Completions that are taken and not told yet.
    guards: Vec<(Consumer, CompletionGuard)>,
    /// Calls in the foreground that joined a command and still wait for it.
    callers: Vec<(Consumer, CommandId, Running)>,
    /// Processes that were started behind gates.
    started: usize,
}

impl Walk {
    async fn step(&mut self) {
        let consumer = *self.dice.one(&CONSUMERS).expect("consumers");
        let gate = self.dice.below(GATES);
        match self.dice.below(36) {
            0..=5 => self.start(gate, consumer).await,
            6 => self.short(consumer).await,
            7..=9 => self.join(gate, consumer).await,
            10 => self.leave(),
            11..=14 => self.open(gate).await,
            15 => self.stop(gate).await,
            16..=17 => self.lease(consumer).await,
            18..=19 => self.give_back(),
            20..=21 => self.hand_over().await,
            22..=23 => self.commit(consumer).await,
            24 => self.claim(consumer).await,
            25 => self.wait(consumer).await,
            26..=27 => self.retain().await,
            28 => self.replace().await,
            29..=30 => self.background(consumer).await,
            31..=33 => self.consume(consumer).await,
            _ => self.turn(consumer).await,
        }
        for consumer in CONSUMERS {
            let pending = self.session.pending(consumer).await.expect("what is pending");
            let pending: Vec<CommandId> = pending.iter().map(|one| one.snapshot.id).collect();
            assert_eq!(pending, self.model.pending(consumer), "what {consumer} was not told");
            let changed = self.session.pending_receipts(consumer).await.expect("what was changed");
            let changed: Vec<CommandId> = changed.iter().map(|one| one.id).collect();
            assert_eq!(changed, self.model.unconsumed(consumer), "what {consumer} does not know to be changed");
        }
    }

    fn note(&mut self, line: impl Into<String>) {
        self.story.lines.push(line.into());
    }

    fn gated(&self, gate: u64, consumer: Consumer) -> RunRequest {
        let line =
            format!("echo {gate} >>starts; echo here; while [ ! -e gate-{gate} ]; do sleep .01; done; exit {gate}");
        RunRequest { join: true, consumer: consumer.to_owned(), ..self.world.shell(&line) }
    }

    async fn command(&self, id: CommandId) -> Command {
        self.session.get(&id).await.expect("a look").expect("an id that stays valid")
    }

    /// Anything that was started, by chance.
    fn any(&mut self) -> Option<CommandId> {
        let all: Vec<CommandId> = self.model.commands.keys().copied().collect();
        self.dice.one(&all).copied()
    }

    async fn start(&mut self, gate: u64, consumer: Consumer) {
        let outcome = self.session.start(self.gated(gate, consumer)).await.expect("a start");
        let Outcome::Demoted(demotion) = outcome else { panic!("it ended before its gate was open") };
        let id = *demotion.command.id();
        self.note(format!("{consumer} starts gate {gate}: {id}, joined {}", demotion.joined));
        let behind = self.model.behind(gate);
        assert_eq!(demotion.joined, behind.is_some());
        match behind {
            Some(behind) => assert_eq!(id, behind, "it joined another one"),
            None => {
                self.model.began(id, Some(gate), consumer, false);
                self.started += 1;
            }
        }
    }

    /// One that ends in the foreground is nobody's completion.
    async fn short(&mut self, consumer: Consumer) {
        let request = RunRequest { consumer: consumer.to_owned(), ..self.world.shell("exit 9") };
        let outcome = self.session.run_to_end(request).await.expect("a run");
        let end = finished(outcome);
        self.note(format!("{consumer} ran {} in the foreground", end.exit.id));
        assert_eq!(end.exit.end, End::Exited { code: 9 });
    }

    async fn background(&mut self, consumer: Consumer) {
        let changes = self.dice.below(2) == 0;
        let receipt = format!("echo there; {} receipt a b; exit 8", executable().display());
        let line = if changes { &receipt } else { "echo there; exit 8" };
        let mut request = RunRequest { consumer: consumer.to_owned(), ..self.world.shell(line) };
        request.env.push(("OUTLAST_STATE_DIR".into(), self.world.state_dir.clone().into()));
        let outcome = self.session.start(request).await.expect("a start");
        let Outcome::Demoted(demotion) = outcome else { panic!("a background start came back with an end") };
        let id = *demotion.command.id();
        self.note(format!("{consumer} starts {id}, which ends by itself, changes {changes}"));
        self.model.began(id, None, consumer, changes);
        self.ends(id).await;
    }

    /// Waits for an end without telling it to anybody.
    async fn ends(&mut self, id: CommandId) {
        let options = WaitOptions { timeout: Some(SOON), ..WaitOptions::default() };
        let report = self.session.wait(&[self.command(id).await], options).await.expect("a wait");
        assert_eq!(report.end, outlast::WaitEnd::Met, "{id} did not end");
        self.model.ended(id);
    }

    async fn join(&mut self, gate: u64, consumer: Consumer) {
        let Some(behind) = self.model.behind(gate) else { return };
        let mut running = self.session.run(self.gated(gate, consumer)).await.expect("a run");
        let started = running.next().await.expect("an event");
        assert!(matches!(started, Some(RunEvent::Started { .. })), "{started:?}");
        self.note(format!("{consumer} joins {}", running.id()));
        assert!(running.joined() && *running.id() == behind);
        self.callers.push((consumer, behind, running));
    }

    fn leave(&mut self) {
        let bound = u64::try_from(self.callers.len()).expect("few");
        if bound > 0 {
            let (consumer, id, _) = self.callers.swap_remove(usize::try_from(self.dice.below(bound)).expect("few"));
            self.note(format!("{consumer} no longer waits for {id}"));
        }
    }

    /// Those who wait in the foreground hear the end, and are told by that if they say so.
    async fn callers_hear(&mut self, id: CommandId) {
        let (hear, still) = std::mem::take(&mut self.callers).into_iter().partition(|(_, of, _)| *of == id);
        self.callers = still;
        let hear: Vec<(Consumer, CommandId, Running)> = hear;
        for (consumer, _, mut running) in hear {
            let end = running.next().await.expect("an event");
            assert!(matches!(end, Some(RunEvent::Ended(_))), "{end:?}");
            if self.dice.below(4) > 0 {
                self.note(format!("{consumer} was shown the end of {id}"));
                running.told().await.expect("it is told");
                self.model.told(consumer, id);
            }
        }
    }

    async fn open(&mut self, gate: u64) {
        let Some(id) = self.model.behind(gate) else { return };
        self.note(format!("gate {gate} opens: {id} ends"));
        let path = self.world.work_dir.join(format!("gate-{gate}"));
        std::fs::write(&path, "").expect("a gate");
        self.ends(id).await;
        std::fs::remove_file(&path).expect("the gate");
        self.callers_hear(id).await;
    }

    async fn stop(&mut self, gate: u64) {
        let Some(id) = self.model.behind(gate) else { return };
        let others = self.callers.iter().filter(|(_, of, _)| *of == id).count();
        // Of one alone nobody can say that it is not the one who asks.
        let refused = others > 1;
        let force = self.dice.below(2) == 0;
        self.note(format!("stop {id}, force {force}, {others} wait"));
        let command = self.command(id).await;
        match command.stop(StopOptions { force, ..StopOptions::by("operator") }).await {
            Ok(_) => assert!(!refused || force, "{others} wait for {id} and were not asked"),
            Err(error) => {
                assert!(refused && !force, "{error}");
                assert!(
                    matches!(error, Error::OthersWait { others: n, .. } if n == u32::try_from(others).expect("few"))
                );
                assert_eq!(error.kind(), ErrorKind::Refused);
                return;
            }
        }
        self.ends(id).await;
        self.callers_hear(id).await;
    }

    async fn lease(&mut self, consumer: Consumer) {
        let guards = self.session.lease(consumer).await.expect("a lease");
        let taken: Vec<CommandId> = guards.iter().map(|guard| guard.completion().snapshot.id).collect();
        self.note(format!("{consumer} takes {taken:?}"));
        assert_eq!(taken, self.model.lease(consumer));
        self.guards.extend(guards.into_iter().map(|guard| (consumer, guard)));
    }

    fn guard(&mut self) -> Option<(Consumer, CommandId, CompletionGuard)> {
        let bound = u64::try_from(self.guards.len()).expect("few");
        let at = (bound > 0).then(|| usize::try_from(self.dice.below(bound)).expect("few"))?;
        let (consumer, guard) = self.guards.swap_remove(at);
        Some((consumer, guard.completion().snapshot.id, guard))
    }

    fn give_back(&mut self) {
        let Some((consumer, id, _guard)) = self.guard() else { return };
        self.note(format!("{consumer} gives back {id}"));
        self.model.given_back(consumer, id);
    }

    async fn hand_over(&mut self) {
        let Some((consumer, id, guard)) = self.guard() else { return };
        self.note(format!("{consumer} is handed {id}"));
        assert_eq!(guard.commit(Via::Inbox).await.expect("a commit"), Told::Now);
        self.model.handed_over(consumer, id);
    }

    async fn commit(&mut self, consumer: Consumer) {
        let Some(id) = self.any() else { return };
        let told = self.session.commit(consumer, &id, Via::Read).await.expect("a commit");
        self.note(format!("{consumer} reads {id}: {told:?}"));
        assert_eq!(said(&told), self.model.told(consumer, id));
    }

    async fn claim(&mut self, consumer: Consumer) {
        let Some(id) = self.any() else { return };
        let claim = self.session.claim(consumer, &id).await.expect("a claim");
        let due = !self.model.pending(consumer).is_empty();
        let outcome = match claim {
            Claim::Ours(guard) => {
                assert!(due, "nothing is due");
                assert_eq!(guard.commit(Via::Task).await.expect("a commit"), Told::Now);
                Expected::Now
            }
            Claim::Before { .. } => Expected::Before,
            Claim::Elsewhere => Expected::Elsewhere,
            Claim::NotDue => Expected::NotDue,
            Claim::Unrecorded { reason } => panic!("{reason}"),
        };
        self.note(format!("{consumer} claims {id}: {outcome:?}"));
        assert_eq!(outcome, self.model.told(consumer, id));
    }

    /// A wait that looks once tells what has ended.
    async fn wait(&mut self, consumer: Consumer) {
        let Some(id) = self.any() else { return };
        let options = WaitOptions {
            timeout: Some(Duration::ZERO),
            consumer: Some(consumer.to_owned()),
            ..WaitOptions::default()
        };
        let report = self.session.wait(&[self.command(id).await], options).await.expect("a wait");
        let told = report.commands[0].told.as_ref().map_or(Expected::NotDue, said);
        self.note(format!("{consumer} waits for {id}: {told:?}"));
        assert_eq!(told, self.model.told(consumer, id));
    }

    /// Looks at what a command changed, by chance consumes it.
    async fn consume(&mut self, consumer: Consumer) {
        let Some(id) = self.any() else { return };
        let known = self.model.unconsumed(consumer).contains(&id);
        let ended = self.model.commands[&id].ended;
        match self.session.lease_receipts(consumer, &id).await.expect("a look") {
            ReceiptLease::NotReady => assert!(!ended, "{id} has ended"),
            ReceiptLease::Ready(receipts) => {
                assert!(ended, "{id} has not ended");
                let paths = ["a", "b"].map(|name| self.world.work_dir.join(name).into_os_string().into());
                let expected = if known { vec![Change::Write { paths: paths.to_vec() }] } else { Vec::new() };
                assert_eq!(receipts.changes, expected);
            }
        }
        if self.dice.below(2) == 0 {
            let consumed = match self.session.commit_receipts(consumer, &id).await.expect("a commit") {
                Consumed::Now => Receipt::Now,
                Consumed::Before => Receipt::Before,
                Consumed::Nothing => Receipt::Nothing,
                Consumed::NotReady => Receipt::NotReady,
                Consumed::Unrecorded { reason } => panic!("{reason}"),
            };
            self.note(format!("{consumer} consumes what {id} changed: {consumed:?}"));
            assert_eq!(consumed, self.model.consume(consumer, id));
        }
    }

    /// A turn that waits takes notice of what was changed, once; one that only reads takes none.
    async fn turn(&mut self, consumer: Consumer) {
        let Some(id) = self.any() else { return };
        let kind = if self.dice.below(3) == 0 { TurnKind::ReadOnly } else { TurnKind::Acting };
        let known = self.model.unconsumed(consumer).contains(&id);
        let turn = self.session.begin_turn(consumer, kind).await.expect("a turn");
        let look = WaitOptions { timeout: Some(Duration::ZERO), ..WaitOptions::default() };
        for _ in 0..2 {
            turn.wait(&[self.command(id).await], look.clone()).await.expect("a wait");
        }
        let learned: Vec<CommandId> = turn.receipts().iter().map(|one| one.id).collect();
        self.note(format!("a turn of {consumer}, {kind:?}, learns {learned:?}"));
        let expected = if known && kind == TurnKind::Acting { vec![id] } else { Vec::new() };
        assert_eq!(learned, expected);
        if kind == TurnKind::Acting {
            self.model.consume(consumer, id);
        }
    }

    /// Bounds that keep nothing: what goes is exactly what everybody was told.
    async fn retain(&mut self) {
        let limits = Limits { log_bytes: NonZeroU64::MIN, ..Limits::default() };
        let free: BTreeSet<CommandId> = self.model.free_to_prune().into_iter().collect();
        self.note(format!("retention takes {free:?}"));
        for id in &free {
            self.model.commands.get_mut(id).expect("a command").pruned = true;
        }
        let (runtime, session) = (self.runtime.clone(), self.session.clone());
        let pruned: BTreeSet<CommandId> =
            self.model.commands.iter().filter(|(_, one)| one.pruned).map(|(id, _)| *id).collect();
        // A supervisor that is on its way out still holds the records of its command.
        soon("retention takes what it may", async || {
            runtime.retain(&limits, false).await.expect("retention");
            let all = session.list(true).await.expect("a list");
            let gone: BTreeSet<CommandId> =
                all.iter().filter(|one| one.pruned_at_ms.is_some()).map(|one| one.id).collect();
            assert!(gone.is_subset(&pruned), "{:?} went", gone.difference(&pruned).collect::<Vec<_>>());
            gone == pruned
        })
        .await;
    }

    /// The front end goes and another comes: what was taken and not told is offered again.
    async fn replace(&mut self) {
        self.note("another front end");
        self.callers.clear();
        for (consumer, guard) in std::mem::take(&mut self.guards) {
            self.model.given_back(consumer, guard.completion().snapshot.id);
        }
        let id = *self.session.id();
        let runtime = Runtime::open(config(&self.world.state_dir)).expect("a runtime");
        self.runtime = runtime.clone();
        self.world.runtime = runtime.clone();
        self.session = runtime.open_session(&id).await.expect("the session");
        self.session = adopted(&runtime, &id).await;
    }

    /// Everything ends, everybody is told the rest, and the trace has each telling once.
    async fn arrive(&mut self) {
        for gate in 0..GATES {
            self.open(gate).await;
        }
        while let Some((consumer, id, _guard)) = self.guard() {
            self.model.given_back(consumer, id);
        }
        for consumer in CONSUMERS {
            self.lease(consumer).await;
            while !self.guards.is_empty() {
                self.hand_over().await;
            }
        }
        self.retain().await;
        let trace = self.session.trace().await.expect("a trace");
        let told: Vec<(CommandId, String)> = trace
            .iter()
            .filter(|line| line.kind == "completed")
            .map(|line| (line.id.expect("a command"), line.consumer.clone().expect("a consumer")))
            .collect();
        let once: BTreeSet<(CommandId, Consumer)> = told
            .iter()
            .map(|(id, who)| (*id, *CONSUMERS.iter().find(|one| *one == who).expect("a consumer of the walk")))
            .collect();
        assert_eq!(told.len(), once.len(), "somebody was told twice");
        assert_eq!(once, self.model.tellings());
        assert_eq!(once.len(), self.model.commands.len() * CONSUMERS.len());
        let starts = std::fs::read_to_string(self.world.work_dir.join("starts")).unwrap_or_default();
        // One that was stopped right away may have said nothing of its start.
        assert!(starts.lines().count() <= self.started, "a launch that was joined started a process: {starts}");
    }
}

fn said(told: &Told) -> Expected {
    match told {
        Told::Now => Expected::Now,
        Told::Before { .. } => Expected::Before,
        Told::Elsewhere => Expected::Elsewhere,
        Told::NotDue => Expected::NotDue,
        Told::Unrecorded { reason } => panic!("{reason}"),
    }
}
