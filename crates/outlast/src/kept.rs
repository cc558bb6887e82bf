//! The owner of a session and its keeper: the connection between them, and what the owner does once that keeper is gone.

use std::sync::{Arc, Weak};

use outlast_core::record::ProcessMark;
use outlast_core::wire::{FromKeeper, ToKeeper};
use outlast_host::mark;
use tokio::sync::{MappedMutexGuard, MutexGuard};
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::keeper::Keepers;
use crate::link::{Link, WatchedLink};
use crate::runtime::SessionInner;
use crate::session::Session;
use crate::settle::{self, Report, Standing};

impl Session {
    /// The owner's connection to the keeper, made or made again where there is none; none where this
    /// process is no owner.
    pub(crate) async fn owner_link(&self) -> Result<Option<MappedMutexGuard<'_, Link>>> {
        let Some(owner) = &self.inner.owner else { return Ok(None) };
        let mut slot = owner.link.lock().await;
        let alive = match slot.as_mut() {
            Some(kept) => kept.is_alive()?,
            None => false,
        };
        if !alive {
            *slot = Some(self.connect_as_owner(&owner.mark).await?);
        }
        Ok(MutexGuard::try_map(slot, |slot| slot.as_mut().map(|kept| &mut kept.link)).ok())
    }

    /// Closes the owner's connection, so that a keeper with nothing left to keep leaves.
    pub(crate) async fn let_keeper_go(&self) {
        if let Some(owner) = &self.inner.owner {
            *owner.link.lock().await = None;
        }
    }

    async fn connect_as_owner(&self, mark: &ProcessMark) -> Result<WatchedLink> {
        let mut keepers = Keepers::of(self.inner.runtime.birth()?, self.dir()?.dir());
        loop {
            let mut link = keepers.connect().await?;
            let own = async {
                link.send(&ToKeeper::Own { mark: mark.clone() }).await?;
                link.message::<FromKeeper>().await
            };
            match keepers.within(own).await? {
                Some(FromKeeper::Owned { keeper }) => return self.watched(link, &keeper),
                Some(FromKeeper::Failed { reason }) => return Err(Error::Unreachable(reason)),
                Some(FromKeeper::Busy) | None => {}
                Some(other) => return Err(Error::Protocol(format!("the keeper answered Own with {other:?}"))),
            }
        }
    }

    /// A connection to a keeper that is watched for as long as it is there. The session is not held by it.
    fn watched(&self, link: Link, keeper: &ProcessMark) -> Result<WatchedLink> {
        let process = mark::open(keeper)
            .map_err(|error| Error::Unreachable(format!("cannot watch the keeper, process {}: {error}", keeper.pid)))?;
        let (link, gone) = WatchedLink::new(link, process)?;
        tokio::spawn(replace(Arc::downgrade(&self.inner), gone));
        Ok(link)
    }

    /// Finishes the records of what was killed together with the keeper, since others wait for the owner to do it, and
    /// gives what lives to another keeper.
    async fn without_keeper(&self) -> Result<()> {
        let mut lives = false;
        for id in self.dir()?.commands()? {
            let Some(command) = self.dir()?.command(id)? else { continue };
            // Damage of one command keeps no other one waiting.
            let standing = settle::settle(self, &command, Report::default()).await;
            lives |= matches!(standing, Ok((Standing::Watched, _)));
        }
        if lives {
            self.ensure_open().await?;
            drop(self.owner_link().await?);
        }
        Ok(())
    }
}

/// Waits for the end of a keeper, and does then what only the owner can do; nothing once nobody watches it any more. It is
/// beside the watch, which ends with the connection that is replaced here.
async fn replace(session: Weak<SessionInner>, gone: JoinHandle<()>) {
    if gone.await.is_ok()
        && let Some(inner) = session.upgrade()
    {
        // What cannot be done now the next look at the command meets again, and tells to somebody.
        let _ = (Session { inner }).without_keeper().await;
    }
}
