//! The keeper's door, and the front ends that talk to the keeper.

use std::os::fd::OwnedFd;

use outlast_core::id::CommandId;
use outlast_core::wire::{FromKeeper, ToKeeper};
use outlast_host::door::{DoorError, Listener};
use outlast_host::frame::Channel;
use outlast_host::lock::Lock;
use outlast_host::store::session::SessionDir;

use super::charges::{Charge, Launch};
use super::{DOOR, DOOR_TAKEN, Keeper, VISITORS};
use crate::context::{Work, own_mark};
use crate::patience::Patience;
use crate::poll::Interest;

/// The door of the keeper.
pub struct Door {
    listener: Listener,
    /// Tells when somebody takes the door away; none where the kernel gives no more watches.
    taken: Option<OwnedFd>,
    /// What says whose door it is.
    lock: Lock,
}

impl Door {
    /// Opens it; the lock is the keeper's.
    pub fn open(dir: &SessionDir, lock: Lock) -> Result<Door, DoorError> {
        // Until it leaves; where the disk has no room for a word the door alone says it.
        let _ = lock.write_content(format!("kept {}\n", std::process::id()).as_bytes());
        let (listener, taken) = dir.bind_door()?;
        Ok(Door { listener, taken, lock })
    }

    /// The keeper leaves in order: nothing is left for the next one to look after.
    pub fn leave(&self) {
        // A next one that finds the word looks for what is not there.
        let _ = self.lock.clear_content();
    }
}

/// One front end.
pub struct Visitor {
    channel: Channel,
    fate: Option<CommandId>,
}

impl Keeper {
    /// Looks at the door from now on.
    pub(super) fn attend_door(&self) -> Result<(), rustix::io::Errno> {
        let Some(door) = &self.door else { return Ok(()) };
        if let Some(taken) = &door.taken {
            self.poll.add(taken, DOOR_TAKEN, Interest::Read)?;
        }
        self.poll.add(&door.listener, DOOR, Interest::Read)
    }

    /// Takes everybody in who has knocked; true if somebody had.
    pub(super) fn open_door(&mut self) -> bool {
        let mut knocked = Vec::new();
        if let Some(door) = &self.door {
            while let Ok(Some(channel)) = door.listener.accept() {
                knocked.push(channel);
            }
        }
        let somebody = !knocked.is_empty();
        for channel in knocked {
            self.visitor(channel);
        }
        somebody
    }

    /// Looks whether the door is there, where the kernel gave no watch that tells.
    pub(super) fn look_at_door(&mut self) {
        let gone = self.context.dir().is_some_and(|dir| !dir.has_door());
        if gone && self.is_door_unwatched() {
            self.reopen_door();
        }
    }

    /// Whether nobody tells that the door is taken away.
    pub(super) fn is_door_unwatched(&self) -> bool {
        self.door.as_ref().is_some_and(|door| door.taken.is_none())
    }

    /// Opens the door again that somebody has taken away, so that the next front end finds one.
    pub(super) fn reopen_door(&mut self) {
        self.open_door();
        let (Some(dir), Some(door)) = (self.context.dir(), &mut self.door) else { return };
        if let Some(taken) = door.taken.take() {
            let _ = self.poll.remove(taken);
        }
        // Where there can be none now (the directory itself is gone), those who are in are served.
        if let Ok(opened) = dir.bind_door() {
            let _ = self.poll.remove(&door.listener);
            (door.listener, door.taken) = opened;
            // A door that cannot be watched serves those who are in already.
            let _ = self.attend_door();
        }
    }

    /// Takes a connection in.
    pub(super) fn visitor(&mut self, channel: Channel) {
        let number = self.next;
        self.next += 1;
        if self.poll.add(&channel, VISITORS + u64::from(number), Interest::Read).is_ok() {
            self.visitors.insert(number, Visitor { channel, fate: None });
        }
    }

