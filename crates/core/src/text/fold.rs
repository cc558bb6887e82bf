//! Shortens text without hiding that it did: repeated lines are counted, long lines are cut.

use std::borrow::Cow;

use super::LINE_CHARACTERS;

/// Longest block of lines, in lines, whose repetition is noticed.
const BLOCK_LINES: usize = 4;

/// Fewest times in a row that a block is there before it is counted. The mark of a line that is there
/// twice would be longer than the line.
const RUN: usize = 3;

/// Counts runs of equal lines, and of equal blocks of up to four lines, instead of repeating them, and
/// cuts lines above [`LINE_CHARACTERS`]; a mark in the place of what is gone says how much it was.
#[must_use]
pub fn fold(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut folded = String::with_capacity(text.len().min(1 << 16));
    let mut at = 0;
    while at < lines.len() {
        let (size, times) = run_at(&lines[at..]);
        for line in &lines[at..at + size] {
            folded.push_str(&cut_line(line));
            folded.push('\n');
        }
        if times > 1 {
            folded.push_str(&repeat_mark(size, times - 1));
            folded.push('\n');
        }
        at += size * times;
    }
    if !text.ends_with('\n') {
        folded.pop();
    }
    folded
}

/// A line as it is shown: whole, or its first [`LINE_CHARACTERS`] characters and how many follow.
#[must_use]
pub fn cut_line(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(LINE_CHARACTERS) {
        None => Cow::Borrowed(line),
        Some((at, _)) => {
            let more = line[at..].chars().count();
            Cow::Owned(format!("{} [line cut: {more} more characters]", &line[..at]))
        }
    }
}

/// The smallest block at the start of `lines` that is repeated often enough to be counted, as its number
/// of lines and of times; one line, once, where there is none.
fn run_at(lines: &[&str]) -> (usize, usize) {
    for size in 1..=BLOCK_LINES.min(lines.len() / RUN) {
        let block = &lines[..size];
        let times = lines.chunks_exact(size).take_while(|chunk| *chunk == block).count();
        if times >= RUN {
            return (size, times);
        }
    }
    (1, 1)
}

fn repeat_mark(size: usize, more: usize) -> String {
    match size {
        1 => format!("[line repeated {more} more times]"),
        _ => format!("[{size} lines repeated {more} more times]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: C9
    #[test]
    fn c9_runs_of_equal_lines_are_counted() {
        assert_eq!(fold(&"x\n".repeat(1000)), "x\n[line repeated 999 more times]\n");
        assert_eq!(fold("a\nx\nx\nx\nb"), "a\nx\n[line repeated 2 more times]\nb");
        assert_eq!(fold("x\nx\nx"), "x\n[line repeated 2 more times]");
        for same in ["", "\n", "a", "a\n", "x\nx\n", "\n\n", "a\n\nb\n", "x\nx\ny\nx\nx\n"] {
            assert_eq!(fold(same), same);
        }
    }

    #[test]
    fn case_086_a_crash_loop_prints_the_same_lines_for_ever() {
        let loops = "start\nerror: no such port\n".repeat(500);
        assert_eq!(fold(&loops), "start\nerror: no such port\n[2 lines repeated 499 more times]\n");
        assert_eq!(
            fold("head\na\nb\nc\nd\na\nb\nc\nd\na\nb\nc\nd\na\n"),
            "head\na\nb\nc\nd\n[4 lines repeated 2 more times]\na\n"
        );
        let five = "a\nb\nc\nd\ne\n".repeat(9);
        assert_eq!(fold(&five), five, "blocks above four lines stay");
    }

    /// Covers: C9
    #[test]
    fn c9_long_lines_are_cut_with_a_mark() {
        let exact = "é".repeat(LINE_CHARACTERS);
        assert_eq!(fold(&exact), exact);
        let long = "é".repeat(1 << 20);
        let cut = fold(&format!("{long}\nnext\n"));
        assert_eq!(cut, format!("{exact} [line cut: {} more characters]\nnext\n", (1 << 20) - 2000));
    }

    /// Covers: C9
    #[test]
    fn c9_lines_that_differ_behind_the_cut_are_not_equal() {
        let start = "x".repeat(LINE_CHARACTERS);
        assert_eq!(fold(&format!("{start}1\n{start}2\n{start}3\n")).lines().count(), 3);
    }
}
