//! Looks for secrets in an output byte by byte, so that it makes no difference how it comes: each byte is looked at once,
//! and what has to be kept is bounded.

use std::sync::LazyLock;

use super::credentials::SHORTEST;
use super::known::{KNOWN, Known, LONGEST_HIDDEN, LONGEST_WORD, Redrawn, Values, is_ignored};
use super::plain::{Part, Plain};
use super::redact::Mark;
use super::shapes::{GLUED, SHAPES, Track};
use super::words::{At, Words};

/// How all formats begin.
static ANCHORS: LazyLock<Anchors> = LazyLock::new(|| {
    let words = Words::new(SHAPES.iter().map(|shape| shape.anchor.as_bytes()));
    let mut masked = vec![Masked::Not; words.len()];
    for shape in SHAPES.iter().filter(|shape| shape.masks_anchor()) {
        for at in words.path(shape.anchor.as_bytes()) {
            let masks = if shape.is_distinctive() { Masked::Anywhere } else { Masked::AsWord };
            masked[at as usize] = masked[at as usize].max(masks);
        }
    }
    Anchors { words, masked }
});

struct Anchors {
    words: Words,
    /// For each beginning of an anchor, whether it is masked if it goes on.
    masked: Vec<Masked>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Masked {
    Not,
    AsWord,
    Anywhere,
}

/// How many of the last bytes are kept: an anchor, and what tells whether a word begins with it.
const RECENT: usize = 64;

/// Looks for secrets in one text.
#[derive(Clone, Debug)]
struct Machine {
    /// The last bytes and where they stand, in a ring.
    recent: [(u8, u64); RECENT],
    count: usize,
    anchor: At,
    values: Values,
    tracks: Vec<Track>,
    rest: Option<Beginning>,
    #[cfg(test)]
    work: u64,
}

/// The beginning of a text before which something is missing: it may be the rest of a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Beginning {
    /// How long the word is with which the text begins, and where it ends.
    word: Option<(usize, u64)>,
    /// Known values, and how much of them came if the text goes on as they do.
    values: Vec<(usize, usize)>,
    begun: bool,
    from: u64,
    /// Whether the first line has ended; until then a carriage return begins it anew.
    is_past: bool,
    /// A carriage return came, and nothing after it yet.
    returned: bool,
}

impl Machine {
    fn new(cut_before: bool) -> Machine {
        let rest = cut_before.then(|| Beginning { word: Some((0, 0)), ..Beginning::default() });
        Machine {
            recent: [(0, 0); RECENT],
            count: 0,
            anchor: 0,
            values: Values::default(),
            tracks: Vec::new(),
            rest,
            #[cfg(test)]
            work: 0,
        }
    }

    fn step(&mut self, known: &Known, byte: u8, at: u64, marks: &mut Vec<Mark>) {
        #[cfg(test)]
        {
            self.work += 1 + self.tracks.len() as u64;
        }
        if !self.tracks.is_empty() {
            self.tracks.retain_mut(|track| track.step(byte, at, marks));
        }
        self.recent[self.count % RECENT] = (byte, at);
        self.count += 1;
        self.anchor = ANCHORS.words.step(self.anchor, byte);
        if self.anchor != 0 {
            for shape in ANCHORS.words.ends(self.anchor) {
                self.begin(shape, at, marks);
            }
        }
        if !is_ignored(byte) {
            self.values.step(known, byte, at, marks);
        }
        if let Some(rest) = &mut self.rest
            && !rest.step(known, byte, at, marks)
        {
            self.rest = None;
        }
    }

    /// An anchor ends here.
    fn begin(&mut self, shape: usize, at: u64, marks: &mut Vec<Mark>) {
        let anchor = SHAPES[shape].anchor.len();
        if SHAPES[shape].anchor.starts_with("-----") {
            let (ends, start) = (!SHAPES[shape].anchor.ends_with(' '), self.back(anchor).1);
            self.tracks.retain_mut(|track| track.meets(ends, start, marks));
        }
        let skipped = match () {
            () if !SHAPES[shape].masks_anchor() || self.is_word(anchor) => 0,
            () if SHAPES[shape].is_distinctive() => GLUED,
            () => return,
        };
        if !self.tracks.iter().any(|track| track.contains(shape)) {
            self.tracks.extend(Track::new(shape, self.back(anchor - skipped).1, at + 1));
        }
    }

