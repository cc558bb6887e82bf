//! One line of `trace.jsonl`: an event of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ending::End;
use crate::id::CommandId;
use crate::record::ExitRecord;
use crate::request::line_of;

/// A line of `trace.jsonl`. A key with nothing to say is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceLine {
    /// `session`, `turn`, `cancelled`, `finished`, `demoted`, `completed`, `abandoned`, `lost`, `interrupted`, `unrecorded`,
    /// `pruned`, `redacted`, `text`; in the trace of the state directory `removed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A unique, time-ordered event id.
    pub event: String,
    /// The event that it hangs off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The session.
    pub session: String,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// The command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<CommandId>,
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Milliseconds in the foreground that it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// The rendered number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// `ok` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Milliseconds from start to reap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Milliseconds that a discarded command ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_ms: Option<u64>,
    /// The log's path within the session's directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Bytes of output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The limit behind the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The consumer that was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// The one delivery that consumed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_via: Option<String>,
    /// What still ran when a turn was cancelled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<CommandId>,
    /// The report that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// How many secrets were masked in what was shown of the command, by pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redacted: Option<BTreeMap<String, u64>>,
    /// What went wrong, or why it was demoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl TraceLine {
    /// The line with what an end says: its `end`, `exit_code`, `status`, the command and how long it ran.
    #[must_use]
    pub fn with_end(self, exit: ExitRecord) -> TraceLine {
        TraceLine {
            status: Some(if exit.is_ok() { "ok" } else { "error" }.to_owned()),
            exit_code: exit.end.exit_code(),
            duration_ms: Some(exit.duration_ms),
            program: Some(exit.program.lossy()),
            command: Some(line_of(&exit.command)),
            limit: exit.limit,
            bytes: Some(exit.output.bytes),
            end: Some(exit.end),
            ..self
        }
    }
}
