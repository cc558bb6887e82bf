//! What is said about one command: status, demotion, stop, wait, and an end in the foreground.

use std::time::Duration;

use outlast::{Demotion, Finished, Missing, Snapshot, StopOutcome, Tracked};
use outlast_core::ending::{BY_OWNER_GONE, BY_SESSION_END, BY_SUPERVISOR_LOST, End, Fact};
use outlast_core::id::CommandId;
use outlast_core::names::{PROCESS_CHARACTERS, display_line, quoted, shorten};
use outlast_core::notice::{self, Prospects, StatusHead, StatusPhase};
use outlast_core::push::Push;
use outlast_core::record::{Fate, Gap, Phase, Survivor, Unwritten};
use outlast_core::text::TEXT_BYTES;
use outlast_core::text::excerpt::Tail;
use outlast_core::units::{format_elapsed, format_time};
use outlast_core::wire::DemotedBy;

use super::{Reader, alive, end_words, processes, short_name};

/// The number of SIGKILL (signal(7)).
const KILL: i32 = 9;

/// Said where the output of what runs is not shown.
pub const WITHHELD: &str = "its output is not shown while it runs: the policy live_output is \"withheld\"";

/// A status: the fact that matters first, then an empty line and the text of the output.
/// `elsewhere` says that the command is of another session than the one that was asked.
pub fn status(snapshot: &Snapshot, elsewhere: Option<&str>) -> String {
    let tail = Tail::of(snapshot.output.bytes, &snapshot.output.tail, TEXT_BYTES);
    let mut text = status_head(snapshot, elsewhere, Some(tail.bytes.len() as u64), Reader::Shell);
    let output = tail.text();
    if !output.is_empty() {
        text.push('\n');
        text.push_str(&output);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What stands before the output in a status that shows the last so many bytes of it, or another part that says itself
/// which.
pub fn status_head(snapshot: &Snapshot, elsewhere: Option<&str>, shown: Option<u64>, reader: Reader) -> String {
    let end = snapshot.end.as_ref().map(end_words).unwrap_or_default();
    let phase = match snapshot.phase {
        Phase::Running => StatusPhase::Running,
        Phase::Stopping => StatusPhase::Stopping,
        Phase::Ended => {
            let status = if snapshot.ok == Some(true) { "ok" } else { "error" };
            StatusPhase::Ended { end: &end, exit_code: snapshot.exit_code, status }
        }
    };
    let head = notice::status_head(&StatusHead {
        id: snapshot.id,
        phase,
        elapsed: Duration::from_millis(snapshot.duration_ms),
        bytes: snapshot.output.bytes,
        shown,
    });
    let living = survivors(&short_name(snapshot), &snapshot.survivors, reader);
    let mut text = living.map(|line| line + "\n").unwrap_or_default();
    text.push_str(head.strip_suffix('\n').unwrap_or(&head));
    for line in remarks(snapshot, elsewhere) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// What else there is to know, one line each; usually nothing.
fn remarks(snapshot: &Snapshot, elsewhere: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(elsewhere.map(str::to_owned));
    if snapshot.detached {
        lines.push("detached: it outlives its session, up to its time to live".to_owned());
    }
    if cut_short(snapshot.end.as_ref()) {
        let limit = snapshot.limit.as_deref().unwrap_or("it was ended by a limit");
        lines.push(format!("{}; the output is partial", display_line(limit)));
    }
    lines.extend(ended_survivors(&snapshot.survivors_at_end));
    if snapshot.output.withheld {
        lines.push(WITHHELD.to_owned());
    }
    if snapshot.withheld {
        lines.push("its final text is withheld by a text policy".to_owned());
    }
    lines.extend(snapshot.output.gap.as_ref().map(dropped));
    lines.extend(snapshot.output.unwritten.as_ref().map(unwritten));
    lines.extend(snapshot.tracked.as_ref().map(tracked));
    lines.extend(pruned(snapshot));
    lines.extend(snapshot.report.as_ref().map(|report| format!("named by report {}", display_line(report))));
    match &snapshot.end {
        Some(End::SpawnFailed { .. }) => lines.extend(snapshot.errors.iter().map(|error| display_line(error))),
        _ => lines.extend(notice::records_incomplete(&snapshot.errors)),
    }
    lines.extend(snapshot.note.as_deref().map(display_line));
    lines
}

/// What the log's cap dropped.
fn dropped(gap: &Gap) -> String {
    format!("the log's cap dropped {} bytes at offset {}", gap.bytes, gap.offset)
}

/// What a failure kept out of the log.
fn unwritten(part: &Unwritten) -> String {
    format!("{} bytes at offset {} could not be written to the log", part.bytes, part.offset)
}

/// The words of the mark that stands in place of missing bytes in output that is read.
pub fn missing_here(why: Missing) -> &'static str {
    match why {
        Missing::Capped => "dropped here by the log's cap",
        Missing::Unwritten => "missing here, which could not be written to the log",
        Missing::Gone => "missing here, whose log is gone",
    }
}

/// That its output was pruned, and when; usually nothing.
fn pruned(snapshot: &Snapshot) -> Option<String> {
    let at = format_time(snapshot.pruned_at_ms?);
    // That it is removed is recorded before it is done, and a death may come in between.
    let left = snapshot
        .output
        .log
        .as_ref()
        .map(|log| format!("; its log is still there: {}", display_line(&log.display().to_string())));
    Some(format!("pruned on {at}: its output was removed, the rest is still known{}", left.unwrap_or_default()))
}

fn cut_short(end: Option<&End>) -> bool {
    matches!(end, Some(End::TimedOut { .. } | End::Limit { .. }))
}

/// Who outlived the leader and lives, and how to stop them.
pub fn survivors(name: &str, list: &[Survivor], reader: Reader) -> Option<String> {
    let alive = alive(list);
    let count = match alive.len() {
        0 => return None,
        1 => "1 process is still alive".to_owned(),
        many => format!("{many} processes are still alive"),
    };
    let how = match reader {
        Reader::Shell => format!("stop with: outlast stop {name}"),
        Reader::Tools => format!("the tool `stop` ends what {name} has left"),
    };
    Some(format!("{count}: {}; {how}", processes(alive)))
}

/// Whom the policy `kill` ended after the leader.
fn ended_survivors(at_end: &[Survivor]) -> Option<String> {
    let killed: Vec<&Survivor> = at_end.iter().filter(|one| one.fate == Fate::Killed).collect();
    (!killed.is_empty()).then(|| format!("ended what the command had left running: {}", processes(killed)))
}

/// What is said on standard error of a command that ended in the foreground; usually nothing. `because`:
/// why its session ended it, where that is known. `missing`: where its output was passed on, how much of it was not.
pub fn ended_inline(finished: &Finished, because: Option<&str>, missing: Option<u64>, reader: Reader) -> Vec<String> {
    let exit = &finished.exit;
    let mut lines = Vec::new();
    if let End::SpawnFailed { step, errno } = &exit.end {
        let program = exit.command.first().map(|word| shorten(&word.lossy(), PROCESS_CHARACTERS)).unwrap_or_default();
        let place = if step == "cwd" { format!(" in {}", display_line(&exit.cwd.lossy())) } else { String::new() };
        let reason = exit
            .errors
            .first()
            .map_or_else(|| format!("{step}: {errno}"), |error| shorten(error, 2 * PROCESS_CHARACTERS));
        lines.push(match (step.as_str(), errno.as_str()) {
            ("exec", "ENOENT") if !program.contains('/') && !program.is_empty() => {
                format!("cannot start {program}: it was not found in PATH")
            }
            ("cwd", _) => format!("cannot start {program}{place} ({reason}); name another directory with --cwd"),
            _ => format!("cannot start {program}; the step that failed is {reason}"),
        });
        return lines;
    }
    if cut_short(Some(&exit.end)) {
        let limit = exit.limit.as_deref().unwrap_or("it was ended by a limit");
        lines.push(format!("{}; the output is partial", display_line(limit)));
    }
    lines.extend(ended_from_outside(&exit.end, because));
    let name = exit.alias.map_or_else(|| exit.id.to_string(), |alias| alias.to_string());
    lines.extend(survivors(&name, &exit.survivors, reader));
    lines.extend(ended_survivors(&exit.survivors));
    if let Some(gap) = finished.gap {
        let dropped = dropped(&gap);
        lines.push(match missing {
            None => dropped,
            Some(0) => format!("{dropped}; here all were passed on"),
            Some(bytes) => format!("{bytes} bytes are missing from the output here: nobody read on, and {dropped}"),
        });
    }
    lines.extend(finished.unwritten.as_ref().map(unwritten));
    lines.extend(exit.tracked.as_ref().map(tracked));
    lines.extend(notice::records_incomplete(&exit.errors));
    lines
}

/// Paths of each kind that a line names.
const NAMED_PATHS: usize = 10;

/// Which files changed, in one line.
fn tracked(tracked: &Tracked) -> String {
    let mut more = tracked.more;
    let mut parts = Vec::new();
    for (what, paths) in [("created", &tracked.created), ("modified", &tracked.modified), ("deleted", &tracked.deleted)]
    {
        let named: Vec<String> =
            paths.iter().take(NAMED_PATHS).map(|path| quoted(&shorten(&path.lossy(), PROCESS_CHARACTERS))).collect();
        more += (paths.len() - named.len()) as u64;
        if !named.is_empty() {
            parts.push(format!("{what} {}", named.join(", ")));
        }
    }
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    let changed = if parts.is_empty() { "no file changed".to_owned() } else { parts.join("; ") };
    let problem = tracked.problem.as_deref().map(|problem| format!(" ({})", display_line(problem)));
    format!("below {}: {changed}{}", quoted(&tracked.dir.lossy()), problem.unwrap_or_default())
}

/// Who ended it from outside, where it did not end by itself or by a limit.
fn ended_from_outside(end: &End, because: Option<&str>) -> Option<String> {
    let what = match end {
        End::Abandoned { .. } => because.unwrap_or("its session was ended").to_owned(),
        End::Stopped { by, .. } => match by.as_str() {
            BY_OWNER_GONE => "the owner of its session is gone".to_owned(),
            BY_SUPERVISOR_LOST => "its supervisor was lost".to_owned(),
            BY_SESSION_END => "its session was ended".to_owned(),
            by => return Some(format!("it was stopped by {}; the output is partial", display_line(by))),
        },
        _ => return None,
    };
    Some(format!("it was stopped because {what}; the output is partial"))
}

/// That no new command was started.
pub fn joined(id: &CommandId) -> String {
    format!("joined {id}, an identical command that was there already")
}

/// The one line that a demotion says; `asked` is why it was asked for.
pub fn moved(demotion: &Demotion, detached: bool, asked: Option<&str>) -> String {
    let id = *demotion.command.id();
    let prospects = Prospects { tools: false, push: Push::Never, detached, kept: demotion.errors.is_empty() };
    let why = match demotion.by {
        DemotedBy::Grace => return notice::demotion(id, prospects),
        DemotedBy::Background => return notice::started(id, None, prospects),
        DemotedBy::Asked | DemotedBy::CallerGone => asked.unwrap_or("its caller went away"),
    };
    let rest = notice::demotion(id, prospects);
    // The same facts; only the reason is another one than the grace.
    rest.replacen("its grace is over", why, 1)
}

/// What a stop did, and a line `running:` for each process that is verified to be alive. `first` is the
/// signal that a stop begins with, `elsewhere` what to say of a command of another session.
pub fn stopped(outcome: &StopOutcome, first: &str, elsewhere: Option<&str>) -> String {
    let snapshot = &outcome.snapshot;
    let end = snapshot.end.as_ref().map(end_words).unwrap_or_else(|| "no end yet".to_owned());
    let code = snapshot.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    let killed = snapshot.end.as_ref().and_then(End::fact) == Some(Fact::Signaled(KILL));
    let signals = match outcome.signals {
        0 => String::new(),
        // Whatever the first one was, the next one is KILL.
        count if first != "KILL" && (count > 1 || killed) => format!(", sent {first}, then KILL"),
        _ => format!(", sent {first}"),
    };
    let what = match (outcome.already_ended, outcome.verified) {
        (true, _) if snapshot.pruned_at_ms.is_some() => format!("had already ended, pruned: {end}{code}"),
        (true, _) => format!("had already ended: {end}{code}"),
        (false, true) => format!("ended: {end}{code}{signals}"),
        (false, false) => format!("stopping: {end}{code}{signals}; not verified yet"),
    };
    let mut text = format!("{}  {}  {what}", short_name(snapshot), snapshot.id);
    if !outcome.ended_survivors.is_empty() {
        text.push_str(&format!("; ended what it had left: {}", processes(&outcome.ended_survivors)));
    }
    text.extend(elsewhere.map(|which| format!("; {which}")));
    text.push('\n');
    for one in &outcome.alive {
        text.push_str(&format!("running: {} (pid {}) of {}\n", display_line(&one.name), one.pid, short_name(snapshot)));
    }
    text
}

/// The words behind the id in a wait's reply, and the line of incomplete records.
pub fn waited(snapshot: &Snapshot, waited: Duration, met: bool) -> String {
    let incomplete = match &snapshot.end {
        // What the start failed on is no record.
        Some(End::SpawnFailed { .. }) => None,
        _ => notice::records_incomplete(&snapshot.errors),
    };
    let phase = waited_phase(snapshot, waited, met);
    let note = snapshot.note.as_deref().map(display_line);
    std::iter::once(phase).chain(incomplete).chain(pruned(snapshot)).chain(note).collect::<Vec<_>>().join("\n")
}

fn waited_phase(snapshot: &Snapshot, waited: Duration, met: bool) -> String {
    let real = format_elapsed(waited);
    match (&snapshot.end, snapshot.phase) {
        (Some(end), _) => {
            let code = snapshot.exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
            let ok = snapshot.ok == Some(true);
            let status = if ok { "ok" } else { "error" };
            // The code alone would say the contrary.
            let still =
                if !ok && snapshot.exit_code == Some(0) { ": not a success although its code is 0" } else { "" };
            format!("ended: {}, {code}, {status}{still}", end_words(end))
        }
        (None, Phase::Stopping) => format!("stopping, waited {real}"),
        (None, _) if met => format!("running, what was waited for came after {real}"),
        (None, _) => format!("running, waited {real}"),
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::ending::Clock;

    use super::*;
    use crate::view::tests::{ended, snapshot};

    const ID: &str = "wrk_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e";

    /// Covers: D1, D6
    #[test]
    fn d1_a_status_begins_with_the_fact() {
        let running = status(&snapshot(), None);
        assert_eq!(running, format!("[{ID}] running for 1m5s\noutput: 4 bytes, all shown\n\nb\n"));
        let exited = status(&ended(End::Exited { code: 7 }), None);
        assert_eq!(
            exited,
            format!(
                "[{ID}] ended: exited, exit code 7, error, after 1m5s\noutput: 4 bytes, all shown\n[exit:7]\n\nb\n"
            )
        );
        let lost = status(&ended(End::Lost), Some("of an earlier session"));
        assert!(lost.starts_with(&format!("[{ID}] ended: lost, no exit code, error")), "{lost}");
        assert!(lost.contains("\nof an earlier session\n\n"), "{lost}");
    }

    #[test]
    fn case_060_survivors_stand_first() {
        let mut snapshot = ended(End::Exited { code: 0 });
        snapshot.survivors = vec![Survivor { pid: 12, name: "sl\x1b[31meep".into(), start: 0, fate: Fate::Kept }];
        let text = status(&snapshot, None);
        let first = text.lines().next();
        assert_eq!(first, Some("1 process is still alive: sl[31meep (pid 12); stop with: outlast stop w3"));
    }

    #[test]
    fn case_066_a_limit_says_that_the_output_is_partial() {
        let mut snapshot = ended(End::TimedOut { clock: Clock::Wall, fact: Some(Fact::Signaled(15)) });
        snapshot.limit = Some("stopped at its limit of 1s".into());
        assert!(status(&snapshot, None).contains("stopped at its limit of 1s; the output is partial\n"));
    }

    /// Covers: U6
    #[test]
    fn u6_a_stop_names_the_state_and_who_is_alive() {
        let outcome = StopOutcome {
            snapshot: ended(End::Stopped { by: "model".into(), fact: Some(Fact::Signaled(9)) }),
            signals: 2,
            already_ended: false,
            verified: true,
            ended_survivors: vec![],
            alive: vec![],
            note: None,
        };
        let text = stopped(&outcome, "TERM", None);
        assert_eq!(text, format!("w3  {ID}  ended: stopped (KILL, by model), exit code 137, sent TERM, then KILL\n"));
        let alive = vec![Survivor { pid: 9, name: "stuck".into(), start: 0, fate: Fate::Unstoppable }];
        let text = stopped(&StopOutcome { verified: false, alive, ..outcome }, "TERM", None);
        assert!(text.contains("not verified") && text.contains("\nrunning: stuck (pid 9) of w3\n"), "{text}");
    }
}
