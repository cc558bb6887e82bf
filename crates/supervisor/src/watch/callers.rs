//! Who waits for a command in the foreground: whoever started it, and whoever joined it.

use std::time::Duration;

use outlast_core::lifecycle::Event;
use outlast_core::record::ExitRecord;
use outlast_core::request::Request;
use outlast_core::wire::{DemotedBy, FromSupervisor, JoinOffer, Refusal, ToOwnKeeper};
use outlast_host::clock;
use outlast_host::frame::{Channel, Stream};

use super::Watch;

/// Callers of one command that get what was held of its output; the others read what was stored of it.
pub const RAW_CALLERS: usize = 64;

/// How long after records could not be made for a command that nobody waits for that is tried again. Nothing tells when a
/// disk has room.
const AGAIN: Duration = Duration::from_secs(1);

/// A front end that waits for the command in the foreground. It leaves the list when it was told the end or
/// the demotion, or hung up.
pub struct Caller {
    /// Its number as a client.
    pub number: u32,
    /// Whether it wants the output as it comes.
    pub follows: bool,
    /// When its own grace is over, and with that its wait.
    pub until: Option<Duration>,
}

impl Caller {
    /// The caller that sent this request, from now on.
    pub fn new(number: u32, request: &Request, now: Duration) -> Caller {
        let grace = request.grace_ms.filter(|_| request.can_be_told);
        Caller { number, follows: request.follow, until: grace.map(|ms| now + Duration::from_millis(ms)) }
    }
}

