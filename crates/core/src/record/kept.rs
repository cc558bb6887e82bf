//! Stored types that say where records are and what of them was kept.

use serde::{Deserialize, Serialize};

use crate::id::CommandId;

/// `pruned.json`: retention removed the output of a command; written once, before that is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedRecord {
    /// [`schema::PRUNED`](super::schema::PRUNED).
    pub schema: String,
    /// The command.
    pub id: CommandId,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// Bytes on disk that this freed.
    pub freed: u64,
}
