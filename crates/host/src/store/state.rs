//! The state directory: where all sessions live.

use std::path::Path;

use outlast_core::id::SessionId;
use outlast_core::record::SessionRecord;
use rustix::fs::Mode;

use super::ids;
use super::name;
use super::session::SessionDir;
use crate::dir::{Dir, FileError, Result, if_there};
use crate::effect;

/// More than a file system keeps beside the name of a file.
const TRIED_BYTES: usize = 16 * 1024;

/// An open state directory. Clones share it.
#[derive(Debug, Clone)]
pub struct State {
    root: Dir,
    sessions: Dir,
}

impl State {
    /// Opens the state directory and makes what is missing of it.
    pub fn open(path: &Path) -> Result<State> {
        let root = Dir::open_state_root(path)?;
        let sessions = root.create_sub(name::SESSIONS)?;
        Ok(State { root, sessions })
    }

    /// Makes a state directory where nothing of that name is yet, in a directory that is there.
    pub fn create(path: &Path) -> Result<State> {
        effect::make_dir_at("state", path, Mode::RWXU).map_err(|errno| FileError::os("make", path, errno))?;
        State::open(path)
    }

    /// Opens the state directory if it is there, and makes nothing.
    pub fn find(path: &Path) -> Result<Option<State>> {
        let Some(root) = Dir::find_state_root(path)? else { return Ok(None) };
        let sessions = if_there(root.sub(name::SESSIONS))?;
        Ok(sessions.map(|sessions| State { root, sessions }))
    }

    /// Makes, fills and removes a file, as every command with records does; an error tells what cannot be done.
    pub fn try_record(&self) -> Result<()> {
        let file = format!(".try-{}", std::process::id());
        // One that a process of the same number left.
        self.root.remove_if_there(&file)?;
        let made = self.root.create_new(&file)?;
        let written = effect::write_at(&file, &made, &[b'x'; TRIED_BYTES], 0)
            .map_err(|error| FileError::io("write", self.root.path_of(&file), &error));
        let removed = self.root.remove_file(&file);
        written.and(removed)
    }

    /// The open state directory.
    pub fn root(&self) -> &Dir {
        &self.root
    }

    /// The open directory of sessions.
    pub fn sessions(&self) -> &Dir {
        &self.sessions
    }

    /// Absolute path of the state directory.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Ids of all sessions, oldest first. Names that are no id are left out.
    pub fn list(&self) -> Result<Vec<SessionId>> {
        let mut ids: Vec<SessionId> = ids(&self.sessions)?;
        ids.sort();
        Ok(ids)
    }

    /// Opens a session; `None` if there is none of that id.
    pub fn session(&self, id: SessionId) -> Result<Option<SessionDir>> {
        SessionDir::open(&self.sessions, id)
    }

    /// The sessions that were made as children of this one, oldest first; a session's own record says whether it is.
    pub fn children(&self, parent: SessionId) -> Result<Vec<SessionId>> {
        super::contexts::list(self, &children_of(parent))
    }

    /// Makes a session, one of its context and of its parent.
    pub fn create_session(&self, record: &SessionRecord) -> Result<SessionDir> {
        super::contexts::append(self, &record.context, record.id)?;
        if let Some(parent) = record.parent {
            super::contexts::append(self, &children_of(parent), record.id)?;
        }
        SessionDir::create(&self.sessions, record)
    }
}

/// Children are found as the sessions of a context are; no context has a control character in its name.
fn children_of(parent: SessionId) -> String {
    format!("\n{parent}")
}
