//! The directory of one command: its records, its lease and the supervisor's door.

use std::io::Read;
use std::path::{Path, PathBuf};

use outlast_core::id::{Alias, CommandId};
use outlast_core::receipt::{Change, ReceiptLine};
use outlast_core::record::{
    Durability, ExitRecord, ProcessMark, PrunedRecord, RequestRecord, StatusRecord, TextRecord, VerdictRecord, schema,
};
use serde::{Deserialize, Serialize};

use super::places::Home;
use super::{Loaded, aliases, load, name, put, put_once, receipts};
use crate::atomic::{Reserved, Slack};
use crate::dir::{Dir, FileError, Result, if_there};
use crate::door::{self, DoorError, Listener};
use crate::effect;
use crate::frame::Channel;
use crate::lock::{self, Lock};

/// Space set aside for an end whose record is of usual size, in bytes.
pub const EXIT_SPACE: u32 = 64 * 1024;

/// The directory of a command that has records.
#[derive(Debug, Clone)]
pub struct CommandDir {
    dir: Dir,
    id: CommandId,
    durability: Durability,
    /// Where it was looked for, if it was.
    home: Option<Home>,
}

/// A command directory that nobody can find yet. Dropping it leaves a `.new-` directory for gc.
#[derive(Debug)]
pub struct NewCommand {
    work: Dir,
    command: CommandDir,
    /// Whether somebody died over it before.
    taken_over: bool,
}

#[derive(Serialize, Deserialize)]
struct LeaseText {
    schema: String,
    #[serde(flatten)]
    mark: ProcessMark,
}

impl NewCommand {
    /// Makes the directory under a name that no reader looks at.
    pub fn create(work: &Dir, id: CommandId, durability: Durability) -> Result<NewCommand> {
        let name = new_name(id);
        // Left by one who died in the middle. It stays, so that at no instant it looks as if none would ever be published.
        let left = if_there(work.sub(&name))?;
        let taken_over = left.is_some();
        let dir = match left {
            Some(left) => {
                left.clear()?;
                left
            }
            None => work.create_new_sub(&name)?,
        };
        let dir = dir.known_as(work.path_of(&id.to_string()));
        Ok(NewCommand { work: work.clone(), command: CommandDir::of(dir, id, durability), taken_over })
    }

    /// Gives it its alias: the one that it was given by whoever died over it, else the next. One that was given to a directory
    /// that is gone is not used: consumers may have been told all up to it.
    pub fn give_alias(&self, session: &Dir) -> Result<Alias> {
        if self.taken_over { aliases::of(session, self.command.id) } else { aliases::append(session, self.command.id) }
    }

    /// The directory, to write the records that must be there from the first instant.
    pub fn command(&self) -> &CommandDir {
        &self.command
    }

    /// Gives the directory its name: from now on it is found, complete.
    pub fn publish(self) -> Result<CommandDir> {
        self.work.rename_noreplace(&new_name(self.command.id), &self.command.id.to_string())?;
        if self.command.durability == Durability::Power {
            self.command.dir.sync()?;
            self.work.sync()?;
        }
        Ok(self.command)
    }

    /// Removes the directory with everything in it.
    pub fn discard(self) -> Result<()> {
        self.work.remove_tree(&new_name(self.command.id))
    }
}

pub(super) fn new_name(id: CommandId) -> String {
    format!("{}{id}", name::NEW)
}

impl CommandDir {
    /// Opens the directory of a command, wherever it is; `None` if it has no records in this session.
    pub(super) fn find(home: Home, id: CommandId, durability: Durability) -> Result<Option<CommandDir>> {
        let found = home.find(id)?;
        Ok(found.map(|dir| CommandDir { home: Some(home), ..CommandDir::of(dir, id, durability) }))
    }

    /// The directory of a command that stands here.
    pub(super) fn of(dir: Dir, id: CommandId, durability: Durability) -> CommandDir {
        CommandDir { dir, id, durability, home: None }
    }

    /// Where its records are now, if they were moved to another file system since this was opened, whose files go
    /// then. None where they are still here: a rename leaves this directory what it is.
    pub fn moved(&self) -> Result<Option<CommandDir>> {
        let Some(home) = &self.home else { return Ok(None) };
        if home.work.is_named(&self.id.to_string(), &self.dir)? {
            return Ok(None);
        }
        let found = CommandDir::find(home.clone(), self.id, self.durability)?;
        match found {
            Some(found) if !found.dir.is_same(&self.dir)? => Ok(Some(found)),
            Some(_) | None => Ok(None),
        }
    }

