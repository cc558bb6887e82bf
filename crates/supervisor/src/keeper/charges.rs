//! The supervisors in the keeper's charge: forked, assigned, heard, reaped.

use std::os::fd::OwnedFd;
use std::time::Duration;

use outlast_core::ending::Fact;
use outlast_core::id::CommandId;
use outlast_core::joining::{JoinKey, Joinable};
use outlast_core::record::ExitRecord;
use outlast_core::wire::{FromOwnKeeper, FromSupervisor, JoinOffer, Joining, Refusal, ToOwnKeeper, ToSupervisor};
use outlast_host::clock;
use outlast_host::frame::Channel;
use outlast_host::proc;
use outlast_host::store::aliases;
use outlast_host::store::session::SessionDir;
use outlast_host::sys::fork::{self, Forked};
use outlast_host::sys::reap::{self, WaitStatus};

use super::vacant::Vacant;
use super::{CHARGES, Keeper};
use crate::context::Work;
use crate::poll::Interest;

/// How long a supervisor that was just given a command is waited for to come back as the spare.
const SPARE_WAIT: Duration = Duration::from_millis(20);

/// One supervisor.
pub struct Charge {
    link: Channel,
    /// Its process id; valid while it is our unreaped child, else only a name.
    pub pid: u32,
    own_child: bool,
    /// Whether it is a task behind the door of its owner, and no supervisor.
    task: bool,
    leader: Option<OwnedFd>,
    assigned: bool,
    id: Option<CommandId>,
    /// By which identical starts find it; none where nobody may join its command.
    key: Option<JoinKey>,
    dismissed: bool,
    draft: Option<ExitRecord>,
    materialised: bool,
    recorded: bool,
    told: bool,
    ordered: Option<String>,
}

impl Charge {
    fn new(link: Channel, pid: u32, own_child: bool, assigned: bool, id: Option<CommandId>) -> Charge {
        Charge {
            link,
            pid,
            own_child,
            task: false,
            leader: None,
            assigned,
            id,
            key: None,
            dismissed: false,
            draft: None,
            materialised: false,
            recorded: false,
            told: false,
            ordered: None,
        }
    }

    /// Whether it has a command, or survivors of one.
    pub fn is_busy(&self) -> bool {
        self.assigned
    }

    /// Whether it waits for a command.
    pub fn is_spare(&self) -> bool {
        !self.assigned && !self.dismissed
    }

    /// Whether its command has not ended.
    pub fn is_running(&self) -> bool {
        self.assigned && !self.recorded
    }

    /// Whether this command was given to it, or it said that it watches it.
    pub fn watches(&self, id: CommandId) -> bool {
        self.assigned && (self.id == Some(id) || self.draft.as_ref().is_some_and(|draft| draft.id == id))
    }

    /// The command that it watches, once it said so.
    pub fn command(&self) -> Option<&ExitRecord> {
        self.draft.as_ref()
    }

    /// Whether its command outlives the session.
    pub fn is_detached(&self) -> bool {
        self.draft.as_ref().is_some_and(|draft| draft.detached)
    }

    /// Tells it to stop its command.
    pub fn order_stop(&mut self, by: &str, detached: bool) {
        if self.assigned && (detached || !self.is_detached()) {
            self.ordered = Some(by.to_owned());
            // A supervisor that is gone shows as a dead child.
            let _ = self.link.send_json(&FromOwnKeeper::Stop { by: by.to_owned(), detached });
        }
    }

    /// Whether it has died or cannot do anything any more: what it left is about to be finished.
    pub fn is_dying(&self) -> bool {
        // An adopted one whose lease could not be read has no number; its link tells when it is gone.
        let stat = proc::stat(self.pid).ok().flatten();
        self.pid != 0 && stat.is_none_or(|stat| stat.exiting || !stat.is_live())
    }

    fn take(&mut self, message: ToOwnKeeper, leader: Option<OwnedFd>) {
        self.leader = leader.or(self.leader.take());
        match message {
            ToOwnKeeper::Begun { draft } => self.draft = Some(*draft),
            ToOwnKeeper::Changed { draft, materialised } => {
                (self.draft, self.materialised) = (Some(*draft), materialised);
            }
            ToOwnKeeper::Recorded { exit } => {
                self.recorded = true;
                self.draft = exit.map(|exit| *exit).or(self.draft.take());
            }
            ToOwnKeeper::Told => self.told = true,
            ToOwnKeeper::Spare => {
                (self.assigned, self.recorded, self.materialised, self.told) = (false, false, false, false);
                (self.id, self.key, self.draft, self.ordered, self.leader) = (None, None, None, None, None);
            }
            // Over is over: nobody is sent there again.
            ToOwnKeeper::NotJoined(offer) => {
                if self.id == Some(offer.with) {
                    self.key = None;
                }
            }
        }
    }
}

