//! The plugin folder of Claude Code: the same server and hooks as in its settings, and a skill.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::entry::{Done, Entry};
use super::file::{self, Change, File};
use super::host::{Host, LINES, Parts, SERVER};
use crate::exit::Failure;

/// The file by which a plugin folder is known.
const MANIFEST: &str = ".claude-plugin/plugin.json";

const README: &str = "\
# outlast

Gives Claude Code the MCP server of outlast, whose `run` tool runs shell commands: one that takes long goes on in the
background under an id, and nothing is lost when it does. Hooks tell the model which of its background commands have
ended, and after a start or a compaction which still run. It needs the program `outlast` in PATH.

This folder was written by `outlast setup claude --plugin`; run that again to bring it up to date, with `--undo` to
remove it.
";

/// Whose folder it is.
enum Folder {
    /// It is not there, or empty.
    New,
    /// This program has written it.
    Ours,
    /// Another version of it has.
    OfVersion(String),
}

/// Writes the plugin folder. What is in it of somebody else stays.
pub fn plugin(dir: &Path, parts: Parts) -> Result<Done, Failure> {
    let folder = folder(dir)?;
    let mut done = Done::default();
    let mut changes = Vec::new();
    for (name, text) in files(parts) {
        let file = File::read(&dir.join(name)).map_err(|failure| failure.behind("nothing was changed"))?;
        let path = file.path.display().to_string();
        let found = file.text.as_deref();
        if found == Some(&text) {
            done.lines.push(format!("{path}: nothing to change"));
        } else if found.is_none() || is_written(name, found) {
            done.lines.push(format!("{path}: written"));
            changes.push((file, Change::Write { text, copy: false }));
        } else if let Folder::OfVersion(version) = &folder {
            done.lines.push(format!("{path}: written over that of version {version}"));
            changes.push((file, Change::Write { text, copy: false }));
        } else {
            done.lines.push(format!("{path} holds something else than setup writes; it is left as it is"));
            done.left.push(path);
        }
    }
    file::apply(&changes.iter().map(|(file, change)| (file, change)).collect::<Vec<_>>())?;
    Ok(done)
}

/// Removes what [`plugin`] has written, and the folders that are empty then.
pub fn unplug(dir: &Path) -> Result<Done, Failure> {
    if let Folder::OfVersion(version) = folder(dir)? {
        let dir = dir.display();
        return Err(Failure::Refused(format!(
            "nothing was changed; {dir} was written by version {version}; write it again with this one, then undo it"
        )));
    }
    let mut done = Done::default();
    let mut changes = Vec::new();
    for (name, _) in files(Parts::ALL) {
        let file = File::read(&dir.join(name)).map_err(|failure| failure.behind("nothing was changed"))?;
        let path = file.path.display().to_string();
        if is_written(name, file.text.as_deref()) {
            done.lines.push(format!("{path}: removed"));
            changes.push((file, Change::Remove));
        } else if file.text.is_some() {
            done.lines.push(format!("{path} holds something else than setup writes; it is left as it is"));
            done.left.push(path);
        } else {
            done.lines.push(format!("{path}: nothing to change"));
        }
    }
    file::apply(&changes.iter().map(|(file, change)| (file, change)).collect::<Vec<_>>())?;
    for folder in [".claude-plugin", "hooks", "skills/background-commands", "skills", ""] {
        remove_if_empty(&dir.join(folder))?;
    }
    Ok(done)
}

fn folder(dir: &Path) -> Result<Folder, Failure> {
    let path = dir.join(MANIFEST);
    let shown = dir.display();
    let Some(text) = File::read(&path).map_err(|failure| failure.behind("nothing was changed"))?.text else {
        return match dir.read_dir().map(|mut entries| entries.next().is_none()) {
            Ok(true) => Ok(Folder::New),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Folder::New),
            Ok(false) => Err(Failure::Refused(format!("{shown} is not empty and no plugin; name another folder"))),
            Err(error) => Err(Failure::System(format!("cannot look at {shown}"), error)),
        };
    };
    let found: Value = serde_json::from_str(&text).unwrap_or_default();
    let word = |at: &str| found.pointer(at).and_then(Value::as_str).unwrap_or_default();
    if (word("/name"), word("/author/name")) != (SERVER, SERVER) {
        let path = path.display();
        return Err(Failure::Refused(format!("nothing was changed; {path} is of another plugin; name another folder")));
    }
    Ok(match word("/version") {
        env!("CARGO_PKG_VERSION") => Folder::Ours,
        other => Folder::OfVersion(other.to_owned()),
    })
}

/// Whether a text is what some call of this program writes there.
fn is_written(name: &Path, text: Option<&str>) -> bool {
    Parts::EACH
        .iter()
        .any(|parts| files(*parts).iter().any(|(path, ours)| *path == name && Some(ours.as_str()) == text))
}

fn remove_if_empty(dir: &Path) -> Result<(), Failure> {
    match fs::remove_dir(dir) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {
            Err(Failure::System(format!("cannot remove {}", dir.display()), error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The files of the plugin: paths below its folder, and texts.
fn files(parts: Parts) -> Vec<(&'static Path, String)> {
    let manifest = json!({
        "name": SERVER,
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Shell commands that never block, are never lost and leave nothing behind",
        "author": {"name": "outlast"},
        "license": env!("CARGO_PKG_LICENSE"),
    });
    let server = json!({"mcpServers": {SERVER: Host::Claude.server()}});
    let mut groups: Map<String, Value> = Map::new();
    for entry in Host::Claude.hooks(parts) {
        if let Entry::Element { path, value } = entry
            && let Some(event) = path.last()
            && let Value::Array(list) = groups.entry(*event).or_insert_with(|| json!([]))
        {
            list.push(value);
        }
    }
    let skill = format!(
        "---\nname: background-commands\ndescription: Run builds, tests, servers and any shell command that may take \
         over 10 seconds with the outlast run tool.\n---\n\n{LINES}"
    );
    vec![
        (Path::new(MANIFEST), pretty(&manifest)),
        (Path::new(".mcp.json"), pretty(&server)),
        (Path::new("hooks/hooks.json"), pretty(&json!({"hooks": groups}))),
        (Path::new("README.md"), README.to_owned()),
        (Path::new("skills/background-commands/SKILL.md"), skill),
    ]
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    #[test]
    fn the_plugin_and_the_settings_come_from_one_source() {
        for parts in [Parts { hooks: true, redirect: false }, Parts::ALL] {
            let settings = json::put("{}", &Host::Claude.hooks(parts)).expect("empty settings").text;
            let server = Entry::Key { path: vec!["mcpServers", SERVER], value: Host::Claude.server() };
            let entry = json::put("{}", &[server]).expect("an empty file").text;
            let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            let files = files(parts);
            let file = |name: &str| {
                let found = files.iter().find(|(path, _)| *path == Path::new(name));
                read(&found.expect("it is in the plugin").1)
            };
            assert_eq!(file("hooks/hooks.json"), read(&settings));
            assert_eq!(file(".mcp.json"), read(&entry));
        }
    }
}
