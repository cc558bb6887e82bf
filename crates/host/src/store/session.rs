//! The directory of one session: who it is, its locks and doors, its commands and its end.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_core::id::{CommandId, SessionId};
use outlast_core::record::{BoundRecord, ClosedRecord, ContextRecord, Durability, SessionRecord, schema};

use super::command::{self, CommandDir, NewCommand};
use super::places::Home;
use super::{Loaded, load, name, put_once};
use crate::dir::{Dir, FileError, Result, if_there};
use crate::door::{self, DoorError, Listener};
use crate::frame::Channel;
use crate::lock::{self, Lock, Wanted};

/// The directory of a session.
#[derive(Debug, Clone)]
pub struct SessionDir {
    dir: Dir,
    work: Dir,
    id: SessionId,
    durability: Durability,
    /// `session.json`, which is written once, where it could be read when this was opened.
    record: Option<Arc<Loaded<SessionRecord>>>,
}

impl SessionDir {
    /// Makes the directory of a session, complete from the instant it can be found.
    pub fn create(sessions: &Dir, record: &SessionRecord) -> Result<SessionDir> {
        let (id, durability) = (record.id, record.durability);
        let new = format!("{}{id}", name::NEW);
        let dir = sessions.create_new_sub(&new)?.known_as(sessions.path_of(&id.to_string()));
        let work = dir.create_sub(name::WORK)?;
        put_once(&dir, name::SESSION, record, durability)?;
        sessions.rename_noreplace(&new, &id.to_string())?;
        if durability == Durability::Power {
            sessions.sync()?;
        }
        let record = Some(Arc::new(Loaded { record: record.clone(), newer: false }));
        Ok(SessionDir { dir, work, id, durability, record })
    }

    /// Opens the directory of a session; `None` if there is none.
    ///
    /// A `session.json` that cannot be read does not keep the commands from being read: the durability
    /// is then the default, and [`SessionDir::record`] tells the error. One that cannot be looked at now does.
    pub fn open(sessions: &Dir, id: SessionId) -> Result<Option<SessionDir>> {
        let Some(dir) = if_there(sessions.sub(&id.to_string()))? else { return Ok(None) };
        let work = match if_there(dir.sub(name::WORK))? {
            Some(work) => work,
            None => dir.create_sub(name::WORK)?,
        };
        let mut session = SessionDir { dir, work, id, durability: Durability::default(), record: None };
        match session.record() {
            Ok(record) => {
                session.durability = record.durability;
                session.record = Some(Arc::new(record));
            }
            Err(error) if error.is_unknown() => return Err(error),
            Err(_) => {}
        }
        Ok(Some(session))
    }

    /// The descriptors that this value holds, for a forked child to keep.
    pub fn descriptors(&self) -> Vec<std::os::fd::RawFd> {
        use std::os::fd::{AsFd, AsRawFd};
        [&self.dir, &self.work].map(|dir| dir.as_fd().as_raw_fd()).to_vec()
    }

    /// True if a keeper lives, or one died without taking its leave: its word stands in its lock, or its door is there.
    /// Either may have been lost, to a full disk or to whoever cleared sockets away.
    pub fn is_or_was_kept(&self) -> bool {
        // What cannot be read is looked at closely.
        let word =
            lock::read_content(&self.dir, name::KEEPER_LOCK).map(|text| text.is_some_and(|text| !text.is_empty()));
        word.unwrap_or(true) || self.dir.exists(name::KEEPER_DOOR).unwrap_or(true)
    }

    /// The session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The open directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Absolute path of the directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The home of commands whose environment is clean; made on first use.
    pub fn create_home(&self) -> Result<PathBuf> {
        Ok(self.dir.create_sub(name::HOME)?.path().to_owned())
    }

    /// What its records survive.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Who the session is.
    pub fn record(&self) -> Result<Loaded<SessionRecord>> {
        if let Some(record) = &self.record {
            return Ok(Loaded::clone(record));
        }
        self.reread()
    }

    /// Who the session is as it stands on disk now: a context may have been given to it since this was opened.
    pub fn reread(&self) -> Result<Loaded<SessionRecord>> {
        let missing = || FileError::os("open", self.dir.path_of(name::SESSION), rustix::io::Errno::NOENT);
        let mut record: Loaded<SessionRecord> = load(&self.dir, name::SESSION, schema::SESSION)?.ok_or_else(missing)?;
        if record.id != self.id {
            let why = format!("it is the record of {} in the directory of another session", record.id);
            return Err(FileError::damaged("believe", self.dir.path_of(name::SESSION), why));
        }
        if record.record.context.is_empty() {
            record.record.context = self.given_context()?.unwrap_or_default();
        }
        Ok(record)
    }

    /// The context that it was given after it was made, if it was.
    fn given_context(&self) -> Result<Option<String>> {
        let record: Option<Loaded<ContextRecord>> = load(&self.dir, name::CONTEXT, schema::CONTEXT)?;
        Ok(record.map(|record| record.record.context))
    }

