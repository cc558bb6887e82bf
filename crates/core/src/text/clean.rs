//! Turns the bytes a command printed into plain text, as they come.

use vte::{Params, Parser, Perform};

/// Output as plain text; see [`Cleaner`].
#[must_use]
pub fn clean(output: &[u8]) -> String {
    let mut cleaner = Cleaner::new();
    cleaner.push(output);
    cleaner.finish()
}

/// Cleans output chunk by chunk; where the chunks are cut makes no difference to the text.
///
/// - Escape sequences are removed (ECMA-48 in its 7-bit and 8-bit forms), also one that the end of the
///   output cuts off. A line break ends every sequence, so that an unfinished one can hide at most the
///   rest of its line.
/// - Bytes that are not UTF-8 become U+FFFD; a character that is cut by the end of a chunk is whole.
/// - Of a line that was redrawn with carriage returns, what follows the last one stays.
/// - Control characters other than line break and tab are dropped.
#[derive(Default)]
pub struct Cleaner {
    /// The first bytes of a character whose other bytes have not come yet.
    partial: Vec<u8>,
    parser: Parser,
    page: Page,
}

impl Cleaner {
    /// A cleaner at the start of an output.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        let joined;
        let bytes = if self.partial.is_empty() {
            bytes
        } else {
            self.partial.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.partial);
            &joined
        };
        let mut seen = 0;
        for chunk in bytes.utf8_chunks() {
            self.feed(chunk.valid());
            seen += chunk.valid().len() + chunk.invalid().len();
            match chunk.invalid() {
                [] => {}
                [byte @ 0x80..=0x9f] => self.control(*byte),
                rest if seen == bytes.len() && is_cut_off(rest) => self.partial = rest.to_vec(),
                _ => self.feed("\u{fffd}"),
            }
        }
    }

    /// Takes out the text of all lines that are complete.
    pub fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.page.lines)
    }

    /// Ends the output and gives the text that was not taken yet.
    #[must_use]
    pub fn finish(mut self) -> String {
        if !self.partial.is_empty() {
            self.feed("\u{fffd}");
        }
        self.page.lines.push_str(&self.page.line);
        self.page.lines
    }

    fn feed(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(|c| matches!(c, '\n' | '\u{80}'..='\u{9f}')) {
            self.advance(&rest[..at]);
            match rest[at..].chars().next() {
                // CAN (0x18) ends whatever sequence is open, and does nothing outside of one.
                Some('\n') | None => {
                    self.parser.advance(&mut self.page, b"\x18\n");
                    rest = &rest[at + 1..];
                }
                Some(c) => {
                    self.control(c as u8);
                    rest = &rest[at + c.len_utf8()..];
                }
            }
        }
        self.advance(rest);
    }

    fn advance(&mut self, text: &str) {
        if text.is_ascii() {
            self.parser.advance(&mut self.page, text.as_bytes());
            return;
        }
        let mut bytes = [0; 4];
        for c in text.chars() {
            // The parser takes the byte 0x9c for the end of a device control string even inside of a
            // character, so that such strings are fed without the characters that may hold it.
            if c.is_ascii() || !self.page.in_device_control {
                self.parser.advance(&mut self.page, c.encode_utf8(&mut bytes).as_bytes());
            }
        }
    }

    /// A C1 control is the 8-bit form of an escape sequence of two characters (ECMA-48, section 5.3).
    fn control(&mut self, byte: u8) {
        self.parser.advance(&mut self.page, &[0x1b, byte - 0x40]);
    }
}

