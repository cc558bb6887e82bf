//! Waits for the end of a command.

use outlast_core::wire::{FromSupervisor, ToSupervisor};

use crate::command::Command;
use crate::error::Result;
use crate::probe;
use crate::settle::{self, Report, Standing};
use crate::watch::Watch;

/// Waits until the end of a command is recorded, by whoever has to do that.
pub(crate) async fn ended(command: &Command) -> Result<()> {
    let dir = command.dir()?;
    let mut watch = None;
    loop {
        match settle::settle(&command.session, &dir, Report::default()).await?.0 {
            Standing::Ended(_) | Standing::Lost(_) => return Ok(()),
            Standing::Watched | Standing::Deferred(_) => {}
        }
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
            Some(watch) => watch.changed().await?,
        }
    }
}
