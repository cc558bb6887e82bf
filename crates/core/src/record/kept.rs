//! Stored types that say where records are and what of them, and of a final text, was kept.

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

/// `text.json`: the final text of a task that ended under a text policy. Replaced, under its lock, when that text is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRecord {
    /// [`schema::TEXT`](super::schema::TEXT).
    pub schema: String,
    /// The command.
    pub id: CommandId,
    /// How often it was replaced.
    pub revision: u64,
    /// The text; none where it is withheld.
    pub text: Option<String>,
    /// What stands in front of it, also where it is withheld.
    pub notice: Option<String>,
}

impl TextRecord {
    /// What is shown of it; none where nothing is.
    #[must_use]
    pub fn shown(&self) -> Option<String> {
        match (&self.notice, &self.text) {
            (Some(notice), text) => Some(format!("{notice}\n{}", text.as_deref().unwrap_or_default())),
            (None, text) => text.clone(),
        }
    }
}
