//! What people read: sentences and tables made of facts. Text that a command chose stands on one line
//! without control characters, whatever it holds.

mod status;
mod news;
mod table;

pub use news::{completions, end_report, resumed};
pub use status::{ended_inline, joined, moved, status, stopped, waited};
pub use table::{commands, sessions, trace};

use outlast::Snapshot;
use outlast_core::ending::{End, EndObject};
use outlast_core::names::display_line;
use outlast_core::record::{Fate, Survivor};

/// How it ended, in outlast's own words: `exited`, `signaled (KILL)`, `stopped (TERM, by model)`.
pub fn end_words(end: &End) -> String {
    let object = EndObject::from(end.clone());
    let by = object.by.filter(|_| matches!(end, End::Stopped { .. })).map(|by| format!("by {}", display_line(&by)));
    let facts: Vec<String> = [object.detail, object.signal, by].into_iter().flatten().collect();
    if facts.is_empty() { object.kind } else { format!("{} ({})", object.kind, facts.join(", ")) }
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

fn alive(list: &[Survivor]) -> Vec<&Survivor> {
    list.iter().filter(|one| one.fate != Fate::Killed).collect()
}

#[cfg(test)]
mod tests {
    use outlast_core::ending::{Clock, Fact};

    use super::*;

    #[test]
    fn ends_in_words() {
        let term = Some(Fact::Signaled(15));
        for (end, words) in [
            (End::Exited { code: 7 }, "exited"),
            (End::Signaled { signal: 9 }, "signaled (KILL)"),
            (End::TimedOut { clock: Clock::Wall, fact: term }, "timed_out (wall, TERM)"),
            (End::Stopped { by: "mo\ndel".into(), fact: term }, "stopped (TERM, by mo del)"),
            (End::Abandoned { fact: None }, "abandoned"),
            (End::Lost, "lost"),
        ] {
            assert_eq!(end_words(&end), words);
        }
    }
}
