//! Loads and replaces `inbox.json`, under `inbox.lock`.

use outlast_core::delivery::Ledger;
use outlast_core::record::{Durability, schema};

use super::{load, name, put};
use crate::dir::{Dir, FileError, Result};
use crate::lock::Lock;

/// The ledger of a session, held by this process alone until it is written or dropped.
///
/// `owner.lock` is never taken while this is held, and no lease either.
#[derive(Debug)]
pub struct LockedLedger {
    session: Dir,
    durability: Durability,
    newer: bool,
    _lock: Lock,
    /// What each consumer was told; change it, then [`LockedLedger::write`].
    pub ledger: Ledger,
}

impl LockedLedger {
    /// Waits for the ledger of a session and loads it; a session without one has an empty one.
    pub fn open(session: &Dir, durability: Durability) -> Result<LockedLedger> {
        let lock = Lock::acquire(session, name::LEDGER_LOCK)?;
        let loaded = load(session, name::LEDGER, schema::LEDGER)?;
        let newer = loaded.as_ref().is_some_and(|loaded| loaded.newer);
        let ledger = loaded.map_or_else(Ledger::default, |loaded| loaded.record);
        Ok(LockedLedger { session: session.clone(), durability, newer, _lock: lock, ledger })
    }

    /// Replaces `inbox.json` and lets go. One that a newer version wrote is never rewritten.
    pub fn write(self) -> Result<()> {
        if self.newer {
            let why = "a newer outlast wrote it; update this one";
            return Err(FileError::refused("replace", self.session.path_of(name::LEDGER), why));
        }
        put(&self.session, name::LEDGER, &self.ledger, self.durability)
    }
}

/// What each consumer was told, as of now; empty if nobody was told anything.
pub fn read(session: &Dir) -> Result<Ledger> {
    let loaded = load(session, name::LEDGER, schema::LEDGER)?;
    Ok(loaded.map_or_else(Ledger::default, |loaded| loaded.record))
}
