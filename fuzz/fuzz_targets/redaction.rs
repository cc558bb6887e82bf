//! Redaction: wherever an output is cut it is masked the same, nothing but secrets is changed, and no known value is
//! ever shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_core::policy::credentials::SHORTEST;
use outlast_core::policy::redact::{Counts, Edges, Redactor, Stream, add_up};
use outlast_core::text::clean::clean;
use outlast_fuzz::{Cut, take};

const VALUES: [&[u8]; 3] = [b"correct-horse-battery", b"two\nlines of it", "\u{f6}\u{4f60}\u{597d}-\u{f6}".as_bytes()];

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    let length = take(&mut rest, 1).first().map_or(0, |byte| usize::from(byte % 32));
    let own = take(&mut rest, length).to_vec();
    let input = Cut::of(rest);
    let values: Vec<Vec<u8>> = VALUES.iter().map(|value| value.to_vec()).chain([own]).collect();
    let redactor = Redactor::new(values.iter().cloned());
    let pieces = input.pieces();

    let mut whole = input.text.to_vec();
    let counts = redactor.mask(&mut whole, Edges::default());
    only_masked(input.text, &whole);
    for value in &values {
        hidden(value, &whole);
    }

    let mut stream = Stream::default();
    let (mut shown, mut streamed) = (Vec::new(), Counts::new());
    let mut at = 0;
    for (number, piece) in pieces.iter().enumerate() {
        let (part, found) = stream.push(&redactor, piece);
        shown.extend(part);
        add_up(&mut streamed, found);
        at += piece.len();
        assert_eq!(shown.len() + stream.held(), at, "bytes were lost or made");
        if number < 3 {
            live(&redactor, &input.text[..at], &whole[..at]);
        }
    }
    let (part, found) = stream.finish(&redactor);
    shown.extend(part);
    add_up(&mut streamed, found);
    assert_eq!(shown, whole, "the cuts make a difference");
    assert_eq!(streamed, counts, "the cuts make a difference in what is counted");

    behind(&redactor, input.text, &whole, pieces[0].len());
});

/// Behind what was shown already everything is as in the whole.
fn behind(redactor: &Redactor, text: &[u8], whole: &[u8], from: usize) {
    let mut stream = Stream::after(redactor, &text[..from], false);
    let mut shown = stream.push(redactor, &text[from..]).0;
    shown.extend(stream.finish(redactor).0);
    assert_eq!(shown, whole[from..], "behind a context of {from} bytes");
    let mut part = text.to_vec();
    redactor.mask_part(&mut part, from..text.len(), Edges::default());
    assert_eq!(part, whole);
}

/// What a read of an output that goes on shows has no byte of what is a secret in the end.
fn live(redactor: &Redactor, text: &[u8], whole: &[u8]) {
    let mut shown = text.to_vec();
    redactor.mask(&mut shown, Edges { cut_before: false, cut_after: true });
    only_masked(text, &shown);
    let leaked = shown.iter().zip(whole).zip(text).position(|((shown, whole), text)| whole != text && shown == text);
    assert_eq!(leaked, None, "a live read shows a part of a secret");
}

fn only_masked(text: &[u8], shown: &[u8]) {
    assert_eq!(text.len(), shown.len());
    let changed =
        text.iter().zip(shown).find(|(text, shown)| text != shown && (**shown != b'*' || b"\r\n".contains(text)));
    assert_eq!(changed, None, "more than masked");
}

/// A known value is neither in the bytes that are shown nor in their text, whatever stands around it.
fn hidden(value: &[u8], shown: &[u8]) {
    let value = compared(value.trim_ascii());
    // Masks themselves, and what stands for bytes that are no text, cannot be hidden.
    if value.len() < SHORTEST || value.contains(&b'*') || contains(&value, "\u{fffd}".as_bytes()) {
        return;
    }
    assert!(!contains(&compared(shown), &value), "a known value is shown");
    // Of a value that is no text no text has more than a part.
    if std::str::from_utf8(&value).is_ok() {
        let text = clean(shown);
        assert!(!contains(&compared(text.as_bytes()), &value), "the text of what is shown has a known value");
    }
}

/// Without the control characters that lay nothing out.
fn compared(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| (*byte >= 0x20 && *byte != 0x7f) || matches!(byte, b'\n' | b'\t')).collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