/// Whether more bytes could make a character of these.
fn is_cut_off(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// What is left on the page of everything that was printed.
#[derive(Default)]
struct Page {
    lines: String,
    line: String,
    /// A carriage return came, and nothing visible after it yet.
    returned: bool,
    in_device_control: bool,
}

impl Page {
    fn put(&mut self, c: char) {
        if std::mem::take(&mut self.returned) {
            self.line.clear();
        }
        self.line.push(c);
    }
}

impl Perform for Page {
    fn print(&mut self, c: char) {
        if !c.is_control() {
            self.put(c);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.returned = false;
                self.lines.push_str(&self.line);
                self.lines.push('\n');
                self.line.clear();
            }
            b'\r' => self.returned = true,
            b'\t' => self.put('\t'),
            _ => {}
        }
    }

    fn hook(&mut self, _: &Params, _: &[u8], _: bool, _: char) {
        self.in_device_control = true;
    }

    fn unhook(&mut self) {
        self.in_device_control = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the text of an output, whole and cut into chunks in every way a single cut or single bytes
    /// can do it.
    fn check(output: &[u8], expected: &str) {
        assert_eq!(clean(output), expected, "{output:?}");
        for cut in 0..=output.len() {
            let mut cleaner = Cleaner::new();
            cleaner.push(&output[..cut]);
            let mut text = cleaner.take_lines();
            cleaner.push(&output[cut..]);
            text.push_str(&cleaner.finish());
            assert_eq!(text, expected, "{output:?} cut at {cut}");
        }
        let mut cleaner = Cleaner::new();
        output.iter().for_each(|byte| cleaner.push(&[*byte]));
        assert_eq!(cleaner.finish(), expected, "{output:?} byte by byte");
    }

    /// Covers: C9
    #[test]
    fn c9_carriage_returns() {
        check(b"a\rb\n", "b\n");
        check(b"a\r\n", "a\n");
        check(b"a\r\r\n", "a\n");
        check(b"one\r\ntwo\r\n", "one\ntwo\n");
        check(b"a\rb\r", "b");
        check(b"abcdef\rxy\n", "xy\n");
        check(b"working\r\x1b[Kdone\n", "done\n");
        check(b"left\r\x1b[K\nnext", "left\nnext");
        check(b"a\r\tb\n", "\tb\n");
    }

    #[test]
    fn case_089_carriage_return_frames() {
        let frames: String = (0..=100).map(|i| format!("\rDownloading {i}%")).collect();
        check(format!("{frames}\n").as_bytes(), "Downloading 100%\n");
    }

    #[test]
    fn case_091_escape_sequences() {
        check(b"\x1b[2K\x1b[1A\x1b[31m1\x1b[0m\n", "1\n");
        check(b"\x1b]0;title\x07x\n", "x\n");
        check(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n");
        check(b"\x1bPq#0;2;0;0;0\x1b\\after", "after");
        check("\u{1b}Pq\u{671c}\u{2713}\u{1b}\\after".as_bytes(), "after");
        check("\u{1b}]0;\u{2713} done\u{7}after".as_bytes(), "after");
        check(b"\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\after", "after");
        check(b"\x1b(B\x1b=\x1b7after\x1bc", "after");
        check(b"\x1b[38;2;1;2;3;4;5mred\x1b[?1049h\x1b[?1003h\x1b[38:2::1:2:3mx", "redx");
        // The 8-bit forms, as single bytes and as characters.
        check(b"\x9b31mred\x9b0m\x85\x8d", "red");
        check(b"\x9d0;title\x9cx", "x");
        check("\u{9b}31mred\u{9b}0m \u{90}q\u{9c}x".as_bytes(), "red x");
    }

    #[test]
    fn case_091_sequences_that_do_not_end() {
        for tail in ["\u{1b}", "\u{1b}[", "\u{1b}[31", "\u{1b}]0;title", "\u{1b}P1;2q", "\u{1b}_x", "\u{9b}3"] {
            check(format!("seen{tail}").as_bytes(), "seen");
            check(format!("seen{tail}\nnext").as_bytes(), "seen\nnext");
        }
    }

    /// Covers: C9
    #[test]
    fn c9_other_control_characters_are_dropped() {
        check(b"\x07a\x08b\0c\x0bd\x0ce\x7ff\x0eg\x1a", "abcdefg");
        check(b"a\tb\n", "a\tb\n");
    }

    /// Covers: C10
    #[test]
    fn c10_a_character_cut_at_a_chunk_edge_is_whole() {
        check("a你b𝄞é\n".as_bytes(), "a你b𝄞é\n");
        let text = "你".repeat(50);
        check(text.as_bytes(), &text);
    }

    #[test]
    fn case_092_a_character_in_two_chunks() {
        let mut cleaner = Cleaner::new();
        cleaner.push(b"\xe4\xbd");
        assert_eq!(cleaner.take_lines(), "");
        cleaner.push(b"\xa0\n");
        assert_eq!(cleaner.finish(), "你\n");
    }

    /// Covers: C10
    #[test]
    fn c10_bytes_that_are_not_utf_8_become_marks() {
        check(b"a\xffb", "a\u{fffd}b");
        check(b"a\xe4\xbdb", "a\u{fffd}b");
        check(b"a\xe4\xbd", "a\u{fffd}");
        check(b"\xfe\xfe\xe2\x82", "\u{fffd}\u{fffd}\u{fffd}");
        check(b"\xc0\xaf", "\u{fffd}\u{fffd}");
    }

    /// Covers: C9, C10
    #[test]
    fn c9_no_output_gets_a_control_character_through() {
        // Pieces that matter to the parser, in random order (xorshift64), so that states meet bytes they
        // do not expect.
        const PIECES: [&[u8]; 24] = [
            b"\x1b",
            b"[",
            b"]",
            b"P",
            b"_",
            b"\\",
            b"\x07",
            b"\x18",
            b"\x9b",
            b"\x9d",
            b"\x90",
            b"\x9c",
            b"3;1",
            b"m",
            b"q",
            b"\n",
            b"\r",
            b"\t",
            b"\xe4",
            b"\xbd",
            b"\xa0",
            b"\xf0\x9d",
            "\u{9b}".as_bytes(),
            "é".as_bytes(),
        ];
        let mut number: u64 = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..300 {
            let mut output = Vec::new();
            for _ in 0..12 {
                number ^= number << 13;
                number ^= number >> 7;
                number ^= number << 17;
                output.extend_from_slice(PIECES[(number % 24) as usize]);
            }
            let text = clean(&output);
            assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{output:?}: {text:?}");
            let breaks = output.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(text.matches('\n').count(), breaks, "{output:?}: every line break stays");
            check(&output, &text);
        }
    }
}
