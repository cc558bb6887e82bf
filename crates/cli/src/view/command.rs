//! `outlast.command/1`: one command, from a snapshot or from an end in the foreground.

use std::path::PathBuf;

use outlast::{Change, Demotion, Excerpt, Finished, Snapshot, Stream, Tracked};
use outlast_core::ending::End;
use outlast_core::origin::Trust;
use outlast_core::record::{Fate, Phase, Survivor};
use outlast_core::request::OsText;
use outlast_core::text::excerpt::{Tail, joined};
use outlast_core::text::{TEXT_BYTES, readable};
use serde::Serialize;

use super::{OutputPart, ProcessView};

/// One command.
#[derive(Serialize)]
pub struct CommandView {
    schema: &'static str,
    id: String,
    alias: Option<String>,
    session: String,
    label: Option<String>,
    command: Vec<String>,
    cwd: String,
    phase: Phase,
    demoted: bool,
    end: Option<End>,
    exit_code: Option<i32>,
    status: Option<&'static str>,
    started_at_ms: u64,
    demoted_at_ms: Option<u64>,
    ended_at_ms: Option<u64>,
    duration_ms: u64,
    output: OutputPart,
    pid: Option<u32>,
    survivors: Vec<ProcessView>,
    containment: String,
    joined: bool,
    trust: Trust,
    survivors_at_end: Vec<Survivor>,
    limits_kept_by: Option<String>,
    kind: String,
    parent_command: Option<String>,
    parent_session: Option<String>,
    detached: bool,
    limit: Option<String>,
    errors: Vec<String>,
    note: Option<String>,
    pruned_at_ms: Option<u64>,
    changed: Option<ChangedPart>,
    tracked: Option<TrackedPart>,
}

/// What a command said it has changed.
#[derive(Serialize)]
struct ChangedPart {
    paths: Vec<String>,
    /// Whether more was changed, of which nothing can be understood here.
    opaque: bool,
}