type Child = (Channel, Option<Work>);

/// A start on its way to a supervisor.
pub struct Launch {
    /// The command.
    pub id: CommandId,
    /// Asked to join an identical one.
    pub join: Option<Joining>,
    /// The channel to its caller.
    pub channel: Channel,
}

impl Keeper {
    /// Hands a start to the supervisor of an identical command, to the spare or to a new supervisor, or
    /// refuses. In a forked child: its sockets.
    pub(super) fn start(&mut self, mut launch: Launch) -> Option<Child> {
        if self.closing.is_some() || self.closed {
            let reason = "the session is ending; nothing new starts in it".into();
            // A caller that is gone needs no answer; below as here.
            let _ = launch.channel.send_json(&refused(Refusal::Ending, reason, Vec::new()));
            return None;
        }
        if self.sealed.is_some() {
            let reason = "owner is being replaced: nothing starts in this session now, what runs goes on; try again";
            let _ = launch.channel.send_json(&refused(Refusal::Sealed, reason.into(), Vec::new()));
            return None;
        }
        let mut launch = self.join(launch)?;
        if let Some(refused) = self.refusal_by_cap() {
            let _ = launch.channel.send_json(&refused);
            return None;
        }
        let joinable = launch.join.map(|join| {
            let generation = self.generations.entry(join.key).or_default();
            *generation += 1;
            Joinable { key: join.key, generation: *generation }
        });
        let spare = self.charges.values_mut().find(|charge| charge.is_spare());
        let Some(spare) = spare else { return self.fork_charge(Some((launch, joinable))) };
        (spare.assigned, spare.id, spare.key) = (true, Some(launch.id), joinable.map(|joinable| joinable.key));
        let sent = spare.link.send_json_with(&FromOwnKeeper::Assign { joinable }, vec![launch.channel.into_fd()]);
        if sent.is_err() {
            // Dead: the channel closed with it, and the caller starts again.
            spare.dismissed = true;
        } else if let Some(owner) = &self.context.owner {
            let _ = spare.link.send_json(&FromOwnKeeper::Owner { mark: Some(owner.clone()) });
        }
        None
    }

    /// Offers a start that asked for it to the supervisor of an identical command. Gives it back where there
    /// is none: two starts of one instant come here one after the other, so one of them finds the other.
    fn join(&mut self, launch: Launch) -> Option<Launch> {
        let Some(join) = launch.join else { return Some(launch) };
        let found = self.charges.values_mut().find(|charge| charge.key == Some(join.key));
        let Some((charge, with)) = found.and_then(|charge| charge.id.map(|with| (charge, with))) else {
            return Some(launch);
        };
        let offer = FromOwnKeeper::Join(JoinOffer { id: launch.id, join, with });
        if charge.link.send_json_with(&offer, vec![launch.channel.into_fd()]).is_err() {
            // Dead: the channel closed with it, and the caller starts again.
            charge.key = None;
        }
        None
    }

    /// Passes a channel on to the supervisor of a command; where there is none it is closed, which says so.
    pub(super) fn reach(&mut self, id: CommandId, channel: Option<OwnedFd>) {
        if self.unreached.contains(&id) {
            self.adopt_unreached();
        }
        let watching = self.charges.values_mut().find(|charge| charge.watches(id) && !charge.task);
        if let (Some(channel), Some(charge)) = (channel, watching) {
            // A supervisor that is dead closes the channel with its socket.
            let _ = charge.link.send_json_with(&FromOwnKeeper::Meet, vec![channel]);
        }
    }

    /// Starts what the supervisors of identical commands gave back, because those are over.
    pub(super) fn start_not_joined(&mut self) -> Option<Child> {
        while let Some(launch) = self.not_joined.pop_front() {
            let child = self.start(launch);
            if child.is_some() {
                return child;
            }
        }
        None
    }

    /// Tasks have a cap of their own, which their owner keeps.
    fn refusal_by_cap(&self) -> Option<FromSupervisor> {
        let cap = self.context.record().map_or(0, |record| record.running_cap);
        let running = self.running();
        let count = self.charges.values().filter(|charge| charge.is_running() && !charge.task).count();
        if cap > 0 && count >= cap as usize {
            let reason = format!("{count} commands of this session run and its cap is {cap}; stop one first");
            return Some(refused(Refusal::Cap, reason, running));
        }
        None
    }

    fn running(&self) -> Vec<CommandId> {
        let running = self.charges.values().filter(|charge| charge.is_running() && !charge.task);
        running.filter_map(|charge| charge.id).collect()
    }

