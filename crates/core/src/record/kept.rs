//! Stored types that say where records are and what of them was kept.

use serde::{Deserialize, Serialize};

use crate::id::{CommandId, SessionId};

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

/// `bound.json`: where the records of a session's commands are beside `work`. Replaced whenever that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundRecord {
    /// [`schema::BOUND`](super::schema::BOUND).
    pub schema: String,
    /// The session.
    pub id: SessionId,
    /// Absolute paths of directories in which one of the session's id holds records. The last one is where
    /// commands that end are moved to; earlier ones stay as long as records are left in them.
    pub places: Vec<String>,
    /// Unix time in milliseconds at which it was first bound.
    pub at_ms: u64,
}

/// `context.json`: the context of a session that was made without one; written once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRecord {
    /// [`schema::CONTEXT`](super::schema::CONTEXT).
    pub schema: String,
    /// The session.
    pub id: SessionId,
    /// The conversation or project.
    pub context: String,
    /// Unix time in milliseconds.
    pub at_ms: u64,
}
