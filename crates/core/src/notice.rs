//! The fixed texts outlast says about a command. None holds output, a path or a word that the command
//! chose, except as quoted data in a place of its own; none tells its reader to do anything.

use std::time::Duration;

pub use running::{Matches, Silence, heads_up, heads_ups, quiet};

use crate::ending::{End, EndObject};
use crate::id::{CommandId, ReportId, SessionId};
use crate::names::{PROCESS_CHARACTERS, display_line, quoted, shorten, shown_label};
use crate::push::Push;
use crate::units::{format_duration, format_elapsed, format_size, format_time};

mod running;

/// How an opening line of news names itself, so that nobody takes it for the word of a person.
const EVENT: &str = "Machine event of outlast:";

/// The last line of every notice.
const CLOSING: &str = "End of the machine event; no person wrote it.";

/// What is promised about the end of a command that goes on in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prospects {
    /// The follow-up tools are offered to the reader.
    pub tools: bool,
    /// What becomes of the completion at the host in use.
    pub push: Push,
    /// The command has lifetime `detached`.
    pub detached: bool,
    /// Its records are whole so far.
    pub kept: bool,
}

/// What a demotion says. It depends on nothing but the id and what is promised, and has the same length
/// for every id.
#[must_use]
pub fn demotion(id: CommandId, prospects: Prospects) -> String {
    format!(
        "Command {id} still runs, now in the background. This is not an error: its grace is over. {}",
        outlook(prospects)
    )
}

/// What a background start says.
#[must_use]
pub fn started(id: CommandId, label: Option<&str>, prospects: Prospects) -> String {
    let label = label.map(|label| format!(" (label {})", quoted(&shown_label(label)))).unwrap_or_default();
    format!("Started in the background: command {id}{label}. {}", outlook(prospects))
}

fn outlook(prospects: Prospects) -> String {
    let kept = if prospects.kept { "Its output is kept." } else { "Not all of its output can be kept." };
    let tools = if prospects.tools {
        "The tool `read` shows it, the tool `stop` ends the command."
    } else {
        "`outlast logs ID` shows it, `outlast stop ID` ends the command."
    };
    let told = match prospects.push {
        Push::Wakes => "You will be notified when it ends.",
        Push::Waits => "Its end is told with the next message after it.",
        Push::Never => "Its end is told when it is next asked for.",
    };
    let session_end =
        if prospects.detached { "It goes on when the session ends." } else { "It is stopped when the session ends." };
    format!("{kept} {tools} {told} {session_end}")
}

/// A process that outlived the leader of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurvivorLine<'a> {
    /// Its process id.
    pub pid: u32,
    /// Its name, as the kernel has it.
    pub name: &'a str,
    /// What became of it, in outlast's own words: `kept`, `ended`.
    pub fate: &'a str,
}

/// A command that ended, as a notice tells it.
#[derive(Clone, Copy, Debug)]
pub struct EndLines<'a> {
    /// Its id.
    pub id: CommandId,
    /// What the caller called it.
    pub label: Option<&'a str>,
    /// How it ended, in outlast's own words: `exited`, `signaled (TERM)`.
    pub end: &'a str,
    /// The number the command line would end with; none for an end that nobody knows.
    pub exit_code: Option<i32>,
    /// `ok` or `error`.
    pub status: &'a str,
    /// From the spawn to the reap of the leader.
    pub duration: Duration,
    /// The absolute path of its log.
    pub log: Option<&'a str>,
    /// Bytes of output that came.
    pub bytes: u64,
    /// The sentence of [`limit_sentence`], where a limit ended it.
    pub limit: Option<&'a str>,
    /// Who outlived the leader.
    pub survivors: &'a [SurvivorLine<'a>],
    /// What outlast itself could not do: wait for it, or keep its records.
    pub error: Option<&'a str>,
}

/// What a completion says.
#[must_use]
pub fn completion(ended: &EndLines<'_>) -> String {
    format!("{EVENT} a background command has ended.\n{}{CLOSING}\n", end_lines(ended))
}

/// An end, as a note tells it.
#[derive(Clone, Copy, Debug)]
pub struct NotedEnd<'a> {
    /// The id of the command.
    pub id: CommandId,
    /// How it ended.
    pub end: &'a End,
    /// Whether its status is `ok`.
    pub ok: bool,
    /// How many processes outlived its leader and were not ended.
    pub left: usize,
    /// It may have been told before.
    pub redelivered: bool,
}