impl Watch<'_> {
    /// Takes the caller of an identical start in, or gives its channel back to the keeper.
    pub(super) fn join(&mut self, offer: JoinOffer, channel: Channel) {
        if !self.can_be_joined(&offer) {
            self.post.tell_keeper(&ToOwnKeeper::NotJoined(offer), Some(channel.into_fd()));
            return;
        }
        // A channel that cannot be watched is closed, and its caller starts again.
        if let Some(number) = self.clients.add(&self.post.poll, channel) {
            self.joining.push(number);
        }
    }

    /// A command that is being ended is joined no more. One that has ended is, as long as a caller was not
    /// told its end yet.
    fn can_be_joined(&self, offer: &JoinOffer) -> bool {
        let waited_for = || !self.callers.is_empty() && self.callers.len() < RAW_CALLERS && !self.is_demoted();
        let ended_late = || !offer.join.background && waited_for();
        !self.capture.forgot() && self.life.cause().is_none() && (self.exit.is_none() || ended_late())
    }

    /// The request of a caller that joins: from here on it hears what every caller hears.
    pub(super) fn take_in(&mut self, number: u32, request: &Request) {
        self.joining.retain(|joining| *joining != number);
        if request.background {
            self.take_in_background(number);
            return;
        }
        self.welcome(number);
        let caller = Caller::new(number, request, clock::monotonic());
        match &self.records {
            Some(records) => {
                let told = FromSupervisor::Materialised { alias: records.alias, output: self.capture.output() };
                self.clients.say(number, &told);
            }
            // What came before it: at once for one that follows, with the end for one that does not.
            None if caller.follows => self.show_held(number),
            None => {}
        }
        if let Some(exit) = self.exit.clone() {
            self.show_end(&caller, &exit);
        }
        // An end in the background has to be confirmed by nobody.
        if self.exit.is_none() || !self.is_demoted() {
            self.callers.push(caller);
        }
    }

    /// A background start makes the command that it joins a background command; who waits goes on waiting.
    fn take_in_background(&mut self, number: u32) {
        if self.exit.is_some() {
            // It ended a moment ago: hung up on before anything was accepted, the caller starts again.
            self.clients.remove(&self.post.poll, number);
            return;
        }
        self.step(Event::Demote(DemotedBy::Background));
        if self.life.is_demoted() {
            self.welcome(number);
            self.tell_demoted(number, DemotedBy::Background);
        } else {
            let id = self.request.id;
            let reason = format!("an identical command runs ({id}) and cannot be moved to the background: no records");
            let refusal = Refusal::NoRecords;
            self.clients.say(number, &FromSupervisor::Refused { refusal, reason, running: vec![id] });
        }
    }

    fn welcome(&mut self, number: u32) {
        let accepted = FromSupervisor::Accepted {
            supervisor: self.post.me.clone(),
            joined: Some(self.request.id),
            generation: self.joinable.map(|joinable| joinable.generation),
        };
        self.clients.say(number, &accepted);
        self.say_started(number);
    }

    /// Tells a caller that the leader runs, with a descriptor of it.
    pub(super) fn say_started(&mut self, number: u32) {
        let started = FromSupervisor::Started { leader: self.leader.clone(), at_ms: self.started_at_ms };
        let fds = rustix::io::fcntl_dupfd_cloexec(&self.pidfd, 3).into_iter().collect();
        if let Some(client) = self.clients.get(number) {
            // A caller that is gone shows as a hang-up at the next turn.
            let _ = client.channel.send_json_with(&started, fds);
        }
    }

    /// A client hung up.
    pub(super) fn client_gone(&mut self, number: u32) {
        self.joining.retain(|joining| *joining != number);
        if self.is_caller(number) {
            self.callers.retain(|caller| caller.number != number);
            if self.callers.is_empty() {
                self.last_caller_gone();
                self.end_with_callers();
            }
        }
    }

    /// Tries again to make records for a command that nobody waits for.
    pub(super) fn demote_again(&mut self, now: Duration) {
        if self.again_at.take_if(|at| now >= *at).is_some() && self.exit.is_none() && self.callers.is_empty() {
            self.step(Event::Demote(DemotedBy::CallerGone));
        }
    }

    fn last_caller_gone(&mut self) {
        if self.told {
            return;
        }
        match self.exit.is_some() {
            false => self.step(Event::Demote(DemotedBy::CallerGone)),
            true => self.demote_late(),
        }
    }

    /// Whether client `number` waits for the command in the foreground.
    pub(super) fn is_caller(&self, number: u32) -> bool {
        self.callers.iter().any(|caller| caller.number == number)
    }

    /// A caller has shown the end. It is told then, whoever else waits; they are told it too.
    pub(super) fn caller_told(&mut self, number: u32) {
        self.callers.retain(|caller| caller.number != number);
        if !self.told {
            self.told = true;
            // The keeper first: if this process dies in between, the caller finds nothing left to be told.
            self.post.tell_keeper(&ToOwnKeeper::Told, None);
            if let Some(exit) = &mut self.exit {
                let was_news = !std::mem::replace(&mut exit.told, true);
                if let Some(records) = self.records.as_ref().filter(|_| was_news && !exit.demoted)
                    && let Err(error) = records.dir.set_told()
                {
                    // A caller that is not heard commits the end itself.
                    self.errors.push(error.to_string());
                    self.clients.remove(&self.post.poll, number);
                    return;
                }
                self.post.trace_finished(&self.request, exit);
            }
        }
        self.give_up_records();
        self.clients.say(number, &FromSupervisor::Heard);
    }

    /// A caller asks for the demotion: it is free, and who else waits goes on waiting.
    pub(super) fn demote_for(&mut self, number: u32) {
        self.step(Event::Demote(DemotedBy::Asked));
        self.release(number, DemotedBy::Asked);
    }

    /// Tells a caller of a command in the background that it is there, which ends its wait.
    pub(super) fn release(&mut self, number: u32, by: DemotedBy) {
        if self.exit.is_none() && self.life.is_demoted() && self.is_caller(number) {
            self.callers.retain(|caller| caller.number != number);
            self.tell_demoted(number, by);
        }
    }

    fn tell_demoted(&mut self, number: u32, by: DemotedBy) {
        let (Some(records), Some(at_ms)) = (&self.records, self.demoted_at_ms) else { return };
        let told = FromSupervisor::Demoted { alias: records.alias, at_ms, by, errors: self.all_errors() };
        self.clients.say(number, &told);
    }

    /// Ends the wait of callers whose grace is over. The first of them moves the command to the background;
    /// the others go on waiting for their own.
    pub(super) fn release_late(&mut self, now: Duration) {
        if self.next_release().is_none_or(|at| now < at) {
            return;
        }
        let late = self.callers.iter().filter(|caller| caller.until.is_some_and(|at| now >= at));
        let late: Vec<u32> = late.map(|caller| caller.number).collect();
        self.step(Event::Demote(DemotedBy::Grace));
        late.into_iter().for_each(|number| self.release(number, DemotedBy::Grace));
    }

    /// When the next such wait is over.
    pub(super) fn next_release(&self) -> Option<Duration> {
        self.callers.iter().filter_map(|caller| caller.until).min().filter(|_| self.exit.is_none())
    }

    /// Records cannot be made: the command stays where it is, and no grace is asked again.
    pub(super) fn stay(&mut self, reason: String) {
        self.life.refuse_demotion();
        self.callers.iter_mut().for_each(|caller| caller.until = None);
        if self.callers.is_empty() {
            // Nobody is left who would hear of it: as soon as there is a place for its records again it has some.
            self.again_at = Some(clock::monotonic() + AGAIN);
        }
        self.say_callers(&FromSupervisor::NotDemoted { reason });
    }

    /// Sends what is held of the output, as far as it came.
    fn show_held(&mut self, number: u32) {
        let [out, err] = self.capture.forgotten();
        if self.capture.forgot() {
            self.clients.say(number, &FromSupervisor::Missing { out, err });
        }
        for (stream, bytes) in self.capture.held() {
            self.clients.send(number, *stream, bytes);
        }
    }

    /// How many callers wait beside client `number`, where a stop must not end the command for them: more than
    /// one waits, and nothing ends it already.
    pub(super) fn others(&self, number: u32) -> Option<u32> {
        let waiting = self.callers.len();
        let others = waiting - usize::from(self.is_caller(number));
        let runs_on = self.exit.is_none() && self.life.cause().is_none();
        (waiting > 1 && runs_on).then(|| u32::try_from(others).unwrap_or(u32::MAX))
    }

    fn numbers_of_callers(&self) -> Vec<u32> {
        self.callers.iter().map(|caller| caller.number).collect()
    }

    /// Says something to every caller.
    pub(super) fn say_callers(&mut self, what: &FromSupervisor) {
        for number in self.numbers_of_callers() {
            self.clients.say(number, what);
        }
    }

    /// Says that there are records, to the callers who will read them.
    pub(super) fn say_readers(&mut self, what: &FromSupervisor) {
        let raw = if self.raw.is_some() { RAW_CALLERS } else { 0 };
        for number in self.numbers_of_callers().into_iter().skip(raw) {
            self.clients.say(number, what);
        }
    }

    /// Where more callers wait than get what is held, it is stored for the others; what is held is kept for
    /// the first.
    pub(super) fn store_for_the_many(&mut self) {
        if self.records.is_none() && self.callers.len() > RAW_CALLERS {
            self.raw = Some(self.capture.held().to_vec());
            self.overflow();
            if self.records.is_none() {
                // Without records everybody gets what is held.
                self.raw = None;
            }
        }
    }

    /// Tells every caller the end, and who gets it the output that was held.
    pub(super) fn show_end_to_callers(&mut self, exit: &ExitRecord) {
        let callers = std::mem::take(&mut self.callers);
        let raw: Option<Vec<(Stream, Vec<u8>)>> = self.raw.take();
        for (place, caller) in callers.iter().enumerate() {
            match &raw {
                Some(raw) if place < RAW_CALLERS => {
                    for (stream, bytes) in raw.iter().filter(|_| !caller.follows) {
                        self.clients.send(caller.number, *stream, bytes);
                    }
                    self.say_ended(caller.number, exit, false);
                }
                _ => self.show_end(caller, exit),
            }
        }
        self.callers = callers;
    }

    fn show_end(&mut self, caller: &Caller, exit: &ExitRecord) {
        let materialised = self.records.is_some();
        if !materialised && !caller.follows {
            self.show_held(caller.number);
        }
        self.say_ended(caller.number, exit, materialised);
    }

    fn say_ended(&mut self, number: u32, exit: &ExitRecord, materialised: bool) {
        if !materialised {
            self.show_receipts(number);
        }
        self.clients.say(number, &FromSupervisor::Ended { exit: Box::new(exit.clone()), materialised });
    }
}
