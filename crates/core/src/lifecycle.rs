//! The life of one command as a state machine: events in, actions out, no clock and no process.
//!
//! The supervisor feeds it what the kernel and the front ends say and does what it answers. Times are
//! durations on one monotonic clock that the caller reads.

use std::time::Duration;

use crate::ending::{BY_SUPERVISOR_LOST, Clock, End, Fact, Resource};
use crate::record::Phase;
use crate::request::{Request, Survivors};
use crate::wire::DemotedBy;

/// Quiet time after the reap after which survivors are taken to have nothing more to say at once.
pub const DRAIN_QUIET: Duration = Duration::from_millis(50);
/// The longest drain after the reap, whatever still comes.
pub const DRAIN_BOUND: Duration = Duration::from_secs(2);
/// How long verified ends are waited for after KILL.
pub const KILL_BOUND: Duration = Duration::from_secs(3);
/// Time between two passes of the sweep. A process that forks while it is killed leaves a child that
/// no event announces, so the sweep looks again.
pub const SWEEP_PAUSE: Duration = Duration::from_millis(5);
/// How often a tree that KILL did not end is swept again.
pub const STUBBORN_PAUSE: Duration = Duration::from_secs(1);

/// Signals that the kernel sends for a resource limit (setrlimit(2)).
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;
/// Signals that the death of a supervisor can send its command.
const SIGHUP: i32 = 1;
const SIGKILL: i32 = 9;
const SIGPIPE: i32 = 13;

/// Why the whole tree is being ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody asked, or nobody was left to ask.
    Stop {
        /// The consumer, or a `BY_` word.
        by: String,
    },
    /// A clock ran out.
    Clock(Clock),
    /// A resource bound was reached.
    Resource(Resource),
    /// The session ended.
    SessionEnd,
}

/// Where the command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The leader lives.
    Running,
    /// The first signal was sent; KILL follows then.
    Terminating {
        /// When KILL follows.
        kill_at: Duration,
    },
    /// KILL was sent; the tree is swept until it is empty or the bound is over.
    Killing {
        /// When the bound is over.
        give_up_at: Duration,
        /// When the next pass is due.
        sweep_at: Duration,
    },
    /// The leader was reaped and survivors may still write.
    Draining {
        /// When the quiet time is over; data sets it anew.
        quiet_at: Duration,
        /// When it is over in any case.
        hard_at: Duration,
    },
    /// The end is recorded and survivors live on.
    Kept,
    /// Nothing is left.
    Over,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Output came.
    Output,
    /// The leader was reaped.
    LeaderReaped {
        /// What the kernel said.
        fact: Fact,
        /// Whether any descendant is left.
        tree_left: bool,
    },
    /// No descendant is left, and the leader was reaped.
    TreeEmpty,
    /// The tree is to be ended.
    Stop {
        /// Why.
        cause: Cause,
        /// Between the first signal and KILL; none means as the request says.
        grace: Option<Duration>,
    },
    /// The command is to move to the background.
    Demote(DemotedBy),
    /// Time passed.
    Tick,
}

/// What is to be done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Materialise the records and tell the demotion.
    Demote(DemotedBy),
    /// Send the first signal to the whole tree.
    Signal,
    /// Kill what is left of the tree: one pass.
    Sweep,
    /// Drain what is there, record the end, tell it.
    Record,
    /// Nothing more will come: close the log and tell it.
    Close,
}

/// The life of one command.
#[derive(Clone, Debug)]
pub struct Life {
    terms: Terms,
    stage: Stage,
    started: Duration,
    last_output: Duration,
    cause: Option<Cause>,
    fact: Option<Fact>,
    reaped_at: Option<Duration>,
    foreground: bool,
    recorded: bool,
    killed_survivors: bool,
}

#[derive(Clone, Debug)]
struct Terms {
    grace: Option<Duration>,
    wall: Option<Duration>,
    idle: Option<Duration>,
    ttl: Option<Duration>,
    stop_grace: Duration,
    survivors: Survivors,
}

impl Life {
    /// The life of a command that was started at `now` as `request` says.
    pub fn begin(request: &Request, now: Duration) -> Self {
        let ms = Duration::from_millis;
        Life {
            terms: Terms {
                grace: request.grace_ms.filter(|_| request.can_be_told).map(ms),
                wall: request.limits.wall_ms.map(ms),
                idle: request.limits.idle_ms.map(ms),
                ttl: request.ttl_ms().map(ms),
                stop_grace: ms(request.stop_grace_ms),
                survivors: request.survivors,
            },
            stage: Stage::Running,
            started: now,
            last_output: now,
            cause: None,
            fact: None,
            reaped_at: None,
            foreground: !request.background,
            recorded: false,
            killed_survivors: false,
        }
    }

