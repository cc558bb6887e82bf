//! The supervisor of one command: one loop, a closed list of events, one function for each.

mod callers;
mod begin;
mod evidence;
mod finish;
mod orphan;
mod pipes;
mod talk;
mod tell;
mod tracking;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::ending::{BY_SESSION_END, Fact};
use outlast_core::joining::Joinable;
use outlast_core::lifecycle::{Action, Cause, Event, Life, Stage};
use outlast_core::policy::redact::Redactor;
use outlast_core::receipt::Published;
use outlast_core::record::{ExitRecord, ProcessMark};
use outlast_core::request::{Lifetime, OsText, Request};
use outlast_core::wire::{FromOwnKeeper, ToOwnKeeper};
use outlast_host::clock;
use outlast_host::frame::{Channel, Stream};
use outlast_host::inherit;
use outlast_host::store::moving;
use outlast_host::store::records::Records;
use outlast_host::sys::{memory, reap, signals};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use crate::capture::Capture;
use crate::clients::{CLIENT_TOKENS, Clients};
use crate::context::{Context, Work, own_mark};
use crate::limits::{Cage, Sampler};
use crate::poll::{Interest, Poll};
use crate::tree::Tree;
use callers::Caller;
use orphan::Orphan;
use pipes::Pace;
use tracking::Baseline;

const LINK: u64 = 1;
const SIGNALS: u64 = 2;
const LEADER: u64 = 3;
const DOOR: u64 = 4;
const STDIN: u64 = 5;
const ANCHOR: u64 = 6;
const OWNER: u64 = 7;
const PIPES: u64 = 16;

/// Bytes of input that may wait for a command that does not read.
const INPUT_BOUND: usize = 1 << 20;
/// How long messages that are still queued at the end are given to be read.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a supervisor keeps from one command to the next.
pub struct Post {
    /// What was inherited from the keeper.
    pub context: Context,
    /// The private socket to the keeper; none once the keeper is gone.
    pub link: Option<Channel>,
    poll: Poll,
    signals: OwnedFd,
    me: ProcessMark,
    cage: Option<Cage>,
    /// Whether something waits for room in the socket to the keeper.
    link_waits: bool,
}

impl Post {
    /// Takes the post: children of dead descendants fall to this process from now on.
    pub fn take(mut context: Context, link: Channel) -> Result<Post, String> {
        context.limits = inherit::limits();
        let tell = |error: rustix::io::Errno| error.to_string();
        outlast_host::sys::prctl::set_child_subreaper().map_err(tell)?;
        let poll = Poll::new().map_err(tell)?;
        let watched = [Signal::CHILD, Signal::TERM, Signal::HUP, Signal::INT];
        let signals = signals::block_and_signalfd(&watched).map_err(tell)?;
        signals::ignore(Signal::XFSZ).map_err(tell)?;
        poll.add(&signals, SIGNALS, Interest::Read).map_err(tell)?;
        poll.add(&link, LINK, Interest::Read).map_err(tell)?;
        let cage = Cage::make(context.cgroups.as_ref());
        Ok(Post { context, link: Some(link), poll, signals, me: own_mark(), cage, link_waits: false })
    }

    /// Serves commands until the keeper needs this supervisor no more.
    pub fn serve(mut self, first: Option<Work>) {
        let mut next = first;
        loop {
            let Some(work) = next.take().or_else(|| self.wait_for_work()) else { break };
            if let Some(watch) = begin::begin(&mut self, work) {
                watch.run();
            }
            self.tell_keeper(&ToOwnKeeper::Spare, None);
            if self.link.is_none() {
                break;
            }
        }
        if let Some(cage) = &self.cage {
            // A leaf that is still busy is cleared by the keeper.
            let _ = cage.remove();
        }
    }

    /// The next start that the keeper hands over; none once it says quit or is gone.
    fn wait_for_work(&mut self) -> Option<Work> {
        loop {
            while let Some(message) = self.next_from_keeper() {
                match message {
                    (FromOwnKeeper::Assign { joinable }, Some(channel)) => return Some(Work { channel, joinable }),
                    // The command that it was to join is over.
                    (FromOwnKeeper::Join(offer), Some(channel)) => {
                        self.tell_keeper(&ToOwnKeeper::NotJoined(offer), Some(channel.into_fd()));
                    }
                    (FromOwnKeeper::Owner { mark }, _) => self.context.owner = mark,
                    (FromOwnKeeper::Quit, _) => return None,
                    // The channel was lost on the way, for want of a descriptor: its caller starts again.
                    (FromOwnKeeper::Assign { .. }, None) => self.tell_keeper(&ToOwnKeeper::Spare, None),
                    // Whoever was to be met there was looking for a command that is over: the channel is closed.
                    (FromOwnKeeper::Join(_) | FromOwnKeeper::Stop { .. } | FromOwnKeeper::Meet, _) => {}
                }
            }
            self.link.as_ref()?;
            self.poll.wait(None).ok()?;
            // Signals that ask to end are for commands; a spare ends when its keeper does.
            signals::read_signalfd(&self.signals).ok()?;
        }
    }