/// What a note says of all these ends: one line, without a line break, to be folded into another text.
#[must_use]
pub fn note(ends: &[NotedEnd<'_>]) -> String {
    let entries: Vec<String> = ends.iter().map(noted).collect();
    format!("{EVENT} background commands have ended (no person wrote this): {}.", entries.join("; "))
}

fn noted(one: &NotedEnd<'_>) -> String {
    let code = one.end.exit_code().map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
    let status = if one.ok { "ok" } else { "error" };
    let left = match one.left {
        0 => String::new(),
        1 => ", 1 process lives on".to_owned(),
        count => format!(", {count} processes live on"),
    };
    let again = if one.redelivered { ", perhaps told before" } else { "" };
    format!("{} {}, {code} ({status}){left}{again}", one.id, end_words(one.end))
}

/// How a command ended, in outlast's own words: `exited`, `signaled (KILL)`, `stopped (TERM, by model)`.
#[must_use]
pub fn end_words(end: &End) -> String {
    let object = EndObject::from(end.clone());
    let by = object.by.filter(|_| matches!(end, End::Stopped { .. })).map(|by| format!("by {}", display_line(&by)));
    let facts: Vec<String> = [object.detail, object.signal, by].into_iter().flatten().collect();
    if facts.is_empty() { object.kind } else { format!("{} ({})", object.kind, facts.join(", ")) }
}

/// What is said of commands that ended, by themselves, while their session had no owner.
#[must_use]
pub fn ended_while_away(ended: &[EndLines<'_>]) -> String {
    batch("background work of an earlier session has ended while nobody listened.", ended)
}

/// What is said of commands that were ended because their owner or their session was gone.
#[must_use]
pub fn killed_with_owner(ended: &[EndLines<'_>]) -> String {
    batch("background work of an earlier session was ended together with its owner.", ended)
}

fn batch(fact: &str, ended: &[EndLines<'_>]) -> String {
    let blocks: String = ended.iter().map(end_lines).collect();
    format!("{EVENT} {fact}\n{blocks}{CLOSING}\n")
}

fn end_lines(ended: &EndLines<'_>) -> String {
    let label = ended.label.map(|label| format!(" label {}", quoted(&shown_label(label)))).unwrap_or_default();
    let mut text = format!("command: {}{label}\n", ended.id);
    push_line(&mut text, "end", ended.end);
    push_result(&mut text, ended);
    if let Some(limit) = ended.limit {
        push_line(&mut text, "limit", limit);
    }
    if !ended.survivors.is_empty() {
        let all: Vec<String> = ended
            .survivors
            .iter()
            .map(|one| format!("{} (pid {}, {})", quoted(&shorten(one.name, PROCESS_CHARACTERS)), one.pid, one.fate))
            .collect();
        push_line(&mut text, "survivors", &all.join(", "));
    }
    if let Some(error) = ended.error {
        push_line(&mut text, "error", &quoted(error));
    }
    text
}

fn push_result(text: &mut String, ended: &EndLines<'_>) {
    let code = ended.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    push_line(text, "exit code", &format!("{code} ({})", ended.status));
    push_line(text, "duration", &format_elapsed(ended.duration));
    let log = ended.log.unwrap_or("none");
    push_line(text, "log", &format!("{log} ({} bytes of output)", ended.bytes));
}

fn push_line(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str(": ");
    text.push_str(&display_line(value));
    text.push('\n');
}

/// What the report of lost work says: commands, in the order of their ids, with the time of their
/// demotion in milliseconds since 1970 where it is known.
#[must_use]
pub fn lost_report(report: ReportId, work: &[(CommandId, Option<u64>)]) -> String {
    format!(
        "{EVENT} work of an earlier session ended without a record.\n\
         No exit code is known, and whether each of these finished is unknown. What they did counts as \
         unknown; to start one again makes sense only if it still matters.\n{}",
        work_lines(report, work)
    )
}

/// What the report of interrupted in-process tasks says; see [`lost_report`].
#[must_use]
pub fn interrupted_report(report: ReportId, work: &[(CommandId, Option<u64>)]) -> String {
    format!(
        "{EVENT} tasks of an earlier session were interrupted when their owner ended.\n\
         They did not finish, and have no exit code.\n{}",
        work_lines(report, work)
    )
}

fn work_lines(report: ReportId, work: &[(CommandId, Option<u64>)]) -> String {
    let mut text = format!("report: {report}\n");
    for (id, demoted_at_ms) in work {
        let time = demoted_at_ms.map_or_else(|| "an unknown time".to_owned(), format_time);
        text.push_str(&format!("- {id}, in the background since {time}\n"));
    }
    text.push_str(CLOSING);
    text.push('\n');
    text
}

/// A command that still runs, as a reminder names it.
#[derive(Clone, Copy, Debug)]
pub struct RunningLine<'a> {
    /// Its id.
    pub id: CommandId,
    /// What the caller called it.
    pub label: Option<&'a str>,
    /// Since its start.
    pub elapsed: Duration,
}

/// What is said of the commands that still run to a reader who may have forgotten their ids. `more` counts those
/// that are not named here.
#[must_use]
pub fn still_running(running: &[RunningLine<'_>], more: usize) -> String {
    let mut text = format!("{EVENT} background commands of this session still run.\n");
    for one in running {
        let label = one.label.map(|label| format!(" label {}", quoted(&shown_label(label)))).unwrap_or_default();
        text.push_str(&format!("- {}{label}, for {}\n", one.id, format_elapsed(one.elapsed)));
    }
    if more > 0 {
        text.push_str(&format!("- and {more} more\n"));
    }
    text.push_str(CLOSING);
    text.push('\n');
    text
}

/// A command that its session's end discarded, as the operator is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Discarded<'a> {
    /// Its id.
    pub id: CommandId,
    /// The program, as recorded.
    pub program: &'a str,
    /// The whole command line.
    pub command: &'a str,
    /// What is known about it.
    pub state: DiscardedState<'a>,
}

/// What is known of a discarded command.
#[derive(Clone, Copy, Debug)]
pub enum DiscardedState<'a> {
    /// It was running, for this long.
    Running(Duration),
    /// It had ended, too late to be told. Label, survivors and id of these lines are not used.
    Ended(EndLines<'a>),
}

/// What the end of a session says of the commands it discarded; nothing where there are none. It is for
/// the operator, and so it names program and command line.
#[must_use]
pub fn session_end_report(session: SessionId, discarded: &[Discarded<'_>]) -> Option<String> {
    let commands = match discarded.len() {
        0 => return None,
        1 => "1 background command".to_owned(),
        count => format!("{count} background commands"),
    };
    let mut text = format!("Session {session} has ended and discarded {commands}.\n");
    for one in discarded {
        push_line(&mut text, "command", &one.id.to_string());
        push_line(&mut text, "  program", one.program);
        push_line(&mut text, "  line", one.command);
        match &one.state {
            DiscardedState::Running(time) => {
                push_line(&mut text, "  state", &format!("stopped after {}", format_elapsed(*time)));
            }
            DiscardedState::Ended(ended) => push_ended_state(&mut text, ended),
        }
    }
    Some(text)
}

fn push_ended_state(text: &mut String, ended: &EndLines<'_>) {
    push_line(text, "  state", &format!("ended before it could be told: {}", ended.end));
    let mut result = String::new();
    push_result(&mut result, ended);
    if let Some(limit) = ended.limit {
        push_line(&mut result, "limit", limit);
    }
    for line in result.lines() {
        text.push_str(&format!("  {line}\n"));
        if let (true, Some(error)) = (line.starts_with("exit code"), ended.error) {
            push_line(text, "  wait error", &quoted(error));
        }
    }
}

/// A bound that ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Time since the spawn.
    Wall(Duration),
    /// Time without output.
    Idle(Duration),
    /// Time to live of a detached command.
    TimeToLive(Duration),
    /// Bytes of memory of the whole tree.
    Memory(u64),
    /// Number of processes of the whole tree.
    Pids(u64),
    /// Bytes of one file.
    FileSize(u64),
    /// Processor time.
    Cpu(Duration),
    /// Bytes of output.
    Output(u64),
}

/// The one sentence that describes a limit, wherever it is told.
#[must_use]
pub fn limit_sentence(bound: Bound) -> String {
    match bound {
        Bound::Wall(time) => format!("stopped at its limit of {}", format_duration(time)),
        Bound::Idle(time) => format!("stopped after {} without new output", format_duration(time)),
        Bound::TimeToLive(time) => format!("stopped at the end of its time to live of {}", format_duration(time)),
        Bound::Memory(bytes) => format!("stopped at its memory limit of {}", size(bytes)),
        Bound::Pids(count) => format!("stopped at its limit of {count} processes"),
        Bound::FileSize(bytes) => format!("stopped at its file size limit of {}", size(bytes)),
        Bound::Cpu(time) => format!("stopped at its processor time limit of {}", format_duration(time)),
        Bound::Output(bytes) => format!("stopped at its output limit of {}", size(bytes)),
    }
}

/// A size with its unit, also where it is no whole number of kibibytes.
fn size(bytes: u64) -> String {
    let text = format_size(bytes);
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text + " bytes" } else { text }
}

/// Said by a wait that names nothing where nothing runs.
pub const NOTHING_TO_WAIT_FOR: &str = "No background commands to wait for.";

/// One command of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Waited<'a> {
    /// Its id.
    pub id: CommandId,
    /// What the caller called it.
    pub label: Option<&'a str>,
    /// `running`, `stopping` or `ended`, and what belongs to it.
    pub phase: &'a str,
    /// Its text, bounded and readable.
    pub text: &'a str,
}

/// What a wait says.
#[must_use]
pub fn wait_text(waited: &[Waited<'_>]) -> String {
    if waited.is_empty() {
        return format!("{NOTHING_TO_WAIT_FOR}\n");
    }
    let mut all = String::new();
    for one in waited {
        let label = one.label.map(|label| format!(" ({})", shown_label(label))).unwrap_or_default();
        all.push_str(&format!("[{}{label}] {}\n{}", one.id, one.phase, one.text));
        if !all.ends_with('\n') {
            all.push('\n');
        }
    }
    all
}

/// The facts of a status.
#[derive(Clone, Copy, Debug)]
pub struct StatusHead<'a> {
    /// The id of the command.
    pub id: CommandId,
    /// Where it is.
    pub phase: StatusPhase<'a>,
    /// From the spawn to now, or to the reap of the leader.
    pub elapsed: Duration,
    /// Bytes of output that came.
    pub bytes: u64,
    /// How many of them, at the end, the text below shows; none where it says that itself.
    pub shown: Option<u64>,
}

/// The phase of a command as a status tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPhase<'a> {
    /// It runs.
    Running,
    /// A stop was accepted and its tree is not gone yet.
    Stopping,
    /// Its leader is reaped.
    Ended {
        /// How, in outlast's own words.
        end: &'a str,
        /// The number the command line would end with.
        exit_code: Option<i32>,
        /// `ok` or `error`.
        status: &'a str,
    },
}

