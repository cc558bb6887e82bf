//! The report of a session's end.

use serde::{Deserialize, Serialize};

use super::{ExitRecord, PROCESS};
use crate::id::{Alias, CommandId, SessionId};
use crate::request::OsText;

/// One command in the report of a session's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discarded {
    /// The command.
    pub id: CommandId,
    /// Its number.
    pub alias: Option<Alias>,
    /// [`PROCESS`], which is left out, or the kind of a task.
    #[serde(default = "process", skip_serializing_if = "is_process")]
    pub kind: String,
    /// The program.
    pub program: OsText,
    /// The command line.
    pub command: Vec<OsText>,
    /// A line for people.
    pub label: Option<String>,
    /// Milliseconds that it ran.
    pub running_ms: u64,
    /// `running` (its end is `abandoned`), `ended` (too late to be told), `unwinding` (not verified in
    /// time) or `detached` (left on purpose).
    pub state: String,
    /// The full result, for `ended`; the end as far as it is known, for `running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Box<ExitRecord>>,
}

fn process() -> String {
    PROCESS.to_owned()
}

fn is_process(kind: &str) -> bool {
    kind == PROCESS
}

/// `closed.json`: written once, at the session's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedRecord {
    /// [`schema::CLOSED`](super::schema::CLOSED).
    pub schema: String,
    /// The session.
    pub session: SessionId,
    /// Who ended it: a consumer, `anchor_gone` or `owner_gone`.
    pub by: String,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// What was discarded, by id.
    pub commands: Vec<Discarded>,
}
