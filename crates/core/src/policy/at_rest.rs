//! What is stored of commands: as it came, or without secrets.

use serde::Deserialize;

use super::credentials::is_secret;
use super::redact::{Edges, Redactor};
use crate::request::{OsText, Request};

/// What is stored of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtRest {
    /// Everything as it came, in private files.
    #[default]
    Raw,
    /// Secrets are masked before anything is held or stored, so that nobody can read them later.
    Redacted,
}

impl Request {
    /// What masks secrets before anything of it is stored; none where it is stored as it comes.
    #[must_use]
    pub fn redactor(&self) -> Option<Redactor> {
        let secrets = self.conceal.as_ref()?;
        let named = self.env.iter().filter(|(name, value)| is_secret(&name.lossy(), &value.0)).map(|(_, value)| value);
        Some(Redactor::new(secrets.iter().chain(named).map(|secret| secret.0.clone())))
    }
}

impl Redactor {
    /// The request as it may be stored.
    #[must_use]
    pub fn conceal(&self, request: &Request) -> Request {
        Request {
            argv: request.argv.iter().map(|word| self.word(word)).collect(),
            cwd: self.word(&request.cwd),
            env: Vec::new(),
            label: request.label.as_deref().map(|label| self.text(label)),
            conceal: Some(Vec::new()),
            track_changes: request.track_changes.as_ref().map(|dir| self.word(dir)),
            // One with a secret in it would mean something else with a mask in its place.
            notify: request.notify.iter().filter(|one| self.text(one) == **one).cloned().collect(),
            ..request.clone()
        }
    }

    /// A word without secrets.
    #[must_use]
    pub fn word(&self, word: &OsText) -> OsText {
        let mut bytes = word.0.clone();
        self.mask(&mut bytes, Edges::default());
        OsText(bytes)
    }
}