/// What the policies made of a start, as the note of its answer.
fn note_of(remarks: &[String]) -> Option<String> {
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

impl CommandView {
    /// The command with the text of its output.
    pub fn whole(snapshot: &Snapshot) -> Self {
        let (bytes, end) = snapshot.shown();
        let tail = Tail::of(bytes, end, TEXT_BYTES);
        let mut whole = Self::of(snapshot, Some(tail.text()));
        (whole.output.shown_from, whole.output.truncated) = match snapshot.result {
            // Nothing of the output itself is shown then.
            Some(_) => (snapshot.output.bytes, snapshot.output.bytes > 0),
            None => behind_cut(snapshot.output.shown_from, end.len() - tail.bytes.len()),
        };
        whole
    }

    /// The command with the text of its output, for a caller whose wait or start ended with this demotion.
    pub fn demoted(demotion: &Demotion, snapshot: &Snapshot) -> Self {
        let whole = Self::whole(snapshot);
        CommandView { joined: demotion.joined, note: note_of(&demotion.remarks).or(whole.note.clone()), ..whole }
    }

    /// The command as a list shows it.
    pub fn listed(snapshot: &Snapshot) -> Self {
        Self::of(snapshot, None)
    }

    fn of(snapshot: &Snapshot, text: Option<String>) -> Self {
        let output = &snapshot.output;
        CommandView {
            schema: "outlast.command/1",
            id: snapshot.id.to_string(),
            alias: snapshot.alias.map(|alias| alias.to_string()),
            session: snapshot.session.to_string(),
            label: snapshot.label.clone(),
            command: snapshot.command.iter().map(|word| word.lossy()).collect(),
            cwd: snapshot.cwd.lossy(),
            phase: snapshot.phase,
            demoted: snapshot.demoted,
            end: snapshot.end.clone(),
            exit_code: snapshot.exit_code,
            status: snapshot.ok.map(status_word),
            started_at_ms: snapshot.started_at_ms,
            demoted_at_ms: snapshot.demoted_at_ms,
            ended_at_ms: snapshot.ended_at_ms,
            duration_ms: snapshot.duration_ms,
            output: OutputPart {
                text,
                bytes: output.bytes,
                shown_from: output.shown_from,
                truncated: output.truncated,
                gap: output.gap,
                unwritten: output.unwritten,
                withheld: output.withheld || snapshot.withheld,
                log: path(output.log.as_ref()),
            },
            pid: snapshot.pid,
            survivors: alive(&snapshot.survivors),
            containment: snapshot.containment.clone(),
            joined: false,
            trust: snapshot.trust,
            survivors_at_end: snapshot.survivors_at_end.clone(),
            limits_kept_by: snapshot.limits_kept_by.clone(),
            kind: snapshot.kind.clone(),
            parent_command: snapshot.parent_command.map(|id| id.to_string()),
            parent_session: snapshot.parent_session.map(|id| id.to_string()),
            detached: snapshot.detached,
            limit: snapshot.limit.clone(),
            errors: snapshot.errors.clone(),
            note: snapshot.note.clone(),
            pruned_at_ms: snapshot.pruned_at_ms,
            changed: changed(&snapshot.changes),
            tracked: snapshot.tracked.as_ref().map(TrackedPart::of),
        }
    }

    /// A command that ended in the foreground.
    pub fn finished(finished: &Finished) -> Self {
        let exit = &finished.exit;
        let (text, shown_from, truncated) = finished_text(finished);
        CommandView {
            schema: "outlast.command/1",
            id: exit.id.to_string(),
            alias: exit.alias.map(|alias| alias.to_string()),
            session: exit.session.to_string(),
            label: exit.label.clone(),
            command: exit.command.iter().map(|word| word.lossy()).collect(),
            cwd: exit.cwd.lossy(),
            phase: Phase::Ended,
            demoted: exit.demoted,
            end: Some(exit.end.clone()),
            exit_code: exit.end.exit_code(),
            status: Some(status_word(exit.is_ok())),
            started_at_ms: exit.started_at_ms,
            demoted_at_ms: exit.demoted_at_ms,
            ended_at_ms: Some(exit.ended_at_ms),
            duration_ms: exit.duration_ms,
            output: OutputPart {
                text: Some(text),
                bytes: exit.output.bytes,
                shown_from,
                truncated,
                gap: finished.gap,
                unwritten: finished.unwritten,
                withheld: false,
                log: path(finished.log.as_ref()),
            },
            pid: None,
            survivors: alive(&exit.survivors),
            containment: exit.containment.clone(),
            joined: finished.joined,
            trust: exit.trust,
            survivors_at_end: exit.survivors.clone(),
            limits_kept_by: exit.limits_kept_by.clone(),
            kind: exit.kind.clone(),
            parent_command: exit.parent_command.map(|id| id.to_string()),
            parent_session: exit.parent_session.map(|id| id.to_string()),
            detached: exit.detached,
            limit: exit.limit.clone(),
            errors: exit.errors.clone(),
            note: note_of(&finished.remarks),
            pruned_at_ms: None,
            changed: changed(&finished.changes),
            tracked: exit.tracked.as_ref().map(TrackedPart::of),
        }
    }
}

/// Which files changed while a command ran.
#[derive(Serialize)]
struct TrackedPart {
    dir: String,
    created: Vec<String>,
    modified: Vec<String>,
    deleted: Vec<String>,
    /// How many more there are.
    more: u64,
    /// Why this may not be all.
    problem: Option<String>,
}

impl TrackedPart {
    fn of(tracked: &Tracked) -> Self {
        let texts = |paths: &[OsText]| paths.iter().map(OsText::lossy).collect();
        TrackedPart {
            dir: tracked.dir.lossy(),
            created: texts(&tracked.created),
            modified: texts(&tracked.modified),
            deleted: texts(&tracked.deleted),
            more: tracked.more,
            problem: tracked.problem.clone(),
        }
    }
}

/// Nothing where nothing was said.
fn changed(changes: &[Change]) -> Option<ChangedPart> {
    let paths = changes.iter().flat_map(|change| match change {
        Change::Write { paths } => paths.iter().map(|path| path.lossy()).collect(),
        Change::Opaque => Vec::new(),
    });
    let opaque = changes.contains(&Change::Opaque);
    (!changes.is_empty()).then(|| ChangedPart { paths: paths.collect(), opaque })
}

/// The word of `status`.
pub fn status_word(ok: bool) -> &'static str {
    if ok { "ok" } else { "error" }
}

/// One contiguous piece, the tail; separate streams that are whole are joined, each in its own order.
fn finished_text(finished: &Finished) -> (String, u64, bool) {
    let whole = |wanted: Stream| finished.excerpts.iter().find(|one| one.stream == wanted && one.missing == 0);
    if let (Some(out), Some(err)) = (whole(Stream::Stdout), whole(Stream::Stderr)) {
        let text = joined(&excerpt_text(out), &excerpt_text(err), finished.exit.is_ok());
        return (text, finished.shown_from, finished.truncated);
    }
    // What could not get records is held whole, and is more than is shown.
    let tail = Tail::of(finished.exit.output.bytes, &finished.output, TEXT_BYTES);
    let (shown_from, truncated) = behind_cut(finished.shown_from, finished.output.len() - tail.bytes.len());
    (tail.text(), shown_from, truncated)
}

/// Where a text begins, and whether something is before it: what is at hand begins at `from`, and `cut` bytes of that are
/// not shown.
fn behind_cut(from: u64, cut: usize) -> (u64, bool) {
    let shown_from = from + cut as u64;
    (shown_from, shown_from > 0)
}

