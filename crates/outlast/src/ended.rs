//! Waits for the end of a command.

use outlast_core::wire::{FromSupervisor, ToSupervisor};

use crate::command::Command;
use crate::error::Result;
use crate::keeper::ANSWER_BOUND;
use crate::probe;
use crate::settle::{self, Report, Standing};
use crate::watch::Watch;

/// Waits until the end of a command is recorded, by whoever has to do that. Where that is the owner of its session,
/// which may be busy or know nothing of it, he is given a while.
pub(crate) async fn ended(command: &Command) -> Result<()> {
    let dir = command.dir()?;
    let mut watch = None;
    let mut report = Report::default();
    loop {
        let deferred = match settle::settle(&command.session, &dir, report).await?.0 {
            Standing::Ended(_) | Standing::Lost(_) => return Ok(()),
            Standing::Watched => false,
            Standing::Deferred(_) => !report.past_owner,
        };
        if let Some(mut link) = probe::connect(&dir)? {
            link.send(&ToSupervisor::Subscribe { growth: false }).await?;
            while let Some(message) = link.message::<FromSupervisor>().await? {
                if let FromSupervisor::Ended { .. } = message {
                    return Ok(());
                }
            }
        }
        // Nobody is behind the door: whoever finishes the record changes the directory. The watch comes
        // before the next look, so that this change is not missed.
        match &mut watch {
            None => watch = Some(Watch::on(dir.dir())?),
            Some(watch) if deferred => match tokio::time::timeout(ANSWER_BOUND, watch.changed()).await {
                Ok(changed) => changed?,
                Err(_) => report.past_owner = true,
            },
            Some(watch) => watch.changed().await?,
        }
    }
}