    /// The keeper's next message and the channel that rides on it. A keeper that is gone is forgotten.
    fn next_from_keeper(&mut self) -> Option<(FromOwnKeeper, Option<Channel>)> {
        self.settle_link();
        let link = self.link.as_mut()?;
        match link.receive() {
            Ok(Some(mut frame)) => {
                let channel = frame.fds.pop().and_then(|fd| Channel::from_fd(fd).ok());
                match frame.json() {
                    Ok(message) => Some((message, channel)),
                    Err(_) => self.lose_keeper(),
                }
            }
            Ok(None) if !link.is_eof() => None,
            Ok(None) | Err(_) => self.lose_keeper(),
        }
    }

    fn lose_keeper<T>(&mut self) -> Option<T> {
        if let Some(link) = self.link.take() {
            let _ = self.poll.remove(&link);
        }
        self.link_waits = false;
        None
    }

    /// Tells the keeper something; a descriptor of the leader or a channel can ride on it.
    fn tell_keeper(&mut self, what: &ToOwnKeeper, fd: Option<OwnedFd>) {
        if let Some(link) = &mut self.link
            && link.send_json_with(what, fd.into_iter().collect()).is_err()
        {
            self.lose_keeper::<()>();
        }
        self.settle_link();
    }

    /// Tells the keeper something that it must have whole before this goes on; a keeper that is gone needs it no more.
    fn tell_keeper_whole(&mut self, what: &ToOwnKeeper) {
        self.tell_keeper(what, None);
        while let Some(link) = self.link.as_ref().filter(|link| link.want_write()) {
            // What interrupts it is looked at in the next round.
            let _ = rustix::event::poll(&mut [PollFd::new(link, PollFlags::OUT)], None);
            self.settle_link();
        }
    }

    /// Sends what waits for the keeper, and watches for room while something still waits: a long command line
    /// does not fit into the socket at once.
    fn settle_link(&mut self) {
        let Some(link) = &mut self.link else { return };
        let Ok(sent) = link.flush() else {
            self.lose_keeper::<()>();
            return;
        };
        if sent == self.link_waits {
            let interest = if sent { Interest::Read } else { Interest::Both };
            if self.poll.set(&*link, LINK, interest).is_ok() {
                self.link_waits = !sent;
            }
        }
    }
}

/// The watch over one command.
pub struct Watch<'a> {
    post: &'a mut Post,
    request: Request,
    program: OsText,
    life: Life,
    started_at_ms: u64,
    demoted_at_ms: Option<u64>,
    /// When memory that the beginning needed is given back.
    rest_at: Option<Duration>,
    /// When records are tried to be made again.
    again_at: Option<Duration>,
    /// Whether something of records that could not be made may be there.
    unmade: bool,
    pace: Pace,
    /// Since when the pipes are not read, for the sake of callers that follow.
    held_up_since: Option<Duration>,
    ended_at_ms: Option<u64>,
    leader: ProcessMark,
    pidfd: OwnedFd,
    /// The command's end of its terminal, open as long as the leader lives, which may close it and come back to it
    /// (tty(4), `/dev/tty`).
    terminal: Option<OwnedFd>,
    stdin: Option<Stdin>,
    capture: Capture,
    /// Masks secrets in what is stored, where that is asked for.
    redactor: Option<Arc<Redactor>>,
    /// What files there were before the start, where changes are to be told.
    baseline: Option<Baseline>,
    records: Option<Records>,
    clients: Clients,
    /// Who waits for it in the foreground, in the order in which they came.
    callers: Vec<Caller>,
    /// Clients that join it and whose request is still due.
    joining: Vec<u32>,
    /// By what it can be joined; none where nobody may.
    joinable: Option<Joinable>,
    /// What was held of the output, where that was stored for callers beyond those who get it.
    raw: Option<Vec<(Stream, Vec<u8>)>>,
    receipts: Published,
    exit: Option<ExitRecord>,
    /// Whether the end was shown by a caller.
    told: bool,
    errors: Vec<String>,
    limit: Option<String>,
    sampler: Option<Sampler>,
    orphan: Option<Orphan>,
    first_signal: Signal,
    signals_sent: u32,
    killed: Vec<outlast_core::record::Survivor>,
    reaped: bool,
}