    /// The byte so many bytes ago, of which the last one is 1.
    fn back(&self, count: usize) -> (u8, u64) {
        self.recent[(self.count - count) % RECENT]
    }

    /// Whether the last so many bytes stand as a word may: not behind a letter or digit, unless that is the end of an escape,
    /// such as `\n`, `\u000a`, `%3D` or that of a color.
    fn is_word(&self, length: usize) -> bool {
        let before = |count: usize| if length + count <= self.count { self.back(length + count).0 } else { 0 };
        let are =
            |range: std::ops::RangeInclusive<usize>, is: fn(&u8) -> bool| range.into_iter().all(|at| is(&before(at)));
        let hex: fn(&u8) -> bool = u8::is_ascii_hexdigit;
        let color: fn(&u8) -> bool = |byte| byte.is_ascii_digit() || *byte == b';';
        !before(1).is_ascii_alphanumeric()
            || before(2) == b'\\'
            || (are(1..=2, hex) && (before(3) == b'%' || (before(3) == b'x' && before(4) == b'\\')))
            || (are(1..=3, u8::is_ascii_digit) && before(4) == b'\\')
            || (are(1..=4, hex) && before(5) == b'u' && before(6) == b'\\')
            || (before(1) == b'm' && (2..=20).find(|at| !color(&before(*at))).is_some_and(|at| before(at) == b'['))
    }

    /// From where on what came may be masked and is not yet; `now` where there is nothing.
    fn open(&self, now: u64) -> u64 {
        let tracks = self.tracks.iter().map(|track| track.open(now)).min();
        let anchor = ANCHORS.words.beginnings(self.anchor).filter_map(|at| {
            let length = ANCHORS.words.depth(at);
            let skipped = match ANCHORS.masked[at as usize] {
                Masked::Not => return None,
                _ if self.is_word(length) => 0,
                Masked::Anywhere if length > GLUED => GLUED,
                _ => return None,
            };
            Some(self.back(length - skipped).1)
        });
        let rest = self.rest.as_ref().and_then(Beginning::open);
        [Some(now), tracks, anchor.min(), self.values.open(), rest].into_iter().flatten().min().unwrap_or(now)
    }

    /// Masks everything that may be masked up to here.
    fn give_up(&mut self, to: u64, marks: &mut Vec<Mark>) {
        let from = self.open(to);
        if from < to {
            marks.push(Mark { name: KNOWN, from, to, fresh: false });
        }
        self.tracks.iter_mut().for_each(|track| track.skip(to));
        self.values.skip(to);
        self.recent.iter_mut().for_each(|(_, at)| *at = (*at).max(to));
        if let Some(rest) = &mut self.rest {
            rest.from = rest.from.max(to);
        }
    }

    fn finish(&mut self, marks: &mut Vec<Mark>) {
        self.tracks.drain(..).for_each(|track| track.finish(marks));
        if let Some(mut rest) = self.rest.take() {
            rest.end_word(marks);
        }
    }

    /// Whether the same follows from both whatever comes, where the last byte was a line break.
    fn is_as(&self, other: &Machine) -> bool {
        (self.anchor, &self.values, &self.tracks, &self.rest)
            == (other.anchor, &other.values, &other.tracks, &other.rest)
            && self.tracks.is_empty()
    }
}

impl Beginning {
    /// Takes the next byte; whether it can still be the rest of anything.
    fn step(&mut self, known: &Known, byte: u8, at: u64, marks: &mut Vec<Mark>) -> bool {
        self.is_past |= byte == b'\n';
        self.returned |= byte == b'\r';
        let anew = !self.is_past && !is_ignored(byte) && std::mem::take(&mut self.returned);
        if anew && self.word.is_none() {
            self.word = Some((0, at));
            if self.values.is_empty() {
                self.from = at;
            }
        }
        let is_word = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'=');
        match &mut self.word {
            Some((length, end)) if is_word && *length < LONGEST_WORD => (*length, *end) = (*length + 1, at + 1),
            Some(_) if is_word => self.word = None,
            Some(_) => self.end_word(marks),
            None => {}
        }
        if !is_ignored(byte) {
            if !std::mem::replace(&mut self.begun, true) {
                self.values = known.rests(byte).collect();
            } else {
                self.values.retain_mut(|(value, came)| {
                    let goes_on = known.value(*value).get(*came) == Some(&byte);
                    *came += 1;
                    goes_on
                });
                if anew {
                    self.values.extend(known.rests(byte));
                }
            }
            if self.values.iter().any(|(value, came)| known.value(*value).len() == *came) {
                marks.push(Mark { name: "cut", from: self.from, to: at + 1, fresh: self.from == 0 });
                self.from = at + 1;
            }
            self.values.retain(|(value, came)| known.value(*value).len() > *came);
        }
        self.word.is_some() || !self.values.is_empty() || !self.is_past
    }

    fn end_word(&mut self, marks: &mut Vec<Mark>) {
        if let Some((length, to)) = self.word.take()
            && length >= SHORTEST
            && to > self.from
        {
            marks.push(Mark { name: "cut", from: self.from, to, fresh: self.from == 0 });
            self.from = to;
        }
    }

    fn open(&self) -> Option<u64> {
        (self.word.is_some_and(|(length, _)| length > 0) || !self.values.is_empty()).then_some(self.from)
    }
}

