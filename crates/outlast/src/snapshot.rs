//! Everything about one command at one moment, as a value.

use outlast_core::ending::{End, Fact};
use outlast_core::id::{Alias, CommandId, SessionId};
use outlast_core::notice::records_incomplete;
use outlast_core::origin::Trust;
use outlast_core::receipt::Change;
use outlast_core::record::{
    ExitRecord, OutputState, PROCESS, Phase, RequestRecord, SchemaCheck, StatusRecord, Survivor, TextRecord,
    VerdictRecord, check_schema, schema,
};
use outlast_core::request::{Delivery, Lifetime, OsText, Stdin};
use outlast_core::tracking::Tracked;
use outlast_core::wire::LiveStatus;
use outlast_host::store::command::CommandDir;
use outlast_host::store::understood;
use outlast_host::{clock, proc};
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::output::{OutputView, unwritten};

/// Everything about one command at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The command.
    pub id: CommandId,
    /// Its number; none before it had records.
    pub alias: Option<Alias>,
    /// Its session.
    pub session: SessionId,
    /// `process`, or the kind of a task.
    pub kind: String,
    /// A line for people.
    pub label: Option<String>,
    /// The command line.
    pub command: Vec<OsText>,
    /// The program found.
    pub program: OsText,
    /// The working directory.
    pub cwd: OsText,
    /// Where it is.
    pub phase: Phase,
    /// Whether it was moved to the background.
    pub demoted: bool,
    /// Whether it outlives its session.
    pub detached: bool,
    /// How it ended; none until its leader was reaped.
    pub end: Option<End>,
    /// The number the command line would end with.
    pub exit_code: Option<i32>,
    /// Whether it counts as `ok`; none until it ended.
    pub ok: Option<bool>,
    /// The limit behind the end, in one sentence.
    pub limit: Option<String>,
    /// Record errors and wait errors.
    pub errors: Vec<String>,
    /// Unix time of the start in milliseconds.
    pub started_at_ms: u64,
    /// Unix time of the demotion in milliseconds.
    pub demoted_at_ms: Option<u64>,
    /// Unix time at which the leader was reaped, in milliseconds; none where nobody knows.
    pub ended_at_ms: Option<u64>,
    /// Milliseconds from the start to the reap, or to now; 0 where nobody knows.
    pub duration_ms: u64,
    /// The output.
    pub output: OutputView,
    /// What a task had to say at its end beside its output, where it had both. Not in a list.
    pub result: Option<String>,
    /// Whether a text policy withheld that, or it was scrubbed.
    pub withheld: bool,
    /// The leader while it lives.
    pub pid: Option<u32>,
    /// Who outlived the leader and is alive now.
    pub survivors: Vec<Survivor>,
    /// Who outlived the leader as recorded at the end, and what became of them then.
    pub survivors_at_end: Vec<Survivor>,
    /// `cgroup` or `subreaper`.
    pub containment: String,
    /// Who keeps the bounds on memory and processes: `kernel` or `sampling`; none where there are none.
    pub limits_kept_by: Option<String>,
    /// The trust of who asked for it.
    pub trust: Trust,
    /// The form in which its end is told.
    pub delivery: Delivery,
    /// The consumer that started it.
    pub consumer: String,
    /// The command on whose behalf it runs, where there is one.
    pub parent_command: Option<CommandId>,
    /// The session of whoever asked, where it is another one.
    pub parent_session: Option<SessionId>,
    /// Who asked for the stop that is under way.
    pub stopping_by: Option<String>,
    /// Whether its standard input is open.
    pub stdin_open: bool,
    /// Milliseconds since the last byte of output, while a supervisor answers.
    pub quiet_ms: Option<u64>,
    /// What it said it has changed; nothing before its end, and nothing where only a brief look was taken.
    pub changes: Vec<Change>,
    /// Which files changed while it ran, where that was asked for; nothing before its end, and nothing where only a brief
    /// look was taken.
    pub tracked: Option<Tracked>,
    /// The report that named it as lost.
    pub report: Option<String>,
    /// When retention removed its output, Unix time in milliseconds; everything else is still known.
    pub pruned_at_ms: Option<u64>,
    /// What a reader should know beside the facts, such as a supervisor that does not answer.
    pub note: Option<String>,
    /// What is wrong with records that cannot be understood; the end then counts as lost, if there is one.
    pub damaged: Option<String>,
}

/// The note on records of a later version.
const NEWER: &str = "a newer outlast wrote its records; what this one knows of them is shown";

