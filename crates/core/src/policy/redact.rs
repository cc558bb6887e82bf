//! Masks secrets in text: values that are known, and public formats of tokens and keys.
//!
//! A mask has the length of what it hides, so that offsets, cuts and counts mean the same with it and without it. Where
//! nothing is found a megabyte costs about 5 ms.

use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::credentials::SHORTEST;
use super::shapes::{Found, SHAPES};

/// Stands for each byte of a secret.
const MASK: u8 = b'*';

/// What a known value is called in counts.
const KNOWN: &str = "environment";

/// The fewest bytes of a known value that are taken for its beginning, or its end, where the text is cut.
const FEWEST: usize = 4;

/// The longest word, in bytes, that is taken for the rest of a token.
const LONGEST_WORD: usize = 512;

/// How much text before and after a part of an output decides what is secret in it, in bytes.
pub const CONTEXT: usize = super::shapes::BLOCK;

/// How many secrets were masked, by pattern.
pub type Counts = BTreeMap<&'static str, u64>;

/// Adds counts to others.
pub fn add_up(sum: &mut Counts, counts: Counts) {
    for (name, count) in counts {
        *sum.entry(name).or_default() += count;
    }
}

/// What lies around a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edges {
    /// Text is missing before it, in which a secret may have begun.
    pub cut_before: bool,
    /// Text is missing after it, or will still come.
    pub cut_after: bool,
}

/// Finds and masks secrets. Clones are the same and cheap.
#[derive(Clone, Debug)]
pub struct Redactor {
    anchors: AhoCorasick,
    known: Option<AhoCorasick>,
    values: Vec<Vec<u8>>,
}

