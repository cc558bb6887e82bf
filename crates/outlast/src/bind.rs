//! What a session is given after it was made: a place for its records beside a transcript, and a context.

use std::path::Path;

use outlast_core::id::CommandId;
use outlast_core::names::check_context;
use outlast_core::record::{ContextRecord, SessionRecord, schema};
use outlast_host::clock;
use outlast_host::store::{contexts, moving};

use crate::command::Command;
use crate::error::{Error, Result};
use crate::session::Session;

/// What binding a session did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// Commands whose records were moved.
    pub moved: Vec<CommandId>,
    /// Commands that still run: their records follow at their end.
    pub following: Vec<CommandId>,
    /// Commands that are over and whose records stay where they are, and why. They are still found.
    pub left: Vec<(CommandId, String)>,
}

impl Session {
    /// Keeps the records of its commands beside a transcript: in a directory of the session's id within this one. Those
    /// of commands that are over are moved there now, those of others at their end; every id resolves all the while.
    /// A session may be bound again: then everything follows to the new place. Refused, with nothing changed, where
    /// the place is no directory of this user in which nobody else may write.
    pub async fn bind(&self, place: &Path) -> Result<Bound> {
        let dir = self.dir()?.clone();
        if !place.is_absolute() {
            return Err(Error::Usage(format!("the place {} is not an absolute path", place.display())));
        }
        if place.starts_with(self.runtime().state_dir()) {
            return Err(Error::Refused(
                "a session cannot be bound to a place in the state directory itself".to_owned(),
            ));
        }
        moving::open_new(place).map_err(|error| Error::Refused(error.to_string()))?;
        // Whoever is watched by nobody any more is over once it was looked at.
        for id in dir.commands()? {
            if let Some(command) = dir.command(id)?
                && !command.has_exit()?
            {
                Command { session: self.clone(), id }.brief().await?;
            }
        }
        let (place, at) = (place.to_owned(), dir.clone());
        let moves = tokio::task::spawn_blocking(move || moving::bind(&at, &place, clock::unix_ms())).await;
        let moves = moves.map_err(|error| Error::Unreachable(format!("a move of records failed: {error}")))??;
        let mut following = Vec::new();
        for id in dir.commands()? {
            if let Some(command) = dir.command(id)?
                && command.lease_is_held()?
            {
                following.push(id);
            }
        }
        Ok(Bound { moved: moves.moved, following, left: moves.left })
    }

    /// Gives a context to a session that was made without one; everything else of it stays. Refused where it has one,
    /// and where another session of that context lives. Other handles of it, in other processes too, know the
    /// context once they are opened anew.
    pub async fn give_context(&self, context: &str) -> Result<()> {
        if check_context(context).map_err(|error| Error::Usage(error.to_string()))?.is_none() {
            return Err(Error::Usage("an empty context is none".to_owned()));
        }
        let (state, dir) = (self.runtime().state_to_write()?, self.dir()?);
        let _lock = contexts::lock(state)?;
        let own: SessionRecord = dir.reread()?.record;
        if own.context == context {
            return Ok(());
        }
        if !own.context.is_empty() {
            return Err(Error::Refused(format!("session {} has the context {:?} already", own.id, own.context)));
        }
        for id in contexts::list(state, context)? {
            let Some(other) = state.session(id)?.filter(|_| id != own.id) else { continue };
            let lives = self.runtime().open_session(&other.id()).await?.ensure_open().await;
            match lives {
                Ok(()) if other.record().is_ok_and(|record| record.context == context) => {
                    return Err(Error::Refused(format!(
                        "another session of the context {context:?} lives: {id}; end it, or choose another context"
                    )));
                }
                Ok(()) | Err(Error::SessionClosed { .. } | Error::AnchorGone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // Found by its context first: a line that its record does not confirm leads nowhere.
        contexts::append(state, context, own.id)?;
        dir.give_context(&ContextRecord {
            schema: schema::CONTEXT.to_owned(),
            id: own.id,
            context: context.to_owned(),
            at_ms: clock::unix_ms(),
        })?;
        self.know(SessionRecord { context: context.to_owned(), ..own });
        Ok(())
    }

    /// Moves records that are over and not yet where the session is bound to, because whoever was to do that died.
    pub(crate) async fn follow_binding(&self) -> Result<()> {
        let Some(dir) = self.dir_if_any()? else { return Ok(()) };
        moving::follow(dir)?;
        Ok(())
    }
}