/// The lines that stand before the text of a status or a read, with the empty line between.
#[must_use]
pub fn status_head(head: &StatusHead<'_>) -> String {
    let elapsed = format_elapsed(head.elapsed);
    let first = match head.phase {
        StatusPhase::Running => format!("running for {elapsed}"),
        StatusPhase::Stopping => format!("stopping, {elapsed} after its start"),
        StatusPhase::Ended { end, exit_code: Some(code), status } => {
            format!("ended: {end}, exit code {code}, {status}, after {elapsed}")
        }
        StatusPhase::Ended { end, exit_code: None, status } => {
            format!("ended: {end}, no exit code, {status}, after {elapsed}")
        }
    };
    let shown = match head.shown {
        None => String::new(),
        Some(shown) if shown >= head.bytes => ", all shown".to_owned(),
        Some(shown) => format!(", the last {shown} shown"),
    };
    let exit = match head.phase {
        StatusPhase::Ended { exit_code, .. } => exit_code.and_then(exit_line).unwrap_or_default(),
        StatusPhase::Running | StatusPhase::Stopping => String::new(),
    };
    format!("[{}] {first}\noutput: {} bytes{shown}\n{exit}\n", head.id, head.bytes)
}

/// The line that stands in the text of a command that ended with another code than 0.
#[must_use]
pub fn exit_line(code: i32) -> Option<String> {
    (code != 0).then(|| format!("[exit:{code}]\n"))
}

/// Everything that is wrong with the records of a command, as the one line that every read of it has.
#[must_use]
pub fn records_incomplete(errors: &[String]) -> Option<String> {
    let all: Vec<String> = errors.iter().map(|error| display_line(error)).collect();
    (!all.is_empty()).then(|| format!("records incomplete: {}", all.join("; ")))
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;