impl Redactor {
    /// One that knows the public formats, and these values; values shorter than [`SHORTEST`] are left out.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = Vec<u8>>) -> Redactor {
        let mut values: Vec<Vec<u8>> = values.into_iter().filter(|value| value.len() >= SHORTEST).collect();
        values.sort();
        values.dedup();
        let build = |patterns: &[&[u8]]| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns);
        let anchors: Vec<&[u8]> = SHAPES.iter().map(|shape| shape.anchor.as_bytes()).collect();
        let all: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        Redactor {
            anchors: build(&anchors).expect("a table of a few short words"),
            // Too many for one automaton (billions of bytes) is no environment.
            known: (!all.is_empty()).then(|| build(&all).ok()).flatten(),
            values,
        }
    }

    /// Masks what is secret in a text that is whole.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.mask(&mut bytes, Edges::default());
        // Masks are ASCII, and secrets by their formats are too; a known value is bytes of whole characters.
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Masks what is secret in bytes, and where they are cut what may be a part of a secret.
    pub fn mask(&self, bytes: &mut [u8], edges: Edges) -> Counts {
        let all = 0..bytes.len();
        self.mask_part(bytes, all, edges)
    }

    /// As [`Redactor::mask`]; what is counted is what touches this part, and the rest is there to decide by.
    pub fn mask_part(&self, bytes: &mut [u8], part: Range<usize>, edges: Edges) -> Counts {
        let findings = self.find(bytes, edges);
        let mut counts = Counts::new();
        for mark in findings.marks {
            if mark.from < part.end && mark.to > part.start {
                *counts.entry(mark.name).or_default() += 1;
            }
            cover(&mut bytes[mark.from..mark.to]);
        }
        if edges.cut_after {
            cover(&mut bytes[findings.open..]);
        }
        counts
    }

    fn find(&self, bytes: &[u8], edges: Edges) -> Findings {
        let plain = Plain::of(bytes);
        let text = plain.as_ref().map_or(bytes, |plain| &plain.text);
        let (mut marks, mut open, mut needed) = (Vec::new(), text.len(), text.len());
        let mut from = 0;
        while let Some(hit) = self.anchors.find(Input::new(text).span(from..text.len())) {
            from = hit.start() + 1;
            let shape = &SHAPES[hit.pattern().as_usize()];
            match shape.look(text, hit.start()) {
                Found::No => {}
                Found::Secret(range) => {
                    from = range.end.max(from);
                    if range.end == text.len() {
                        needed = needed.min(hit.start());
                    }
                    marks.push(Mark { name: shape.name, from: range.start, to: range.end });
                }
                Found::Open(start) => {
                    open = open.min(start);
                    needed = needed.min(hit.start());
                }
            }
        }
        from = 0;
        while let Some(hit) = self.known.as_ref().and_then(|known| known.find(Input::new(text).span(from..text.len())))
        {
            from = hit.start() + 1;
            marks.push(Mark { name: KNOWN, from: hit.start(), to: hit.end() });
        }
        if edges.cut_after {
            open = open.min(text.len() - self.beginning(text));
        }
        if edges.cut_before {
            let to = self.rest(text);
            marks.extend((to > 0).then_some(Mark { name: "cut", from: 0, to }));
        }
        if let Some(plain) = &plain {
            for mark in &mut marks {
                (mark.from, mark.to) = (plain.at(mark.from), plain.at(mark.to - 1) + 1);
            }
            let end = text.len();
            let place = |index: usize| if index < end { plain.at(index) } else { bytes.len() };
            (open, needed) = (place(open), place(needed));
        }
        Findings { marks, open, needed }
    }

    /// How many bytes at the end are the beginning of a known value.
    fn beginning(&self, text: &[u8]) -> usize {
        let of = |value: &Vec<u8>| {
            let most = (value.len() - 1).min(text.len());
            (FEWEST..=most).rev().find(|length| text.ends_with(&value[..*length])).unwrap_or(0)
        };
        self.values.iter().map(of).max().unwrap_or(0)
    }

    /// How many bytes at the start are the rest of a secret that began before: the end of a known value, or a word so
    /// long that it may be the rest of a token.
    fn rest(&self, text: &[u8]) -> usize {
        let of = |value: &Vec<u8>| {
            let most = (value.len() - 1).min(text.len());
            (FEWEST..=most).rev().find(|length| text.starts_with(&value[value.len() - length..])).unwrap_or(0)
        };
        let known = self.values.iter().map(of).max().unwrap_or(0);
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'=');
        let word = text.iter().take_while(|byte| is_word(byte)).count();
        known.max(if (SHORTEST..=LONGEST_WORD).contains(&word) { word } else { 0 })
    }
}

/// What was found in a text.
struct Findings {
    marks: Vec<Mark>,
    /// From where on bytes may belong to a secret whose end has not come.
    open: usize,
    /// Where the first one begins that the text's end cuts off: what follows is decided by it.
    needed: usize,
}

#[derive(Debug)]
struct Mark {
    name: &'static str,
    from: usize,
    to: usize,
}

/// Line breaks stay, so that lines are the same lines.
fn cover(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = MASK);
}

/// Bytes without what a cleaned text does not show, so that an escape sequence inside a secret hides nothing of it.
struct Plain {
    text: Vec<u8>,
    /// Where each byte of `text` stands in the original.
    at: Vec<u32>,
}

impl Plain {
    /// None where there is nothing to leave out, which is the rule.
    fn of(bytes: &[u8]) -> Option<Plain> {
        let is_hidden = |byte: &u8| (*byte < 0x20 && !matches!(byte, b'\n' | b'\r' | b'\t')) || *byte == 0x7f;
        if u32::try_from(bytes.len()).is_err() || !bytes.iter().any(is_hidden) {
            return None;
        }
        let mut plain = Plain { text: Vec::with_capacity(bytes.len()), at: Vec::with_capacity(bytes.len()) };
        let mut state = Escape::None;
        for (at, byte) in (0..).zip(bytes) {
            state = match (state, *byte) {
                (_, 0x1b) => Escape::Begun,
                // A line break ends every sequence, as it does for the cleaner.
                (Escape::Begun, b'[') => Escape::Control,
                (Escape::Begun, b']' | b'P' | b'X' | b'^' | b'_') => Escape::Text,
                (Escape::Begun, 0x20..=0x2f) => Escape::Begun,
                (Escape::Control, 0x20..=0x3f) => Escape::Control,
                (Escape::Text, byte) if byte != 0x07 && byte != b'\n' => Escape::Text,
                (Escape::Begun | Escape::Control | Escape::Text, byte) if byte != b'\n' => Escape::None,
                (_, byte) => {
                    if !is_hidden(&byte) {
                        plain.text.push(byte);
                        plain.at.push(at);
                    }
                    Escape::None
                }
            };
        }
        Some(plain)
    }

