//! Values that are secrets whatever they look like, looked for byte by byte.

use std::collections::VecDeque;

use super::credentials::SHORTEST;
use super::redact::Mark;
use super::words::{At, Words};

/// What a known value is called in counts.
pub(super) const KNOWN: &str = "environment";

/// The fewest bytes of the end of a known value that are taken for it where the text before is missing.
const FEWEST: usize = 4;

/// The longest word, in bytes, that is taken for the rest of a secret where the text before is missing, and as much of a
/// known value.
pub(super) const LONGEST_WORD: usize = 512;

/// How much that a cleaned text does not show can stand inside a secret before what came of it is masked unseen, in bytes.
pub(super) const LONGEST_HIDDEN: u64 = 4096;

/// How much of known values came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Values {
    known: At,
    /// Where the bytes stand that may begin one.
    places: VecDeque<u64>,
}

impl Values {
    /// Takes the next byte that makes a difference.
    pub(super) fn step(&mut self, known: &Known, byte: u8, at: u64, marks: &mut Vec<Mark>) {
        self.known = known.words.step(self.known, byte);
        if self.known == 0 {
            self.places.clear();
            return;
        }
        self.places.push_back(at);
        self.places.drain(..self.places.len() - known.words.depth(self.known));
        if let Some(value) = known.words.ends(self.known).next() {
            let from = self.places[self.places.len() - known.values[value].len()];
            marks.push(Mark { name: KNOWN, from, to: at + 1, fresh: true });
        }
    }

    /// From where on what came may be a known value and is not yet.
    pub(super) fn open(&self) -> Option<u64> {
        self.places.front().copied()
    }

    /// What came before is masked already.
    pub(super) fn skip(&mut self, to: u64) {
        self.places.iter_mut().for_each(|at| *at = (*at).max(to));
    }
}

/// Looks for known values of several lines in a text of whose lines only that is left which follows the last carriage
/// return.
#[derive(Clone, Debug, Default)]
pub(super) struct Redrawn {
    values: Values,
    /// How much had come where the line began, and where that is.
    before: (Values, u64),
    /// Whether that is masked already, because the line is too long.
    given_up: bool,
    /// A carriage return came, and nothing after it yet.
    returned: bool,
}

impl Redrawn {
    /// Takes the next byte of the text.
    pub(super) fn step(&mut self, known: &Known, byte: u8, at: u64, marks: &mut Vec<Mark>) {
        self.returned |= byte == b'\r';
        if !known.has_lines || is_ignored(byte) {
            return;
        }
        if std::mem::take(&mut self.returned) && byte != b'\n' {
            self.values.clone_from(&self.before.0);
            if self.given_up {
                self.values.skip(at);
            }
        }
        self.values.step(known, byte, at, marks);
        if byte == b'\n' {
            self.before.0.clone_from(&self.values);
            self.before.1 = at + 1;
            self.given_up = false;
        }
    }

    /// Masks what came before a line that is too long by now. What goes on behind a carriage return is still found.
    pub(super) fn give_up_line(&mut self, now: u64, marks: &mut Vec<Mark>) {
        let (values, to) = &self.before;
        if now - *to >= LONGEST_HIDDEN
            && !self.given_up
            && let Some(from) = values.open()
        {
            marks.push(Mark { name: KNOWN, from, to: *to, fresh: false });
            self.given_up = true;
        }
    }

    /// Masks everything that may be masked up to here.
    pub(super) fn give_up(&mut self, to: u64, marks: &mut Vec<Mark>) {
        if let Some(from) = self.values.open().filter(|from| *from < to) {
            marks.push(Mark { name: KNOWN, from, to, fresh: false });
        }
        self.values.skip(to);
    }

    pub(super) fn open(&self) -> Option<u64> {
        let before = self.before.0.open().filter(|_| !self.given_up);
        before.into_iter().chain(self.values.open()).min()
    }
}

/// The values that are secrets whatever they look like, each as it is compared.
#[derive(Clone, Debug)]
pub(super) struct Known {
    values: Vec<Vec<u8>>,
    words: Words,
    /// Whether one has several lines.
    has_lines: bool,
}

impl Known {
    /// Values that are too short are left out. White space around them, and the carriage returns of a terminal, make no
    /// difference.
    pub(super) fn new(values: impl IntoIterator<Item = Vec<u8>>) -> Known {
        let compared = |value: Vec<u8>| -> Vec<u8> {
            value.trim_ascii().iter().copied().filter(|byte| !is_ignored(*byte)).collect()
        };
        let mut values: Vec<_> = values.into_iter().map(compared).filter(|value| value.len() >= SHORTEST).collect();
        values.sort();
        values.dedup();
        let has_lines = values.iter().any(|value| value.contains(&b'\n'));
        Known { words: Words::new(values.iter().map(Vec::as_slice)), has_lines, values }
    }

    /// The value of this number, as it is compared.
    pub(super) fn value(&self, number: usize) -> &[u8] {
        &self.values[number]
    }

    /// All ends of values that begin with this byte, with how much came of the value with it.
    pub(super) fn rests(&self, byte: u8) -> impl Iterator<Item = (usize, usize)> {
        self.values.iter().enumerate().flat_map(move |(number, value)| {
            let from = value.len().saturating_sub(LONGEST_WORD).max(1);
            let rests = from..=value.len() - FEWEST;
            rests.filter(move |at| value[*at] == byte).map(move |at| (number, at + 1))
        })
    }
}

/// Whether a byte makes no difference to a known value: control characters, but for what lays text out.
pub(super) fn is_ignored(byte: u8) -> bool {
    (byte < 0x20 && !matches!(byte, b'\n' | b'\t')) || byte == 0x7f
}
