//! What the commands of killed watchers left running: ended by the next look at their session.

use outlast_core::id::CommandId;
use outlast_host::store::session::SessionDir;
use outlast_host::strays;

use crate::error::{Error, Result};
use crate::session::Session;
use crate::settle;

/// Passes over what is left, each of which ends everything that it finds.
const PASSES: usize = 50;

impl Session {
    /// Ends the processes of commands that have neither a supervisor nor a keeper any more. What belongs
    /// to a command whose end is still to be written is left to whoever writes that, and says so there.
    pub(crate) async fn end_strays(&self) -> Result<()> {
        let Some(dir) = self.dir_if_any()? else { return Ok(()) };
        // A keeper that leaves in order leaves nothing.
        if !dir.is_or_was_kept() || dir.has_keeper()? {
            return Ok(());
        }
        for _ in 0..PASSES {
            let found = strays::of_session(dir.id())
                .map_err(|error| Error::Unreachable(format!("cannot look for processes of {}: {error}", dir.id())))?;
            let mut ended = 0;
            for stray in found {
                if is_settled(dir, stray.command)? {
                    // One that cannot be ended is found and named by the next look.
                    let _ = settle::end_process(stray.stat.pid, stray.stat.start, &stray.command.to_string()).await;
                    ended += 1;
                }
            }
            if ended == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Whether nothing of a command is left to be written: its end is, or it never had records.
fn is_settled(dir: &SessionDir, id: CommandId) -> Result<bool> {
    match dir.command(id)? {
        Some(command) => Ok(command.has_exit()? || command.verdict()?.is_some()),
        None => Ok(true),
    }
}
