//! The types that are stored on disk: versioned, read for ever, each with exactly one writing function.

mod closed;
mod kept;
mod output;
mod trace;

use serde::{Deserialize, Serialize};

use crate::ending::End;
use crate::id::{Alias, CommandId, SessionId};
use crate::joining::Joinable;
use crate::origin::Trust;
use crate::request::{Delivery, LogCap, OsText, Request, Survivors, from_hex};
use crate::tracking::Tracked;

pub use closed::{ClosedRecord, Discarded};
pub use kept::{BoundRecord, ContextRecord, PrunedRecord, TextRecord};
pub use output::{Gap, MOST_OUTPUT, OutputState, Unwritten};
pub use trace::TraceLine;

/// Names of the schemas of stored files; the number after the slash is the version.
pub mod schema {
    /// `request.json`
    pub const REQUEST: &str = "outlast.request/1";
    /// `status.json`
    pub const STATUS: &str = "outlast.status/1";
    /// `lease`
    pub const LEASE: &str = "outlast.lease/1";
    /// `exit.json`
    pub const EXIT: &str = "outlast.exit/1";
    /// `verdict.json`
    pub const VERDICT: &str = "outlast.verdict/1";
    /// `session.json`
    pub const SESSION: &str = "outlast.session-file/1";
    /// `closed.json`
    pub const CLOSED: &str = "outlast.closed/1";
    /// A line of `receipts.jsonl`
    pub const RECEIPTS: &str = "outlast.receipts/1";
    /// `pruned.json`
    pub const PRUNED: &str = "outlast.pruned/1";
    /// `text.json`
    pub const TEXT: &str = "outlast.text/1";
    /// `bound.json`
    pub const BOUND: &str = "outlast.bound/1";
    /// `context.json`
    pub const CONTEXT: &str = "outlast.context/1";
    /// `inbox.json`
    pub const LEDGER: &str = "outlast.ledger/1";
}

/// What a stored `schema` says about a record of the kind that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaCheck {
    /// This version or an older one: it loads.
    Known,
    /// A newer version: read what is known, never rewrite it.
    Newer,
    /// Another kind of record, or none.
    Foreign,
}

/// Compares the `schema` found in a record with the one expected there.
pub fn check_schema(found: &str, expected: &str) -> SchemaCheck {
    let split = |text: &str| {
        let (name, version) = text.rsplit_once('/')?;
        Some((name.to_owned(), version.parse::<u32>().ok()?))
    };
    match (split(found), split(expected)) {
        (Some((name, version)), Some((known, newest))) if name == known && version >= 1 => {
            if version <= newest {
                SchemaCheck::Known
            } else {
                SchemaCheck::Newer
            }
        }
        _ => SchemaCheck::Foreign,
    }
}

/// A process that can be recognised for ever: never a bare pid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMark {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot (proc(5), stat field 22).
    pub start: u64,
    /// Boot id (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// The pidfs file handle in hexadecimal digits, where the kernel has them (Linux 6.14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// Who holds a session's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ownership {
    /// A front end that stays (library, server): when it goes, `linger` runs.
    Resident,
    /// One-shot calls: the session lives exactly as long as its anchor.
    OneShot,
}

/// How much a record must survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The death of any process.
    #[default]
    Process,
    /// Loss of power too: file and directory are synced.
    Power,
}

/// The kind of a command that is a process. Every other kind is that of an in-process task.
pub const PROCESS: &str = "process";
/// The kind of a task that was given none.
pub const TASK: &str = "task";

/// The longest time that a new owner is waited for by default, in milliseconds.
pub const LINGER_MS: u64 = 30_000;
/// Commands of a session that may run at once by default.
pub const RUNNING_CAP: u32 = 64;

/// `session.json`: written once by the creator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// [`schema::SESSION`].
    pub schema: String,
    /// The session.
    pub id: SessionId,
    /// The conversation or project; empty means that there is no predecessor.
    #[serde(default)]
    pub context: String,
    /// The session whose agent started the agent of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The process whose life bounds the session; none means that nothing does.
    pub anchor: Option<ProcessMark>,
    /// Who holds its life.
    pub ownership: Ownership,
    /// Milliseconds that a new owner is waited for.
    pub linger_ms: u64,
    /// Commands that may run at once; 0 means no cap.
    pub running_cap: u32,
    /// What its records must survive.
    #[serde(default)]
    pub durability: Durability,
    /// Unix time in milliseconds.
    pub created_at_ms: u64,
    /// The trace event that started it; the parent of most others.
    pub start_event: String,
    /// The version of outlast that wrote this.
    pub version: String,
}