    /// A spare is kept ready while a resident owner is there, two where they came back. A supervisor whose command is short comes
    /// back as the spare, so a new one is only made when none came back for a while.
    pub(super) fn keep_a_spare(&mut self) -> Option<Child> {
        // The next command of an owner may come before the supervisor of the last one is free again.
        self.dismiss_spares(if self.owner.is_some() { 2 } else { 1 });
        let spare = self.charges.values().any(Charge::is_spare);
        if spare || self.owner.is_none() || self.closing.is_some() || self.closed {
            self.spare_due_at = None;
            return None;
        }
        let now = clock::monotonic();
        let wait = if self.charges.is_empty() { Duration::ZERO } else { SPARE_WAIT };
        if now < *self.spare_due_at.get_or_insert(now + wait) {
            return None;
        }
        self.spare_due_at = None;
        self.fork_charge(None)
    }

    fn fork_charge(&mut self, first: Option<(Launch, Option<Joinable>)>) -> Option<Child> {
        let pair = Channel::pair().map_err(|error| error.to_string());
        let forked = pair.and_then(|pair| Ok((pair, fork::fork("supervisor").map_err(|error| error.to_string())?)));
        match forked {
            Ok(((_, theirs), Forked::Child)) => {
                let work = first.map(|(launch, joinable)| Work { channel: launch.channel, joinable });
                Some((theirs, work))
            }
            Ok(((ours, _), Forked::Parent { pid })) => {
                let id = first.as_ref().map(|(launch, _)| launch.id);
                let mut charge = Charge::new(ours, pid, true, id.is_some(), id);
                charge.key = first.and_then(|(_, joinable)| joinable).map(|joinable| joinable.key);
                self.take_charge(charge);
                None
            }
            Err(error) => {
                if let Some((mut launch, _)) = first {
                    let reason =
                        format!("the machine refused a new process: {error}; end something or raise its limits");
                    let _ = launch.channel.send_json(&refused(Refusal::Machine, reason, self.running()));
                }
                None
            }
        }
    }

    fn take_charge(&mut self, mut charge: Charge) {
        let number = self.next;
        self.next += 1;
        if let Some(owner) = &self.context.owner {
            let _ = charge.link.send_json(&FromOwnKeeper::Owner { mark: Some(owner.clone()) });
        }
        // One that cannot be watched is still reaped as a child; its messages are read then.
        let _ = self.poll.add(&charge.link, CHARGES + u64::from(number), Interest::Read);
        self.charges.insert(number, charge);
    }

    /// Tells every supervisor who the owner is now.
    pub(super) fn tell_owner(&mut self) {
        let mark = self.context.owner.clone();
        for charge in self.charges.values_mut() {
            let _ = charge.link.send_json(&FromOwnKeeper::Owner { mark: mark.clone() });
        }
    }

    /// Reads what supervisor `number` says. An adopted one that hung up has died.
    pub(super) fn hear_charge(&mut self, number: u32) {
        let Some(charge) = self.charges.get_mut(&number) else { return };
        let mut gone = charge.link.flush().is_err();
        loop {
            match charge.link.receive() {
                Ok(Some(mut frame)) => match frame.json() {
                    Ok(ToOwnKeeper::NotJoined(offer)) => {
                        let channel = frame.fds.pop().and_then(|fd| Channel::from_fd(fd).ok());
                        charge.take(ToOwnKeeper::NotJoined(offer), None);
                        // Without its channel it is as one that was not taken: its caller starts again.
                        let launch = channel.map(|channel| Launch { id: offer.id, join: Some(offer.join), channel });
                        self.not_joined.extend(launch);
                    }
                    Ok(message) => charge.take(message, frame.fds.pop()),
                    Err(_) => gone = true,
                },
                Ok(None) => break,
                Err(_) => {
                    gone = true;
                    break;
                }
            }
        }
        if gone || charge.link.is_eof() {
            let _ = self.poll.remove(&charge.link);
            // One that lives and was not understood sees by this that it is on its own.
            charge.link.shut();
            if !charge.own_child {
                self.charge_died(number);
            }
        }
    }

    /// Reaps whoever died: supervisors, leaders that fell to this process, strays.
    pub(super) fn reap(&mut self) {
        while let Ok(Some((pid, status))) = reap::peek_any() {
            let charge = self.charges.iter().find(|(_, charge)| charge.own_child && charge.pid == pid);
            let number = charge.map(|(number, _)| *number);
            // The start time is read while it is a zombie, so that it is known exactly who fell.
            let start = match number {
                Some(number) => {
                    self.hear_charge(number);
                    None
                }
                None => proc::stat(pid).ok().flatten().map(|stat| stat.start),
            };
            if !matches!(reap::reap(pid), Ok(Some(_))) {
                return;
            }
            match number {
                Some(number) => self.charge_died(number),
                None => self.leader_fell((pid, start.unwrap_or_default()), status),
            }
        }
    }

