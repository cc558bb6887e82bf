//! Which outside names and context keys are accepted, and how free text is put on one line.

/// A name from outside that has a use as part of a path or of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameField {
    /// The kind of an in-process task.
    Kind,
    /// A consumer of completions.
    Consumer,
    /// A session, as a caller names it.
    Session,
    /// The key of a context.
    Context,
    /// The label of a command.
    Label,
}

impl NameField {
    /// The word for this field in messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            NameField::Kind => "kind",
            NameField::Consumer => "consumer",
            NameField::Session => "session",
            NameField::Context => "context",
            NameField::Label => "label",
        }
    }
}

/// A name that was refused, and why. The name itself is not repeated, because it may hold anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {} {reason}", field.word())]
pub struct NameError {
    /// The field that held the name.
    pub field: NameField,
    /// What is wrong with it, as the end of a sentence.
    pub reason: &'static str,
}

/// Longest name that is accepted, in bytes (the longest file name of Linux file systems, `NAME_MAX`).
pub const NAME_BYTES: usize = 255;

/// Longest label that is accepted, in characters: it stands whole in every notice of its command.
pub const LABEL_CHARACTERS: usize = 200;

/// Characters of a label, or of the command line in its place, that a list shows.
pub const LIST_CHARACTERS: usize = 48;

/// Characters of a command line that a progress report shows.
pub const PROGRESS_CHARACTERS: usize = 60;

/// Characters of a process's name or command line that a notice shows.
pub const PROCESS_CHARACTERS: usize = 200;

/// Checks a name that came from outside. An absent session is not a name and has no place here.
pub fn check_name(field: NameField, name: &str) -> Result<(), NameError> {
    let reason = if name.is_empty() {
        "must not be empty"
    } else if name.len() > NAME_BYTES {
        "must not be longer than 255 bytes"
    } else if name == "." || name == ".." {
        "must not be `.` or `..`"
    } else if name.contains(['/', '\\']) {
        "must not hold a slash or a backslash"
    } else if name.contains(char::is_control) {
        "must not hold a control character"
    } else {
        return Ok(());
    };
    Err(NameError { field, reason })
}

/// Checks a context key. It is a text and never a path, so that only control characters are refused; an
/// empty one gives `None`, which means that there is no predecessor to find by it.
pub fn check_context(key: &str) -> Result<Option<&str>, NameError> {
    if key.contains(char::is_control) {
        let reason = "must not hold a control character";
        return Err(NameError { field: NameField::Context, reason });
    }
    Ok(if key.is_empty() { None } else { Some(key) })
}

/// Checks a label. It is free text, and only its length is bounded.
pub fn check_label(label: &str) -> Result<(), NameError> {
    if label.chars().nth(LABEL_CHARACTERS).is_some() {
        let reason = "must not be longer than 200 characters: a few words name a command";
        return Err(NameError { field: NameField::Label, reason });
    }
    Ok(())
}

/// A label as a notice shows it, on one line. Records of earlier versions can hold a longer one than is accepted.
#[must_use]
pub fn shown_label(label: &str) -> String {
    shorten(label, LABEL_CHARACTERS)
}

/// Free text (a label, a command line, a path) as it is shown on one line: line breaks and tabs become
/// one space, other control characters and the marks that turn the direction of text are left out.
#[must_use]
pub fn display_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut broken = false;
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => broken = true,
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() => {}
            c => {
                if broken && !line.is_empty() && !line.ends_with(' ') && c != ' ' {
                    line.push(' ');
                }
                broken = false;
                line.push(c);
            }
        }
    }
    line
}

/// Free text as quoted data inside a notice: one line between double quotes that it cannot close.
#[must_use]
pub fn quoted(text: &str) -> String {
    let line = display_line(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{line}\"")
}

