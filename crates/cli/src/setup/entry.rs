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
    /// The places where something was added.
    pub added: Vec<String>,
    /// The places where something was taken out.
    pub removed: Vec<String>,
    /// The places that hold something else than ours, which was left alone.
    pub left: Vec<String>,
}

impl Edited {
    /// Whether the text is another one.
    pub fn is_changed(&self) -> bool {
        !self.added.is_empty() || !self.removed.is_empty()
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Done {
    /// What to say of it, one line a file.
    pub lines: Vec<String>,
    /// The places that hold something else than setup writes, and were left alone.
    pub left: Vec<String>,
}

/// Whether a value has all of ours. A person may have added to it, as the host's documentation says how.
pub fn holds(found: &Value, ours: &Value) -> bool {
    match (found, ours) {
        (Value::Object(found), Value::Object(ours)) => ours.iter().all(|(name, value)| found.get(name) == Some(value)),
        (found, ours) => found == ours,
    }
}

/// Why nothing is put beside this value in our place, if it starts another program than ours: then what else is written
/// would speak of tools that are not there.
pub fn foreign(found: &Value, ours: &Value, place: &str) -> Option<String> {
    let program = words(ours).next()?;
    let starts_ours = words(found).any(|word| word == program);
    (!starts_ours).then(|| format!("`{place}` starts another program: give that entry another name"))
}

/// The words of the command that an entry starts, programs without their folders.
fn words(entry: &Value) -> impl Iterator<Item = &str> {
    let one = entry.get("command").and_then(Value::as_str);
    let lists = ["command", "args"].into_iter().filter_map(|name| entry.get(name)?.as_array()).flatten();
    one.into_iter().chain(lists.filter_map(Value::as_str)).map(|word| word.rsplit('/').next().unwrap_or(word))
}

/// How an element of a list relates to ours, the closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// It is ours.
    Same,
    /// It calls the same command, and somebody has changed the rest.
    Changed,
    /// It is of somebody else.
    Other,
}

impl Match {
    /// The closest of the elements to ours.
    pub fn any(list: impl IntoIterator<Item = Value>, ours: &Value) -> Match {
        list.into_iter().map(|found| Match::of(&found, ours)).min().unwrap_or(Match::Other)
    }

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
