//! Processes that commands left and nobody watches any more, because keeper and supervisor were killed.

use outlast_core::id::{CommandId, SessionId};

use crate::proc::{self, ProcError, Stat};

/// The name under which keepers, and the supervisors forked from them, were started.
const WATCHER: &str = "outlast-keeper";
/// Longer than any path, so that the session in a watcher's arguments is seen.
const WHOLE_LINE: usize = 64 * 1024;

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
    let mut at = stat.clone();
    loop {
        // A watcher of another session that was started by a command of this one is no stray either.
        let line = proc::cmdline(at.pid, WHOLE_LINE)?.unwrap_or_default();
        let of_it = line.strip_prefix(WATCHER);
        if of_it.is_some_and(|rest| at.pid == stat.pid || rest.ends_with(session)) {
            return Ok(true);
        }
        if at.ppid <= 1 {
            return Ok(false);
        }
        match proc::stat(at.ppid)? {
            Some(parent) => at = parent,
            None => return Ok(true),
        }
    }
}
