//! Our lines in a file of instructions that a person writes: a block between two marks.

use super::entry::Edited;

const OPEN: &str = "<!-- outlast setup: begin -->\n";
const CLOSE: &str = "<!-- outlast setup: end -->\n";

/// Puts the lines at the end, or in place of an older block.
pub fn put(text: &str, lines: &str) -> Result<Edited, String> {
    let block = format!("{OPEN}{lines}{CLOSE}");
    let new = match find(text)? {
        Some((before, after)) => format!("{before}{block}{after}"),
        None if text.is_empty() => block,
        None => format!("{text}{}\n{block}", if text.ends_with('\n') { "" } else { "\n" }),
    };
    let changed = if new == text { Vec::new() } else { vec!["the lines for the model".to_owned()] };
    Ok(Edited { text: new, changed, left: Vec::new() })
}

/// Takes the block out, with the empty line before it.
pub fn take(text: &str) -> Result<Edited, String> {
    let Some((before, after)) = find(text)? else {
        return Ok(Edited { text: text.to_owned(), ..Edited::default() });
    };
    let before = if before.ends_with("\n\n") { &before[..before.len() - 1] } else { before };
    Ok(Edited {
        text: format!("{before}{after}"),
        changed: vec!["the lines for the model".to_owned()],
        left: Vec::new(),
    })
}

/// What stands before and behind the block.
fn find(text: &str) -> Result<Option<(&str, &str)>, String> {
    let Some(begin) = text.find(OPEN) else { return Ok(None) };
    let line = text[..begin].lines().count() + 1;
    let end = text[begin..].find(CLOSE).ok_or_else(|| {
        format!("line {line}: a block of outlast begins here that does not end with {}", CLOSE.trim_end())
    })?;
    Ok(Some((&text[..begin], &text[begin + end + CLOSE.len()..])))
}