    fn leader_fell(&mut self, who: (u32, u64), status: WaitStatus) {
        let fact = match (status.code(), status.signal()) {
            (Some(code), _) => Fact::Exited(code),
            (None, Some(signal)) => Fact::Signaled(signal),
            (None, None) => return,
        };
        if let Some(vacant) = self.vacant.iter_mut().find(|vacant| vacant.leader_id() == Some(who)) {
            vacant.fact = Some(fact);
        } else {
            // Its supervisor is a zombie behind it in the queue: the fact is kept until that is reaped.
            self.fallen.insert(who, fact);
        }
    }

    fn charge_died(&mut self, number: u32) {
        let Some(charge) = self.charges.remove(&number) else { return };
        let _ = self.poll.remove(&charge.link);
        // A task leaves nothing to end, and nobody but its owner knew how it would have ended.
        if charge.task {
            return;
        }
        // One of our own says so before it starts anything.
        if let (true, true, None, Some(id)) = (charge.own_child, charge.assigned, &charge.draft, charge.id) {
            self.never_begun.insert(id);
        }
        if let (true, Some(draft)) = (charge.assigned, charge.draft) {
            let fact = draft.leader.as_ref().and_then(|leader| self.fallen.remove(&(leader.pid, leader.start)));
            self.vacant.push(Vacant {
                draft,
                materialised: charge.materialised,
                told: charge.told,
                supervisor: charge.pid,
                own_child: charge.own_child,
                ordered: charge.ordered,
                leader: charge.leader,
                fact,
            });
        }
    }

    /// Sends the spares home but so many; they are reaped before the keeper leaves.
    pub(super) fn dismiss_spares(&mut self, kept: usize) {
        for charge in self.charges.values_mut().filter(|charge| charge.is_spare()).skip(kept) {
            charge.dismissed = true;
            let _ = charge.link.send_json(&FromOwnKeeper::Quit);
        }
    }

    /// Takes the supervisors of a keeper that died into charge.
    pub(super) fn adopt_orphans(&mut self) {
        let Some(session) = self.context.dir().cloned() else { return };
        for (_, id) in aliases::all(session.dir()).unwrap_or_default() {
            self.adopt(&session, id);
        }
    }

    /// Tries again with those whose supervisors had no door, which make one as soon as they have no keeper.
    pub(super) fn adopt_unreached(&mut self) {
        let Some(session) = self.context.dir().cloned() else { return };
        for id in std::mem::take(&mut self.unreached) {
            self.adopt(&session, id);
        }
    }

    /// Takes a task of the owner into charge; one of a session that is ending is stopped at once.
    pub(super) fn adopt_task(&mut self, id: CommandId) {
        let Some(session) = self.context.dir().cloned() else { return };
        if self.charges.values().all(|charge| charge.id != Some(id)) {
            self.adopt(&session, id);
        }
        if self.closing.is_some() || self.closed {
            let charge = self.charges.values_mut().find(|charge| charge.id == Some(id));
            charge.into_iter().for_each(|charge| charge.order_stop(Keeper::end_word(), true));
        }
    }

    /// Takes whoever holds the lease of a command into charge.
    fn adopt(&mut self, session: &SessionDir, id: CommandId) {
        let Ok(Some(command)) = session.command(id) else { return };
        if !matches!(command.lease_is_held(), Ok(true)) {
            return;
        }
        let Ok(mut link) = command.connect() else {
            self.unreached.insert(id);
            return;
        };
        self.unreached.remove(&id);
        if link.send_json(&ToSupervisor::Keep).is_err() {
            return;
        }
        let pid = command.lease_mark().ok().flatten().map_or(0, |mark| mark.pid);
        let mut charge = Charge::new(link, pid, false, true, Some(id));
        charge.task = command.request().ok().flatten().is_some_and(|request| request.record.is_task());
        // One whose status cannot be read is joined no more.
        if let Some(joinable) = command.status().ok().flatten().and_then(|status| status.record.joinable) {
            charge.key = Some(joinable.key);
            let generation = self.generations.entry(joinable.key).or_default();
            *generation = joinable.generation.max(*generation);
        }
        self.take_charge(charge);
    }

    /// Hears what tasks have said of themselves, so that a report names them.
    pub(super) fn hear_tasks(&mut self) {
        let tasks: Vec<u32> =
            self.charges.iter().filter(|(_, charge)| charge.task).map(|(number, _)| *number).collect();
        for number in tasks {
            self.hear_charge(number);
        }
    }
}

fn refused(refusal: Refusal, reason: String, running: Vec<CommandId>) -> FromSupervisor {
    FromSupervisor::Refused { refusal, reason, running }
}