    /// What is to be done about `event` at `now`.
    pub fn step(&mut self, event: Event, now: Duration) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Output => self.output(now),
            Event::LeaderReaped { fact, tree_left } => self.reaped(fact, tree_left, now, &mut actions),
            Event::TreeEmpty => self.tree_empty(&mut actions),
            Event::Stop { cause, grace } => self.stop(cause, grace, now, &mut actions),
            Event::Demote(by) => self.demote(by, &mut actions),
            Event::Tick => self.tick(now, &mut actions),
        }
        actions
    }

    fn output(&mut self, now: Duration) {
        self.last_output = now;
        if let Stage::Draining { quiet_at, hard_at } = &mut self.stage {
            *quiet_at = (now + DRAIN_QUIET).min(*hard_at);
        }
    }

    fn reaped(&mut self, fact: Fact, tree_left: bool, now: Duration, actions: &mut Vec<Action>) {
        self.fact = Some(fact);
        self.reaped_at = Some(now);
        if !tree_left {
            self.tree_empty(actions);
        } else if self.stage == Stage::Running {
            self.stage = Stage::Draining { quiet_at: now + DRAIN_QUIET, hard_at: now + DRAIN_BOUND };
        }
    }

    fn tree_empty(&mut self, actions: &mut Vec<Action>) {
        if self.fact.is_none() || self.stage == Stage::Over {
            return;
        }
        self.record(actions);
        actions.push(Action::Close);
        self.stage = Stage::Over;
    }

    fn record(&mut self, actions: &mut Vec<Action>) {
        if !self.recorded {
            self.recorded = true;
            actions.push(Action::Record);
        }
    }

    fn stop(&mut self, cause: Cause, grace: Option<Duration>, now: Duration, actions: &mut Vec<Action>) {
        let grace = grace.unwrap_or(self.terms.stop_grace);
        match &mut self.stage {
            Stage::Over | Stage::Killing { .. } => {}
            Stage::Terminating { kill_at } => {
                *kill_at = (*kill_at).min(now + grace);
                self.tick(now, actions);
            }
            Stage::Running | Stage::Draining { .. } | Stage::Kept => {
                if self.fact.is_none() {
                    self.cause = Some(cause);
                }
                self.terminate(grace, now, actions);
            }
        }
    }

    fn terminate(&mut self, grace: Duration, now: Duration, actions: &mut Vec<Action>) {
        if grace.is_zero() {
            self.kill(now, actions);
        } else {
            self.stage = Stage::Terminating { kill_at: now + grace };
            actions.push(Action::Signal);
        }
    }

    fn kill(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.stage = Stage::Killing { give_up_at: now + KILL_BOUND, sweep_at: now + SWEEP_PAUSE };
        actions.push(Action::Sweep);
    }

    fn demote(&mut self, by: DemotedBy, actions: &mut Vec<Action>) {
        if self.foreground && !self.recorded {
            self.foreground = false;
            actions.push(Action::Demote(by));
        }
    }

    fn tick(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.grace_end().is_some_and(|at| now >= at) {
            self.demote(DemotedBy::Grace, actions);
        }
        match self.stage {
            Stage::Running => {
                if let Some((clock, _)) = self.clocks().into_iter().flatten().find(|(_, at)| now >= *at) {
                    self.stop(Cause::Clock(clock), None, now, actions);
                }
            }
            Stage::Terminating { kill_at } if now >= kill_at => self.kill(now, actions),
            Stage::Killing { give_up_at, .. } if now >= give_up_at => self.give_up(now, actions),
            Stage::Killing { give_up_at, sweep_at } if now >= sweep_at => {
                self.stage = Stage::Killing { give_up_at, sweep_at: now + SWEEP_PAUSE };
                actions.push(Action::Sweep);
            }
            Stage::Draining { quiet_at, hard_at } if now >= quiet_at.min(hard_at) => self.drained(now, actions),
            Stage::Kept if self.ttl_end().is_some_and(|at| now >= at) => {
                self.terminate(self.terms.stop_grace, now, actions);
            }
            Stage::Terminating { .. } | Stage::Killing { .. } | Stage::Draining { .. } | Stage::Kept | Stage::Over => {}
        }
    }

    fn drained(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match self.terms.survivors {
            Survivors::Keep => {
                self.record(actions);
                self.stage = Stage::Kept;
            }
            Survivors::Kill => {
                self.killed_survivors = true;
                self.terminate(DRAIN_BOUND, now, actions);
            }
        }
    }

    /// The bound after KILL is over: what is left is told, and swept now and then.
    fn give_up(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.fact.is_some() {
            self.record(actions);
        }
        self.stage = Stage::Killing { give_up_at: now + STUBBORN_PAUSE, sweep_at: now + STUBBORN_PAUSE };
        actions.push(Action::Sweep);
    }

    fn grace_end(&self) -> Option<Duration> {
        self.terms.grace.filter(|_| self.foreground && !self.recorded).map(|grace| self.started + grace)
    }

    fn ttl_end(&self) -> Option<Duration> {
        self.terms.ttl.map(|ttl| self.started + ttl)
    }

    fn clocks(&self) -> [Option<(Clock, Duration)>; 3] {
        let mut clocks = [
            self.terms.wall.map(|wall| (Clock::Wall, self.started + wall)),
            self.terms.idle.map(|idle| (Clock::Idle, self.last_output + idle)),
            self.ttl_end().map(|at| (Clock::Ttl, at)),
        ];
        clocks.sort_by_key(|clock| clock.map_or(Duration::MAX, |(_, at)| at));
        clocks
    }

    /// When time alone makes something happen next.
    pub fn deadline(&self) -> Option<Duration> {
        let stage = match self.stage {
            Stage::Running => self.clocks().into_iter().flatten().map(|(_, at)| at).min(),
            Stage::Terminating { kill_at } => Some(kill_at),
            Stage::Killing { give_up_at, sweep_at } => Some(give_up_at.min(sweep_at)),
            Stage::Draining { quiet_at, hard_at } => Some(quiet_at.min(hard_at)),
            Stage::Kept => self.ttl_end(),
            Stage::Over => None,
        };
        [stage, self.grace_end()].into_iter().flatten().min()
    }

    /// Records cannot be made: it stays in the foreground and is not asked again.
    pub fn refuse_demotion(&mut self) {
        self.terms.grace = None;
        self.foreground = true;
    }

    /// Where it is, for those who look.
    pub fn phase(&self) -> Phase {
        match self.stage {
            _ if self.recorded => Phase::Ended,
            Stage::Terminating { .. } | Stage::Killing { .. } if self.cause.is_some() => Phase::Stopping,
            _ => Phase::Running,
        }
    }

    /// The stage.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether it was moved to the background.
    pub fn is_demoted(&self) -> bool {
        !self.foreground
    }

    /// Whether the end was recorded.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Whether the policy `kill` ended survivors.
    pub fn killed_survivors(&self) -> bool {
        self.killed_survivors
    }

    /// Why the tree is being ended, where something outside wants it.
    pub fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// When the leader was reaped.
    pub fn reaped_at(&self) -> Option<Duration> {
        self.reaped_at
    }

    /// Time since the last byte of output.
    pub fn quiet(&self, now: Duration) -> Duration {
        now.saturating_sub(self.last_output)
    }

    /// Time from the start to the reap, or to `now`.
    pub fn elapsed(&self, now: Duration) -> Duration {
        self.reaped_at.unwrap_or(now).saturating_sub(self.started)
    }

    /// How it ended; none before the reap. `evidence` is a resource that the kernel's counters name.
    pub fn end(&self, evidence: Option<Resource>) -> Option<End> {
        self.fact.map(|fact| end_of(self.cause.as_ref(), fact, evidence))
    }
}

