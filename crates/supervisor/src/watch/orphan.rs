//! A supervisor whose keeper vanished watches anchor and owner itself, for its own command.

use std::os::fd::OwnedFd;
use std::time::Duration;

use outlast_core::ending::{BY_OWNER_GONE, BY_SESSION_END};
use outlast_core::record::{LINGER_MS, Ownership, ProcessMark};
use outlast_host::{clock, mark};

use super::{ANCHOR, OWNER, Watch};
use crate::LOOK_AGAIN;
use crate::patience::{Patience, Wait};
use crate::poll::Interest;

/// What is watched in the keeper's place.
#[derive(Default)]
pub struct Orphan {
    anchor: Option<OwnedFd>,
    owner: Option<OwnedFd>,
    /// When the wait for a new owner is over.
    pub give_up_at: Option<Duration>,
    patience: Patience,
    /// When a process that could not be watched is looked for again.
    pub again_at: Option<Duration>,
}

/// The machine has no descriptor or memory to watch a process with.
struct Unwatchable;

impl Watch<'_> {
    /// The keeper is gone: its watch falls to this process. Records are made, so that a new keeper finds
    /// the command.
    pub(super) fn become_orphan(&mut self) {
        self.orphan = Some(Orphan::default());
        if self.records.is_none() && self.exit.is_none() {
            self.overflow();
        }
        self.open_door_again();
        self.watch_both();
        self.end_with_callers();
    }

    /// A session without records ends with its caller: its keeper sees to that, else its supervisor.
    pub(super) fn end_with_callers(&mut self) {
        if self.orphan.is_some() && self.post.context.session.is_none() && self.callers.is_empty() {
            self.stop_for(BY_OWNER_GONE, false);
        }
    }

    fn watch_both(&mut self) {
        if let Some(anchor) = self.post.context.anchor().cloned() {
            match self.watch_process(&anchor, ANCHOR) {
                Ok(Some(fd)) => self.set(|orphan| orphan.anchor = Some(fd)),
                Ok(None) => self.stop_for(BY_SESSION_END, false),
                Err(Unwatchable) => self.look_again(),
            }
        }
        self.watch_owner();
    }

    /// Not to know is not to know that it is gone: it is looked for again.
    fn look_again(&mut self) {
        self.set(|orphan| orphan.again_at = Some(clock::monotonic() + LOOK_AGAIN));
    }

    fn watch_owner(&mut self) {
        let resident = self.post.context.record().is_some_and(|record| record.ownership == Ownership::Resident);
        if !resident {
            return;
        }
        let owner = self.post.context.owner.clone();
        match owner.map_or(Ok(None), |owner| self.watch_process(&owner, OWNER)) {
            Ok(Some(fd)) => self.set(|orphan| (orphan.owner, orphan.give_up_at) = (Some(fd), None)),
            Ok(None) => self.wait_for_owner(),
            Err(Unwatchable) => self.look_again(),
        }
    }

    fn wait_for_owner(&mut self) {
        let linger = self.post.context.record().map_or(LINGER_MS, |record| record.linger_ms);
        self.set(|orphan| orphan.give_up_at = Some(clock::monotonic() + Duration::from_millis(linger)));
    }

    fn set(&mut self, change: impl FnOnce(&mut Orphan)) {
        if let Some(orphan) = &mut self.orphan {
            change(orphan);
        }
    }

    /// Watches a process; none if it is gone.
    fn watch_process(&self, process: &ProcessMark, token: u64) -> Result<Option<OwnedFd>, Unwatchable> {
        let Some(fd) = mark::open(process).map_err(|_| Unwatchable)? else { return Ok(None) };
        self.post.poll.add(&fd, token, Interest::Read).map_err(|_| Unwatchable)?;
        Ok(Some(fd))
    }

    /// Anchor or owner ended.
    pub(super) fn orphan_event(&mut self, token: u64) {
        let Some(orphan) = &mut self.orphan else { return };
        let ended = if token == ANCHOR { orphan.anchor.take() } else { orphan.owner.take() };
        let Some(ended) = ended else { return };
        let _ = self.post.poll.remove(&ended);
        if token == ANCHOR {
            self.stop_for(BY_SESSION_END, false);
        } else {
            self.wait_for_owner();
        }
    }

    /// No new owner came in time.
    pub(super) fn orphan_tick(&mut self, now: Duration) {
        let Some(orphan) = self.orphan.as_mut() else { return };
        let (given_up, again) =
            (orphan.give_up_at.take_if(|at| now >= *at).is_some(), orphan.again_at.take_if(|at| now >= *at).is_some());
        if again {
            let known = self.orphan.take().unwrap_or_default();
            let Orphan { give_up_at, patience, .. } = known;
            self.orphan = Some(Orphan { give_up_at, patience, ..Orphan::default() });
            self.watch_both();
        }
        if given_up {
            let patience = self.orphan.as_mut().map(|orphan| &mut orphan.patience);
            match patience.map_or(Wait::Over, |patience| patience.after_linger(&self.post.context)) {
                Wait::Longer => self.wait_for_owner(),
                Wait::Over => self.stop_for(BY_OWNER_GONE, false),
            }
        }
    }

    /// A new keeper watches again.
    pub(super) fn kept_again(&mut self) {
        if let Some(orphan) = self.orphan.take() {
            for fd in [orphan.anchor, orphan.owner].into_iter().flatten() {
                let _ = self.post.poll.remove(&fd);
            }
        }
    }
}
