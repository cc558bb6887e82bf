//! Publishing what a command changed, from within that command.

use std::path::PathBuf;

use outlast_core::id::CommandId;
use outlast_core::receipt::RECEIPT_BYTES;
use outlast_core::request::OsText;
use outlast_core::wire::{FromSupervisor, ToKeeper, ToSupervisor};

use crate::error::{Error, Result};
use crate::keeper::{self, ANSWER_BOUND};
use crate::link::Link;
use crate::probe;
use crate::session::Session;

impl Session {
    /// Says, for a command of this session that runs, that it has changed these absolute paths. What was taken is
    /// told after its end. Nothing is done without a path; one call takes 1 MiB of paths at most, and so does the
    /// command in all.
    pub async fn publish(&self, id: &CommandId, paths: Vec<PathBuf>) -> Result<()> {
        let paths = absolute(paths)?;
        if paths.iter().map(|path| path.0.len()).sum::<usize>() > RECEIPT_BYTES {
            return Err(Error::Usage(format!("these are more than {RECEIPT_BYTES} bytes of paths")));
        }
        if paths.is_empty() {
            return Ok(());
        }
        let answer = async {
            let Some(mut link) = self.reach(*id).await? else { return Ok(None) };
            link.send(&ToSupervisor::Receipt { id: *id, paths }).await?;
            link.message::<FromSupervisor>().await
        };
        match tokio::time::timeout(ANSWER_BOUND, answer).await {
            Ok(Ok(Some(FromSupervisor::Delivered { refused: None }))) => Ok(()),
            Ok(Ok(Some(FromSupervisor::Delivered { refused: Some(why) }))) => {
                Err(Error::Refused(format!("not published: {why}")))
            }
            Ok(Ok(Some(other))) => Err(probe::unexpected("Receipt", &other)),
            Ok(Ok(None)) => Err(Error::Refused(format!("not published: nobody watches {id}; it has ended"))),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::Unreachable(format!(
                "not published: the supervisor of {id}, or the keeper of its session, does not answer; `outlast doctor` \
                 tells which process is stopped"
            ))),
        }
    }

    /// A connection to the supervisor of a command: at its door where it has records, else by its keeper.
    async fn reach(&self, id: CommandId) -> Result<Option<Link>> {
        let dir = self.dir()?;
        if let Some(command) = dir.command(id)? {
            return probe::connect(&command).await;
        }
        let Some(mut keeper) = keeper::living(dir.dir(), ANSWER_BOUND).await? else { return Ok(None) };
        let (ours, theirs) = Link::pair()?;
        keeper.send_with(&ToKeeper::Reach { id }, vec![theirs]).await?;
        Ok(Some(ours))
    }
}

/// Paths as they are published; refused where one is not absolute.
pub(crate) fn absolute(paths: Vec<PathBuf>) -> Result<Vec<OsText>> {
    match paths.iter().find(|path| !path.is_absolute()) {
        Some(path) => Err(Error::Usage(format!("{} is not an absolute path", path.display()))),
        None => Ok(paths.iter().map(OsText::from).collect()),
    }
}