    fn at(&self, index: usize) -> usize {
        self.at.get(index).map_or(0, |at| *at as usize)
    }
}

#[derive(Clone, Copy)]
enum Escape {
    None,
    Begun,
    Control,
    Text,
}

/// Masks output as it comes. What may be the beginning of a secret is held back until it is known what it is; where
/// the chunks are cut makes no difference.
#[derive(Debug, Default)]
pub struct Stream {
    /// What was given out already and can still decide what follows, and what is held back.
    seen: Vec<u8>,
    /// How much of `seen` was given out.
    given: usize,
    cut_before: bool,
}

impl Stream {
    /// At the start of an output, or with `context` before the first chunk; `cut`: more is missing before that.
    #[must_use]
    pub fn after(context: Vec<u8>, cut: bool) -> Stream {
        Stream { given: context.len(), seen: context, cut_before: cut }
    }

    /// Takes the next bytes and gives what can be shown by now.
    pub fn push(&mut self, redactor: &Redactor, bytes: &[u8]) -> (Vec<u8>, Counts) {
        self.seen.extend_from_slice(bytes);
        self.give(redactor, true)
    }

    /// The end of the output: what is held back is shown, as far as it is no secret.
    pub fn finish(&mut self, redactor: &Redactor) -> (Vec<u8>, Counts) {
        self.give(redactor, false)
    }

    /// What follows is missing: what is held back is masked, and so is what may be the rest of it.
    pub fn cut(&mut self, redactor: &Redactor) -> (Vec<u8>, Counts) {
        let (mut bytes, given) = (std::mem::take(&mut self.seen), self.given);
        let part = given..bytes.len();
        let edges = Edges { cut_before: self.cut_before, cut_after: true };
        let counts = redactor.mask_part(&mut bytes, part, edges);
        *self = Stream::after(Vec::new(), true);
        (bytes.split_off(given), counts)
    }

    /// How many bytes are held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.seen.len() - self.given
    }

    fn give(&mut self, redactor: &Redactor, more: bool) -> (Vec<u8>, Counts) {
        let edges = Edges { cut_before: self.cut_before, cut_after: more };
        let findings = redactor.find(&self.seen, edges);
        let until = if more { findings.open.max(self.given) } else { self.seen.len() };
        let mut shown = self.seen[..until].to_vec();
        let mut counts = Counts::new();
        for mark in findings.marks.iter().filter(|mark| mark.to > self.given && mark.from < until) {
            // A secret that goes on is counted where it begins.
            if mark.from >= self.given {
                *counts.entry(mark.name).or_default() += 1;
            }
            cover(&mut shown[mark.from..mark.to.min(until)]);
        }
        let shown = shown.split_off(self.given);
        self.given = until;
        self.forget(redactor, findings.needed);
        (shown, counts)
    }

    /// Drops what cannot decide anything any more: all but the last line, what a secret begins in that goes on, and as
    /// much as a value is long.
    fn forget(&mut self, redactor: &Redactor, needed: usize) {
        let longest = redactor.values.iter().map(Vec::len).max().unwrap_or(0);
        let line = self.seen[..self.given].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let keep = line.min(needed).min(self.given.saturating_sub(longest)).max(self.given.saturating_sub(CONTEXT));
        if keep > 0 {
            self.seen.drain(..keep);
            self.given -= keep;
            self.cut_before = false;
        }
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
