//! What an operator may forbid or hide. Every policy is off unless it is asked for.

pub mod credentials;
mod shapes;
pub mod redact;

use serde::Deserialize;

/// The policies of a runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether secrets are masked in everything that is shown: output, command lines, labels. What a command gets, and
    /// what is on disk, is never changed by it.
    pub redact: bool,
    /// Values that are secrets whatever they look like, beside those of the environments of commands that are started.
    pub secrets: Vec<Vec<u8>>,
    /// Whether the output of a command is shown while it runs.
    pub live_output: LiveOutput,
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
