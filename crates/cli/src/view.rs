//! The shapes of `--json`: one type for each schema, every key always there.

mod command;
mod session;

use outlast::{HeadsUp, Retained, Totals};
use outlast_core::record::{Gap, Unwritten};
use serde::Serialize;
use std::path::Path;

pub use command::CommandView;
#[cfg(test)]
pub use command::tests;
pub use session::{BoundView, ResumeView, SessionView, SessionsView};

/// `outlast.list/1`
#[derive(Serialize)]
pub struct ListView<T: Serialize> {
    schema: &'static str,
    /// The commands, in the order asked for, else in that of their start.
    pub commands: Vec<T>,
}

impl<T: Serialize> ListView<T> {
    /// A list of these.
    pub fn of(commands: Vec<T>) -> Self {
        ListView { schema: "outlast.list/1", commands }
    }
}

/// What a stop adds to the command that it stopped.
#[derive(Serialize)]
pub struct StoppedView {
    /// The command after the stop.
    #[serde(flatten)]
    pub command: CommandView,
    /// Rounds of signals sent.
    pub signals: u32,
    /// Whether it had ended before.
    pub already_ended: bool,
    /// Whether nothing of its tree is left.
    pub verified: bool,
    /// Survivors that this stop ended.
    pub ended_survivors: Vec<ProcessView>,
}

/// What a wait adds to a command that it waited for.
#[derive(Serialize)]
pub struct WaitedView {
    /// The command now.
    #[serde(flatten)]
    pub command: CommandView,
    /// Whether what was waited for has come.
    pub met: bool,
    /// Milliseconds really waited.
    pub waited_ms: u64,
}

/// A command in an inbox.
#[derive(Serialize)]
pub struct CompletionView {
    /// The command, without output text.
    #[serde(flatten)]
    pub command: CommandView,
    /// Whether it may have been told before by somebody who died over it.
    pub redelivered: bool,
}

/// `outlast.inbox/1`
#[derive(Serialize)]
pub struct InboxView {
    schema: &'static str,
    /// What there is to tell, by id.
    pub completions: Vec<CompletionView>,
    /// What commands that run have printed and were asked for, by id.
    pub heads_ups: Vec<HeadsUpView>,
}

impl InboxView {
    /// An inbox with these.
    pub fn of(completions: Vec<CompletionView>, heads_ups: Vec<HeadsUpView>) -> Self {
        InboxView { schema: "outlast.inbox/1", completions, heads_ups }
    }
}

/// Lines of a command that runs, which match what was asked for.
#[derive(Serialize)]
pub struct HeadsUpView {
    id: String,
    alias: Option<String>,
    lines: u64,
    patterns: Vec<String>,
    first: u64,
    last: String,
    missing: u64,
}

impl HeadsUpView {
    /// These.
    pub fn of(one: &HeadsUp) -> Self {
        HeadsUpView {
            id: one.snapshot.id.to_string(),
            alias: one.snapshot.alias.map(|alias| alias.to_string()),
            lines: one.matches.lines,
            patterns: one.matches.patterns.clone(),
            first: one.matches.first,
            last: one.matches.last.clone(),
            missing: one.matches.missing,
        }
    }
}

/// One process that outlived its leader.
#[derive(Clone, Serialize)]
pub struct ProcessView {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// The output of a command.
#[derive(Serialize)]
pub struct OutputPart {
    /// Readable text of the last bytes; left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes that came.
    pub bytes: u64,
    /// Offset of the first byte that `text` shows.
    pub shown_from: u64,
    /// Whether `text` shows less than all.
    pub truncated: bool,
    /// What the log's cap dropped.
    pub gap: Option<Gap>,
    /// What could not be written to the log.
    pub unwritten: Option<Unwritten>,
    /// Whether a policy holds the text back.
    pub withheld: bool,
    /// The absolute path of the log.
    pub log: Option<String>,
}

/// `outlast.stats/1`
#[derive(Serialize)]
pub struct StatsView {
    schema: &'static str,
    commands: u64,
    running: u64,
    ok: u64,
    stopped: u64,
    timeouts: u64,
    failures: u64,
    unknown: u64,
}

impl StatsView {
    /// These numbers.
    pub fn of(totals: &Totals) -> Self {
        StatsView {
            schema: "outlast.stats/1",
            commands: totals.commands(),
            running: totals.running,
            ok: totals.ok,
            stopped: totals.stopped,
            timeouts: totals.failures.timeouts,
            failures: totals.failures.commands,
            unknown: totals.unknown,
        }
    }
}

/// `outlast.gc/1`
#[derive(Serialize)]
pub struct GcView {
    schema: &'static str,
    /// Whether nothing was really removed.
    pub dry_run: bool,
    /// What was removed, or would be: paths.
    pub removed: Vec<String>,
    /// Bytes on disk of the logs among them.
    pub freed: u64,
    /// What breaks a bound and stays, a text each.
    pub kept: Vec<String>,
}

impl GcView {
    /// What a cleaning did.
    pub fn of(dry_run: bool, retained: &Retained) -> Self {
        let removed = retained.removed.iter().map(|path| path.display().to_string()).collect();
        GcView { schema: "outlast.gc/1", dry_run, removed, freed: retained.freed, kept: retained.kept.clone() }
    }
}

/// `outlast.doctor/1`
#[derive(Serialize)]
pub struct DoctorView {
    schema: &'static str,
    /// Whether nothing is wrong.
    pub ok: bool,
    /// The version of this executable.
    pub version: &'static str,
    /// Where records live.
    pub state_dir: String,
    /// The executable that becomes the keeper.
    pub executable: Option<String>,
    /// `cgroup` or `subreaper`.
    pub containment: String,
    /// Everything that was looked at.
    pub findings: Vec<FindingView>,
}

/// One thing that the doctor looked at.
#[derive(Clone, Serialize)]
pub struct FindingView {
    /// A constant word.
    pub name: String,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found, and what to do.
    pub detail: String,
}

impl DoctorView {
    /// A report of these findings.
    pub fn of(state_dir: &Path, executable: Option<&Path>, containment: String, findings: Vec<FindingView>) -> Self {
        DoctorView {
            schema: "outlast.doctor/1",
            ok: findings.iter().all(|one| one.ok),
            version: env!("CARGO_PKG_VERSION"),
            state_dir: state_dir.display().to_string(),
            executable: executable.map(|path| path.display().to_string()),
            containment,
            findings,
        }
    }
}
