//! Puts outlast into the settings of agent hosts, and takes it out again.
//!
//! What others have written stays as it is: an entry of ours is added beside theirs, and nothing else is changed.

mod entry;
mod json;
mod toml;
mod block;
mod file;
mod opencode;
mod host;
mod plugin;

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::exit::Failure;
use crate::output::Printer;
use entry::Edited;
use file::File;
use host::{Content, LINES, Ours};
pub use host::{Host, Parts, Place};

/// How every file that is ours as a whole begins.
const WRITTEN: &str = "// Written by `outlast setup";

/// Whose settings are meant.
pub fn place(project: bool, config: &Config) -> Result<Place, Failure> {
    if project {
        return Ok(Place::Project(config.cwd.clone()));
    }
    let dir = |key| config.var(key).map(PathBuf::from);
    let home = dir("HOME").ok_or_else(|| Failure::Refused("HOME is not set; give --project".to_owned()))?;
    let (claude, codex, xdg) = (dir("CLAUDE_CONFIG_DIR"), dir("CODEX_HOME"), dir("XDG_CONFIG_HOME"));
    Ok(Place::User { home, claude, codex, xdg })
}

/// Everything that would be written, by file, for whoever writes it by hand.
pub fn printed(host: Host, place: &Place, parts: Parts) -> Result<String, Failure> {
    let mut text = String::new();
    for ours in host.files(place, parts) {
        text.push_str(&format!("==> {}\n{}\n", ours.path.display(), by_hand(&ours)?));
    }
    Ok(text)
}

/// Writes what is not there yet. Says what was done, one line a file.
pub fn put(host: Host, place: &Place, parts: Parts, printer: Printer) -> Result<Vec<String>, Failure> {
    let planned = plan(host.files(place, parts), printer, edit)?;
    for (ours, file, edited) in planned.iter().filter(|(_, _, edited)| !edited.changed.is_empty()) {
        match &ours.content {
            Content::Whole(new) => file.write(new)?,
            Content::Json(_) | Content::Toml(_) | Content::Lines => file.replace(&edited.text)?,
        }
    }
    Ok(planned.iter().flat_map(|(_, file, edited)| said(file, "added", edited)).collect())
}

/// Takes out what is ours. Says what was done, one line a file.
pub fn undo(host: Host, place: &Place, printer: Printer) -> Result<Vec<String>, Failure> {
    let planned = plan(host.files(place, Parts::ALL), printer, |content, text| match content {
        _ if text.is_empty() => Ok(Edited::default()),
        Content::Json(entries) => json::take(text, entries),
        Content::Toml(entries) => toml::take(text, entries),
        Content::Lines => block::take(text),
        Content::Whole(_) => whole(text, ""),
    })?;
    for (ours, file, edited) in planned.iter().filter(|(_, _, edited)| !edited.changed.is_empty()) {
        put_back(host, place, ours, file, &edited.text)?;
    }
    Ok(planned.iter().flat_map(|(_, file, edited)| said(file, "removed", edited)).collect())
}

/// What becomes of each file. Where one is not understood none is changed, and what would stand in it is told.
fn plan(
    files: Vec<Ours>,
    printer: Printer,
    edit: impl Fn(&Content, &str) -> Result<Edited, String>,
) -> Result<Vec<(Ours, File, Edited)>, Failure> {
    let mut planned = Vec::new();
    for ours in files {
        let file = File::read(&ours.path)?;
        match edit(&ours.content, file.text.as_deref().unwrap_or_default()) {
            Ok(edited) => planned.push((ours, file, edited)),
            Err(reason) => {
                printer.tell(&by_hand(&ours)?);
                let path = file.path.display();
                let reason = format!("nothing was changed: {path}, {reason}; what would stand in it is shown above");
                return Err(Failure::Refused(reason));
            }
        }
    }
    Ok(planned)
}

/// Writes what is left after an undo: the very bytes of before, where setup alone has changed them since; nothing,
/// where the file was made by setup and is empty now.
fn put_back(host: Host, place: &Place, ours: &Ours, file: &File, text: &str) -> Result<(), Failure> {
    if matches!(ours.content, Content::Whole(_)) {
        return file.remove();
    }
    let written = |before: &str| {
        let each = Parts::EACH.iter().flat_map(|parts| host.files(place, *parts));
        let mut same = each.filter(|one| one.path == ours.path);
        same.any(|one| edit(&one.content, before).is_ok_and(|edited| Some(edited.text) == file.text))
    };
    match file.backup()? {
        Some(before) if written(&before) => file.restore(&before),
        None if is_empty(ours, text) => file.remove(),
        Some(_) | None => file.replace(text),
    }
}

fn is_empty(ours: &Ours, text: &str) -> bool {
    match &ours.content {
        Content::Json(_) => json::is_empty(text),
        Content::Toml(_) => toml::is_empty(text),
        Content::Lines | Content::Whole(_) => text.trim().is_empty(),
    }
}

/// Writes the plugin folder of Claude Code.
pub fn plugin(dir: &Path, parts: Parts) -> Result<Vec<String>, Failure> {
    let filled = dir.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if filled && !dir.join(plugin::MANIFEST).exists() {
        return Err(Failure::Refused(format!("{} is not empty and no plugin; name another folder", dir.display())));
    }
    let mut lines = Vec::new();
    for (name, text) in plugin::files(parts) {
        let file = File::read(&dir.join(name))?;
        let same = file.text.as_ref() == Some(&text);
        if !same {
            file.write(&text)?;
        }
        lines.push(format!("{}: {}", file.path.display(), if same { "nothing to change" } else { "written" }));
    }
    Ok(lines)
}

fn said(file: &File, what: &str, edited: &Edited) -> Vec<String> {
    let path = file.path.display();
    let mut lines: Vec<String> = edited.left.iter().map(|left| format!("{path}: {left}")).collect();
    match edited.changed.as_slice() {
        [] if lines.is_empty() => lines.push(format!("{path}: nothing to change")),
        [] => {}
        changed => lines.push(format!("{path}: {what} {}", changed.join(", "))),
    }
    lines
}

/// A file that is ours as a whole.
fn whole(text: &str, new: &str) -> Result<Edited, String> {
    if !text.is_empty() && !text.starts_with(WRITTEN) {
        return Err("line 1: somebody else has written this file".to_owned());
    }
    let changed = if text == new { Vec::new() } else { vec!["the plugin".to_owned()] };
    Ok(Edited { text: new.to_owned(), changed, left: Vec::new() })
}

/// Puts what is ours into a text.
fn edit(content: &Content, text: &str) -> Result<Edited, String> {
    match content {
        Content::Json(entries) => json::put(if text.trim().is_empty() { "{}" } else { text }, entries),
        Content::Toml(entries) => toml::put(text, entries),
        Content::Lines => block::put(text, LINES),
        Content::Whole(new) => whole(text, new),
    }
}

/// What of a file is ours, as the text of a file that has nothing else.
fn by_hand(ours: &Ours) -> Result<String, Failure> {
    edit(&ours.content, "").map(|edited| edited.text).map_err(Failure::Refused)
}
