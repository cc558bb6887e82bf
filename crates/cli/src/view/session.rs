//! `outlast.session/1` and `outlast.sessions/1`.

use std::path::Path;

use outlast::{Bound, ReconcileReport, SessionSummary, Snapshot};
use outlast_core::id::CommandId;
use outlast_core::record::{ClosedRecord, Ownership};
use serde::Serialize;

/// One session.
#[derive(Serialize)]
pub struct SessionView {
    schema: &'static str,
    id: String,
    context: Option<String>,
    parent: Option<String>,
    anchor_pid: Option<u32>,
    anchor_alive: Option<bool>,
    ownership: Option<Ownership>,
    linger_ms: Option<u64>,
    running_cap: Option<u32>,
    created_at_ms: Option<u64>,
    open: bool,
    closed_by: Option<String>,
    closed_at_ms: Option<u64>,
    kept: bool,
    owned: bool,
    running: usize,
    commands: usize,
    path: Option<String>,
    bound_to: Option<String>,
    problem: Option<String>,
    /// What the end discarded; null while the session is open or where it is not asked for.
    discarded: Option<Vec<serde_json::Value>>,
}

impl SessionView {
    /// A session as it stands; `path` is its directory.
    pub fn of(summary: &SessionSummary, path: Option<&Path>) -> Self {
        let record = summary.record.as_ref();
        SessionView {
            schema: "outlast.session/1",
            id: summary.id.to_string(),
            parent: record.and_then(|record| record.parent).map(|parent| parent.to_string()),
            context: record.map(|record| record.context.clone()).filter(|context| !context.is_empty()),
            anchor_pid: record.and_then(|record| record.anchor.as_ref()).map(|mark| mark.pid),
            anchor_alive: summary.anchor_alive,
            ownership: record.map(|record| record.ownership),
            linger_ms: record.map(|record| record.linger_ms),
            running_cap: record.map(|record| record.running_cap),
            created_at_ms: record.map(|record| record.created_at_ms),
            open: summary.closed_by.is_none(),
            closed_by: summary.closed_by.clone(),
            closed_at_ms: summary.closed_at_ms,
            kept: summary.kept,
            owned: summary.owned,
            running: summary.running,
            commands: summary.commands,
            path: path.map(|path| path.display().to_string()),
            bound_to: summary.bound_to.as_ref().map(|path| path.display().to_string()),
            problem: summary.problem.clone(),
            discarded: None,
        }
    }

    /// The same with the report of its end.
    pub fn closed(self, report: &ClosedRecord) -> Self {
        let discarded = report.commands.iter().map(|one| {
            // The stored shape is plain data, so that it has a JSON form.
            serde_json::to_value(one).unwrap_or_default()
        });
        SessionView { discarded: Some(discarded.collect()), ..self }
    }
}

/// `outlast.sessions/1`
#[derive(Serialize)]
pub struct SessionsView {
    schema: &'static str,
    /// Oldest first.
    pub sessions: Vec<SessionView>,
}

impl SessionsView {
    /// A list of these.
    pub fn of(sessions: Vec<SessionView>) -> Self {
        SessionsView { schema: "outlast.sessions/1", sessions }
    }
}

/// What a resume adds to the new session: what became of the commands of the earlier one, by id.
#[derive(Serialize)]
pub struct ResumeView {
    #[serde(flatten)]
    session: SessionView,
    resumed: Option<String>,
    report: Option<String>,
    ended: Vec<String>,
    killed: Vec<String>,
    lost: Vec<String>,
    still_running: Vec<String>,
    deferred: Vec<String>,
    notes: Vec<String>,
}

impl ResumeView {
    /// The new session and the report.
    pub fn of(session: SessionView, report: &ReconcileReport) -> Self {
        let ids = |group: &[Snapshot]| group.iter().map(|one| one.id.to_string()).collect();
        ResumeView {
            session,
            resumed: report.session.map(|id| id.to_string()),
            report: report.report.clone(),
            ended: ids(&report.ended),
            killed: ids(&report.killed),
            lost: ids(&report.lost),
            still_running: ids(&report.running),
            deferred: report.deferred.clone(),
            notes: report.notes.clone(),
        }
    }
}

/// What a bind adds to the session: what became of the records of its commands, by id.
#[derive(Serialize)]
pub struct BoundView {
    #[serde(flatten)]
    session: SessionView,
    moved: Vec<String>,
    following: Vec<String>,
    left: Vec<String>,
}

impl BoundView {
    /// The session and what was moved.
    pub fn of(session: SessionView, bound: &Bound) -> Self {
        let ids = |group: &[CommandId]| group.iter().map(ToString::to_string).collect();
        BoundView {
            session,
            moved: ids(&bound.moved),
            following: ids(&bound.following),
            left: bound.left.iter().map(|(id, why)| format!("{id}: {why}")).collect(),
        }
    }
}
