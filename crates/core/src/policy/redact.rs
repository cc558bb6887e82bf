//! Masks secrets in text: values that are known, and public formats of tokens and keys.
//!
//! A mask has the length of what it hides, so that offsets, cuts and counts mean the same with it and without it. The work
//! grows with the bytes that come and with nothing else, and what is held back of them is bounded.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::known::Known;
use super::scan::Scan;

/// Stands for each byte of a secret.
const MASK: u8 = b'*';

/// How much text before and after a part of an output decides what is secret in it, in bytes.
pub const CONTEXT: usize = 64 * 1024;

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
    known: Arc<Known>,
}

impl Redactor {
    /// One that knows the public formats, and these values; values shorter than [`SHORTEST`](super::credentials::SHORTEST)
    /// are left out. White space around a value makes no difference.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = Vec<u8>>) -> Redactor {
        Redactor { known: Arc::new(Known::new(values)) }
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
        let mut scan = Scan::new(edges.cut_before);
        let mut marks = Vec::new();
        scan.push(&self.known, bytes, &mut marks);
        if edges.cut_after {
            cover(&mut bytes[place(scan.open(), 0)..]);
        } else {
            scan.finish(&self.known, &mut marks);
        }
        let mut tally = Tally::default();
        for mark in marks {
            let (from, to) = (place(mark.from, 0), place(mark.to, 0));
            cover(&mut bytes[from..to]);
            tally.add(&mark, from < part.end && to > part.start);
        }
        tally.counts
    }
}

/// Bytes that are to be masked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// What is counted.
    pub(super) name: &'static str,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whether a secret begins with it; else it goes on.
    pub(super) fresh: bool,
}

/// Counts secrets, each once.
#[derive(Debug, Default)]
struct Tally {
    counts: Counts,
    /// How far was masked.
    to: u64,
    /// Whether the secret that is masked now was counted.
    counted: bool,
}

impl Tally {
    /// Adds a mark; `seen`: it is of what is counted.
    fn add(&mut self, mark: &Mark, seen: bool) {
        // What is in a secret that was found is none of its own.
        if mark.fresh && mark.from >= self.to {
            self.counted = false;
        }
        if seen && !self.counted {
            self.counted = true;
            *self.counts.entry(mark.name).or_default() += 1;
        }
        self.to = self.to.max(mark.to);
    }
}

/// Where in bytes that begin at `base` an offset is.
fn place(offset: u64, base: u64) -> usize {
    usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX)
}

/// Line breaks stay, so that lines are the same lines.
fn cover(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = MASK);
}

/// Masks output as it comes. What may be the beginning of a secret is held back until it is known what it is; where
/// the chunks are cut makes no difference.
#[derive(Debug)]
pub struct Stream {
    scan: Scan,
    /// What is held back, behind bytes that were given out already.
    held: Vec<u8>,
    /// The offset of its first byte.
    base: u64,
    /// The offset up to which was given out.
    given: u64,
    tally: Tally,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream::begin(false)
    }
}

impl Stream {
    fn begin(cut_before: bool) -> Stream {
        Stream { scan: Scan::new(cut_before), held: Vec::new(), base: 0, given: 0, tally: Tally::default() }
    }

    /// Behind `context`, which was given out already; `cut`: more is missing before that.
    #[must_use]
    pub fn after(redactor: &Redactor, context: &[u8], cut: bool) -> Stream {
        let mut stream = Stream::begin(cut);
        stream.given = context.len() as u64;
        stream.push(redactor, context);
        stream
    }

    /// Takes the next bytes and gives what can be shown by now.
    pub fn push(&mut self, redactor: &Redactor, bytes: &[u8]) -> (Vec<u8>, Counts) {
        self.held.extend_from_slice(bytes);
        let mut marks = Vec::new();
        self.scan.push(&redactor.known, bytes, &mut marks);
        self.give(&marks, self.scan.open())
    }

    /// The end of the output: what is held back is shown, as far as it is no secret.
    pub fn finish(&mut self, redactor: &Redactor) -> (Vec<u8>, Counts) {
        let mut marks = Vec::new();
        self.scan.finish(&redactor.known, &mut marks);
        self.give(&marks, self.scan.at())
    }

    /// What follows is missing: what is held back is masked, and so is what may be the rest of it.
    pub fn cut(&mut self) -> (Vec<u8>, Counts) {
        let mark = Mark { name: "cut", from: self.scan.open(), to: self.scan.at(), fresh: true };
        let marks = if mark.to > mark.from { vec![mark] } else { Vec::new() };
        let rest = self.give(&marks, self.scan.at());
        *self = Stream::begin(true);
        rest
    }

    /// How many bytes are held back.
    #[must_use]
    pub fn held(&self) -> usize {
        place(self.scan.at(), self.given)
    }

    /// Masks what was found, and gives what was not given yet, up to here.
    fn give(&mut self, marks: &[Mark], until: u64) -> (Vec<u8>, Counts) {
        for mark in marks {
            cover(&mut self.held[place(mark.from, self.base)..place(mark.to, self.base)]);
            self.tally.add(mark, mark.to > self.given);
        }
        let until = until.max(self.given);
        let mut shown: Vec<u8> = self.held.drain(..place(until, self.base).min(self.held.len())).collect();
        let old = place(self.given, self.base).min(shown.len());
        self.base += shown.len() as u64;
        self.given = until;
        (shown.split_off(old), std::mem::take(&mut self.tally.counts))
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
