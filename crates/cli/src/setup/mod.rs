//! Puts outlast into the settings of agent hosts, and takes it out again.
//!
//! What others have written stays as it is: an entry of ours is added beside theirs, and nothing else is changed.

mod entry;
mod spelling;
mod json;
mod toml;
mod block;
mod file;
mod opencode;
mod host;
mod plugin;

use std::path::PathBuf;

use crate::config::Config;
use crate::exit::Failure;
use crate::output::Printer;
pub use entry::Done;
use entry::{Edited, Entry};
use file::{Change, File};
use host::{Content, LINES, Ours};
pub use host::{Host, Parts, Place};
pub use plugin::{plugin, unplug};
use spelling::Spelling;

/// How every file that is ours as a whole begins.
const WRITTEN: &str = "// Written by `outlast setup";

/// What a file that is ours as a whole is called.
const PLUGIN: &str = "the plugin";

/// Whose settings are meant.
pub fn place(project: bool, config: &Config) -> Result<Place, Failure> {
    if project {
        return Ok(Place::Project(config.cwd.clone()));
    }
    let dir = |key| config.var(key).map(PathBuf::from);
    let home = dir("HOME").ok_or_else(|| Failure::Refused("HOME is not set; give --project".to_owned()))?;
    // A folder that is not there is a mistake, and for root one that would be made.
    if !home.is_dir() {
        return Err(Failure::Refused(format!("HOME is {}, which is no directory; give --project", home.display())));
    }
    let (claude, codex, xdg) = (dir("CLAUDE_CONFIG_DIR"), dir("CODEX_HOME"), dir("XDG_CONFIG_HOME"));
    Ok(Place::User { home, claude, codex, xdg })
}

/// What becomes of one file.
struct Plan {
    file: File,
    edited: Edited,
    change: Option<Change>,
    /// Whether anything is to stand in it.
    is_wanted: bool,
}

/// Everything that would be written, by file, for whoever writes it by hand.
pub fn printed(host: Host, place: &Place, parts: Parts) -> Result<String, Failure> {
    let mut text = String::new();
    for ours in host.files(place, parts) {
        text.push_str(&format!("==> {}\n{}\n", ours.path.display(), by_hand(&ours)?));
    }
    Ok(text)
}

/// Puts everything that belongs to a host into its files, and takes out what an earlier call has put there besides.
pub fn put(host: Host, place: &Place, parts: Parts, printer: Printer) -> Result<Done, Failure> {
    let wanted = host.files(place, parts);
    let planned = plan(host, place, &wanted).map_err(|(ours, reason)| {
        let Some(ours) = wanted.iter().find(|one| one.path == ours.path) else { return reason };
        by_hand(ours).map_or_else(
            |failure| failure,
            |text| {
                printer.tell(&text);
                reason.followed(
                    "what would stand in it is shown above: mend the file and do this again, or put that in by hand",
                )
            },
        )
    })?;
    apply(planned)
}

/// Takes out what is ours.
pub fn undo(host: Host, place: &Place) -> Result<Done, Failure> {
    let planned = plan(host, place, &[]).map_err(|(_, reason)| {
        reason.followed("mend it and do this again, or take what setup has written out of it by hand")
    })?;
    apply(planned)
}

/// What becomes of each file. Where one is not understood none is changed.
fn plan(host: Host, place: &Place, wanted: &[Ours]) -> Result<Vec<Plan>, (Ours, Failure)> {
    let mut planned: Vec<Plan> = Vec::new();
    for ours in host.ever(place) {
        let want = wanted.iter().find(|one| one.path == ours.path).map(|one| &one.content);
        match plan_one(host, place, &ours, want) {
            // Two names of one file: the first is the one that is meant.
            Ok(plan) if want.is_none() && planned.iter().any(|one| one.file.path == plan.file.path) => {}
            Ok(plan) => planned.push(plan),
            // Nothing of ours is in what is no text, and nothing is to be.
            Err(Failure::Refused(_)) if want.is_none() && !wanted.is_empty() && File::read(&ours.path).is_err() => {}
            Err(failure) => return Err((ours, failure)),
        }
    }
    Ok(planned)
}

fn plan_one(host: Host, place: &Place, ours: &Ours, want: Option<&Content>) -> Result<Plan, Failure> {
    let file = File::read(&ours.path).map_err(|failure| failure.behind("nothing was changed"))?;
    let before = file.text.as_deref().unwrap_or_default();
    let edited = edit(&ours.content, want, before)
        .map_err(|reason| Failure::Refused(format!("nothing was changed; {}, {reason}", file.path.display())))?;
    let change = match (edited.is_changed(), want) {
        (false, _) => None,
        (true, None) => Some(put_back(host, place, ours, &file, &edited.text)?),
        (true, Some(Content::Whole(text))) => Some(Change::Write { text: text.clone(), copy: false }),
        (true, Some(_)) => Some(Change::Write { text: edited.text.clone(), copy: !is_touched(&ours.content, before) }),
    };
    Ok(Plan { file, edited, change, is_wanted: want.is_some() })
}

fn apply(planned: Vec<Plan>) -> Result<Done, Failure> {
    let changes: Vec<_> = planned.iter().filter_map(|one| Some((&one.file, one.change.as_ref()?))).collect();
    file::apply(&changes)?;
    let mut done = Done::default();
    for plan in &planned {
        plan.say(&mut done);
    }
    if done.lines.is_empty() {
        done.lines = planned.iter().map(|one| format!("{}: nothing to change", one.file.path.display())).collect();
    }
    Ok(done)
}

