//! What stands in the settings of each host: the one source of entries, hooks, plugins and lines for models.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::entry::Entry;
use super::opencode;

/// A host that can be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Host {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// opencode
    Opencode,
    /// Gemini CLI
    Gemini,
    /// Qwen Code, without hooks
    Qwen,
    /// Cursor, without hooks
    Cursor,
    /// pi, without hooks
    Pi,
}

/// What a host is given besides the entry of the MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Hooks, by which the model is told what ended.
    pub hooks: bool,
    /// A hook that refuses the built-in shell.
    pub redirect: bool,
}

impl Parts {
    /// Everything that setup ever writes.
    pub const ALL: Parts = Parts { hooks: true, redirect: true };
    /// Each way in which setup can have written a file.
    pub const EACH: [Parts; 3] =
        [Parts { hooks: false, redirect: false }, Parts { hooks: true, redirect: false }, Parts::ALL];
}

/// Where hosts keep their settings.
#[derive(Clone, Debug)]
pub enum Place {
    /// For this user, in every project.
    User {
        /// The home directory.
        home: PathBuf,
        /// `CLAUDE_CONFIG_DIR`, `CODEX_HOME` and `XDG_CONFIG_HOME`, where they are set.
        claude: Option<PathBuf>,
        codex: Option<PathBuf>,
        xdg: Option<PathBuf>,
    },
    /// For everyone who works in this directory.
    Project(PathBuf),
}

/// A file, and what of it is ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Ours {
    /// Where it is.
    pub path: PathBuf,
    /// What stands in it.
    pub content: Content,
}

/// What of a file is ours.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Entries among those of others, in JSON.
    Json(Vec<Entry>),
    /// Entries among those of others, in TOML.
    Toml(Vec<Entry>),
    /// A block of lines for the model of this host.
    Lines(&'static str),
    /// All of it.
    Whole(String),
}

/// What models read of outlast in every conversation.
pub const LINES: &str = "\
Run builds, tests, servers and anything that may take over 10 s with the `run` tool of outlast. It returns the
result, or an id when the command went to the background. Use `wait`, `read`, `send` and `stop` with that id. Do
not use `&`, `nohup` or `sleep` loops.
";

/// How the name of the server is written in every host.
pub const SERVER: &str = "outlast";

