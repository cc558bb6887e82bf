//! Output of commands made readable and bounded: cleaned, folded, cut, searched and fenced.

pub mod clean;
pub mod fold;
pub mod excerpt;
pub mod fence;

/// Most bytes of output that one reply shows of a stream; also the size of the tail that a supervisor
/// keeps in memory, and of the memory a foreground command's output may fill before it is materialised.
pub const TEXT_BYTES: usize = 16_384;

/// Longest line, in characters, that text shows whole.
pub const LINE_CHARACTERS: usize = 2_000;

/// Stands where new output would, when there is none or it is only white space.
pub const NO_NEW_OUTPUT: &str = "(no new output)";

/// Output as text for a reader: cleaned (see [`clean::Cleaner`]) and folded (see [`fold::fold`]).
#[must_use]
pub fn readable(output: &[u8]) -> String {
    fold::fold(&clean::clean(output))
}

/// The text, or [`NO_NEW_OUTPUT`] in place of one that has nothing to see.
#[must_use]
pub fn or_no_output(text: &str) -> &str {
    if text.trim().is_empty() { NO_NEW_OUTPUT } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: C9
    #[test]
    fn c9_text_is_cleaned_and_folded() {
        let mut output = b"\x1b[1mstart\x1b[0m\r\n0%\r50%\r100%\n".to_vec();
        output.extend(b"\x1b[31merror\x1b[0m\n".repeat(1000));
        output.extend(vec![b'x'; 1 << 20]);
        let text = readable(&output);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..4], ["start", "100%", "error", "[line repeated 999 more times]"]);
        assert_eq!(lines.len(), 5);
        assert!(text.len() < 2_200, "{}", text.len());
    }

    /// Covers: D7
    #[test]
    fn d7_white_space_counts_as_no_output() {
        assert_eq!(or_no_output(" \n\t\n"), "(no new output)");
        assert_eq!(or_no_output(""), "(no new output)");
        assert_eq!(or_no_output(" x\n"), " x\n");
    }
}