/// The end of a command whose supervisor vanished and that nobody had ordered to stop: its own, if it had
/// ended by itself. KILL is what the death of its supervisor sends it. Before that KILL a write can meet PIPE, and a
/// terminal is hung up, which sends HUP; nobody can tell one of its own from that one.
pub fn end_without_supervisor(fact: Option<Fact>) -> End {
    match fact {
        None | Some(Fact::Signaled(SIGHUP | SIGKILL | SIGPIPE)) => {
            End::Stopped { by: BY_SUPERVISOR_LOST.to_owned(), fact }
        }
        Some(fact) => end_of(None, fact, None),
    }
}

/// The end that follows from why it was ended, what the kernel said, and what its counters name.
///
/// A stop that reached the command is why it ended; a limit is named from kernel evidence only.
pub fn end_of(cause: Option<&Cause>, fact: Fact, evidence: Option<Resource>) -> End {
    match (cause, fact) {
        (Some(Cause::Stop { by }), _) => End::Stopped { by: by.clone(), fact: Some(fact) },
        (Some(Cause::SessionEnd), _) => End::Abandoned { fact: Some(fact) },
        (Some(Cause::Clock(clock)), _) => End::TimedOut { clock: *clock, fact: Some(fact) },
        (Some(Cause::Resource(resource)), _) => End::Limit { resource: *resource, fact: Some(fact) },
        (None, Fact::Signaled(SIGXCPU)) => End::Limit { resource: Resource::Cpu, fact: Some(fact) },
        (None, Fact::Signaled(SIGXFSZ)) => End::Limit { resource: Resource::FileSize, fact: Some(fact) },
        (None, _) if evidence.is_some() => {
            End::Limit { resource: evidence.expect("matched just now"), fact: Some(fact) }
        }
        (None, Fact::Exited(code)) => End::Exited { code },
        (None, Fact::Signaled(signal)) => End::Signaled { signal },
    }
}

#[cfg(test)]
mod tests;