    /// The command.
    pub fn id(&self) -> CommandId {
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

    /// Absolute path of the log.
    pub fn log_path(&self) -> PathBuf {
        self.dir.path_of(name::LOG)
    }

    /// Writes `request.json`, once.
    pub fn write_request(&self, record: &RequestRecord) -> Result<()> {
        put_once(&self.dir, name::REQUEST, record, self.durability)
    }

    /// Replaces `status.json`. Only the holder of the lease does this.
    pub fn write_status(&self, record: &StatusRecord) -> Result<()> {
        self.check_id("write", name::STATUS, record.id)?;
        put(&self.dir, name::STATUS, record, self.durability)
    }

    /// Sets the space for `exit.json` aside, so that a full disk cannot lose the end.
    pub fn reserve_exit(&self, size: u32) -> Result<Reserved> {
        Reserved::create(&self.dir, name::EXIT_SPACE, name::EXIT, size)
    }

    /// Writes `exit.json`, once, into the space that was set aside for it if there is any: `space`, or
    /// what a dead supervisor left. Only the holder of the lease does this.
    pub fn write_exit(&self, record: &ExitRecord, space: Option<Reserved>) -> Result<()> {
        self.check_id("write", name::EXIT, record.id)?;
        let space = match space {
            Some(space) => Some(space),
            None => Reserved::reopen(&self.dir, name::EXIT_SPACE, name::EXIT)?,
        };
        match space {
            Some(space) => space.fill(&super::encode(&self.dir, name::EXIT, record)?, self.durability),
            None => put_once(&self.dir, name::EXIT, record, self.durability),
        }
    }

    /// As [`CommandDir::write_exit`] for the supervisor, which tells the end before it gives back what is left
    /// of the space.
    pub fn write_exit_in_haste(&self, record: &ExitRecord, space: Reserved) -> Result<Slack> {
        self.check_id("write", name::EXIT, record.id)?;
        space.fill_in_haste(&super::encode(&self.dir, name::EXIT, record)?, self.durability)
    }

    /// Makes an end whose caller did not say that it was shown it a completion. Only the holder of the lease does this,
    /// where nobody is left who could hear the caller.
    pub fn tell_later(&self) -> Result<()> {
        match self.exit()?.map(|exit| exit.record) {
            Some(exit) if !exit.told && !exit.demoted => {
                let at_ms = Some(crate::clock::unix_ms());
                self.amend_exit(&ExitRecord { demoted: true, demoted_at_ms: at_ms, told: true, ..exit })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Records that the caller of a foreground command has said that it was shown its end. Only the holder of the lease does
    /// this.
    pub fn set_told(&self) -> Result<()> {
        const UNTOLD: &[u8] = b"\"told\":0";
        let path = || self.dir.path_of(name::EXIT);
        let file = self.dir.open_rw(name::EXIT)?;
        let mut text = Vec::new();
        (&file).read_to_end(&mut text).map_err(|error| FileError::io("read", path(), &error))?;
        // Within a text of the record its quotation marks would be escaped.
        let Some(at) = text.windows(UNTOLD.len()).position(|part| part == UNTOLD) else { return Ok(()) };
        let digit = at + UNTOLD.len() - 1;
        effect::write_at(name::EXIT, &file, b"1", digit as u64).map_err(|error| FileError::io("write", path(), &error))
    }

    /// Replaces `exit.json` where its caller vanished before it could say that it was shown the end, so that this became a
    /// completion. Only the holder of the lease does this.
    pub fn amend_exit(&self, record: &ExitRecord) -> Result<()> {
        self.check_id("write", name::EXIT, record.id)?;
        put(&self.dir, name::EXIT, record, self.durability)
    }

    /// Writes `verdict.json`, once, and gives the space for an end back. Only a reconciler that holds
    /// the lease and sees no `exit.json` does this.
    pub fn write_verdict(&self, record: &VerdictRecord) -> Result<()> {
        self.check_id("write", name::VERDICT, record.id)?;
        put_once(&self.dir, name::VERDICT, record, self.durability)?;
        self.dir.remove_if_there(name::EXIT_SPACE).map(|_| ())
    }

    /// Appends what the command says it changed. Only the holder of the lease does this.
    pub fn append_receipt(&self, line: &ReceiptLine) -> Result<()> {
        receipts::append(&self.dir, line, self.durability)
    }

    /// What the command said it changed, so far.
    pub fn receipts(&self) -> Result<Vec<Change>> {
        Ok(self.unless_moved(|here| receipts::read(&here.dir))?.unwrap_or_default())
    }

    /// Whether the command said that it changed anything.
    pub fn has_receipts(&self) -> Result<bool> {
        let here = |here: &CommandDir| Ok(receipts::any(&here.dir)?.then_some(()));
        Ok(self.unless_moved(here)?.is_some())
    }

    /// What was asked.
    pub fn request(&self) -> Result<Option<Loaded<RequestRecord>>> {
        self.unless_moved(CommandDir::request_here)
    }

    fn request_here(&self) -> Result<Option<Loaded<RequestRecord>>> {
        let record: Option<Loaded<RequestRecord>> = load(&self.dir, name::REQUEST, schema::REQUEST)?;
        match record {
            Some(record) => {
                self.check_id("believe", name::REQUEST, record.request.id)?;
                Ok(Some(record))
            }
            None => Ok(None),
        }
    }

    /// Where it was when its supervisor last wrote. Look at the lease before believing `running`.
    pub fn status(&self) -> Result<Option<Loaded<StatusRecord>>> {
        self.unless_moved(CommandDir::status_here)
    }

    fn status_here(&self) -> Result<Option<Loaded<StatusRecord>>> {
        let record: Option<Loaded<StatusRecord>> = load(&self.dir, name::STATUS, schema::STATUS)?;
        if let Some(record) = &record {
            self.check_id("believe", name::STATUS, record.id)?;
        }
        Ok(record)
    }

    /// How it ended, if that is recorded.
    pub fn exit(&self) -> Result<Option<Loaded<ExitRecord>>> {
        self.unless_moved(CommandDir::exit_here)
    }

    fn exit_here(&self) -> Result<Option<Loaded<ExitRecord>>> {
        let record: Option<Loaded<ExitRecord>> = load(&self.dir, name::EXIT, schema::EXIT)?;
        if let Some(record) = &record {
            self.check_id("believe", name::EXIT, record.id)?;
        }
        Ok(record)
    }

    /// What a reconciler found, if one had to.
    pub fn verdict(&self) -> Result<Option<Loaded<VerdictRecord>>> {
        self.unless_moved(CommandDir::verdict_here)
    }

    fn verdict_here(&self) -> Result<Option<Loaded<VerdictRecord>>> {
        let record: Option<Loaded<VerdictRecord>> = load(&self.dir, name::VERDICT, schema::VERDICT)?;
        if let Some(record) = &record {
            self.check_id("believe", name::VERDICT, record.id)?;
        }
        Ok(record)
    }

    /// That retention removed its output, if it did.
    pub fn pruned(&self) -> Result<Option<Loaded<PrunedRecord>>> {
        let record: Option<Loaded<PrunedRecord>> = load(&self.dir, name::PRUNED, schema::PRUNED)?;
        if let Some(record) = &record {
            self.check_id("believe", name::PRUNED, record.id)?;
        }
        Ok(record)
    }

    /// The final text of a task that ended under a text policy.
    pub fn text(&self) -> Result<Option<Loaded<TextRecord>>> {
        self.unless_moved(CommandDir::text_here)
    }

    fn text_here(&self) -> Result<Option<Loaded<TextRecord>>> {
        let record: Option<Loaded<TextRecord>> = load(&self.dir, name::TEXT, schema::TEXT)?;
        if let Some(record) = &record {
            self.check_id("believe", name::TEXT, record.id)?;
        }
        Ok(record)
    }

    /// Replaces `text.json`: the owner of the task at its end, later whoever holds the lock of it.
    pub fn write_text(&self, record: &TextRecord) -> Result<()> {
        self.check_id("write", name::TEXT, record.id)?;
        put(&self.dir, name::TEXT, record, self.durability)
    }

    /// Waits for the lock of its final text.
    pub fn lock_text(&self) -> Result<Lock> {
        Lock::acquire(&self.dir, name::TEXT_LOCK)
    }

    /// True if its log is there.
    pub fn has_log(&self) -> Result<bool> {
        self.dir.exists(name::LOG)
    }

    /// Bytes on disk that its output takes.
    pub fn output_bytes(&self) -> Result<u64> {
        Ok(self.dir.disk_bytes(name::LOG)? + self.dir.disk_bytes(name::INDEX)?)
    }

    /// Removes its output; that is recorded before it is done, and doing it again finishes what a death left. The
    /// caller holds the lease, and nothing is captured any more.
    pub fn prune(&self, record: &PrunedRecord) -> Result<()> {
        self.check_id("write", name::PRUNED, record.id)?;
        match put_once(&self.dir, name::PRUNED, record, self.durability) {
            Err(error) if !error.is_taken() => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.dir.remove_if_there(name::LOG)?;
        self.dir.remove_if_there(name::INDEX)?;
        Ok(())
    }

    /// True if `exit.json` is there, whatever is in it.
    pub fn has_exit(&self) -> Result<bool> {
        let here = |dir: &CommandDir| Ok(dir.dir.exists(name::EXIT)?.then_some(()));
        Ok(self.unless_moved(here)?.is_some())
    }

    /// What is found here, or where the records went meanwhile: that something is not here says nothing then.
    fn unless_moved<T>(&self, look: impl Fn(&CommandDir) -> Result<Option<T>>) -> Result<Option<T>> {
        match look(self)? {
            Some(found) => Ok(Some(found)),
            None => match self.moved()? {
                Some(now) => look(&now),
                None => Ok(None),
            },
        }
    }

    fn check_id(&self, action: &'static str, name: &str, id: CommandId) -> Result<()> {
        if id == self.id {
            return Ok(());
        }
        let why = format!("it is a record of {id} in the directory of another command");
        Err(FileError::damaged(action, self.dir.path_of(name), why))
    }

    /// Takes the lease if it is free and leaves the holder's mark in it.
    pub fn try_lease(&self, holder: &ProcessMark) -> Result<Option<Lock>> {
        let Some(lease) = Lock::try_acquire(&self.dir, name::LEASE)? else { return Ok(None) };
        self.sign_lease(&lease, holder)?;
        Ok(Some(lease))
    }

    /// Puts another mark into a lease that is held.
    pub fn sign_lease(&self, lease: &Lock, holder: &ProcessMark) -> Result<()> {
        let text = LeaseText { schema: schema::LEASE.to_owned(), mark: holder.clone() };
        lease.write_content(&super::encode(&self.dir, name::LEASE, &text)?)
    }

    /// Takes the lease if it is free and leaves the dead holder's mark in it, for a reconciler.
    pub fn try_lease_unsigned(&self) -> Result<Option<Lock>> {
        Lock::try_acquire(&self.dir, name::LEASE)
    }

    /// True if somebody holds the lease now.
    pub fn lease_is_held(&self) -> Result<bool> {
        lock::is_held(&self.dir, name::LEASE)
    }

    /// The mark of who holds, or last held, the lease.
    pub fn lease_mark(&self) -> Result<Option<ProcessMark>> {
        let text: Option<Loaded<LeaseText>> = load(&self.dir, name::LEASE, schema::LEASE)?;
        Ok(text.map(|text| text.record.mark))
    }

    /// Whether the supervisor's door is there. What cannot be looked at now counts as there.
    pub fn has_door(&self) -> bool {
        self.dir.exists(name::CONTROL_DOOR).unwrap_or(true)
    }

    /// Opens the supervisor's door.
    pub fn bind_door(&self) -> std::result::Result<Listener, DoorError> {
        Listener::bind(&self.dir, name::CONTROL_DOOR)
    }

    /// Takes the supervisor's door away.
    pub fn remove_door(&self) -> Result<()> {
        self.dir.remove_if_there(name::CONTROL_DOOR).map(|_| ())
    }

    /// The directory of the session, as far as that is known here.
    pub fn session_dir(&self) -> Option<&Dir> {
        self.home.as_ref().map(|home| &home.session)
    }

    /// Knocks at the supervisor's door.
    pub fn connect(&self) -> std::result::Result<Channel, DoorError> {
        door::connect(&self.dir, name::CONTROL_DOOR)
    }
}