    /// Writes `context.json`, once; a session that was given a context before is an error ([`FileError::is_taken`]).
    pub fn give_context(&self, record: &ContextRecord) -> Result<()> {
        put_once(&self.dir, name::CONTEXT, record, self.durability)
    }

    /// Writes `closed.json`, once; a session that is closed already is an error
    /// ([`FileError::is_taken`]).
    pub fn write_closed(&self, record: &ClosedRecord) -> Result<()> {
        put_once(&self.dir, name::CLOSED, record, self.durability)
    }

    /// The report of the session's end, if it ended.
    pub fn closed(&self) -> Result<Option<Loaded<ClosedRecord>>> {
        load(&self.dir, name::CLOSED, schema::CLOSED)
    }

    /// True if `closed.json` is there, whatever is in it.
    pub fn is_closed(&self) -> Result<bool> {
        self.dir.exists(name::CLOSED)
    }

    /// Says that the session is to go: from now on nobody is told of anything in it.
    pub fn give_up(&self) -> Result<()> {
        self.dir.create_file(name::GIVEN_UP).map(|_| ())
    }

    /// True if the session is to go.
    pub fn is_given_up(&self) -> Result<bool> {
        self.dir.exists(name::GIVEN_UP)
    }

    /// Ids of all commands with records, oldest first. Names that are no id are left out.
    pub fn commands(&self) -> Result<Vec<CommandId>> {
        let mut ids = self.home().commands()?;
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// Opens a command's directory, wherever it is; `None` if it has no records in this session.
    pub fn command(&self, id: CommandId) -> Result<Option<CommandDir>> {
        CommandDir::find(self.home(), id, self.durability)
    }

    /// Where the records of its commands are moved to, if it was bound.
    pub fn bound(&self) -> Result<Option<Loaded<BoundRecord>>> {
        self.home().bound()
    }

    pub(super) fn home(&self) -> Home {
        Home { session: self.dir.clone(), work: self.work.clone() }
    }

    /// Whether the directory of a command is being made, or was left by one who died over that. Who then
    /// finds no [`SessionDir::command`] knows that there will never be one: ask in this order.
    pub fn is_being_made(&self, id: CommandId) -> Result<bool> {
        self.work.exists(&command::new_name(id))
    }

    /// Removes what is there of a command that was to be made and was not. What cannot be removed lies under a hidden name
    /// and is cleared by gc.
    pub fn remove_unmade(&self, id: CommandId) {
        let _ = self.work.remove_tree(&command::new_name(id));
    }

    /// Makes the directory of a command, not to be found before it is published.
    pub fn new_command(&self, id: CommandId) -> Result<NewCommand> {
        NewCommand::create(&self.work, id, self.durability)
    }

    /// The keeper's lock, to be tried again and again.
    pub fn want_keeper_lock(&self) -> Wanted {
        Wanted::new(&self.dir, name::KEEPER_LOCK)
    }

    /// Takes the keeper's lock if it is free.
    pub fn try_keeper_lock(&self) -> Result<Option<Lock>> {
        Lock::try_acquire(&self.dir, name::KEEPER_LOCK)
    }

    /// Takes the keeper's lock; waits in the kernel as long as another process holds it.
    pub fn keeper_lock(&self) -> Result<Lock> {
        Lock::acquire(&self.dir, name::KEEPER_LOCK)
    }

    /// True if a keeper lives.
    pub fn has_keeper(&self) -> Result<bool> {
        lock::is_held(&self.dir, name::KEEPER_LOCK)
    }

    /// The lock of the session's owner, to be tried again and again.
    pub fn want_owner_lock(&self) -> Wanted {
        Wanted::new(&self.dir, name::OWNER_LOCK)
    }

    /// Takes the owner's lock if it is free.
    pub fn try_owner_lock(&self) -> Result<Option<Lock>> {
        Lock::try_acquire(&self.dir, name::OWNER_LOCK)
    }

    /// Takes the owner's lock; waits in the kernel as long as another process holds it.
    pub fn owner_lock(&self) -> Result<Lock> {
        Lock::acquire(&self.dir, name::OWNER_LOCK)
    }

    /// True if an owner lives.
    pub fn has_owner(&self) -> Result<bool> {
        lock::is_held(&self.dir, name::OWNER_LOCK)
    }

    /// Opens the keeper's door, with what becomes readable once somebody takes it away; the caller holds the keeper's lock.
    pub fn bind_door(&self) -> std::result::Result<(Listener, Option<OwnedFd>), DoorError> {
        Listener::bind_watched(&self.dir, name::KEEPER_DOOR)
    }

    /// Whether the keeper's door is there. What cannot be looked at now counts as there.
    pub fn has_door(&self) -> bool {
        self.dir.exists(name::KEEPER_DOOR).unwrap_or(true)
    }

    /// Takes the keeper's door away.
    pub fn remove_door(&self) -> Result<()> {
        self.dir.remove_if_there(name::KEEPER_DOOR).map(|_| ())
    }

    /// Knocks at the keeper's door.
    pub fn connect(&self) -> std::result::Result<Channel, DoorError> {
        door::connect(&self.dir, name::KEEPER_DOOR)
    }
}
