//! `read`: how a command stands, and a bounded part of its output.

use std::collections::VecDeque;

use outlast::{Command, Piece, ReadOptions, Via};
use outlast_core::names::display_line;
use outlast_core::text::clean::clean;
use outlast_core::text::excerpt::{Grep, Tail};
use outlast_core::text::{or_no_output, readable};

use super::arguments::ReadArguments;
use super::call::Call;
use super::reply::{Answer, META_COMMAND, OUTPUT_BYTES, Reply, fenced, last_part};
use crate::exit::Failure;
use crate::view::CommandView;
use crate::words::{self, Reader};

/// The most output that one reply shows, in bytes.
const MOST_BYTES: u64 = 65_536;

/// Reads.
pub async fn read(call: &Call, arguments: ReadArguments) -> Result<Answer, Failure> {
    let usage = |text: &str| Failure::Usage(format!("`read` was called wrongly: {text}"));
    if arguments.head.is_some() && arguments.tail.is_some() {
        return Err(usage("`head` and `tail` exclude each other"));
    }
    if arguments.tail.is_some() && arguments.offset.is_some() {
        return Err(usage("`tail` and `offset` exclude each other"));
    }
    let grep = arguments.grep.as_deref().map(Grep::new).transpose();
    let grep = grep.map_err(|error| usage(&format!("argument `grep`: {error}")))?;
    let command = call.session.command_to_read(&arguments.id).await?;
    let snapshot = command.snapshot().await?;
    let most =
        arguments.bytes.map_or(OUTPUT_BYTES, |bytes| usize::try_from(bytes.min(MOST_BYTES)).unwrap_or(OUTPUT_BYTES));
    let chosen = arguments.head.or(arguments.tail).or(arguments.offset).is_some() || grep.is_some();
    let raw = arguments.raw == Some(true);
    let elsewhere =
        (command.session().id() != call.session.id()).then(|| "it belongs to an earlier session".to_owned());
    let (shown, output, note) = if !chosen && most <= snapshot.output.tail.len().max(OUTPUT_BYTES) && !raw {
        let tail = Tail::of(snapshot.output.bytes, &snapshot.output.tail, most);
        (Some(tail.bytes.len() as u64), tail.text(), String::new())
    } else {
        let part = Part::read(&command, &arguments, grep.as_ref(), most).await?;
        (None, part.text(raw), part.note(snapshot.output.bytes))
    };
    let mut text = words::status_head(&snapshot, elsewhere.as_deref(), shown, Reader::Tools);
    if let Some(line) = call.tells(&command, &snapshot, Via::Read).await {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str(&note);
    if snapshot.stdin_open {
        text.push_str("its standard input is open\n");
    }
    text.push_str(&match or_no_output(&output) {
        empty if empty != output => format!("{empty}\n"),
        output => fenced(last_part(output, 2 * most.max(OUTPUT_BYTES)))?,
    });
    Ok(Reply::text(text).with(META_COMMAND, &CommandView::whole(&snapshot))?.into())
}

/// A part of the output.
struct Part {
    bytes: Vec<u8>,
    /// Offset of the first byte that was looked at, and of the first behind the last.
    range: (u64, u64),
    /// Lines that match, and whether all of them are shown; none without a filter.
    matches: Option<(usize, bool)>,
    problem: Option<String>,
}

impl Part {
    async fn read(
        command: &Command,
        arguments: &ReadArguments,
        grep: Option<&Grep>,
        most: usize,
    ) -> Result<Part, Failure> {
        // A filter looks at everything that was asked for; without one no more is read than can be shown.
        let from_the_start = arguments.head.is_some() || arguments.offset.is_some();
        let bytes = match grep {
            Some(_) => arguments.offset.and(arguments.bytes),
            None => from_the_start.then_some(most as u64),
        };
        let chosen = from_the_start || grep.is_some() || arguments.tail.is_some();
        let offset = match arguments.offset {
            Some(offset) => offset,
            None if chosen => 0,
            None => command.brief().await?.output.bytes.saturating_sub(most as u64),
        };
        let mut reading = command
            .read(ReadOptions { offset, bytes, tail_lines: arguments.tail, head_lines: arguments.head, stream: None })
            .await?;
        let first = reading.next_offset();
        let mut kept = Kept { most, from_the_start, bytes: VecDeque::new(), filter: grep.map(Filter::new) };
        while let Some(piece) = reading.next().await? {
            kept.take(piece);
            // The other calls go on between two pieces of a long log.
            tokio::task::yield_now().await;
        }
        let matches = kept.finish();
        let last = reading.next_offset();
        let bytes: Vec<u8> = kept.bytes.into();
        let range = match (from_the_start, grep) {
            (false, None) => (last.saturating_sub(bytes.len() as u64).max(first), last),
            _ => (first, last),
        };
        Ok(Part { bytes, range, matches, problem: reading.problem().map(display_line) })
    }

    fn text(&self, raw: bool) -> String {
        if raw { String::from_utf8_lossy(&self.bytes).into_owned() } else { readable(&self.bytes) }
    }

    /// What is shown of how much, and where it goes on.
    fn note(&self, total: u64) -> String {
        let (first, last) = self.range;
        let mut text = match self.matches {
            Some((count, true)) => format!("{count} lines match, from offset {first} to {last} of {total}\n"),
            Some((count, false)) => {
                format!("{count} lines match, from offset {first} to {last} of {total}; the last of them are shown\n")
            }
            None => format!("shown: offset {first} to {last} of {total}\n"),
        };
        if let Some(problem) = &self.problem {
            text.push_str(&format!("records incomplete: {problem}\n"));
        }
        text
    }
}

/// Output that is kept while it goes by, bounded: its beginning, or its end.
struct Kept<'a> {
    most: usize,
    from_the_start: bool,
    bytes: VecDeque<u8>,
    filter: Option<Filter<'a>>,
}

