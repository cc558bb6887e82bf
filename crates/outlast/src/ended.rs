//! Waits for the end of a command, and tells it to those who observed its start.

use std::sync::Arc;

use outlast_core::id::CommandId;
use outlast_core::wire::{FromSupervisor, ToSupervisor};
use outlast_host::store::name;

use crate::command::Command;
use crate::error::Result;
use crate::keeper::ANSWER_BOUND;
use crate::observe::Ends;
use crate::probe;
use crate::race;
use crate::session::Session;
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

/// Tells the end of a command that its caller does not wait for any more, as long as an observer wants to hear it.
pub(crate) fn follow(session: &Session, id: CommandId, ends: Ends) {
    // Outside of tokio nobody can wait, and the observers hear that nobody tells them.
    let Ok(tokio) = tokio::runtime::Handle::try_current() else { return };
    let session = session.clone();
    tokio.spawn(async move {
        let told = async {
            let Some(command) = materialised(&session, id).await? else { return Ok(()) };
            ended(&command).await?;
            if let Some(exit) = command.dir()?.exit()? {
                ends.send_replace(Some(Arc::new(session.shown(exit.record))));
            }
            Ok::<_, crate::error::Error>(())
        };
        // Who gets no answer sees that, by the end of this channel.
        let _ = race::first(told, ends.closed()).await;
    });
}

/// The command once it has records, which a caller that went away makes its supervisor make; none where it gets none.
async fn materialised(session: &Session, id: CommandId) -> Result<Option<Command>> {
    let Some(dir) = session.dir_if_any()? else { return Ok(None) };
    let mut watch = Watch::on(&dir.dir().sub(name::WORK)?)?;
    let found = async {
        loop {
            if let Some(command) = session.get(&id).await? {
                return Ok(Some(command));
            }
            watch.changed().await?;
        }
    };
    tokio::time::timeout(ANSWER_BOUND, found).await.unwrap_or(Ok(None))
}