/// The pipe into the command's standard input, or our end of its terminal.
struct Stdin {
    fd: OwnedFd,
    queue: std::collections::VecDeque<u8>,
    close_when_empty: bool,
    /// Whether what was typed last at a terminal is no whole line; none for a pipe.
    line_begun: Option<bool>,
    watched: bool,
}

impl Watch<'_> {
    /// Watches until nothing of the command is left and everyone who must hear has heard.
    pub fn run(mut self) {
        while !self.is_over() {
            self.turn();
        }
        self.farewell();
        if let (Some(records), Some(session)) = (&self.records, self.post.context.dir()) {
            // Records that cannot be moved are found where they are; the next look at the session tries again.
            let _ = moving::follow_own(session, records.dir.id());
        }
    }

    fn is_over(&self) -> bool {
        self.life.stage() == Stage::Over && self.callers.is_empty() && self.joining.is_empty()
    }

    fn turn(&mut self) {
        // Seen by a hang-up, or by a message that could not be sent any more.
        if self.post.link.is_none() && self.orphan.is_none() {
            self.become_orphan();
        }
        let timeout = self.timeout();
        self.pace.let_gather();
        let ready = self.post.poll.wait(timeout).unwrap_or_default();
        self.read_pipes(&ready);
        if ready.iter().any(|one| one.token == SIGNALS || one.token == LEADER) {
            self.take_signals();
        }
        self.reap();
        for one in &ready {
            match one.token {
                LINK => self.hear_keeper(),
                DOOR => self.open_door(),
                STDIN => self.write_stdin(),
                ANCHOR | OWNER => self.orphan_event(one.token),
                number if number >= CLIENT_TOKENS => self.hear_client((number - CLIENT_TOKENS) as u32, *one),
                _ => {}
            }
        }
        self.step(Event::Tick);
        self.look_after();
    }

    fn timeout(&mut self) -> Option<Duration> {
        let sample = self.sampler.as_ref().filter(|_| !self.reaped).map(|sampler| sampler.next_at);
        let stops = self.stop_deadline();
        let orphan =
            self.orphan.as_ref().and_then(|orphan| [orphan.give_up_at, orphan.again_at].into_iter().flatten().min());
        let patience = self.patience_over();
        let deadlines =
            [self.life.deadline(), sample, stops, orphan, self.next_release(), self.rest_at, self.again_at, patience];
        let next = deadlines.into_iter().flatten().min()?;
        Some(next.saturating_sub(clock::monotonic()))
    }

    fn take_signals(&mut self) {
        // A failed read shows again at the next turn: the descriptor stays readable.
        let got = signals::read_signalfd(&self.post.signals).unwrap_or_default();
        if got.iter().any(|number| *number != Signal::CHILD.as_raw() as u32) {
            self.stop_for(BY_SESSION_END, true);
        }
    }

    /// Reaps whoever died: the leader by an event, adopted descendants silently.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = reap::peek_any() {
            if !matches!(reap::reap(pid), Ok(Some(_))) {
                break;
            }
            if pid == self.leader.pid && !self.reaped {
                self.reaped = true;
                self.ended_at_ms = Some(clock::unix_ms());
                self.terminal = None;
                let _ = self.post.poll.remove(&self.pidfd);
                let fact = fact_of(status);
                self.step(Event::LeaderReaped { fact, tree_left: reap::has_children() });
            }
        }
        if self.reaped && self.life.stage() != Stage::Over && !reap::has_children() {
            self.step(Event::TreeEmpty);
        }
    }

    fn hear_keeper(&mut self) {
        while let Some((message, channel)) = self.post.next_from_keeper() {
            match (message, channel) {
                (FromOwnKeeper::Stop { by, detached }, _) => self.stop_for(&by, detached),
                (FromOwnKeeper::Owner { mark }, _) => self.post.context.owner = mark,
                (FromOwnKeeper::Join(offer), Some(channel)) => self.join(offer, channel),
                (FromOwnKeeper::Meet, Some(channel)) => {
                    // A channel that cannot be watched is closed, which says that nobody is here.
                    self.clients.add(&self.post.poll, channel);
                }
                (
                    FromOwnKeeper::Join(_) | FromOwnKeeper::Assign { .. } | FromOwnKeeper::Meet | FromOwnKeeper::Quit,
                    _,
                ) => {}
            }
        }
    }

    /// Ends the command for a reason of its session's, which a detached one ignores unless it is meant too.
    fn stop_for(&mut self, by: &str, detached: bool) {
        if matches!(self.request.lifetime, Lifetime::Detached { .. }) && !detached {
            return;
        }
        let cause = match by {
            BY_SESSION_END => Cause::SessionEnd,
            by => Cause::Stop { by: by.to_owned() },
        };
        self.step(Event::Stop { cause, grace: None });
    }

    /// Lets the state machine decide and does what it says.
    fn step(&mut self, event: Event) {
        let phase = self.life.phase();
        for action in self.life.step(event, clock::monotonic()) {
            match action {
                Action::Demote(by) => self.demote(by),
                Action::Signal => {
                    self.before_signal();
                    self.tree().signal(self.first_signal);
                }
                Action::Sweep => {
                    self.before_signal();
                    self.sweep();
                }
                Action::Record => self.record(),
                Action::Close => self.close(),
            }
        }
        // At the very end the closing writes the last status.
        if self.life.phase() != phase && self.life.stage() != Stage::Over {
            self.publish_status(true);
        }
    }

    /// Why it is ended is known before it is: here, and to the keeper, should this process vanish.
    fn before_signal(&mut self) {
        self.note_limit();
        if self.signals_sent == 0 {
            self.tell_draft();
        }
        self.signals_sent += 1;
    }

    fn sweep(&mut self) {
        if let Some(cage) = &mut self.post.cage {
            cage.spend();
        }
        self.tree().sweep();
    }

    fn tree(&self) -> Tree<'_> {
        Tree { leader: self.leader.pid, pidfd: &self.pidfd, leaf: self.post.cage.as_ref().map(Cage::leaf) }
    }

    /// What each turn ends with: caps, samples, growth, answers that are due.
    fn look_after(&mut self) {
        let now = clock::monotonic();
        self.leave_terminal();
        if self.records.is_none() && self.capture.overflows() && self.exit.is_none() {
            self.overflow();
        }
        if self.capture.must_stop() && self.life.cause().is_none() {
            let cause = Cause::Resource(outlast_core::ending::Resource::Output);
            self.step(Event::Stop { cause, grace: None });
        }
        if !self.reaped
            && let Some(sampler) = self.sampler.as_mut().filter(|sampler| now >= sampler.next_at)
            && let Some(resource) = sampler.sample(now)
        {
            self.step(Event::Stop { cause: Cause::Resource(resource), grace: Some(Duration::ZERO) });
        }
        self.release_late(now);
        self.demote_again(now);
        self.orphan_tick(now);
        if self.records.is_some() {
            self.clients.tell_growth(&self.capture.output());
        }
        self.answer_stops(now);
        self.attend_pipes(now);
        self.clients.settle(&self.post.poll);
        if self.rest_at.take_if(|at| now >= *at).is_some() {
            memory::give_back();
        }
    }

    /// Sends what is still queued, for a bounded time, and takes the door away.
    fn farewell(&mut self) {
        self.settle_input_at_end();
        if let Some(records) = &self.records {
            let _ = self.post.poll.remove(&records.door);
            records.close_door();
        }
        let until = clock::monotonic() + FAREWELL;
        while self.clients.settle(&self.post.poll) {
            let left = until.saturating_sub(clock::monotonic());
            if left.is_zero() {
                break;
            }
            let ready = self.post.poll.wait(Some(left)).unwrap_or_default();
            if ready.iter().any(|one| one.token == LINK) {
                // Whoever wants to join now is not kept waiting for a slow reader.
                self.hear_keeper();
            }
            for one in ready.iter().filter(|one| one.token >= CLIENT_TOKENS) {
                let number = (one.token - CLIENT_TOKENS) as u32;
                let sent = self.clients.get(number).map(|client| client.channel.flush());
                if one.readable || matches!(sent, Some(Err(_))) {
                    self.clients.remove(&self.post.poll, number);
                }
            }
        }
        for number in self.clients.numbers() {
            self.clients.remove(&self.post.poll, number);
        }
    }
}

fn fact_of(status: reap::WaitStatus) -> Fact {
    match (status.code(), status.signal()) {
        (Some(code), _) => Fact::Exited(code),
        (None, Some(signal)) => Fact::Signaled(signal),
        (None, None) => unreachable!("a reaped child has exited or was ended by a signal"),
    }
}
