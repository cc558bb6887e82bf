//! What a script says: words `key=value`, and names of groups.

use std::collections::BTreeMap;

use crate::Result;

/// The words of one call.
pub struct Settings {
    keys: BTreeMap<String, String>,
    /// The groups to measure; none means all, and that the documents are written.
    groups: Vec<String>,
}

impl Settings {
    /// Reads them; `known` are the groups that there are.
    pub fn read(words: &[&str], known: &[&str]) -> Result<Settings> {
        let mut settings = Settings { keys: BTreeMap::new(), groups: Vec::new() };
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => {
                    settings.keys.insert(key.to_owned(), value.to_owned());
                }
                None if known.contains(word) => settings.groups.push((*word).to_owned()),
                None => return Err(format!("no group {word}; there are {}", known.join(", ")).into()),
            }
        }
        Ok(settings)
    }

    /// The value of a key that has to be there.
    pub fn get(&self, key: &str) -> Result<&str> {
        self.find(key).ok_or_else(|| format!("{key}=… is missing").into())
    }

    /// The value of a key that may be missing.
    pub fn find(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The same as a number.
    pub fn number(&self, key: &str) -> Result<u64> {
        let text = self.get(key)?;
        text.parse().map_err(|_| format!("{key}={text} is not a number").into())
    }

    /// Whether everything is measured, and written down.
    pub fn is_whole(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether a group is measured.
    pub fn wants(&self, group: &str) -> bool {
        self.is_whole() || self.groups.iter().any(|one| one == group)
    }

    /// What it was measured with and when, for the head of a page.
    pub fn facts(&self) -> Vec<(String, String)> {
        let keys = ["date", "rustc", "commit"].into_iter();
        keys.filter_map(|key| Some((key.to_owned(), self.find(key)?.to_owned()))).collect()
    }
}