/// Looks for secrets in an output, as it came and as its cleaned text has it.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    at: u64,
    plain: Plain,
    /// For the cleaned text, and for what came as long as that is not the same.
    clean: Machine,
    raw: Option<Box<Machine>>,
    redrawn: Redrawn,
    /// How many bytes came since the last one of the text.
    hidden: u64,
}

impl Scan {
    pub(super) fn new(cut_before: bool) -> Scan {
        Scan {
            at: 0,
            plain: Plain::default(),
            clean: Machine::new(cut_before),
            raw: None,
            redrawn: Redrawn::default(),
            hidden: 0,
        }
    }

    /// Takes the next bytes; adds what is to be masked.
    pub(super) fn push(&mut self, known: &Known, bytes: &[u8], marks: &mut Vec<Mark>) {
        bytes.iter().for_each(|byte| self.step(known, *byte, marks));
    }

    fn step(&mut self, known: &Known, byte: u8, marks: &mut Vec<Mark>) {
        let at = self.at;
        self.at += 1;
        let waited = self.plain.waits();
        let part = self.plain.take(byte, at);
        if let Part::Both(lead) | Part::Before(lead) = part {
            self.show(known, 0xc2, lead, marks);
        }
        if let Part::Shown | Part::Both(_) = part {
            self.hidden = 0;
            self.show(known, byte, at, marks);
        }
        self.redrawn.give_up_line(self.at, marks);
        let is_hidden = match part {
            Part::Hidden => true,
            Part::Before(_) => self.plain.waits().is_none(),
            Part::Shown | Part::Both(_) | Part::Waits => false,
        };
        if is_hidden {
            self.hidden += 1;
            if self.raw.is_none() {
                let mut raw = self.clean.clone();
                if let (Part::Hidden, Some(lead)) = (part, waited) {
                    raw.step(known, 0xc2, lead, marks);
                }
                self.raw = Some(Box::new(raw));
            }
            if self.hidden.is_multiple_of(LONGEST_HIDDEN) {
                self.clean.give_up(at, marks);
                self.redrawn.give_up(at, marks);
            }
        }
        if let Some(raw) = &mut self.raw {
            raw.step(known, byte, at, marks);
            if byte == b'\n' && raw.is_as(&self.clean) {
                self.raw = None;
            }
        }
    }

    /// A byte of the cleaned text.
    fn show(&mut self, known: &Known, byte: u8, at: u64, marks: &mut Vec<Mark>) {
        self.clean.step(known, byte, at, marks);
        self.redrawn.step(known, byte, at, marks);
    }

    /// From where on what came may still be masked.
    pub(super) fn open(&self) -> u64 {
        let machines = [Some(&self.clean), self.raw.as_deref()].into_iter().flatten();
        let waits = self.plain.waits().unwrap_or(self.at);
        let redrawn = self.redrawn.open().unwrap_or(self.at);
        machines.map(|machine| machine.open(self.at)).min().unwrap_or(self.at).min(waits).min(redrawn)
    }

    /// How much came.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The end of the output.
    pub(super) fn finish(&mut self, known: &Known, marks: &mut Vec<Mark>) {
        if let Some(lead) = self.plain.waits() {
            self.show(known, 0xc2, lead, marks);
        }
        self.clean.finish(marks);
        if let Some(raw) = &mut self.raw {
            raw.finish(marks);
        }
    }

    /// How much was done: looks at a byte.
    #[cfg(test)]
    pub(super) fn work(&self) -> u64 {
        self.clean.work + self.raw.as_ref().map_or(0, |raw| raw.work)
    }
}
