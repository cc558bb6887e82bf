//! Lines of the output of a running command that match what its caller wanted to hear of.

use std::collections::BTreeSet;

use outlast_core::id::CommandId;
use outlast_core::notice::Matches;
use outlast_host::store::command::CommandDir;
use outlast_host::store::understood;
use regex::bytes::RegexSet;

use crate::command::Command;
use crate::error::{Error, Result};
use crate::output::Piece;
use crate::read::{ReadOptions, Reading};
use crate::session::Session;

/// How many expressions may be watched for in one output.
const MOST_PATTERNS: usize = 16;
/// The longest line that is matched as a whole, in bytes.
const LONGEST_LINE: usize = 64 * 1024;
/// How much of an output one look goes through, in bytes; the next one goes on.
const MOST_BYTES: u64 = 8 << 20;

/// What is to be heard of a command.
pub(crate) struct Watched {
    pub(crate) consumer: String,
    patterns: Vec<String>,
    set: RegexSet,
}

/// What a look at a part of an output found.
pub(crate) struct Look {
    pub(crate) matches: Option<Matches>,
    /// The lines before this offset were looked at.
    pub(crate) through: u64,
    /// How far was read.
    pub(crate) read: u64,
    /// Whether that is as far as one look goes.
    pub(crate) cut: bool,
}

/// What is to be heard of a command, if it runs and there is anything.
pub(crate) fn watched(records: &CommandDir) -> Result<Option<Watched>> {
    if records.has_exit()? {
        return Ok(None);
    }
    let Some(asked) = understood(records.request())?.map(|record| record.request) else { return Ok(None) };
    if asked.notify.is_empty() {
        return Ok(None);
    }
    let set = compiled(&asked.notify)?;
    Ok(Some(Watched { consumer: asked.consumer, patterns: asked.notify, set }))
}

/// The expressions as they are looked for.
pub(crate) fn compiled(patterns: &[String]) -> Result<RegexSet> {
    if patterns.len() > MOST_PATTERNS {
        return Err(Error::Usage(format!("at most {MOST_PATTERNS} regular expressions can be watched for")));
    }
    RegexSet::new(patterns).map_err(|error| Error::Usage(format!("what is to be watched for: {error}")))
}

impl Watched {
    /// Looks at the lines that are complete by now, from this offset on, as far as they are shown to this reader.
    pub(crate) async fn look(&self, session: &Session, id: CommandId, from: u64) -> Result<Look> {
        let options = ReadOptions { offset: from, bytes: Some(MOST_BYTES), ..ReadOptions::default() };
        let reading = Command { session: session.clone(), id }.read(options).await?;
        let mut lines =
            Lines { set: &self.set, line: Vec::new(), begins: from, through: from, found: Found::default() };
        let read = lines.read(reading).await?;
        let through = lines.through;
        let cut = read >= from.saturating_add(MOST_BYTES);
        Ok(Look { matches: lines.found.matches(self, session), through, read, cut })
    }
}

#[derive(Default)]
struct Found {
    matches: Matches,
    patterns: BTreeSet<usize>,
}

impl Found {
    fn matches(mut self, watched: &Watched, session: &Session) -> Option<Matches> {
        if self.matches.lines == 0 {
            return None;
        }
        let redactor = session.redactor();
        let shown = |at: &usize| {
            let pattern = watched.patterns.get(*at)?;
            Some(redactor.as_ref().map_or_else(|| pattern.clone(), |redactor| redactor.text(pattern)))
        };
        self.matches.patterns = self.patterns.iter().filter_map(shown).collect();
        Some(self.matches)
    }
}

/// Complete lines as they are read.
struct Lines<'a> {
    set: &'a RegexSet,
    line: Vec<u8>,
    /// Where `line` begins.
    begins: u64,
    /// Where the last line that was looked at ends.
    through: u64,
    found: Found,
}

impl Lines<'_> {
    /// Looks at all that is read, and says where that ends.
    async fn read(&mut self, mut reading: Reading) -> Result<u64> {
        while let Some(piece) = reading.next().await? {
            self.take(&piece);
        }
        Ok(reading.next_offset())
    }

    fn take(&mut self, piece: &Piece) {
        let (mut at, bytes) = match piece {
            Piece::Bytes { offset, bytes, .. } => (*offset, bytes),
            Piece::Gap { offset, bytes, .. } => {
                self.line.clear();
                self.found.matches.missing += bytes;
                (self.begins, self.through) = (offset + bytes, offset + bytes);
                return;
            }
        };
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            at += part.len() as u64;
            if part.ends_with(b"\n") || self.line.len() > LONGEST_LINE {
                self.look();
                self.line.clear();
                (self.begins, self.through) = (at, at);
            }
        }
    }

    fn look(&mut self) {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        // A terminal ends its lines with both.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let matched = self.set.matches(line);
        if !matched.matched_any() {
            return;
        }
        self.found.patterns.extend(matched.iter());
        let matches = &mut self.found.matches;
        if matches.lines == 0 {
            matches.first = self.begins;
        }
        matches.lines += 1;
        matches.set_last(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Missing, Stream};

    fn bytes(offset: u64, text: &str) -> Piece {
        Piece::Bytes { offset, stream: Stream::Merged, at_ms: None, bytes: text.as_bytes().to_vec() }
    }

    /// Covers: O8
    #[test]
    fn o8_complete_lines_are_looked_at_once() {
        let set = RegexSet::new(["^E", "x$"]).expect("expressions");
        let mut lines = Lines { set: &set, line: Vec::new(), begins: 4, through: 4, found: Found::default() };
        let mut state = |pieces: &[Piece]| {
            pieces.iter().for_each(|piece| lines.take(piece));
            let matches = &lines.found.matches;
            (matches.lines, matches.first, matches.last.clone(), matches.missing, lines.through)
        };
        assert_eq!(state(&[bytes(4, "one\nE")]), (0, 0, String::new(), 0, 8));
        assert_eq!(state(&[bytes(9, "x\r\nno E\n")]), (1, 8, "Ex".into(), 0, 17));
        let gap = Piece::Gap { why: Missing::Capped, offset: 19, bytes: 100 };
        assert_eq!(state(&[bytes(17, "E-"), gap, bytes(119, "rest\nEnd\n")]), (2, 8, "End".into(), 100, 128));
        // A line without an end is looked at once it is too long to be kept.
        let long = "E".repeat(LONGEST_LINE + 1);
        assert_eq!(state(&[bytes(128, &long)]).0, 3);
        assert_eq!(lines.found.patterns, BTreeSet::from([0, 1]));
    }
}
