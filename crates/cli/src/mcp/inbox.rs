//! What is news, at the end of every reply: at most three lines.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast::{Claim, Command, Session, Snapshot, Via};
use outlast_core::id::{CommandId, SessionId};
use outlast_core::names::{display_line, quoted, shown_label};
use outlast_core::push::{Push, Reach};
use outlast_core::units::format_elapsed;

use super::call::Call;
use super::delivery::Receipt;
use super::places::MODEL;
use crate::exit::Failure;
use crate::words;

/// What a client of these tools can be relied on for: it shows its model every reply, and wakes nobody for one.
pub const REACH: Reach = Reach { queue: true, wake: false };

/// Lines of news in a reply.
const LINES: usize = 3;
/// Commands that the last line names where there are more than lines.
const NAMED: usize = 20;

/// What is to be told of commands that run, such as that one is quiet. Clones are the same.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<Notice>>>);

struct Notice {
    session: SessionId,
    consumer: String,
    id: CommandId,
    line: String,
}

impl Notices {
    /// Tells with the next reply when the command has printed nothing for so long. That never stops it.
    pub fn when_quiet(&self, command: Command, name: String, consumer: String, quiet: Duration) {
        let notices = self.clone();
        tokio::spawn(async move {
            let session = *command.session().id();
            // A command that ended before, or cannot be asked any more, has other news.
            if let Ok(Some(found)) = command.when_quiet(quiet).await {
                let line = format!("[outlast] {}", found.text(&name, true, "`quiet_after` 0s"));
                let notice = Notice { session, consumer, id: found.id, line };
                notices.0.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
            }
        });
    }

    fn take(&self, session: &Session, consumer: &str) -> Vec<(CommandId, String)> {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (ours, others) =
            notices.drain(..).partition(|notice| notice.session == *session.id() && notice.consumer == consumer);
        *notices = others;
        let ours: Vec<Notice> = ours;
        ours.into_iter().map(|notice| (notice.id, notice.line)).collect()
    }
}

/// The news for this caller, counted as told with the reply. What does not fit waits for the next one.
pub async fn lines(call: &Call) -> Result<String, Failure> {
    let mut lines: Vec<String> = Vec::new();
    for (id, line) in call.notices.take(&call.session, &call.consumer) {
        // One that has ended meanwhile is told as such.
        let running = call.session.running().await?.iter().any(|command| *command.id() == id);
        if running && lines.len() + 1 < LINES {
            lines.push(line);
        }
    }
    for one in call.session.pushed_heads_ups(&call.consumer, REACH).await? {
        if lines.len() + 1 < LINES {
            lines.push(format!("[outlast] {}", one.text(&words::short_name(&one.snapshot), true)));
            call.delivery.add(Receipt::HeadsUp(Box::new(one)));
        }
    }
    let mut pending: Vec<Snapshot> =
        call.session.pending(&call.consumer).await?.into_iter().map(|one| one.snapshot).collect();
    if call.consumer != MODEL {
        // A sub-agent hears of what it has started itself.
        pending.retain(|snapshot| snapshot.consumer == call.consumer);
    }
    pending.retain(|snapshot| REACH.push(snapshot.delivery) != Push::Never);
    let room = LINES - lines.len();
    let rest = pending.split_off(if pending.len() > room { room - 1 } else { pending.len() });
    for snapshot in &pending {
        if claims(call, snapshot).await? {
            lines.push(line(snapshot, call.session.id()));
        }
    }
    let mut names = Vec::new();
    for snapshot in rest.iter().take(NAMED) {
        if claims(call, snapshot).await? {
            names.push(short(snapshot, call.session.id()));
        }
    }
    if !names.is_empty() {
        lines.push(format!("[outlast] ended as well: {}", names.join(", ")));
    }
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// Said in the place of news that cannot be looked at.
pub fn untold(reason: &str) -> String {
    format!("[outlast] what is news cannot be told now: {}\n", display_line(reason))
}

/// Whether it falls to this reply to tell this end.
async fn claims(call: &Call, snapshot: &Snapshot) -> Result<bool, Failure> {
    match call.session.claim(&call.consumer, &snapshot.id).await? {
        Claim::Ours(guard) => {
            call.delivery.add(Receipt::Completion(guard, Via::Inbox));
            Ok(true)
        }
        // Where it cannot be recorded that it was told, every reply would tell it: a read does.
        Claim::Before { .. } | Claim::Elsewhere | Claim::NotDue | Claim::Unrecorded { .. } => Ok(false),
    }
}

fn line(snapshot: &Snapshot, here: &SessionId) -> String {
    let label = snapshot.label.as_ref().map(|label| format!(" ({})", quoted(&shown_label(label))));
    let time = format_elapsed(Duration::from_millis(snapshot.duration_ms));
    let after = if snapshot.ended_at_ms.is_some() { format!(", after {time}") } else { String::new() };
    format!(
        "[outlast] {}{} has ended: {}{after}; `read` shows its output",
        name(snapshot, here),
        label.unwrap_or_default(),
        end(snapshot)
    )
}

fn short(snapshot: &Snapshot, here: &SessionId) -> String {
    format!("{} {}", name(snapshot, here), end(snapshot))
}

/// Its alias, or its id where it is of an earlier session, in which aliases mean other commands.
fn name(snapshot: &Snapshot, here: &SessionId) -> String {
    if snapshot.session == *here {
        words::short_name(snapshot)
    } else {
        format!("{} of an earlier session", snapshot.id)
    }
}

fn end(snapshot: &Snapshot) -> String {
    let words = snapshot.end.as_ref().map(words::end_words).unwrap_or_default();
    match snapshot.exit_code {
        Some(code) => format!("{words}, exit code {code}"),
        None => format!("{words}, no exit code is known"),
    }
}
