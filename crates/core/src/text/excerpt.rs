//! Which part of an output is shown, so that what is shown is bounded and what is not is counted.

use std::ops::Range;

use regex::Regex;

use super::readable;
use crate::units::format_size;

/// The last bytes of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail<'a> {
    /// The bytes, exactly as they were printed.
    pub bytes: &'a [u8],
    /// The offset of the first of them in the output.
    pub shown_from: u64,
    /// Whether the output has bytes before these.
    pub truncated: bool,
}

impl<'a> Tail<'a> {
    /// The last `limit` bytes of an output of `total` bytes, of which `end` is what is at hand of its end.
    #[must_use]
    pub fn of(total: u64, end: &'a [u8], limit: usize) -> Self {
        let bytes = &end[end.len().saturating_sub(limit)..];
        let shown_from = total.saturating_sub(bytes.len() as u64);
        Self { bytes, shown_from, truncated: shown_from > 0 }
    }

    /// The tail as readable text. The cut is exact in bytes; the rest of a character that it went
    /// through is left out.
    #[must_use]
    pub fn text(&self) -> String {
        let start = if self.truncated { orphans(self.bytes) } else { 0 };
        readable(&self.bytes[start..])
    }
}

/// The parts of an output of `total` bytes that an excerpt of `limit` bytes is made of: its head and its
/// tail. What fits is all head. Most of an excerpt is tail, because that is where errors are.
#[must_use]
pub fn head_and_tail(total: u64, limit: usize) -> (Range<u64>, Range<u64>) {
    let limit = limit as u64;
    if total <= limit {
        return (0..total, total..total);
    }
    let head = limit / 4;
    (0..head, total - (limit - head)..total)
}

/// The excerpt of an output of `total` bytes as readable text. `head` is its first bytes and `tail` its
/// last ones, as [`head_and_tail`] says; the count of the bytes between them stands where they are missing.
///
/// No character is cut: its bytes count as missing.
#[must_use]
pub fn excerpt_text(total: u64, head: &[u8], tail: &[u8]) -> String {
    if (head.len() + tail.len()) as u64 >= total {
        return readable(&[head, tail].concat());
    }
    let head = &head[..whole_characters(head)];
    let tail = &tail[orphans(tail)..];
    let missing = total - (head.len() + tail.len()) as u64;
    let mut text = readable(head);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&missing_mark(head.len() as u64, missing));
    text.push('\n');
    text.push_str(&readable(tail));
    text
}

/// The line that stands in the place of `bytes` bytes of the output, from `offset` on, that are not shown.
#[must_use]
pub fn missing_mark(offset: u64, bytes: u64) -> String {
    let bytes = counted(bytes);
    format!("[{bytes} missing here, from offset {offset}]")
}

/// The line that stands in the place of `bytes` bytes of the output, from `offset` on, that the log's cap
/// of `cap` bytes dropped while `tail` bytes after them were kept.
#[must_use]
pub fn dropped_mark(cap: u64, offset: u64, bytes: u64, tail: u64) -> String {
    let next = offset.saturating_add(bytes);
    format!(
        "[{} dropped here by the log's cap of {}: the first {offset} and the last {tail} are kept, the next \
         offset that exists is {next}]",
        counted(bytes),
        format_size(cap)
    )
}

fn counted(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

/// How many of these bytes remain when a character that their end cuts off is left out. Bytes that are
/// not UTF-8 anyway are kept.
#[must_use]
pub fn whole_characters(bytes: &[u8]) -> usize {
    // A character has at most four bytes, so that at most three of one can stand at the end.
    for back in 1..=bytes.len().min(3) {
        let start = bytes.len() - back;
        let needed = match bytes[start] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return bytes.len(),
        };
        return if back < needed { start } else { bytes.len() };
    }
    bytes.len()
}

/// How many bytes at the start belong to a character that began before.
fn orphans(bytes: &[u8]) -> usize {
    let count = bytes.iter().take(4).take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
    // Four in a row are of no character.
    if count < 4 { count } else { 0 }
}

/// The text of two separate streams as one: after success standard output, then standard error; after a
/// failure with a separator between them that says which is which. A stream that is empty leaves the
/// other one as it is.
#[must_use]
pub fn joined(stdout: &str, stderr: &str, success: bool) -> String {
    if stdout.is_empty() || stderr.is_empty() {
        return format!("{stdout}{stderr}");
    }
    let line_end = if stdout.ends_with('\n') { "" } else { "\n" };
    let separator = if success { "" } else { "--- stderr ---\n" };
    format!("{stdout}{line_end}{separator}{stderr}")
}

/// An expression that is not a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expression:?} is not a regular expression: {reason}")]
pub struct GrepError {
    /// The expression as it was given.
    pub expression: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A filter that lets lines through which match a regular expression (the syntax of the crate `regex`).
#[derive(Clone, Debug)]
pub struct Grep(Regex);

impl Grep {
    /// Reads the expression.
    pub fn new(expression: &str) -> Result<Self, GrepError> {
        Regex::new(expression)
            .map(Self)
            .map_err(|error| GrepError { expression: expression.to_owned(), reason: reason_of(&error) })
    }

    /// Whether a line, given without its line break, is let through.
    #[must_use]
    pub fn matches(&self, line: &str) -> bool {
        self.0.is_match(line)
    }

