//! What people read: sentences and tables made of facts. Text that a command chose stands on one line
//! without control characters, whatever it holds.

mod status;
mod news;
mod table;

pub use news::{completions, end_report, heads_ups, inbox, resumed, still_running};
pub use status::{
    WITHHELD, ended_inline, joined, missing_here, moved, status, status_head, stopped, survivors, waited,
};
pub use table::{commands, sessions, trace};

pub use outlast_core::notice::end_words;

use outlast::{Bound, Snapshot};
use outlast_core::id::SessionId;
use outlast_core::names::display_line;
use outlast_core::record::{Fate, Survivor};

/// Who reads: it decides in which words an action is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Somebody with a shell.
    Shell,
    /// A model with the tools of the MCP server.
    Tools,
}

/// The shortest name under which people know a command.
pub fn short_name(snapshot: &Snapshot) -> String {
    snapshot.alias.map_or_else(|| snapshot.id.to_string(), |alias| alias.to_string())
}

/// Processes by name and pid.
pub fn processes<'a>(list: impl IntoIterator<Item = &'a Survivor>) -> String {
    let all: Vec<String> =
        list.into_iter().map(|one| format!("{} (pid {})", display_line(&one.name), one.pid)).collect();
    all.join(", ")
}

/// What a bind has moved.
pub fn bound(session: &SessionId, bound: &Bound, moves: bool) -> String {
    let (moved, following) = (bound.moved.len(), bound.following.len());
    let later = if following > 0 { format!(", of {following} more at their end") } else { String::new() };
    let what = if moves { format!(": records of {moved} commands moved{later}") } else { String::new() };
    format!("{session} bound{what}\n")
}

fn alive(list: &[Survivor]) -> Vec<&Survivor> {
    list.iter().filter(|one| one.fate != Fate::Killed).collect()
}
