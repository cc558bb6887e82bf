//! Text for readers: where the output is cut makes no difference, nothing that moves a cursor is left, and what is
//! shown is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_core::names::{display_line, quoted, shorten};
use outlast_core::text::clean::{Cleaner, clean};
use outlast_core::text::excerpt::{Tail, excerpt_text, head_and_tail, whole_characters};
use outlast_core::text::fence::fence;
use outlast_core::text::fold::{cut_line, fold};
use outlast_core::text::{LINE_CHARACTERS, readable};
use outlast_fuzz::Cut;

/// The longest mark of [`cut_line`], in characters.
const MARK: usize = 60;

fuzz_target!(|data: &[u8]| {
    let input = Cut::of(data);
    let whole = clean(input.text);
    let mut cleaner = Cleaner::new();
    let mut pieces = String::new();
    for (number, piece) in input.pieces().into_iter().enumerate() {
        cleaner.push(piece);
        if number % 2 == 0 {
            pieces.push_str(&cleaner.take_lines());
        }
    }
    pieces.push_str(&cleaner.finish());
    assert_eq!(pieces, whole, "the cuts make a difference");
    assert!(!whole.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "a control character: {whole:?}");
    let breaks = input.text.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(whole.matches('\n').count(), breaks, "a line break was lost or made");
    assert_eq!(clean(whole.as_bytes()), whole, "clean text changes");
    folded(&whole);
    excerpt(data, input.text);
    on_one_line(&whole);
});

fn folded(text: &str) {
    let folded = fold(text);
    assert!(folded.lines().count() <= text.lines().count(), "more lines than there were");
    let longest = folded.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(longest <= LINE_CHARACTERS + MARK, "a line of {longest} characters");
    assert_eq!(folded.ends_with('\n'), text.ends_with('\n'), "the end of the text");
    for line in text.lines() {
        assert!(cut_line(line).starts_with(line) || line.chars().count() > LINE_CHARACTERS);
    }
}

fn excerpt(data: &[u8], output: &[u8]) {
    let limit = usize::from(data.first().copied().unwrap_or_default()) * 4;
    let total = output.len() as u64;
    let (head, tail) = head_and_tail(total, limit);
    let part = |range: std::ops::Range<u64>| {
        let place = |at: u64| usize::try_from(at).expect("within the input");
        &output[place(range.start)..place(range.end)]
    };
    assert!(head.end <= tail.start && tail.end == total && head.end - head.start + (tail.end - tail.start) <= total);
    let text = excerpt_text(total, part(head.clone()), part(tail.clone()));
    if head.end == tail.start {
        assert_eq!(text, readable(output), "nothing is missing");
    } else {
        assert!(text.contains(" missing here, from offset "), "{text:?}");
    }
    let tail = Tail::of(total, output, limit);
    assert_eq!(tail.shown_from + tail.bytes.len() as u64, total);
    assert!(tail.bytes.len() <= limit && (tail.shown_from > 0) == tail.truncated);
    let _any_text = tail.text();
    // What is cut off is one character that is not whole, and no other byte.
    let kept = whole_characters(output);
    assert!(kept <= output.len() && output.len() - kept < 4, "{kept} of {}", output.len());
    if let Ok(valid) = std::str::from_utf8(output) {
        assert_eq!(kept, valid.len(), "a whole character was cut off");
    }
}

fn on_one_line(text: &str) {
    let line = display_line(text);
    assert!(!line.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202e}')), "{line:?}");
    assert_eq!(display_line(&line), line, "a line changes");
    for characters in [1, 8, 60] {
        assert!(shorten(text, characters).chars().count() <= characters);
    }
    let inner = quoted(text);
    let inner = inner.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("quotes around it");
    let bare = inner.replace("\\\\", "");
    assert!(!bare.replace("\\\"", "").contains('"'), "the quotes can be closed: {inner:?}");
    match fence("output", "d1d1d1d1", text) {
        Ok(fenced) => assert_eq!(fenced.matches("d1d1d1d1").count(), 2, "the fence can be closed: {fenced:?}"),
        Err(_) => assert!(text.contains("d1d1d1d1")),
    }
}
