//! What an operator may forbid or hide. Every policy is off unless it is asked for.

pub mod credentials;
pub mod decisive;
mod known;
mod plain;
mod scan;
mod shapes;
mod words;
pub mod redact;
mod at_rest;
pub mod start;
mod bounds;
mod shell_words;
mod shell_line;
mod builtins;
pub mod gate;

use serde::Deserialize;

use crate::request::Limits;
use redact::Redactor;

pub use at_rest::AtRest;
pub use gate::Gate;
pub use start::{BackgroundRule, Environment, Programs, Role};

/// The policies of a runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether secrets are masked in everything that is shown: output, command lines, labels. What a command gets, and
    /// what is on disk, is never changed by it.
    pub redact: bool,
    /// Values that are secrets whatever they look like, beside those of the environments of commands that are started.
    pub secrets: Vec<Vec<u8>>,
    /// What is stored of commands.
    pub at_rest: AtRest,
    /// Which ends the trace holds.
    pub trace: TraceRule,
    /// Whether the output of a command is shown while it runs.
    pub live_output: LiveOutput,
    /// What the caller is to whoever runs outlast.
    pub role: Role,
    /// Whether the caller may start commands; not saying so allows it.
    pub shell_access: Option<bool>,
    /// The only programs that are started.
    pub programs: Option<Programs>,
    /// Which shell lines are started.
    pub gate: Gate,
    /// The directory in which all commands run, an absolute path: one that asks for a directory outside runs in the root.
    pub root: Option<String>,
    /// The bounds that every command has; a call can only narrow them.
    pub limits: Limits,
    /// Commands that start in the background at once.
    pub background: Vec<BackgroundRule>,
    /// Which part of the environment a command gets.
    pub env: Environment,
    /// Names that a clean environment inherits beside the usual ones: exact, `BEGINNING*` or `*END`.
    pub env_keep: Vec<String>,
    /// Names that a clean environment never has, beside credentials: exact, `BEGINNING*` or `*END`.
    pub env_strip: Vec<String>,
}

impl Policy {
    /// A text as it is shown, for one that no command is behind.
    #[must_use]
    pub fn shown(&self, text: String) -> String {
        if self.redact { Redactor::new(self.secrets.iter().cloned()).text(&text) } else { text }
    }

    /// Whether it has to know what is started.
    #[must_use]
    pub fn is_about_starts(&self) -> bool {
        self.programs.is_some() || self.gate.mode != gate::Mode::Off || !self.background.is_empty()
    }

    /// Whether the name of a program must mean what it means to the operator: by it a start is refused or not.
    #[must_use]
    pub fn goes_by_names(&self) -> bool {
        self.programs.is_some() || self.gate.mode == gate::Mode::Enforce
    }
}

/// What is shown of the output of a command that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveOutput {
    /// What there is.
    #[default]
    Shown,
    /// Its size alone; the text comes with the end.
    Withheld,
}

/// Which ends the trace of a session holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceRule {
    /// Those of commands in the background; one in the foreground leaves nothing on disk.
    #[default]
    Background,
    /// All, those in the foreground as lines of the type `finished`.
    All,
}