impl Kept<'_> {
    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Bytes { bytes, .. } => match &mut self.filter {
                Some(filter) => {
                    let lines = filter.take(&bytes);
                    self.push(&lines);
                }
                None => self.push(&bytes),
            },
            Piece::Gap { why, offset, bytes } => {
                let mark = format!("\n[{bytes} bytes {}, from offset {offset}]\n", words::missing_here(why));
                self.push(mark.as_bytes());
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        // With a filter the last matches are kept, as of a log the last lines matter.
        let over = self.bytes.len().saturating_sub(self.most);
        if self.from_the_start && self.filter.is_none() {
            self.bytes.truncate(self.most);
        } else {
            self.bytes.drain(..over);
        }
        if let Some(filter) = &mut self.filter {
            filter.cut |= over > 0;
        }
    }

    fn finish(&mut self) -> Option<(usize, bool)> {
        let rest = self.filter.as_mut().map(Filter::finish)?;
        self.push(&rest);
        self.filter.as_ref().map(|filter| (filter.count, !filter.cut))
    }
}

/// Lets lines through that match, as they read when cleaned.
struct Filter<'a> {
    grep: &'a Grep,
    line: Vec<u8>,
    count: usize,
    cut: bool,
}

impl Filter<'_> {
    fn new(grep: &Grep) -> Filter<'_> {
        Filter { grep, line: Vec::new(), count: 0, cut: false }
    }

    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                lines.extend(self.check());
            }
        }
        lines
    }

    fn check(&mut self) -> Vec<u8> {
        let line = std::mem::take(&mut self.line);
        let text = clean(&line);
        let matches = self.grep.matches(text.trim_end_matches('\n'));
        self.count += usize::from(matches);
        if matches { line } else { Vec::new() }
    }

    fn finish(&mut self) -> Vec<u8> {
        if self.line.is_empty() { Vec::new() } else { self.check() }
    }
}
