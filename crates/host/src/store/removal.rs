//! Removes sessions with all of their files, so that a death in between leaves nothing that can be taken for one; and whole
//! state directories.

use outlast_core::id::SessionId;

use super::session::SessionDir;
use super::state::State;
use super::{anchors, contexts, name, understood};
use crate::dir::{FileError, Result};
use crate::lock::Lock;

/// A session that nobody else can use: no keeper, no owner and no supervisor lives, and none can come as long as this
/// is held.
#[derive(Debug)]
pub struct Vacated {
    session: SessionDir,
    _keeper: Lock,
    /// None where this process owns the session anyway.
    _owner: Option<Lock>,
}

impl Vacated {
    /// Takes the locks of a session; none while somebody holds one of them, or the lease of a command.
    pub fn take(session: SessionDir) -> Result<Option<Vacated>> {
        let Some(owner) = session.try_owner_lock()? else { return Ok(None) };
        let Some(keeper) = session.try_keeper_lock()? else { return Ok(None) };
        Vacated::with(session, keeper, Some(owner))
    }

    /// The same for who holds the keeper's lock already, and the owner's by itself where none is given.
    pub fn with(session: SessionDir, keeper: Lock, owner: Option<Lock>) -> Result<Option<Vacated>> {
        for id in session.commands()? {
            if let Some(command) = session.command(id)?
                && command.lease_is_held()?
            {
                return Ok(None);
            }
        }
        Ok(Some(Vacated { session, _keeper: keeper, _owner: owner }))
    }

    /// The session.
    pub fn session(&self) -> &SessionDir {
        &self.session
    }

    /// Removes it: from one instant to the next it is not found any more, then its files go, then what leads to it.
    pub fn remove(self, state: &State) -> Result<()> {
        let record = understood(self.session.record().map(Some))?;
        let id = self.session.id();
        super::moving::remove_places(&self.session)?;
        // One that was removed half and could not be cleared stands in the way of nobody but this.
        clear_hidden(state, id)?;
        state.sessions().rename_noreplace(&id.to_string(), &hidden(id))?;
        clear_hidden(state, id)?;
        let Some(record) = record else { return Ok(()) };
        if let Some(anchor) = &record.anchor {
            anchors::forget(state, anchor, id)?;
        }
        if !record.context.is_empty() {
            contexts::forget(state, &record.context, id)?;
        }
        Ok(())
    }
}

/// Removes a state directory with everything of it, also what lies beside transcripts. Waits, however long that is, until
/// no session has an owner or a keeper. Refused, and nothing is removed, where a command lives whose keeper was killed, or
/// where the path of the directory leads elsewhere by now.
pub fn remove_all(state: &State) -> Result<()> {
    let mut vacated: Vec<Vacated> = Vec::new();
    loop {
        let held = vacated.len();
        for id in state.list()? {
            if vacated.iter().all(|one| one.session.id() != id)
                && let Some(session) = state.session(id)?
            {
                vacated.push(wait_for(session)?);
            }
        }
        // Somebody else may have made one while this waited.
        if vacated.len() == held {
            break;
        }
    }
    if !state.root().is_in_place() {
        let why = "its path leads to another directory, or to none";
        return Err(FileError::refused("remove", state.path(), why));
    }
    let _lock = Lock::acquire(state.root(), name::RETAIN_LOCK)?;
    vacated.into_iter().try_for_each(|one| one.remove(state))?;
    state.root().remove_whole()
}

fn wait_for(session: SessionDir) -> Result<Vacated> {
    let (owner, keeper) = (session.owner_lock()?, session.keeper_lock()?);
    let path = session.path().to_owned();
    let why = "a command in it lives, and no keeper is left to end it (`outlast ps -a`)";
    Vacated::with(session, keeper, Some(owner))?.ok_or_else(|| FileError::refused("remove", path, why))
}

fn hidden(id: SessionId) -> String {
    format!("{}{id}", name::OLD)
}

fn clear_hidden(state: &State, id: SessionId) -> Result<()> {
    let hidden = hidden(id);
    if state.sessions().exists(&hidden)? { state.sessions().remove_tree(&hidden) } else { Ok(()) }
}