impl Host {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Host::Claude => "claude",
            Host::Codex => "codex",
            Host::Opencode => "opencode",
            Host::Gemini => "gemini",
            Host::Qwen => "qwen",
            Host::Cursor => "cursor",
            Host::Pi => "pi",
        }
    }

    /// Whether hooks of it are known.
    pub fn has_hooks(self) -> bool {
        matches!(self, Host::Claude | Host::Codex | Host::Opencode | Host::Gemini)
    }

    /// What a person should know or do afterwards.
    pub fn remark(self, place: &Place, parts: Parts) -> Option<&'static str> {
        match self {
            Host::Cursor if matches!(place, Place::User { .. }) => Some(
                "Cursor reads lines for the model from projects and from its own settings alone: give --project, or put \
                 what `outlast setup cursor --project --print` shows into its user rules",
            ),
            Host::Codex if parts.hooks => {
                Some("Codex runs new hooks only once they are trusted there: open /hooks in it")
            }
            Host::Claude | Host::Codex | Host::Opencode | Host::Gemini | Host::Qwen | Host::Cursor | Host::Pi => None,
        }
    }

    /// Every file that can ever have been given something, with all that it can have been given.
    pub fn ever(self, place: &Place) -> Vec<Ours> {
        let mut files = self.files(place, Parts::ALL);
        for path in self.lines_files(place) {
            if files.iter().all(|file| file.path != path) {
                files.push(Ours { path, content: Content::Lines(self.word()) });
            }
        }
        files
    }

    /// The files that are ours, in whole or in part.
    pub fn files(self, place: &Place, parts: Parts) -> Vec<Ours> {
        let server = Entry::Key { path: self.server_path(), value: self.server() };
        let hooks = self.hooks(parts);
        let at = |path: PathBuf, content: Content| Ours { path, content };
        let mut files = match self {
            Host::Claude => vec![
                at(self.server_file(place), Content::Json(vec![server])),
                at(self.hook_file(place), Content::Json(hooks)),
            ],
            Host::Codex => vec![at(self.server_file(place), Content::Toml([vec![server], hooks].concat()))],
            Host::Opencode | Host::Gemini | Host::Qwen | Host::Cursor | Host::Pi => {
                vec![at(self.server_file(place), Content::Json([vec![server], hooks].concat()))]
            }
        };
        if self == Host::Opencode {
            let dir = self.hook_file(place);
            if parts.hooks {
                files.push(at(dir.join("outlast.js"), Content::Whole(opencode::news())));
            }
            if parts.redirect {
                files.push(at(dir.join("outlast-redirect.js"), Content::Whole(opencode::redirect())));
            }
        }
        files.extend(self.lines_file(place).map(|path| at(path, Content::Lines(self.word()))));
        files.retain(|file| !matches!(&file.content, Content::Json(entries) if entries.is_empty()));
        files
    }

    /// The entry of the MCP server.
    pub fn server(self) -> Value {
        match self {
            Host::Claude => json!({"type": "stdio", "command": "outlast", "args": ["mcp"], "alwaysLoad": true}),
            // Codex strips the environment of its servers; these two say where the records are.
            Host::Codex => json!({
                "command": "outlast", "args": ["mcp"], "startup_timeout_sec": 20, "tool_timeout_sec": 3600,
                "env_vars": ["OUTLAST_STATE_DIR", "XDG_STATE_HOME"],
            }),
            Host::Opencode => {
                json!({"type": "local", "command": ["outlast", "mcp"], "enabled": true, "timeout": 600_000})
            }
            Host::Gemini => json!({"command": "outlast", "args": ["mcp"], "timeout": 600_000}),
            Host::Qwen => json!({"command": "outlast", "args": ["mcp"], "timeout": 600_000, "alwaysLoadTools": true}),
            Host::Cursor => json!({"command": "outlast", "args": ["mcp"]}),
            Host::Pi => json!({"command": "outlast", "args": ["mcp"], "exposure": "direct", "timeout": 600}),
        }
    }

    fn server_path(self) -> Vec<&'static str> {
        match self {
            Host::Codex => vec!["mcp_servers", SERVER],
            Host::Opencode => vec!["mcp", SERVER],
            Host::Claude | Host::Gemini | Host::Qwen | Host::Cursor | Host::Pi => vec!["mcpServers", SERVER],
        }
    }

    /// The hooks of a host that runs programs as hooks.
    pub fn hooks(self, parts: Parts) -> Vec<Entry> {
        let (events, before, shell): (&[&str], _, _) = match self {
            Host::Claude => (
                &["SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"],
                "PreToolUse",
                "Bash",
            ),
            Host::Codex => (&["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"], "PreToolUse", "Bash"),
            Host::Gemini => {
                (&["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent"], "BeforeTool", "run_shell_command")
            }
            Host::Opencode | Host::Qwen | Host::Cursor | Host::Pi => return Vec::new(),
        };
        let group = |event, value| Entry::Element { path: vec!["hooks", event], value };
        let mut hooks = Vec::new();
        if parts.hooks {
            hooks.extend(events.iter().map(|event| group(event, json!({"hooks": [self.hook("")]}))));
        }
        if parts.redirect {
            hooks.push(group(before, json!({"matcher": shell, "hooks": [self.hook(" --redirect")]})));
        }
        hooks
    }

    fn hook(self, option: &str) -> Value {
        let command = format!("outlast hook {}{option}", self.word());
        match self {
            // In milliseconds, and with a name for its list of hooks.
            Host::Gemini => json!({"type": "command", "name": "outlast", "command": command, "timeout": 10_000}),
            Host::Claude | Host::Codex | Host::Opencode | Host::Qwen | Host::Cursor | Host::Pi => {
                json!({"type": "command", "command": command, "timeout": 10})
            }
        }
    }

    fn server_file(self, place: &Place) -> PathBuf {
        match place {
            Place::User { home, claude, codex, xdg } => match self {
                Host::Claude => claude.as_ref().unwrap_or(home).join(".claude.json"),
                Host::Codex => codex_home(home, codex).join("config.toml"),
                Host::Opencode => opencode_file(&xdg_home(home, xdg).join("opencode")),
                Host::Gemini => home.join(".gemini/settings.json"),
                Host::Qwen => home.join(".qwen/settings.json"),
                Host::Cursor => home.join(".cursor/mcp.json"),
                Host::Pi => home.join(".pi/agent/mcp.json"),
            },
            Place::Project(dir) => match self {
                Host::Claude => dir.join(".mcp.json"),
                Host::Codex => dir.join(".codex/config.toml"),
                Host::Opencode => opencode_file(dir),
                Host::Gemini => dir.join(".gemini/settings.json"),
                Host::Qwen => dir.join(".qwen/settings.json"),
                Host::Cursor => dir.join(".cursor/mcp.json"),
                Host::Pi => dir.join(".pi/mcp.json"),
            },
        }
    }

    /// The file with the hooks of Claude Code, the folder of the plugins of opencode.
    fn hook_file(self, place: &Place) -> PathBuf {
        match (place, self) {
            (Place::User { home, xdg, .. }, Host::Opencode) => xdg_home(home, xdg).join("opencode/plugin"),
            (Place::Project(dir), Host::Opencode) => dir.join(".opencode/plugin"),
            (Place::User { home, claude, .. }, _) => claude_home(home, claude).join("settings.json"),
            (Place::Project(dir), _) => dir.join(".claude/settings.json"),
        }
    }

    /// The file with instructions that the host reads now.
    fn lines_file(self, place: &Place) -> Option<PathBuf> {
        let mut files = self.lines_files(place);
        let last = files.pop()?;
        Some(files.into_iter().find(|file| file.exists()).unwrap_or(last))
    }

    /// The files with instructions of which the host reads the first that is there; the last is made if none is.
    fn lines_files(self, place: &Place) -> Vec<PathBuf> {
        match (place, self) {
            (Place::User { home, claude, .. }, Host::Claude) => vec![claude_home(home, claude).join("CLAUDE.md")],
            (Place::User { home, codex, .. }, Host::Codex) => vec![codex_home(home, codex).join("AGENTS.md")],
            (Place::User { home, xdg, .. }, Host::Opencode) => vec![xdg_home(home, xdg).join("opencode/AGENTS.md")],
            (Place::User { home, .. }, Host::Gemini) => vec![home.join(".gemini/GEMINI.md")],
            (Place::User { home, .. }, Host::Qwen) => vec![home.join(".qwen/QWEN.md")],
            (Place::User { home, .. }, Host::Pi) => vec![home.join(".pi/agent/AGENTS.md")],
            (Place::User { .. }, Host::Cursor) => Vec::new(),
            // It reads AGENTS.md only where the project has no file of its own kind.
            (Place::Project(dir), Host::Claude) => {
                ["CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"].map(|name| dir.join(name)).into()
            }
            (Place::Project(dir), Host::Gemini) => vec![dir.join("GEMINI.md")],
            (Place::Project(dir), Host::Codex | Host::Opencode | Host::Qwen | Host::Cursor | Host::Pi) => {
                vec![dir.join("AGENTS.md")]
            }
        }
    }
}

fn claude_home(home: &Path, claude: &Option<PathBuf>) -> PathBuf {
    claude.clone().unwrap_or_else(|| home.join(".claude"))
}

fn codex_home(home: &Path, codex: &Option<PathBuf>) -> PathBuf {
    codex.clone().unwrap_or_else(|| home.join(".codex"))
}

fn xdg_home(home: &Path, xdg: &Option<PathBuf>) -> PathBuf {
    xdg.clone().unwrap_or_else(|| home.join(".config"))
}

/// opencode reads both names; a person who has the second one writes comments in it.
fn opencode_file(dir: &Path) -> PathBuf {
    let commented = dir.join("opencode.jsonc");
    if commented.exists() { commented } else { dir.join("opencode.json") }
}