impl Plan {
    fn say(&self, done: &mut Done) {
        let (path, before) = (self.file.path.display(), done.lines.len());
        for place in &self.edited.left {
            done.lines.push(format!("{path}: {place} holds something else than setup writes; it is left as it is"));
            done.left.push(format!("{place} in {path}"));
        }
        for (what, places) in [("removed", &self.edited.removed), ("added", &self.edited.added)] {
            if !places.is_empty() {
                done.lines.push(format!("{path}: {what} {}", places.join(", ")));
            }
        }
        if done.lines.len() == before && (self.is_wanted || self.file.text.is_some()) {
            done.lines.push(format!("{path}: nothing to change"));
        }
    }
}

/// What stands in a file when everything of ours is out of it: the very bytes of before, where setup alone has changed
/// them since; nothing, where the file was made by setup and is empty now.
fn put_back(host: Host, place: &Place, ours: &Ours, file: &File, text: &str) -> Result<Change, Failure> {
    if matches!(ours.content, Content::Whole(_)) {
        return Ok(Change::Remove);
    }
    let written = |before: &str| {
        let each = Parts::EACH.iter().flat_map(|parts| host.files(place, *parts));
        let mut same = each.filter(|one| one.path == ours.path);
        same.any(|one| {
            edit(&ours.content, Some(&one.content), before).is_ok_and(|edited| Some(edited.text) == file.text)
        })
    };
    Ok(match file.backup()? {
        Some(before) if before == text || !is_touched(&ours.content, &before) && written(&before) => {
            Change::Restore(before)
        }
        None if is_empty(ours, text) => Change::Remove,
        Some(_) | None => Change::Write { text: text.to_owned(), copy: false },
    })
}

fn is_empty(ours: &Ours, text: &str) -> bool {
    let (_, text) = Spelling::split(text);
    match &ours.content {
        Content::Json(_) => json::is_empty(&text),
        Content::Toml(_) => toml::is_empty(&text),
        Content::Lines(_) | Content::Whole(_) => text.trim().is_empty(),
    }
}

/// Whether something of ours stands in a text, so that it is not the one of before.
fn is_touched(ever: &Content, text: &str) -> bool {
    match ever {
        Content::Lines(_) => block::has(text),
        Content::Json(_) | Content::Toml(_) | Content::Whole(_) => {
            edit(ever, None, text).is_ok_and(|edited| !edited.removed.is_empty())
        }
    }
}

/// Makes a text hold what is wanted, and nothing else of what it can have been given.
fn edit(ever: &Content, want: Option<&Content>, text: &str) -> Result<Edited, String> {
    let (spelling, plain) = Spelling::split(text);
    let mut edited = edit_plain(ever, want, &plain)?;
    edited.text = if edited.is_changed() { spelling.join(&edited.text) } else { text.to_owned() };
    Ok(edited)
}

fn edit_plain(ever: &Content, want: Option<&Content>, text: &str) -> Result<Edited, String> {
    let nothing = Edited::default();
    match (ever, want) {
        (Content::Whole(_), _) if !text.is_empty() && !text.starts_with(WRITTEN) => {
            Err("line 1: somebody else has written this file".to_owned())
        }
        (Content::Whole(_), Some(Content::Whole(new))) if text != new => {
            Ok(Edited { text: new.clone(), added: vec![PLUGIN.to_owned()], ..nothing })
        }
        (Content::Whole(_), None) if !text.is_empty() => Ok(Edited { removed: vec![PLUGIN.to_owned()], ..nothing }),
        (Content::Whole(_), _) => Ok(nothing),
        (_, None) if text.is_empty() => Ok(nothing),
        (Content::Lines(host), None) => block::take(text, host, LINES),
        (Content::Lines(host), Some(_)) => block::put(text, host, LINES),
        (Content::Json(ever), want) => {
            let text = if text.trim().is_empty() { "{}" } else { text };
            both(text, ever, want, json::take, json::put)
        }
        (Content::Toml(ever), want) => both(text, ever, want, toml::take, toml::put),
    }
}

/// One way to change a text.
type Step = fn(&str, &[Entry]) -> Result<Edited, String>;

/// Takes out what is not wanted any more, then puts in what is.
fn both(text: &str, ever: &[Entry], want: Option<&Content>, take: Step, put: Step) -> Result<Edited, String> {
    let wanted = match want {
        Some(Content::Json(entries) | Content::Toml(entries)) => entries.as_slice(),
        Some(Content::Lines(_) | Content::Whole(_)) | None => &[],
    };
    let old: Vec<Entry> = ever.iter().filter(|entry| !wanted.contains(entry)).cloned().collect();
    let taken = take(text, &old)?;
    let rest = if taken.is_changed() { taken.text.as_str() } else { text };
    if wanted.is_empty() {
        return Ok(taken);
    }
    let mut edited = put(rest, wanted)?;
    edited.removed = taken.removed;
    edited.left.splice(0..0, taken.left);
    Ok(edited)
}

/// What of a file is ours, as the text of a file that has nothing else.
fn by_hand(ours: &Ours) -> Result<String, Failure> {
    edit(&ours.content, Some(&ours.content), "").map(|edited| edited.text).map_err(Failure::Refused)
}
