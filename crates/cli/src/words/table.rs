//! Tables: commands, sessions, and the lines of a trace.

use std::time::Duration;

use outlast::{SessionSummary, Snapshot};
use outlast_core::ending::EndObject;
use outlast_core::names::{PROCESS_CHARACTERS, display_line, shorten};
use outlast_core::record::{Phase, TraceLine};
use outlast_core::request::line_of;
use outlast_core::units::{format_elapsed, format_time};

use super::{alive, processes};

/// Longest label or command line in a table, in characters.
const NAME: usize = 48;

/// Paints a word; `colour` is the number of an SGR parameter (ECMA-48), 0 for none.
fn paint(word: &str, width: usize, colour: u8, on: bool) -> String {
    let padded = format!("{word:<width$}");
    if on && colour != 0 { format!("\x1b[{colour}m{padded}\x1b[0m") } else { padded }
}

/// Commands in start order. Whole ids are left out where they do not fit into so many columns.
pub fn commands(list: &[Snapshot], columns: usize, colour: bool) -> String {
    if list.is_empty() {
        return String::new();
    }
    let states: Vec<String> = list.iter().map(state).collect();
    let state_width = states.iter().map(String::len).max().unwrap_or(0).max(5);
    let fixed = 7 + state_width + 2 + 8 + 10;
    let ids = columns >= fixed + NAME + 2 + 36;
    let name_width = if ids { NAME } else { columns.saturating_sub(fixed).clamp(16, NAME) };
    let id_title = if ids { "  ID" } else { "" };
    let mut text = format!(
        "{:<7}{:<state_width$}  {:<8}{:<10}{:<pad$}{id_title}\n",
        "ALIAS",
        "STATE",
        "TIME",
        "BYTES",
        "COMMAND",
        pad = if ids { name_width } else { 0 }
    );
    for (one, state) in list.iter().zip(&states) {
        let alias = one.alias.map_or_else(|| "-".to_owned(), |alias| alias.to_string());
        let mark = match (one.phase, one.ok) {
            (Phase::Ended, Some(true)) => 32,
            (Phase::Ended, _) => 31,
            (Phase::Running | Phase::Stopping, _) => 33,
        };
        let name = name(one, name_width);
        let tail = if ids { format!("{name:<name_width$}  {}", one.id) } else { name };
        let time = format_elapsed(Duration::from_millis(one.duration_ms));
        let state = paint(state, state_width, mark, colour);
        let row = format!("{alias:<7}{state}  {time:<8}{:<10}{tail}", one.output.bytes);
        text.push_str(row.trim_end());
        text.push('\n');
        text.extend(one.note.as_deref().map(|note| format!("       {}\n", display_line(note))));
        let living = alive(&one.survivors);
        if one.phase == Phase::Ended && !living.is_empty() {
            text.push_str(&format!("       still alive: {}\n", processes(living)));
        }
    }
    text
}

fn state(snapshot: &Snapshot) -> String {
    let state = match (&snapshot.end, snapshot.phase) {
        (Some(end), _) => {
            let object = EndObject::from(end.clone());
            let fact = object.detail.or(object.signal).or(object.code.map(|code| code.to_string()));
            fact.map_or_else(|| object.kind.clone(), |fact| format!("{} {fact}", object.kind))
        }
        (None, Phase::Stopping) => "stopping".to_owned(),
        (None, Phase::Running | Phase::Ended) => "running".to_owned(),
    };
    if snapshot.detached { format!("{state}, detached") } else { state }
}

/// The label, else the first part of the command line, on one line.
fn name(snapshot: &Snapshot, width: usize) -> String {
    match &snapshot.label {
        Some(label) => shorten(label, width),
        None => {
            // The first line tells more than the seams of several.
            let line = line_of(&snapshot.command);
            match line.trim().split_once('\n') {
                None => shorten(&line, width),
                Some((first, _)) => shorten(first, width - 1).trim_end_matches('…').to_owned() + "…",
            }
        }
    }
}

/// Sessions, oldest first.
pub fn sessions(list: &[SessionSummary], colour: bool) -> String {
    let mut text = String::new();
    for one in list {
        let (word, mark) = match (&one.closed_by, one.anchor_alive) {
            (Some(_), _) => ("ended", 0),
            (None, Some(false)) => ("anchor gone", 31),
            (None, _) => ("open", 32),
        };
        let context = one.record.as_ref().map(|record| shorten(&record.context, 20)).unwrap_or_default();
        let counts = format!("{} of {} running", one.running, one.commands);
        let row = format!("{}  {}  {counts:<18} {context}", one.id, paint(word, 11, mark, colour));
        text.push_str(row.trim_end());
        text.push('\n');
        text.extend(one.problem.as_deref().map(|problem| format!("    {}\n", display_line(problem))));
    }
    text
}

/// A trace, one line each.
pub fn trace(lines: &[TraceLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let mut parts = vec![format_time(line.at_ms), format!("{:<10}", display_line(&line.kind))];
        parts.extend(line.id.map(|id| id.to_string()));
        if let Some(end) = &line.end {
            parts.push(super::end_words(end));
        }
        parts.extend(line.exit_code.map(|code| format!("exit code {code}")));
        parts.extend(line.duration_ms.map(|ms| format!("after {}", format_elapsed(Duration::from_millis(ms)))));
        let told = line.consumer.as_ref().zip(line.delivered_via.as_ref());
        parts.extend(told.map(|(who, via)| format!("told {} by {}", display_line(who), display_line(via))));
        parts.extend(line.detail.as_deref().map(|detail| shorten(detail, PROCESS_CHARACTERS)));
        parts.extend(line.command.as_deref().map(|command| shorten(command, NAME)));
        text.push_str(parts.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use outlast_core::ending::{End, Fact};

    use super::*;
    use crate::view::tests::{ended, snapshot};

    /// Covers: D8, D10
    #[test]
    fn d8_a_command_is_one_line_and_fits() {
        let mut long = ended(End::Stopped { by: "human".into(), fact: Some(Fact::Signaled(15)) });
        long.label = Some("a label of more than forty-eight characters, \u{1b}[31mred\nand broken".into());
        let text = commands(&[snapshot(), long], 80, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        assert!(lines[1].starts_with("w3     running") && lines[1].ends_with("sh -c make…"), "{text}");
        assert!(lines[2].contains("stopped TERM") && lines[2].ends_with('…'), "{text}");
        assert!(!text.contains(char::is_control) || !text.replace('\n', "").contains(char::is_control));
        let free = commands(&[snapshot()], 200, false);
        assert!(free.contains("wrk_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e"), "{free}");
        assert_eq!(commands(&[], 200, false), "");
    }

    #[test]
    fn a_detached_one_says_so() {
        let one = Snapshot { detached: true, ..snapshot() };
        assert!(commands(&[one], 200, false).contains("running, detached"));
    }
}
