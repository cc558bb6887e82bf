//! A supervisor whose keeper vanished watches anchor and owner itself, for its own command.

use std::os::fd::OwnedFd;
use std::time::Duration;

use outlast_core::ending::{BY_OWNER_GONE, BY_SESSION_END};
use outlast_core::record::{LINGER_MS, Ownership, ProcessMark};
use outlast_host::{clock, mark};

use super::{ANCHOR, OWNER, Watch};
use crate::poll::Interest;

/// What is watched in the keeper's place.
#[derive(Default)]
pub struct Orphan {
    anchor: Option<OwnedFd>,
    owner: Option<OwnedFd>,
    /// When the wait for a new owner is over.
    pub give_up_at: Option<Duration>,
}

impl Watch<'_> {
    /// The keeper is gone: its watch falls to this process. Records are made, so that a new keeper finds
    /// the command.
    pub(super) fn become_orphan(&mut self) {
        self.orphan = Some(Orphan::default());
        if self.records.is_none() && self.exit.is_none() {
            self.overflow();
        }
        match self.post.context.anchor().cloned() {
            Some(anchor) => match self.watch_process(&anchor, ANCHOR) {
                Some(fd) => self.set(|orphan| orphan.anchor = Some(fd)),
                None => self.stop_for(BY_SESSION_END, false),
            },
            // A session without records ends with its caller.
            None if self.post.context.session.is_none() && self.caller.is_none() => self.stop_for(BY_OWNER_GONE, false),
            None => {}
        }
        self.watch_owner();
    }

    fn watch_owner(&mut self) {
        let resident = self.post.context.record().is_some_and(|record| record.ownership == Ownership::Resident);
        if !resident {
            return;
        }
        let owner = self.post.context.owner.clone();
        match owner.and_then(|owner| self.watch_process(&owner, OWNER)) {
            Some(fd) => self.set(|orphan| (orphan.owner, orphan.give_up_at) = (Some(fd), None)),
            None => self.wait_for_owner(),
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

    fn watch_process(&self, process: &ProcessMark, token: u64) -> Option<OwnedFd> {
        let fd = mark::open(process).ok().flatten()?;
        self.post.poll.add(&fd, token, Interest::Read).ok()?;
        Some(fd)
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
        if orphan.give_up_at.take_if(|at| now >= *at).is_some() {
            self.stop_for(BY_OWNER_GONE, false);
        }
    }

    /// A new owner lives.
    pub(super) fn adopted(&mut self) {
        if self.orphan.is_some() {
            self.watch_owner();
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
