//! Counts of what was done, what was found, and what could not be done.

use std::collections::BTreeMap;

/// All counts of a run, by name.
#[derive(Default)]
pub struct Tally {
    counts: BTreeMap<String, u64>,
    skipped: BTreeMap<String, (u64, String)>,
}

impl Tally {
    /// One more of these.
    pub fn add(&mut self, what: &str) {
        self.add_many(what, 1);
    }

    /// So many more of these.
    pub fn add_many(&mut self, what: &str, count: u64) {
        *self.counts.entry(what.to_owned()).or_default() += count;
    }

    /// Raises a figure to at least this.
    pub fn at_least(&mut self, what: &str, figure: u64) {
        let entry = self.counts.entry(what.to_owned()).or_default();
        *entry = figure.max(*entry);
    }

    /// One more that was drawn and could not be done.
    pub fn skip(&mut self, what: &str, why: &str) {
        let entry = self.skipped.entry(what.to_owned()).or_insert_with(|| (0, why.to_owned()));
        entry.0 += 1;
    }

    /// How many there were.
    pub fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// Name and count of everything whose name begins so, without that beginning.
    pub fn group(&self, beginning: &str) -> Vec<(String, u64)> {
        let named = self.counts.iter().filter_map(|(name, count)| Some((name.strip_prefix(beginning)?, count)));
        named.map(|(name, count)| (name.to_owned(), *count)).collect()
    }

    /// What was drawn and could not be done: name, count, reason.
    pub fn skipped(&self) -> Vec<(String, u64, String)> {
        self.skipped.iter().map(|(name, (count, why))| (name.clone(), *count, why.clone())).collect()
    }
}