/// `request.json`: written once, when the command is materialised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// [`schema::REQUEST`].
    pub schema: String,
    /// The number under which people know it.
    pub alias: Alias,
    /// [`PROCESS`], or the kind of a task.
    pub kind: String,
    /// The canonical path of the program that was found, else the name as invoked.
    pub program: OsText,
    /// What was asked. The environment is left out: it may hold secrets that nothing needs again.
    #[serde(flatten)]
    pub request: Request,
}

impl RequestRecord {
    /// Whether it is work inside its owner's process and no process of its own.
    pub fn is_task(&self) -> bool {
        self.kind != PROCESS
    }
}

/// Where a command is between its start and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The leader lives and nothing is held against it.
    Running,
    /// A stop was accepted and is not verified yet.
    Stopping,
    /// The leader was reaped and the end is recorded.
    Ended,
}

/// `status.json`: replaced by the supervisor at each change of phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusRecord {
    /// [`schema::STATUS`].
    pub schema: String,
    /// The command.
    pub id: CommandId,
    /// Where it is.
    pub phase: Phase,
    /// The process that was started for it; none before the start.
    pub leader: Option<ProcessMark>,
    /// Its supervisor.
    pub supervisor: ProcessMark,
    /// Unix time of the start in milliseconds.
    pub started_at_ms: u64,
    /// Unix time of the demotion in milliseconds.
    pub demoted_at_ms: Option<u64>,
    /// `cgroup` or `subreaper`.
    pub containment: String,
    /// The output as of this writing; `bytes` is only final once `capturing` is false.
    pub output: OutputState,
    /// Whether anything can still be captured.
    pub capturing: bool,
    /// Who keeps the bounds on memory and processes: `kernel` or `sampling`; none where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_kept_by: Option<String>,
    /// Record errors so far.
    #[serde(default)]
    pub errors: Vec<String>,
    /// By what it can be joined, for the next keeper; none where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joinable: Option<Joinable>,
}

/// A process that outlived the leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Process id.
    pub pid: u32,
    /// Its name (proc(5), comm).
    pub name: String,
    /// Start time, to recognise it.
    #[serde(default)]
    pub start: u64,
    /// What became of it.
    #[serde(default)]
    pub fate: Fate,
}

/// What became of a survivor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Left alive under the command's id.
    #[default]
    Kept,
    /// Ended by the policy `kill`.
    Killed,
    /// Could not be ended.
    Unstoppable,
}

/// `exit.json`: how it ended, complete in itself. Written once, before anyone is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// [`schema::EXIT`].
    pub schema: String,
    /// The command.
    pub id: CommandId,
    /// Its session.
    pub session: SessionId,
    /// None where it never had records.
    pub alias: Option<Alias>,
    /// [`PROCESS`], or the kind of a task.
    pub kind: String,
    /// A line for people.
    pub label: Option<String>,
    /// The command line.
    pub command: Vec<OsText>,
    /// The program found.
    pub program: OsText,
    /// The working directory.
    pub cwd: OsText,
    /// The consumer that started it.
    pub consumer: String,
    /// The trust of who asked.
    #[serde(default)]
    pub trust: Trust,
    /// The form in which the end is told.
    #[serde(default, skip_serializing_if = "Delivery::is_task")]
    pub delivery: Delivery,
    /// The command on whose behalf it ran, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_command: Option<CommandId>,
    /// The session of whoever asked, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
    /// Whether it was moved to the background: only then is its end a completion.
    pub demoted: bool,
    /// False while a caller in the foreground has yet to say that it was shown this end. Where nobody is left who could
    /// hear that, the end is a completion all the same.
    #[serde(default = "yes", with = "digit", skip_serializing_if = "digit::is_yes")]
    pub told: bool,
    /// Whether it outlives its session, as asked.
    #[serde(default)]
    pub detached: bool,
    /// Unix time of the start in milliseconds.
    pub started_at_ms: u64,
    /// Unix time of the demotion in milliseconds.
    pub demoted_at_ms: Option<u64>,
    /// Unix time at which the leader was reaped, in milliseconds.
    pub ended_at_ms: u64,
    /// Milliseconds from start to reap, by a clock that no one sets.
    pub duration_ms: u64,
    /// How it ended.
    pub end: End,
    /// The limit behind the end, in one sentence.
    #[serde(default)]
    pub limit: Option<String>,
    /// Record errors and wait errors; any makes the status `error`.
    #[serde(default)]
    pub errors: Vec<String>,
    /// The output as of the end.
    pub output: OutputState,
    /// The last bytes of the output in hexadecimal digits, kept where the log could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    /// What a task had to say at its end beside its output: its result or its error. The text of one that
    /// wrote no output is its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Which files changed meanwhile, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked: Option<Tracked>,
    /// Who lived on.
    #[serde(default)]
    pub survivors: Vec<Survivor>,
    /// The policy they fell under.
    #[serde(default)]
    pub survivors_policy: Survivors,
    /// Who kept the bounds on memory and processes: `kernel` or `sampling`; none where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_kept_by: Option<String>,
    /// `cgroup` or `subreaper`.
    pub containment: String,
    /// `supervisor`, `keeper`, `owner` (of a task) or `runtime`.
    pub recorded_by: String,
    /// The leader; none where none was started.
    pub leader: Option<ProcessMark>,
    /// The log's cap.
    pub cap: LogCap,
}

