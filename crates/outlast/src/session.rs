//! A handle to one session: what it is, and whether it is open.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use outlast_core::id::{CommandId, SessionId};
use outlast_core::policy::AtRest;
use outlast_core::record::{Ownership, ProcessMark, SessionRecord};
use outlast_core::request::OsText;
use outlast_host::mark;
use outlast_host::store::session::SessionDir;

use crate::error::{Error, Result};
use crate::runtime::{Runtime, SessionInner};

/// A handle to one session. Clones are the same session; the last one frees what it owns.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<SessionInner>,
}

impl Session {
    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.inner.id
    }

    /// The runtime it belongs to.
    pub fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    /// What its creator wrote; none for a session that is nowhere on disk, or whose record is damaged.
    pub fn record(&self) -> Option<&SessionRecord> {
        self.inner.given.get().or(self.inner.record.as_ref())
    }

    /// Takes over that it was given a context.
    pub(crate) fn know(&self, record: SessionRecord) {
        // It is given one once.
        let _known = self.inner.given.set(record);
    }

    /// Whether records can be made in it.
    pub fn has_records(&self) -> bool {
        self.inner.dir.is_some() && self.inner.runtime.records().is_ok()
    }

    /// Its directory, for calls that look at what is in it; none for a session that is nowhere on disk. An error
    /// where only nobody can say now what is there.
    pub(crate) fn dir_if_any(&self) -> Result<Option<&SessionDir>> {
        match (&self.inner.dir, self.inner.runtime.state()) {
            (Some(dir), _) => Ok(Some(dir)),
            (None, Err(error)) if error.is_unknown() => Err(error),
            (None, _) => Ok(None),
        }
    }

    /// Whether this process owns it.
    pub fn is_owned_here(&self) -> bool {
        self.inner.owner.is_some()
    }

    /// Whether somebody has to own it as long as it is used: its commands end when nobody does.
    pub fn wants_owner(&self) -> bool {
        self.record().is_some_and(|record| record.ownership == Ownership::Resident)
    }

    /// The directory of the session; none for one that is nowhere on disk.
    pub fn path(&self) -> Option<PathBuf> {
        self.inner.dir.as_ref().map(|dir| dir.path().to_owned())
    }

    /// Refused once the session was ended or its anchor is gone.
    pub async fn ensure_open(&self) -> Result<()> {
        let Some(dir) = &self.inner.dir else { return Ok(()) };
        if dir.is_closed()? {
            let by = dir.closed()?.map_or_else(|| "somebody".to_owned(), |closed| closed.record.by);
            return Err(Error::SessionClosed { session: self.inner.id, by });
        }
        if let Some(anchor) = self.inner.record.as_ref().and_then(|record| record.anchor.as_ref())
            && !is_alive(anchor)?
        {
            return Err(Error::AnchorGone { session: self.inner.id, pid: anchor.pid });
        }
        Ok(())
    }

    /// Its directory, for calls that need one.
    pub(crate) fn dir(&self) -> Result<&SessionDir> {
        match &self.inner.dir {
            Some(dir) => Ok(dir),
            // The state directory says why.
            None => Err(self
                .inner
                .runtime
                .state()
                .err()
                .unwrap_or_else(|| Error::NoRecords("this session has no records".to_owned()))),
        }
    }

    /// Where nothing may be stored with secrets in it: values that are secrets beside those of an environment.
    pub(crate) fn conceals(&self) -> Option<Vec<OsText>> {
        let policy = &self.inner.runtime.inner.config.policy;
        (policy.at_rest == AtRest::Redacted).then(|| policy.secrets.iter().cloned().map(OsText).collect())
    }

    /// Keeps the descriptor of a demoted leader as long as its process may still tell how it ended.
    pub(crate) fn keep_leader(&self, id: CommandId, leader: OwnedFd) {
        let (Some(owner), Ok(dir)) = (&self.inner.owner, self.dir()) else { return };
        let mut leaders = owner.leaders.lock().unwrap_or_else(PoisonError::into_inner);
        // One of which nothing can be said now is kept.
        let is_over = |id: CommandId| match dir.command(id) {
            Ok(Some(command)) => matches!(command.has_exit(), Ok(true)),
            Ok(None) => true,
            Err(_) => false,
        };
        leaders.retain(|id, _| !is_over(*id));
        leaders.insert(id, leader);
    }

    /// The descriptor of a demoted leader, where this process holds it.
    pub(crate) fn leader_of(&self, id: CommandId) -> Result<Option<OwnedFd>> {
        let Some(owner) = &self.inner.owner else { return Ok(None) };
        let leaders = owner.leaders.lock().unwrap_or_else(PoisonError::into_inner);
        let leader = leaders.get(&id).map(OwnedFd::try_clone).transpose();
        leader.map_err(|error| Error::system(format!("cannot ask the kernel for the end of {id}"), error))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({})", self.inner.id)
    }
}

pub(crate) fn is_alive(mark: &ProcessMark) -> Result<bool> {
    mark::is_alive(mark).map_err(|error| Error::Unreachable(format!("cannot look at process {}: {error}", mark.pid)))
}
