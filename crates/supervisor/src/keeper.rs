//! The keeper of a session: forks supervisors and reaps them, watches owner and anchor, finishes the
//! records of supervisors that died, and ends by itself.

pub mod birth;
mod charges;
mod closing;
mod doors;
mod vacant;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::time::Duration;

use outlast_core::ending::{BY_OWNER_GONE, BY_SESSION_END, Fact};
use outlast_core::id::CommandId;
use outlast_core::joining::JoinKey;
use outlast_core::record::{ExitRecord, LINGER_MS, Ownership};
use outlast_host::cgroup::CgroupParent;
use outlast_host::frame::Channel;
use outlast_host::sys::{descriptors, prctl, signals};
use outlast_host::{clock, mark};
use rustix::process::{Rlimit, Signal};

use crate::LOOK_AGAIN;
use crate::context::{Context, Work};
use crate::patience::{Patience, Wait};
use crate::poll::{Interest, Poll};
use charges::{Charge, Launch};
use closing::Closing;
use doors::{Door, Visitor};
use vacant::Vacant;

const SIGNALS: u64 = 1;
const DOOR: u64 = 2;
const DOOR_TAKEN: u64 = 3;
const ANCHOR: u64 = 4;
const CHARGES: u64 = 1 << 32;
const VISITORS: u64 = 1 << 40;

/// How long a keeper with nothing to keep stays, so that a command that follows another finds it and its
/// spare warm. A session that is closed is not waited in.
const IDLE: Duration = Duration::from_millis(500);
/// Time between two passes over what a dead supervisor left.
const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// A forked child, on its way to be a supervisor.
pub struct Newborn {
    /// What it inherits.
    pub context: Context,
    /// Its private socket to the keeper.
    pub link: Channel,
    /// The first start that it serves.
    pub first: Option<Work>,
    /// The limit of open files as the keeper found it.
    pub open_files: Rlimit,
}

/// The keeper.
pub struct Keeper {
    context: Context,
    poll: Poll,
    signals: OwnedFd,
    door: Option<Door>,
    visitors: BTreeMap<u32, Visitor>,
    charges: BTreeMap<u32, Charge>,
    next: u32,
    owner: Option<u32>,
    /// The connection that keeps starts away, while the owner is being replaced.
    sealed: Option<u32>,
    anchor: Option<OwnedFd>,
    anchor_again_at: Option<Duration>,
    owner_gone_at: Option<Duration>,
    patience: Patience,
    idle_until: Option<Duration>,
    spare_due_at: Option<Duration>,
    vacant: Vec<Vacant>,
    /// Starts that came back from the supervisors of identical commands, which are over.
    not_joined: VecDeque<Launch>,
    /// How many commands of a key were started.
    generations: BTreeMap<JoinKey, u32>,
    finished: BTreeMap<CommandId, Option<ExitRecord>>,
    /// Commands whose supervisors died before they started anything.
    never_begun: BTreeSet<CommandId>,
    strays_left: bool,
    /// Commands with a supervisor that lives and has no door.
    unreached: BTreeSet<CommandId>,
    closing: Option<Closing>,
    closed: bool,
    fallen: BTreeMap<(u32, u64), Fact>,
    open_files: Rlimit,
}

impl Keeper {
    /// A keeper with its first connection. `orphans`: one before it died without taking its leave, so
    /// supervisors may be without one.
    fn new(context: Context, first: Channel, door: Option<Door>, orphans: Option<bool>) -> Result<Keeper, String> {
        let tell = |error: rustix::io::Errno| error.to_string();
        prctl::set_child_subreaper().map_err(tell)?;
        let poll = Poll::new().map_err(tell)?;
        let signals =
            signals::block_and_signalfd(&[Signal::CHILD, Signal::TERM, Signal::HUP, Signal::INT]).map_err(tell)?;
        signals::ignore(Signal::XFSZ).map_err(tell)?;
        poll.add(&signals, SIGNALS, Interest::Read).map_err(tell)?;
        // A start that raced with the end of the session must not find a keeper that knows nothing of it.
        let closed = context.dir().is_some_and(|dir| dir.is_closed().unwrap_or(false));
        let mut keeper = Keeper {
            context,
            poll,
            signals,
            door,
            visitors: BTreeMap::new(),
            charges: BTreeMap::new(),
            next: 0,
            owner: None,
            sealed: None,
            anchor: None,
            anchor_again_at: None,
            owner_gone_at: None,
            patience: Patience::default(),
            idle_until: None,
            spare_due_at: None,
            vacant: Vec::new(),
            not_joined: VecDeque::new(),
            generations: BTreeMap::new(),
            finished: BTreeMap::new(),
            never_begun: BTreeSet::new(),
            strays_left: orphans == Some(true),
            unreached: BTreeSet::new(),
            closing: None,
            closed,
            fallen: BTreeMap::new(),
            open_files: descriptors::raise_open_files(),
        };
        // Looked at under the keeper's lock, which whoever closes a session holds: no start slips past its end.
        keeper.closed = keeper.context.dir().is_some_and(|dir| dir.is_closed().unwrap_or(false));
        keeper.attend_door().map_err(tell)?;
        keeper.watch_anchor();
        keeper.expect_owner();
        if orphans == Some(true) {
            keeper.adopt_orphans();
        }
        keeper.visitor(first);
        Ok(keeper)
    }

    /// Keeps until there is nothing left to keep; in a forked child, what it needs to be a supervisor.
    pub fn run(mut self) -> Option<Newborn> {
        loop {
            if let Some(link) = self.turn() {
                return Some(self.be_born(link));
            }
            if self.is_idle() && self.leave() {
                // What killed watchers left of cgroups is in nobody's way, and the next keeper looks again.
                let _ = self.context.cgroups.as_ref().map(CgroupParent::remove_abandoned);
                return None;
            }
        }
    }