/// The first part of free text on one line of at most `characters`, with an ellipsis where it was cut.
#[must_use]
pub fn shorten(text: &str, characters: usize) -> String {
    let line = display_line(text);
    if line.chars().count() <= characters {
        return line;
    }
    let mut short: String = line.chars().take(characters.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: R9
    #[test]
    fn r9_names_from_outside() {
        let longest = "x".repeat(255);
        let too_long = "x".repeat(256);
        // 85 characters of three bytes fit exactly; the bound is in bytes and not in characters.
        let longest_wide = "名".repeat(85);
        let too_long_wide = "名".repeat(86);
        let cases: [(&str, bool); 30] = [
            ("", false),
            (".", false),
            ("..", false),
            ("...", true),
            (".hidden", true),
            ("a..b", true),
            ("/", false),
            ("a/b", false),
            ("../../etc", false),
            ("a\\b", false),
            ("..\\..", false),
            ("a\0b", false),
            ("a\nb", false),
            ("a\rb", false),
            ("a\tb", false),
            ("\u{1b}[31m", false),
            ("a\u{7f}", false),
            ("a\u{85}b", false),
            ("a\u{9b}b", false),
            ("model", true),
            ("my-hook", true),
            ("my_hook", true),
            ("hook2", true),
            ("42", true),
            ("名前", true),
            ("．．", true),
            ("a b", true),
            (&longest, true),
            (&longest_wide, true),
            (&too_long, false),
        ];
        for field in [NameField::Kind, NameField::Consumer, NameField::Session] {
            for (name, good) in cases {
                match check_name(field, name) {
                    Ok(()) => assert!(good, "{name:?} was accepted"),
                    Err(error) => {
                        assert!(!good, "{name:?}: {error}");
                        assert!(error.to_string().contains(field.word()), "{error} names the field");
                    }
                }
            }
            assert!(check_name(field, &too_long_wide).is_err());
        }
    }

    /// Covers: R9
    #[test]
    fn r9_a_label_is_shown_on_one_line_without_control_characters() {
        for (label, shown) in [
            ("build", "build"),
            ("a/b", "a/b"),
            ("two\nlines", "two lines"),
            ("two\r\n\n  lines\n", "two  lines"),
            ("\n\nfirst", "first"),
            ("\u{1b}[31mred\u{9b}0m\0\u{7f}", "[31mred0m"),
            ("a\u{2028}b\u{202e}c", "a bc"),
            ("名前", "名前"),
            ("", ""),
        ] {
            assert_eq!(display_line(label), shown, "{label:?}");
        }
    }

    /// Covers: R9
    #[test]
    fn r9_a_label_is_bounded_where_it_is_taken_and_where_it_is_shown() {
        let longest = "名".repeat(200);
        assert_eq!((check_label(&longest), shown_label(&longest)), (Ok(()), longest.clone()));
        let too_long = check_label(&(longest.clone() + "x")).expect_err("201 characters");
        assert_eq!(
            too_long.to_string(),
            "the label must not be longer than 200 characters: a few words name a command"
        );
        assert_eq!(shown_label(&"x".repeat(100_000)).chars().count(), 200);
    }

    #[test]
    fn case_047_quoted_text_cannot_close_its_quotes() {
        assert_eq!(quoted("yes\"\nexit code: 0"), r#""yes\" exit code: 0""#);
        assert_eq!(quoted("\\"), r#""\\""#);
        assert_eq!(quoted("\\\""), r#""\\\"""#);
    }

    /// Covers: D8, O5
    #[test]
    fn d8_long_text_is_cut_with_an_ellipsis() {
        assert_eq!(shorten("short", LIST_CHARACTERS), "short");
        let exact = "x".repeat(48);
        assert_eq!(shorten(&exact, LIST_CHARACTERS), exact);
        let cut = shorten(&"名".repeat(49), 48);
        assert_eq!(cut.chars().count(), 48);
        assert!(cut.ends_with('…'));
        assert_eq!(shorten("for i in 1 2\ndo x\ndone", 48), "for i in 1 2 do x done");
    }

    /// Covers: M9
    #[test]
    fn m9_a_context_key_is_a_text() {
        for key in ["plain", "../x", "../..", "..", "/etc/passwd", "a\\b", "名前"] {
            assert_eq!(check_context(key), Ok(Some(key)));
        }
        assert_eq!(check_context(""), Ok(None));
        for key in ["a\0b", "a\nb", "\u{7f}", "a\u{9b}"] {
            let error = check_context(key).expect_err(key);
            assert_eq!(error.to_string(), "the context must not hold a control character");
        }
    }
}