fn yes() -> bool {
    true
}

/// A truth that is one digit, so that a record is changed by one byte in its place: no reader sees half of it, and a full disk
/// has room for it.
mod digit {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub fn is_yes(value: &bool) -> bool {
        *value
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub fn serialize<S: Serializer>(value: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(u8::from(*value))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        u8::deserialize(deserializer).map(|digit| digit != 0)
    }
}

impl ExitRecord {
    /// Whether this end is told to consumers, or will be where its caller does not say that it was shown it.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.demoted || !self.told
    }

    /// The record of a command of which nothing is known yet but what was asked.
    pub fn draft(request: &Request, program: &OsText) -> Self {
        ExitRecord {
            schema: schema::EXIT.to_owned(),
            id: request.id,
            session: request.session,
            alias: None,
            kind: PROCESS.to_owned(),
            label: request.label.clone(),
            command: request.argv.clone(),
            program: program.clone(),
            cwd: request.cwd.clone(),
            consumer: request.consumer.clone(),
            trust: request.trust,
            delivery: request.delivery,
            parent_command: request.parent_command,
            parent_session: request.parent_session,
            demoted: request.background,
            told: true,
            detached: request.ttl_ms().is_some(),
            started_at_ms: 0,
            demoted_at_ms: None,
            ended_at_ms: 0,
            duration_ms: 0,
            end: End::Lost,
            limit: None,
            errors: Vec::new(),
            output: OutputState::default(),
            tail: None,
            result: None,
            tracked: None,
            survivors: Vec::new(),
            survivors_policy: request.survivors,
            limits_kept_by: None,
            containment: "subreaper".to_owned(),
            recorded_by: "supervisor".to_owned(),
            leader: None,
            cap: request.cap,
        }
    }

    /// The last bytes of the output, where the log could not be written.
    pub fn kept_tail(&self) -> Option<Vec<u8>> {
        self.tail.as_deref().and_then(from_hex)
    }

    /// `ok` only for exit 0 with nothing held against it.
    pub fn is_ok(&self) -> bool {
        self.end.is_clean() && self.errors.is_empty()
    }
}

/// A process that a reconciler found of a lost command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// `ended`, or `left` with the reason in `why`.
    pub done: String,
    /// Why it was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// `verdict.json`: written once by a reconciler, only if the lease is free and there is no `exit.json`.
///
/// A key with nothing to say is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictRecord {
    /// [`schema::VERDICT`].
    pub schema: String,
    /// The session of the command.
    pub session: SessionId,
    /// The command.
    pub id: CommandId,
    /// `lost` or `interrupted`.
    pub verdict: String,
    /// The program.
    pub program: OsText,
    /// The command line.
    pub command: Vec<OsText>,
    /// Unix time of the demotion in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demoted_at_ms: Option<u64>,
    /// The session that reconciled, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciled_by: Option<SessionId>,
    /// The report that names it.
    pub report: String,
    /// Unix time of the verdict in milliseconds.
    pub at_ms: u64,
    /// Processes that it left behind, and what was done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<Leftover>,
}

#[cfg(test)]
mod tests;