    /// In the child: everything but the context belongs to the parent and is forgotten, not dropped, so
    /// that its memory stays shared; the descriptors are closed by number (`serve`).
    fn be_born(self, (link, first): (Channel, Option<Work>)) -> Newborn {
        let Keeper { context, poll, signals, door, visitors, charges, anchor, vacant, finished, closing, .. } = self;
        let Keeper { open_files, not_joined, generations, unreached, .. } = self;
        std::mem::forget((poll, signals, door, visitors, charges, anchor, vacant, finished, closing));
        std::mem::forget((not_joined, generations, unreached));
        Newborn { context, link, first, open_files }
    }

    fn turn(&mut self) -> Option<(Channel, Option<Work>)> {
        let timeout = self.deadline().map(|at| at.saturating_sub(clock::monotonic()));
        let ready = self.poll.wait(timeout).unwrap_or_default();
        for one in &ready {
            match one.token {
                SIGNALS => self.take_signals(),
                ANCHOR => self.anchor_gone(),
                DOOR => {
                    self.open_door();
                }
                DOOR_TAKEN => self.reopen_door(),
                token if token >= VISITORS => {
                    if let Some(child) = self.hear_visitor((token - VISITORS) as u32, one.writable) {
                        return Some(child);
                    }
                }
                token if token >= CHARGES => self.hear_charge((token - CHARGES) as u32),
                _ => {}
            }
        }
        self.look_at_door();
        self.reap();
        self.fill_vacancies();
        self.end_strays();
        self.answer_fates();
        self.owner_tick();
        self.close_if_due();
        self.start_not_joined().or_else(|| self.keep_a_spare())
    }

    fn deadline(&self) -> Option<Duration> {
        let sweep =
            (self.strays_left || !self.vacant.is_empty() || (self.closing.is_some() && !self.unreached.is_empty()))
                .then(|| clock::monotonic() + SWEEP_PAUSE);
        let closing = self.closing.as_ref().map(Closing::until);
        let door = self.is_door_unwatched().then(|| clock::monotonic() + LOOK_AGAIN);
        [sweep, closing, door, self.owner_gone_at, self.idle_until, self.anchor_again_at, self.spare_due_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn take_signals(&mut self) {
        let got = signals::read_signalfd(&self.signals).unwrap_or_default();
        if got.iter().any(|number| *number != Signal::CHILD.as_raw() as u32) {
            self.begin_closing("terminated", None, true);
        }
    }

    fn watch_anchor(&mut self) {
        let Some(anchor) = self.context.anchor().cloned() else { return };
        match mark::open(&anchor) {
            Ok(Some(fd)) if self.poll.add(&fd, ANCHOR, Interest::Read).is_ok() => self.anchor = Some(fd),
            Ok(None) => self.anchor_gone(),
            // Not to know is not to know that it is gone: it is looked for again.
            Ok(Some(_)) | Err(_) => self.anchor_again_at = Some(clock::monotonic() + LOOK_AGAIN),
        }
    }

    /// The process that bounds the session is gone: the session ends at once.
    fn anchor_gone(&mut self) {
        if let Some(fd) = self.anchor.take() {
            let _ = self.poll.remove(&fd);
        }
        self.begin_closing("anchor_gone", None, false);
    }

    /// A session with a resident owner waits for one, at most for its linger.
    fn expect_owner(&mut self) {
        let Some(record) = self.context.record() else { return };
        if record.ownership == Ownership::Resident && self.owner.is_none() && !self.closed {
            let linger = if record.linger_ms == 0 { LINGER_MS } else { record.linger_ms };
            self.owner_gone_at = Some(clock::monotonic() + Duration::from_millis(linger));
        }
    }

    fn owner_tick(&mut self) {
        if self.anchor_again_at.take_if(|at| clock::monotonic() >= *at).is_some() {
            self.watch_anchor();
        }
        if self.owner_gone_at.take_if(|at| clock::monotonic() >= *at).is_some() {
            match self.patience.after_linger(&self.context) {
                Wait::Longer => self.expect_owner(),
                Wait::Over => self.order_stop(BY_OWNER_GONE, false),
            }
        }
    }

    /// Whether there is nothing left to keep. Spares are sent home first, and reaped.
    fn is_idle(&mut self) -> bool {
        let busy = self.charges.values().any(Charge::is_busy);
        if busy || self.strays_left || !self.vacant.is_empty() || !self.visitors.is_empty() || self.closing.is_some() {
            self.idle_until = None;
            return false;
        }
        let now = clock::monotonic();
        let worth_it = !self.closed && self.door.is_some() && self.charges.values().any(Charge::is_spare);
        let until = *self.idle_until.get_or_insert(if worth_it { now + IDLE } else { now });
        if now < until && !self.closed {
            return false;
        }
        self.idle_until = None;
        self.dismiss_spares(0);
        self.charges.is_empty()
    }

    /// Takes the door away and looks once more: who knocked meanwhile is served. True if nobody did.
    fn leave(&mut self) -> bool {
        if self.door.is_none() {
            return true;
        }
        if let Some(dir) = self.context.dir() {
            // If the door cannot be taken away a later keeper takes its place.
            let _ = dir.remove_door();
        }
        let knocked = self.open_door();
        match &self.door {
            Some(door) if !knocked => door.leave(),
            _ => self.reopen_door(),
        }
        !knocked
    }

    /// Tells every supervisor to stop its command for a reason of the session's.
    fn order_stop(&mut self, by: &str, detached: bool) {
        for charge in self.charges.values_mut() {
            charge.order_stop(by, detached);
        }
    }

    /// The word that a session's end is told to supervisors by.
    fn end_word() -> &'static str {
        BY_SESSION_END
    }
}
