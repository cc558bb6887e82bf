//! The records of one command, from the moment it is materialised.

use outlast_core::id::Alias;
use outlast_core::record::{ExitRecord, ProcessMark, RequestRecord, StatusRecord, schema};
use outlast_core::request::{OsText, Request};
use outlast_core::text::TEXT_BYTES;
use outlast_core::tracking::{TRACKED_BYTES, TRACKED_PATHS};

use super::command::{CommandDir, NewCommand};
use super::session::SessionDir;
use crate::atomic::{Reserved, Slack};
use crate::dir::FileError;
use crate::door::Listener;
use crate::lock::Lock;

/// Space set aside for the end beyond the length of the request, in bytes: facts, and the tail in
/// hexadecimal digits should the log fail.
const EXIT_SPACE: usize = 8 * 1024 + 2 * TEXT_BYTES;

/// Records that nobody can find yet.
#[derive(Debug)]
pub struct Unpublished {
    new: NewCommand,
    kept: Kept,
}

#[derive(Debug)]
struct Kept {
    alias: Alias,
    lease: Lock,
    space: Option<Reserved>,
    door: Listener,
}

/// Records that are in place.
#[derive(Debug)]
pub struct Records {
    /// The command's directory.
    pub dir: CommandDir,
    /// The number given at materialisation.
    pub alias: Alias,
    /// The door of whoever watches it.
    pub door: Listener,
    space: Option<Reserved>,
    slack: Option<Slack>,
    _lease: Lock,
}

/// Makes everything but the log and the status, under a name that nobody looks at. The process `me` watches the
/// command from now on, which is of this kind. What was made by half stays there, and with it the alias that the command may
/// have been given, for who tries again; who does not removes it ([`SessionDir::remove_unmade`]).
pub fn build(
    session: &SessionDir,
    kind: &str,
    request: &Request,
    program: &OsText,
    me: &ProcessMark,
) -> Result<Unpublished, String> {
    let tell = |error: FileError| error.to_string();
    let new = session.new_command(request.id).map_err(tell)?;
    let kept = fill(session, &new, kind, request, program, me)?;
    Ok(Unpublished { new, kept })
}

fn fill(
    session: &SessionDir,
    new: &NewCommand,
    kind: &str,
    request: &Request,
    program: &OsText,
    me: &ProcessMark,
) -> Result<Kept, String> {
    let tell = |error: FileError| error.to_string();
    let dir = new.command();
    let lease =
        dir.try_lease(me).map_err(tell)?.ok_or_else(|| format!("{} is leased already", dir.path().display()))?;
    let length = request.argv.iter().map(|text| text.0.len()).sum::<usize>() + request.cwd.0.len();
    // Paths in hexadecimal digits, and what stands around each.
    let tracked = request.track_changes.as_ref().map_or(0, |_| 2 * TRACKED_BYTES + 16 * TRACKED_PATHS);
    let size = u32::try_from(EXIT_SPACE + 2 * length + tracked).unwrap_or(u32::MAX);
    let space = Some(dir.reserve_exit(size).map_err(tell)?);
    let door = dir.bind_door().map_err(|error| error.to_string())?;
    let alias = new.give_alias(session.dir()).map_err(tell)?;
    let conceal = request.conceal.as_ref().map(|_| Vec::new());
    let stored = Request { env: Vec::new(), conceal, ..request.clone() };
    let record = RequestRecord {
        schema: schema::REQUEST.to_owned(),
        alias,
        kind: kind.to_owned(),
        program: program.clone(),
        request: stored,
    };
    dir.write_request(&record).map_err(tell)?;
    Ok(Kept { alias, lease, space, door })
}

impl Unpublished {
    /// The directory, to put log and status into.
    pub fn dir(&self) -> &CommandDir {
        self.new.command()
    }

    /// Puts the records in place: complete from the first instant at which they can be found.
    pub fn publish(self) -> Result<Records, String> {
        let dir = self.new.publish().map_err(|error| error.to_string())?;
        let Kept { alias, lease, space, door } = self.kept;
        Ok(Records { dir, alias, door, space, slack: None, _lease: lease })
    }

    /// Takes everything back: the command never started.
    pub fn discard(self) {
        // What cannot be removed lies under the hidden name and is cleared by gc.
        let _ = self.new.discard();
    }
}

impl Records {
    /// Replaces `status.json`.
    pub fn write_status(&self, status: &StatusRecord) -> Result<(), String> {
        self.dir.write_status(status).map_err(|error| error.to_string())
    }

    /// Writes `exit.json` into the space that was set aside.
    pub fn write_exit(&mut self, exit: &ExitRecord) -> Result<(), String> {
        match self.space.take() {
            Some(space) => self.slack = Some(self.dir.write_exit_in_haste(exit, space).map_err(|e| e.to_string())?),
            None => self.dir.write_exit(exit, None).map_err(|error| error.to_string())?,
        }
        Ok(())
    }

    /// Gives back what is left of the space, once everybody was told.
    pub fn give_back(&mut self) {
        if let Some(slack) = self.slack.take() {
            // Kept space is wasted space, and nothing else.
            let _ = slack.give_back();
        }
    }

    /// Writes `exit.json` anew: the caller vanished before it could be told.
    pub fn amend_exit(&self, exit: &ExitRecord) -> Result<(), String> {
        self.dir.amend_exit(exit).map_err(|error| error.to_string())
    }

    /// Takes the door away: nobody is behind it any more.
    pub fn close_door(&self) {
        // A door without anybody behind it refuses connections, which says the same.
        let _ = self.dir.remove_door();
    }
}
