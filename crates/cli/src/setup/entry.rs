//! One thing that stands in a host's settings, whatever their format.

use serde_json::Value;

/// A thing of ours in a file of settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A value under a name, which is the last word of the path.
    Key {
        /// The names from the root of the file.
        path: Vec<&'static str>,
        /// The value.
        value: Value,
    },
    /// An element of a list, beside those of others.
    Element {
        /// The names from the root of the file to the list.
        path: Vec<&'static str>,
        /// The element: a group of hooks.
        value: Value,
    },
}

impl Entry {
    /// Its place, as people write it.
    pub fn place(&self) -> String {
        match self {
            Entry::Key { path, .. } | Entry::Element { path, .. } => path.join("."),
        }
    }
}

/// What a file of settings became.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// The whole new text.
    pub text: String,
    /// The places that were changed.
    pub changed: Vec<String>,
    /// What was found there that is not ours, and left alone: one sentence each.
    pub left: Vec<String>,
}

impl Edited {
    /// Notes a value of somebody else at one of our places.
    pub fn leave(&mut self, entry: &Entry) {
        self.left.push(format!("{} holds something else than setup writes; it is left as it is", entry.place()));
    }
}

/// How an element of a list relates to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// It is ours.
    Same,
    /// It calls the same command, and somebody has changed the rest.
    Changed,
    /// It is of somebody else.
    Other,
}

impl Match {
    /// Compares an element with ours.
    pub fn of(found: &Value, ours: &Value) -> Match {
        if found == ours {
            return Match::Same;
        }
        let wanted = commands(ours);
        if commands(found).iter().any(|command| wanted.contains(command)) { Match::Changed } else { Match::Other }
    }
}

/// The commands of a group of hooks.
fn commands(group: &Value) -> Vec<&str> {
    let hooks = group.get("hooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    hooks.iter().filter_map(|hook| hook.get("command")?.as_str()).collect()
}
