//! How a file of text begins and ends its lines, which no change of ours may change.

/// The byte order mark, as a character.
const MARK: char = '\u{feff}';

/// What is kept of a text while it is changed: a byte order mark, and CR LF at every line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    mark: bool,
    carriage: bool,
}

impl Spelling {
    /// The spelling of a text, and the text without it. Lines that end in both ways stay as they are.
    pub fn split(text: &str) -> (Spelling, String) {
        let rest = text.strip_prefix(MARK).unwrap_or(text);
        let spelling = Spelling { mark: rest.len() < text.len(), carriage: rest.contains("\r\n") && !is_mixed(rest) };
        (spelling, if spelling.carriage { rest.replace("\r\n", "\n") } else { rest.to_owned() })
    }

    /// A text in this spelling.
    pub fn join(self, text: &str) -> String {
        let lines = if self.carriage { text.replace('\n', "\r\n") } else { text.to_owned() };
        if self.mark { format!("{MARK}{lines}") } else { lines }
    }
}

/// Whether some lines end with CR LF, and others with LF alone.
pub fn is_mixed(text: &str) -> bool {
    let both = text.matches("\r\n").count();
    both > 0 && both < text.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_to_the_byte() {
        for (text, plain) in [
            ("", ""),
            ("a\nb", "a\nb"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("\u{feff}a\r\n", "a\n"),
            ("\u{feff}", ""),
            ("a\r\nb\n", "a\r\nb\n"),
        ] {
            let (spelling, found) = Spelling::split(text);
            assert_eq!((found.as_str(), spelling.join(&found).as_str()), (plain, text), "{text:?}");
        }
        assert_eq!(Spelling::split("a\r\n").0.join("a\nb\n"), "a\r\nb\r\n");
    }
}
