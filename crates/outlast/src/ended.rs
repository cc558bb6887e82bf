//! Waits for the end of a command.

use outlast_core::wire::{FromSupervisor, ToSupervisor};
use tokio::time::Instant;

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
    let mut given_until = None;
    loop {
        match settle::settle(&command.session, &dir, report).await?.0 {
            Standing::Ended(_) | Standing::Lost(_) => return Ok(()),
            Standing::Watched => given_until = None,
            Standing::Deferred(_) => {
                given_until.get_or_insert_with(|| Instant::now() + ANSWER_BOUND);
            }
        }
        if let Some(mut link) = probe::connect(&dir).await? {
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
            Some(watch) => match given_until.filter(|_| !report.past_owner) {
                Some(until) => {
                    tokio::time::timeout_at(until, watch.changed()).await.unwrap_or(Ok(()))?;
                    report.past_owner = Instant::now() >= until;
                }
                None => watch.changed().await?,
            },
        }
    }
}