    /// The lines of a text that are let through, each with a line break.
    #[must_use]
    pub fn lines(&self, text: &str) -> String {
        text.lines().filter(|line| self.matches(line)).flat_map(|line| [line, "\n"]).collect()
    }
}

/// The last line of the message, which has the fact; the lines before it draw the expression.
fn reason_of(error: &regex::Error) -> String {
    let message = error.to_string();
    let fact = message.lines().last().unwrap_or_default().trim();
    fact.strip_prefix("error: ").unwrap_or(fact).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{TEXT_BYTES, or_no_output};
    use super::*;

    /// Covers: C2
    #[test]
    fn c2_a_tail_is_exact_in_bytes() {
        let mut output = b"0123456789".repeat(5_000);
        output.extend(b"THE-MARKER");
        let tail = Tail::of(50_010, &output, TEXT_BYTES);
        assert_eq!(tail.bytes, &output[33_626..]);
        assert_eq!((tail.shown_from, tail.truncated), (33_626, true));
        // The same from a memory that holds no more than the tail.
        let kept = &output[33_626..];
        assert_eq!(Tail::of(50_010, kept, TEXT_BYTES), tail);
        let whole = Tail::of(TEXT_BYTES as u64, kept, TEXT_BYTES);
        assert_eq!((whole.shown_from, whole.truncated), (0, false));
        assert_eq!(Tail::of(0, b"", TEXT_BYTES).text(), "");
    }

    #[test]
    fn case_092_a_bound_that_cuts_a_character_leaves_no_mark() {
        let output = "你".repeat(50_000);
        for limit in 300..306 {
            let tail = Tail::of(150_000, output.as_bytes(), limit);
            assert_eq!(tail.bytes.len(), limit);
            assert_eq!(tail.text(), "你".repeat(limit / 3));
        }
        assert_eq!(Tail::of(3, b"\x80\x80a", 99).text(), "a", "whole output: C1 bytes, dropped");
    }

    /// Covers: C5
    #[test]
    fn c5_head_tail_and_the_count_between() {
        let output: Vec<u8> = (0..3_000).flat_map(|n| format!("line {n:04}\n").into_bytes()).collect();
        let total = output.len() as u64;
        let (head, tail) = head_and_tail(total, TEXT_BYTES);
        assert_eq!(head.end - head.start + tail.end - tail.start, TEXT_BYTES as u64);
        let part = |range: Range<u64>| &output[range.start as usize..range.end as usize];
        let text = excerpt_text(total, part(head.clone()), part(tail.clone()));
        assert!(text.starts_with("line 0000\n") && text.ends_with("line 2999\n"));
        let missing = total - TEXT_BYTES as u64;
        assert!(text.contains(&format!("\n[{missing} bytes missing here, from offset 4096]\n")));
        assert_eq!(head_and_tail(16_384, TEXT_BYTES), (0..16_384, 16_384..16_384));
        assert_eq!(head_and_tail(16_385, TEXT_BYTES), (0..4_096, 4_097..16_385));
        assert_eq!(excerpt_text(4, b"ab\nc", b""), "ab\nc");
    }

    /// Covers: C5
    #[test]
    fn c5_the_cut_does_not_split_a_character() {
        let text: String = (0..9_000).map(|n| if n % 2 == 0 { '你' } else { '界' }).collect();
        let output = text.as_bytes();
        for limit in 60..80 {
            let (head, tail) = head_and_tail(output.len() as u64, limit);
            let (head, tail) = (&output[..head.end as usize], &output[tail.start as usize..]);
            let shown = excerpt_text(output.len() as u64, head, tail);
            assert!(!shown.contains('\u{fffd}'), "{shown}");
            let missing: usize = shown
                .split('[')
                .nth(1)
                .and_then(|rest| rest.split(' ').next())
                .and_then(|count| count.parse().ok())
                .expect("a count");
            let seen = shown.chars().filter(|c| "你界".contains(*c)).count() * 3;
            assert_eq!(seen + missing, output.len(), "limit {limit}");
        }
    }

    /// Covers: C7
    #[test]
    fn c7_the_mark_of_the_cap_has_the_cap_and_both_sizes() {
        assert_eq!(
            dropped_mark(1 << 20, 262_144, 5_000, 786_432),
            "[5000 bytes dropped here by the log's cap of 1MiB: the first 262144 and the last 786432 are kept, \
             the next offset that exists is 267144]"
        );
        assert_eq!(missing_mark(7, 1), "[1 byte missing here, from offset 7]");
    }

    /// Covers: C5
    #[test]
    fn c5_where_a_character_is_whole() {
        for (bytes, whole) in [
            (&b""[..], 0),
            (b"ab", 2),
            ("a你".as_bytes(), 4),
            (b"a\xe4\xbd", 1),
            (b"a\xe4", 1),
            (b"\xf0\x9d\x84", 0),
            (b"\x80\x80\x80\x80", 4),
            (b"a\xff", 2),
            ("é".as_bytes(), 2),
        ] {
            assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
        }
    }

    /// Covers: C8
    #[test]
    fn c8_separate_streams_are_joined() {
        assert_eq!(joined("out", "err", true), "out\nerr");
        assert_eq!(joined("out\n", "err\n", true), "out\nerr\n");
        assert_eq!(joined("out", "err", false), "out\n--- stderr ---\nerr");
        for success in [true, false] {
            assert_eq!(joined("out", "", success), "out");
            assert_eq!(joined("", "err", success), "err");
            assert_eq!(joined("", "", success), "");
        }
    }

    /// Covers: C12
    #[test]
    fn c12_a_read_is_filtered_by_lines() {
        let grep = Grep::new("^ERR|fatal$").expect("an expression");
        assert_eq!(grep.lines("ok\nERR 1\nno ERR\nit is fatal\n"), "ERR 1\nit is fatal\n");
        assert_eq!(or_no_output(&grep.lines("ok\n")), "(no new output)");
        let error = Grep::new("(").expect_err("not an expression");
        assert_eq!(error.to_string(), "\"(\" is not a regular expression: unclosed group");
    }
}