impl Snapshot {
    /// What an end that nobody told before says; the view of a completion.
    pub(crate) fn of_exit(exit: ExitRecord, output: OutputState, dir: Option<&CommandDir>) -> Result<Snapshot> {
        let mut survivors = Vec::new();
        for survivor in &exit.survivors {
            if lives(survivor)? {
                survivors.push(survivor.clone());
            }
        }
        // Whose end was recorded for it without a log has none: a log begins with a heading.
        let pruned_at_ms = dir.map(pruned_at).transpose()?.flatten();
        let has_log = match dir {
            Some(dir) => output.start > 0 && (pruned_at_ms.is_none() || dir.has_log()?),
            None => false,
        };
        let kept = exit.kept_tail().map_or(0, |tail| tail.len() as u64);
        let unwritten = match dir.filter(|_| pruned_at_ms.is_none()) {
            Some(dir) => unwritten(dir, &output, kept)?,
            None => None,
        };
        let log = dir.filter(|_| has_log).map(CommandDir::log_path);
        let ok = exit.is_ok();
        let newer = check_schema(&exit.schema, schema::EXIT) == SchemaCheck::Newer;
        let text = match dir {
            Some(dir) if exit.kind != PROCESS => understood(dir.text())?,
            _ => None,
        };
        let snapshot = Snapshot {
            id: exit.id,
            alias: exit.alias,
            session: exit.session,
            kind: exit.kind,
            label: exit.label,
            command: exit.command,
            program: exit.program,
            cwd: exit.cwd,
            phase: Phase::Ended,
            demoted: exit.demoted,
            detached: exit.detached,
            exit_code: exit.end.exit_code(),
            end: Some(exit.end),
            ok: Some(ok),
            limit: exit.limit,
            errors: exit.errors,
            started_at_ms: exit.started_at_ms,
            demoted_at_ms: exit.demoted_at_ms,
            ended_at_ms: Some(exit.ended_at_ms),
            duration_ms: exit.duration_ms,
            output: OutputView { unwritten, ..view(output, log, false) },
            result: exit.result,
            withheld: false,
            pid: None,
            survivors,
            survivors_at_end: exit.survivors,
            containment: exit.containment,
            limits_kept_by: exit.limits_kept_by,
            trust: exit.trust,
            delivery: exit.delivery,
            consumer: exit.consumer,
            parent_command: exit.parent_command,
            parent_session: exit.parent_session,
            stopping_by: None,
            stdin_open: false,
            quiet_ms: None,
            changes: Vec::new(),
            tracked: None,
            report: None,
            pruned_at_ms,
            note: newer.then(|| NEWER.to_owned()),
            damaged: None,
        };
        Ok(match text {
            Some(text) => snapshot.with_text(&text),
            None => snapshot,
        })
    }

    /// With the final text that was kept under a text policy.
    pub(crate) fn with_text(self, text: &TextRecord) -> Snapshot {
        Snapshot { result: text.shown(), withheld: text.text.is_none(), ..self }
    }

    /// A command that has no end by its records. Damaged or missing ones leave their part empty.
    pub(crate) fn of_open(
        id: CommandId,
        session: SessionId,
        request: Option<RequestRecord>,
        status: Option<&StatusRecord>,
        log: Option<PathBuf>,
    ) -> Snapshot {
        let alias = request.as_ref().map(|record| record.alias);
        let kind = request.as_ref().map_or_else(|| PROCESS.to_owned(), |record| record.kind.clone());
        let program = request.as_ref().map_or_else(|| OsText(Vec::new()), |record| record.program.clone());
        let asked = request.map(|record| record.request);
        let started_at_ms = status.map_or(id.unix_ms(), |status| status.started_at_ms);
        Snapshot {
            id,
            alias,
            session,
            kind,
            program,
            phase: status.map_or(Phase::Running, |status| status.phase),
            demoted: status.is_some_and(|status| status.demoted_at_ms.is_some()),
            detached: asked.as_ref().is_some_and(|asked| asked.lifetime != Lifetime::Session),
            end: None,
            exit_code: None,
            ok: None,
            limit: None,
            errors: status.map(|status| status.errors.clone()).unwrap_or_default(),
            started_at_ms,
            demoted_at_ms: status.and_then(|status| status.demoted_at_ms),
            ended_at_ms: None,
            duration_ms: clock::unix_ms().saturating_sub(started_at_ms),
            output: view(status.map(|status| status.output).unwrap_or_default(), log, true),
            result: None,
            withheld: false,
            pid: status.and_then(|status| status.leader.as_ref()).map(|leader| leader.pid),
            survivors: Vec::new(),
            survivors_at_end: Vec::new(),
            containment: status.map(|status| status.containment.clone()).unwrap_or_default(),
            limits_kept_by: status.and_then(|status| status.limits_kept_by.clone()),
            stopping_by: None,
            stdin_open: asked.as_ref().is_some_and(|asked| asked.stdin != Stdin::Null),
            quiet_ms: None,
            changes: Vec::new(),
            tracked: None,
            report: None,
            pruned_at_ms: None,
            note: None,
            damaged: None,
            label: asked.as_ref().and_then(|asked| asked.label.clone()),
            trust: asked.as_ref().map(|asked| asked.trust).unwrap_or_default(),
            delivery: asked.as_ref().map(|asked| asked.delivery).unwrap_or_default(),
            parent_command: asked.as_ref().and_then(|asked| asked.parent_command),
            parent_session: asked.as_ref().and_then(|asked| asked.parent_session),
            consumer: asked.as_ref().map(|asked| asked.consumer.clone()).unwrap_or_default(),
            cwd: asked.as_ref().map_or_else(|| OsText(Vec::new()), |asked| asked.cwd.clone()),
            command: asked.map(|asked| asked.argv).unwrap_or_default(),
        }
    }