fn excerpt_text(excerpt: &Excerpt) -> String {
    readable(&[excerpt.head.as_slice(), excerpt.tail.as_slice()].concat())
}

fn alive(survivors: &[Survivor]) -> Vec<ProcessView> {
    let alive = survivors.iter().filter(|one| one.fate != Fate::Killed);
    alive.map(|one| ProcessView { pid: one.pid, name: one.name.clone() }).collect()
}

fn path(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.display().to_string())
}

#[cfg(test)]
pub mod tests {
    use outlast::OutputView;
    use outlast_core::request::OsText;
    use serde_json::{Value, json};

    use super::*;

    /// A command that runs, for the tests of everything that shows one.
    pub fn snapshot() -> Snapshot {
        Snapshot {
            id: "wrk_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e".parse().expect("an id"),
            alias: Some(outlast_core::id::Alias(3)),
            session: "ses_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e".parse().expect("an id"),
            kind: "process".into(),
            label: None,
            command: vec![OsText::from("sh"), OsText::from("-c"), OsText::from("make\ntest")],
            program: OsText::from("/bin/sh"),
            cwd: OsText::from("/tmp"),
            phase: Phase::Running,
            demoted: true,
            detached: false,
            end: None,
            exit_code: None,
            ok: None,
            limit: None,
            errors: vec![],
            started_at_ms: 1_000,
            demoted_at_ms: Some(2_000),
            ended_at_ms: None,
            duration_ms: 65_000,
            result: None,
            withheld: false,
            output: OutputView { tail: b"a\rb\n".to_vec(), bytes: 4, ..OutputView::default() },
            pid: Some(42),
            survivors: vec![],
            survivors_at_end: vec![],
            damaged: None,
            limits_kept_by: None,
            containment: "subreaper".into(),
            trust: Trust::Trusted,
            delivery: outlast_core::request::Delivery::Task,
            consumer: "model".into(),
            parent_command: None,
            parent_session: None,
            stopping_by: None,
            stdin_open: false,
            quiet_ms: None,
            changes: vec![],
            tracked: None,
            report: None,
            note: None,
            pruned_at_ms: None,
        }
    }

    /// The same, ended like this.
    pub fn ended(end: End) -> Snapshot {
        let (exit_code, ok) = (end.exit_code(), Some(end.is_clean()));
        let phase = Phase::Ended;
        Snapshot { phase, exit_code, ok, end: Some(end), ended_at_ms: Some(66_000), pid: None, ..snapshot() }
    }

    fn survivor(fate: Fate) -> Survivor {
        Survivor { pid: 7, name: "node".into(), start: 1, fate }
    }

    /// Covers: B8
    #[test]
    fn b8_every_key_is_there_while_it_runs() {
        let json = serde_json::to_value(CommandView::whole(&snapshot())).expect("plain data");
        for key in [
            "schema",
            "id",
            "alias",
            "session",
            "label",
            "command",
            "cwd",
            "phase",
            "demoted",
            "end",
            "exit_code",
            "status",
            "started_at_ms",
            "demoted_at_ms",
            "ended_at_ms",
            "duration_ms",
            "output",
            "pid",
            "survivors",
            "containment",
            "joined",
            "trust",
        ] {
            assert!(json.get(key).is_some(), "{key}");
        }
        for key in ["end", "status", "exit_code", "ended_at_ms", "label"] {
            assert_eq!(json[key], Value::Null, "{key}");
        }
        assert_eq!((&json["phase"], &json["demoted"], &json["alias"]), (&json!("running"), &json!(true), &json!("w3")));
        assert_eq!(json["command"], json!(["sh", "-c", "make\ntest"]));
        assert_eq!(
            json["output"],
            json!({"text": "b\n", "bytes": 4, "shown_from": 0, "truncated": false, "gap": null, "unwritten": null, "withheld": false, "log": null})
        );
        let listed = serde_json::to_value(CommandView::listed(&snapshot())).expect("plain data");
        assert!(listed["output"].get("text").is_none());
    }

    #[test]
    fn an_end_and_its_survivors() {
        let mut snapshot = ended(End::Exited { code: 7 });
        snapshot.survivors = vec![survivor(Fate::Kept), survivor(Fate::Killed), survivor(Fate::Unstoppable)];
        let json = serde_json::to_value(CommandView::listed(&snapshot)).expect("plain data");
        assert_eq!(json["end"], json!({"kind": "exited", "code": 7, "signal": null, "detail": null, "by": null}));
        assert_eq!((&json["status"], &json["exit_code"]), (&json!("error"), &json!(7)));
        assert_eq!(json["survivors"], json!([{"pid": 7, "name": "node"}, {"pid": 7, "name": "node"}]));
    }
}