    /// Reads what front end `number` asks. In a forked child: its sockets.
    pub(super) fn hear_visitor(&mut self, number: u32, writable: bool) -> Option<(Channel, Option<Work>)> {
        let mut gone = false;
        if writable && let Some(visitor) = self.visitors.get_mut(&number) {
            gone = visitor.channel.flush().is_err();
        }
        while !gone {
            let visitor = self.visitors.get_mut(&number)?;
            match visitor.channel.receive() {
                Ok(Some(mut frame)) => match frame.json() {
                    Ok(ToKeeper::Start { id, join }) => {
                        let channel = frame.fds.pop().and_then(|fd| Channel::from_fd(fd).ok());
                        let child = channel.and_then(|channel| self.start(Launch { id, join, channel }));
                        if child.is_some() {
                            return child;
                        }
                    }
                    Ok(ToKeeper::Reach { id }) => self.reach(id, frame.fds.pop()),
                    Ok(message) => self.answer(number, message),
                    Err(_) => gone = true,
                },
                Ok(None) => {
                    gone = visitor.channel.is_eof();
                    break;
                }
                Err(_) => gone = true,
            }
        }
        if gone {
            self.visitor_gone(number);
        } else {
            self.settle(number);
        }
        None
    }

    fn answer(&mut self, number: u32, message: ToKeeper) {
        match message {
            ToKeeper::Own { mark } => {
                self.owner = Some(number);
                self.sealed = None;
                self.context.owner = Some(mark);
                (self.owner_gone_at, self.patience) = (None, Patience::default());
                self.tell_owner();
                self.say(number, &FromKeeper::Owned { keeper: own_mark() });
            }
            ToKeeper::Start { .. } | ToKeeper::Reach { .. } => {}
            ToKeeper::Seal => {
                self.sealed = Some(number);
                self.say(number, &FromKeeper::Sealed);
            }
            ToKeeper::Task { id } => self.adopt_task(id),
            ToKeeper::Fate { id } => {
                if let Some(visitor) = self.visitors.get_mut(&number) {
                    visitor.fate = Some(id);
                }
                // Answered at the end of this turn, when it is seen which supervisors died.
            }
            ToKeeper::End { by, bound_ms, detached } => self.begin_closing(&by, Some((number, bound_ms)), detached),
            ToKeeper::Ping => {
                let keeping = self.charges.values().filter(|charge| charge.is_busy()).count();
                let keeping = u32::try_from(keeping).unwrap_or(u32::MAX);
                let ending = self.closing.is_some() || self.closed;
                self.say(number, &FromKeeper::Pong { keeper: own_mark(), keeping, ending });
            }
        }
    }

    /// Answers those who ask for commands whose records are finished, or were never known here.
    pub(super) fn answer_fates(&mut self) {
        let waiting: Vec<(u32, CommandId)> =
            self.visitors.iter().filter_map(|(number, visitor)| Some((*number, visitor.fate?))).collect();
        for (number, id) in waiting {
            if self.vacant.iter().any(|vacant| vacant.draft.id == id) {
                continue;
            }
            let watching = |charge: &&Charge| charge.watches(id);
            let alive = match self.charges.values().find(watching) {
                // Whoever asks saw its connection close, which is before its parent can reap it.
                Some(charge) if charge.is_dying() => continue,
                found => found.is_some(),
            };
            let finished = self.finished.get(&id);
            let known = alive || finished.is_some();
            let exit = finished.cloned().flatten().map(Box::new);
            let never_begun = !known && self.never_begun.contains(&id);
            if let Some(visitor) = self.visitors.get_mut(&number) {
                visitor.fate = None;
            }
            self.say(number, &FromKeeper::Fate { id, known, never_begun, exit });
        }
    }

    /// Says something to front end `number`.
    pub(super) fn say(&mut self, number: u32, what: &FromKeeper) {
        if let Some(visitor) = self.visitors.get_mut(&number) {
            // One that is gone shows as a hang-up.
            let _ = visitor.channel.send_json(what);
        }
        self.settle(number);
    }

    fn settle(&mut self, number: u32) {
        if let Some(visitor) = self.visitors.get_mut(&number) {
            let interest = if visitor.channel.want_write() { Interest::Both } else { Interest::Read };
            let _ = self.poll.set(&visitor.channel, VISITORS + u64::from(number), interest);
        }
    }

    fn visitor_gone(&mut self, number: u32) {
        if let Some(visitor) = self.visitors.remove(&number) {
            let _ = self.poll.remove(&visitor.channel);
        }
        self.sealed.take_if(|by| *by == number);
        if self.owner == Some(number) {
            self.owner = None;
            self.context.owner = None;
            self.tell_owner();
            self.expect_owner();
        }
        // Without a door the first connection is all there is: its commands end with it.
        if self.door.is_none() && self.visitors.is_empty() {
            self.order_stop(outlast_core::ending::BY_OWNER_GONE, true);
        }
    }
}