    /// Takes over what its supervisor says now.
    pub(crate) fn refresh(&mut self, live: LiveStatus) {
        self.alias = self.alias.or(live.alias);
        self.survivors = live.survivors;
        self.stdin_open = live.stdin_open;
        self.quiet_ms = Some(live.quiet_ms);
        self.output.bytes = live.output.bytes;
        self.output.gap = live.output.gap;
        self.output.capturing = true;
        if self.phase == Phase::Ended {
            return;
        }
        self.phase = live.phase;
        self.pid = live.leader.map(|leader| leader.pid);
        self.duration_ms = live.elapsed_ms;
        self.demoted_at_ms = live.demoted_at_ms;
        self.demoted = live.demoted_at_ms.is_some();
        self.errors = live.errors;
        self.stopping_by = live.stopping_by;
    }

    /// Takes over that its output was pruned, if it was.
    pub(crate) fn prune(&mut self, dir: &CommandDir) -> Result<()> {
        self.pruned_at_ms = pruned_at(dir)?;
        if self.pruned_at_ms.is_some() && !dir.has_log()? {
            self.output.log = None;
        }
        Ok(())
    }

    /// Takes over that nobody knows how it ended.
    pub(crate) fn lose(&mut self, verdict: &VerdictRecord) {
        let interrupted = verdict.verdict == "interrupted";
        self.phase = Phase::Ended;
        self.end = Some(if interrupted { End::Interrupted } else { End::Lost });
        self.ok = Some(false);
        self.pid = None;
        self.duration_ms = 0;
        self.stdin_open = false;
        self.output.capturing = false;
        self.report = Some(verdict.report.clone());
    }

    /// What who waited for the end is shown: the result where there is one, else the end of the output; and of how many
    /// bytes in all.
    pub fn shown(&self) -> (u64, &[u8]) {
        match &self.result {
            Some(result) => (result.len() as u64, result.as_bytes()),
            None => (self.output.bytes, &self.output.tail),
        }
    }

    /// Everything that is wrong with its records, as one line that begins with `records incomplete:`.
    pub fn records_incomplete(&self) -> Option<String> {
        records_incomplete(&self.errors)
    }

    /// What the kernel said of the leader.
    pub fn fact(&self) -> Option<Fact> {
        self.end.as_ref().and_then(End::fact)
    }
}

/// When the output of a command was pruned, if it was. That of damaged records is not known to be.
pub(crate) fn pruned_at(dir: &CommandDir) -> Result<Option<u64>> {
    Ok(understood(dir.pruned())?.map(|pruned| pruned.at_ms))
}

/// Whether a survivor is still there: the same process, by its start time.
fn lives(survivor: &Survivor) -> Result<bool> {
    let stat = proc::stat(survivor.pid)
        .map_err(|error| Error::Unreachable(format!("cannot look at process {}: {error}", survivor.pid)))?;
    Ok(stat.is_some_and(|stat| stat.is_live() && stat.start == survivor.start))
}

fn view(output: OutputState, log: Option<PathBuf>, capturing: bool) -> OutputView {
    OutputView {
        tail: Vec::new(),
        bytes: output.bytes,
        shown_from: output.bytes,
        truncated: output.bytes > 0,
        gap: output.gap,
        unwritten: None,
        log,
        capturing,
        withheld: false,
    }
}

impl OutputView {
    /// Shows nothing of it but its size.
    pub(crate) fn withhold(&mut self) {
        self.withheld = self.bytes > 0;
        self.tail.clear();
        (self.shown_from, self.truncated) = (self.bytes, self.bytes > 0);
    }

    /// Shows these last bytes, of which the first has this offset.
    pub(crate) fn show(&mut self, tail: Vec<u8>, shown_from: u64) {
        self.truncated = shown_from > 0;
        self.shown_from = shown_from;
        self.bytes = self.bytes.max(shown_from + tail.len() as u64);
        self.tail = tail;
    }
}
