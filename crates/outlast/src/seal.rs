//! A planned change of the owner: nothing starts while it is under way, and everything else goes on.

use outlast_core::wire::{FromKeeper, ToKeeper};

use crate::error::{Error, Result};
use crate::hub::Held;
use crate::keeper::Keepers;
use crate::link::Link;
use crate::places::Sealed;
use crate::session::Session;

/// As long as this is held no command starts in the session, in whatever process. Dropping it lifts the seal; so does the
/// death of this process, and the arrival of the new owner.
#[derive(Debug)]
pub struct Seal {
    _tasks: Sealed,
    /// Notices wait for who comes next.
    _notices: Held,
    /// The keeper refuses starts for as long as this is open.
    _keeper: Link,
}

impl Session {
    /// Keeps new commands away while its owner is replaced: every start is refused, with the words `owner is being
    /// replaced`; completions, reads and stops go on, and notices wait until the seal is gone.
    /// Refused while tasks run, which live in this process and would not
    /// survive it.
    ///
    /// After it, this process drops its handles of the session and the new owner, who waits in
    /// [`Runtime::own_when_free`](crate::Runtime::own_when_free), adopts all that runs.
    pub async fn seal(&self) -> Result<Seal> {
        let Some(owner) = &self.inner.owner else {
            return Err(Error::Refused(format!(
                "{} is not owned by this process; only its owner can seal it",
                self.id()
            )));
        };
        let tasks = owner.tasks.seal()?;
        let notices = self.hub().hold(*self.id());
        // The keeper must know its owner, or it would take this one for a session without one.
        drop(self.owner_link().await?);
        let mut keepers = Keepers::of(self.runtime().birth()?, self.dir()?.dir());
        loop {
            let mut link = keepers.connect().await?;
            let sealed = async {
                link.send(&ToKeeper::Seal).await?;
                link.message::<FromKeeper>().await
            };
            match keepers.within(sealed).await? {
                Some(FromKeeper::Sealed) => return Ok(Seal { _tasks: tasks, _notices: notices, _keeper: link }),
                Some(FromKeeper::Failed { reason }) => return Err(Error::Unreachable(reason)),
                Some(FromKeeper::Busy) | None => {}
                Some(other) => return Err(Error::Protocol(format!("the keeper answered Seal with {other:?}"))),
            }
        }
    }
}
