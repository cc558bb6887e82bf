//! Rows and cells, and the one rule that says which cell of a row is best.

use std::collections::BTreeMap;

use crate::peers::Kind;

/// Which way a score is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The higher one.
    More,
    /// The lower one.
    Less,
    /// The lower one, measured: so near to the best as `NEAR` counts as best.
    Lower,
    /// The higher one, measured.
    Higher,
}

/// Measured figures this near to a better one are no worse. The share is chosen, it does not come from the data.
pub const NEAR: f64 = 0.05;

/// What one tool did.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// In words.
    pub text: String,
    /// What is compared; none where the tool has no such thing, it failed, or the row is only shown.
    pub score: Option<f64>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of its group.
    pub group: &'static str,
    /// What was asked.
    pub what: String,
    /// The check that decided.
    pub check: String,
    /// Which way is better.
    pub better: Better,
    /// What each tool did.
    pub cells: BTreeMap<Kind, Cell>,
}

impl Cell {
    /// A cell with something to compare.
    pub fn new(text: impl Into<String>, score: f64) -> Cell {
        Cell { text: text.into(), score: Some(score) }
    }

    /// A whole number that speaks for itself.
    pub fn count(count: usize) -> Cell {
        Cell::new(count.to_string(), count as f64)
    }

    /// Right or not, with what was seen.
    pub fn right(right: bool, text: impl Into<String>) -> Cell {
        Cell::new(text, f64::from(u8::from(right)))
    }

    /// Nothing to compare: the tool has no such thing, or the row is only shown.
    pub fn none(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), score: None }
    }
}

impl Row {
    /// Whether there is anything to compare.
    pub fn is_scored(&self) -> bool {
        self.best().is_some()
    }

    /// The best score; none where no tool has one.
    fn best(&self) -> Option<f64> {
        let scores = self.cells.values().filter_map(|cell| cell.score);
        match self.better {
            Better::More | Better::Higher => scores.max_by(f64::total_cmp),
            Better::Less | Better::Lower => scores.min_by(f64::total_cmp),
        }
    }

    /// Whether no tool did better.
    pub fn is_best(&self, kind: Kind) -> bool {
        let score = self.cells.get(&kind).and_then(|cell| cell.score);
        let (Some(score), Some(best)) = (score, self.best()) else { return false };
        match self.better {
            Better::More | Better::Less => score.total_cmp(&best).is_eq(),
            Better::Lower => score <= best * (1.0 + NEAR),
            Better::Higher => score >= best * (1.0 - NEAR),
        }
    }

    /// The tools that did better than one; those that are best where that one has nothing to show.
    pub fn better_than(&self, kind: Kind) -> Vec<Kind> {
        if self.is_best(kind) {
            return Vec::new();
        }
        let mine = self.cells.get(&kind).and_then(|cell| cell.score);
        let beats = |score: f64| match (mine, self.better) {
            (None, _) => true,
            (Some(mine), Better::More) => score > mine,
            (Some(mine), Better::Less) => score < mine,
            (Some(mine), Better::Higher) => mine < score * (1.0 - NEAR),
            (Some(mine), Better::Lower) => mine > score * (1.0 + NEAR),
        };
        let with_scores = self.cells.iter().filter_map(|(kind, cell)| Some((*kind, cell.score?)));
        with_scores.filter(|(_, score)| beats(*score)).map(|(kind, _)| kind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(better: Better, outlast: Option<f64>, nq: Option<f64>) -> Row {
        let cell = |score| Cell { text: String::new(), score };
        let cells = BTreeMap::from([(Kind::Outlast, cell(outlast)), (Kind::Nq, cell(nq))]);
        Row { group: "", what: String::new(), check: String::new(), better, cells }
    }

    #[test]
    fn a_peer_that_is_better_is_said_to_be() {
        let row = row(Better::Less, Some(2.0), Some(1.0));
        assert!(row.is_best(Kind::Nq) && !row.is_best(Kind::Outlast));
        assert_eq!(row.better_than(Kind::Outlast), [Kind::Nq]);
    }

    #[test]
    fn equal_ones_are_both_best_and_measured_ones_when_they_are_near() {
        let counted = row(Better::More, Some(1.0), Some(1.0));
        assert!(counted.is_best(Kind::Nq) && counted.is_best(Kind::Outlast));
        let near = row(Better::Lower, Some(1.04), Some(1.0));
        assert!(near.is_best(Kind::Outlast) && near.better_than(Kind::Outlast).is_empty());
        let mut three = row(Better::Lower, Some(1.12), Some(1.0));
        three.cells.insert(Kind::Shell, Cell::new("", 1.09));
        assert_eq!(three.better_than(Kind::Outlast), [Kind::Nq]);
        let exact = row(Better::Less, Some(1.04), Some(1.0));
        assert_eq!(exact.better_than(Kind::Outlast), [Kind::Nq]);
    }

    #[test]
    fn who_has_no_such_thing_is_never_best() {
        let row = row(Better::More, None, Some(0.0));
        assert!(!row.is_best(Kind::Outlast));
        assert_eq!(row.better_than(Kind::Outlast), [Kind::Nq]);
    }
}
