//! The destruction of a session: its end, and the removal of everything that it left.

use std::time::Duration;

use outlast_core::record::ClosedRecord;
use outlast_host::lock::Lock;
use outlast_host::store::name;
use outlast_host::store::removal::Vacated;
use outlast_host::store::session::SessionDir;

use crate::error::{Error, Result};
use crate::session::Session;

/// How long a keeper may take to leave after the end of its session.
const LEAVE_BOUND: Duration = Duration::from_secs(5);

impl Session {
    /// Ends the session with all of its commands, detached ones included, and removes its records. From the first
    /// poll on nobody is told of anything in it, and pending completions are dropped; what this returns is the handle
    /// to wait on. Its ids are unknown afterwards. Refused, with the session ended, where something in it cannot be
    /// ended within the bound. Where the future is dropped, or this process dies, the next
    /// [`Runtime::retain`](crate::Runtime::retain) removes what is left.
    pub async fn destroy(&self, by: &str, bound: Duration) -> Result<ClosedRecord> {
        let dir = self.dir()?.clone();
        dir.give_up()?;
        let closed = self.end(by, bound, true).await?;
        self.let_keeper_go().await;
        let owner = match self.is_owned_here() {
            true => None,
            false => Some(dir.try_owner_lock()?.ok_or_else(|| held(&dir))?),
        };
        let keeper = free_keeper(&dir).await?;
        let vacated = Vacated::with(dir.clone(), keeper, owner)?.ok_or_else(|| held(&dir))?;
        let state = self.runtime().state()?;
        let _lock = Lock::acquire(state.root(), name::RETAIN_LOCK)?;
        vacated.remove(state)?;
        Ok(closed)
    }
}

fn held(dir: &SessionDir) -> Error {
    Error::Refused(format!(
        "session {} was ended, and is not removed as long as something in it lives (`outlast ps -a`); the next \
         `outlast gc` removes it",
        dir.id()
    ))
}

/// The keeper's lock, once the keeper that has ended the session is gone.
async fn free_keeper(dir: &SessionDir) -> Result<Lock> {
    if let Some(lock) = dir.try_keeper_lock()? {
        return Ok(lock);
    }
    // A thread sleeps in the kernel until it is gone, because that is all that a lock can tell.
    let waiting = dir.clone();
    let freed = tokio::task::spawn_blocking(move || waiting.keeper_lock());
    match tokio::time::timeout(LEAVE_BOUND, freed).await {
        Ok(Ok(lock)) => Ok(lock?),
        Ok(Err(error)) => Err(Error::Unreachable(format!("the wait for the keeper of {} failed: {error}", dir.id()))),
        Err(_) => Err(held(dir)),
    }
}
