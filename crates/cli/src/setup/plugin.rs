//! The plugin folder of Claude Code: the same server and hooks as in its settings, and a skill.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::entry::Entry;
use super::host::{Host, LINES, Parts, SERVER};

/// The file by which a plugin folder is known.
pub const MANIFEST: &str = ".claude-plugin/plugin.json";

const README: &str = "\
# outlast

Gives Claude Code the MCP server of outlast, whose `run` tool runs shell commands: one that takes long goes on in the
background under an id, and nothing is lost when it does. Hooks tell the model which of its background commands have
ended, and after a start or a compaction which still run. It needs the program `outlast` in PATH.

This folder was written by `outlast setup claude --plugin`; run that again to bring it up to date.
";

/// The files of the plugin: paths below its folder, and texts.
pub fn files(parts: Parts) -> Vec<(&'static Path, String)> {
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
