//! Processes that commands left and nobody watches any more, because keeper and supervisor were killed.

use outlast_core::id::{CommandId, SessionId};
use outlast_core::wire::{KEEPER_NAME, SUPERVISOR_NAME};

use crate::proc::{self, ProcError, Stat};

/// The names that keepers and supervisors give themselves.
const WATCHERS: [&str; 2] = [KEEPER_NAME, SUPERVISOR_NAME];

/// A process that a command left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The process.
    pub stat: Stat,
    /// The command whose id it carries.
    pub command: CommandId,
}

/// The live processes that carry `session` and the id of a command in their environment, and descend from
/// no watcher of that session. While a supervisor or keeper of theirs lives, they descend from it,
/// however they tried to leave: both are subreapers.
pub fn of_session(session: SessionId) -> Result<Vec<Stray>, ProcError> {
    let session = session.to_string();
    let mut found = Vec::new();
    for stat in proc::find_by_environ("OUTLAST_SESSION", &session)? {
        let value = proc::environ_value(stat.pid, "OUTLAST_WORK_ID")?.unwrap_or_default();
        let command = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
        if let (Some(command), false) = (command, is_watched(&stat, &session)?) {
            found.push(Stray { stat, command });
        }
    }
    Ok(found)
}

/// Whether the process or one of its ancestors is a watcher. One whose ancestors change while we look
/// counts as watched: who needs to be sure looks again.
fn is_watched(stat: &Stat, session: &str) -> Result<bool, ProcError> {
    // A watcher of another session that was started by a command of this one is no stray either.
    if WATCHERS.contains(&stat.comm.as_str()) {
        return Ok(true);
    }
    let mut at = stat.clone();
    while at.ppid > 1 {
        match proc::stat(at.ppid)? {
            Some(parent) => at = parent,
            None => return Ok(true),
        }
        // All of this may itself be below a watcher of yet another session.
        if WATCHERS.contains(&at.comm.as_str()) && proc::holds_open(at.pid, session)? {
            return Ok(true);
        }
    }
    Ok(false)
}
