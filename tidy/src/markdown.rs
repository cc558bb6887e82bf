//! Markdown as data: the rows of its tables, its words in backticks, its headings.

/// The rows of the first table whose heading is exactly `heading`, without that heading.
pub fn table(text: &str, heading: &[&str]) -> Vec<Vec<String>> {
    let mut blocks = vec![String::new()];
    for line in text.lines() {
        if line.trim_start().starts_with('|') {
            let block = blocks.last_mut().expect("there is always a block");
            block.push_str(line);
            block.push('\n');
        } else if blocks.last().is_some_and(|block| !block.is_empty()) {
            blocks.push(String::new());
        }
    }
    let mut found = blocks.iter().map(|block| rows(block)).find(|rows| rows.first().is_some_and(|row| *row == heading));
    found.as_mut().map(|rows| rows.split_off(1)).unwrap_or_default()
}

/// A table row: the trimmed text of its cells. Rules under headings (`| --- |`) are left out.
pub fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let Some(inner) = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) else {
            continue;
        };
        let cells: Vec<String> = split_cells(inner);
        if !cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-: ".contains(c))) {
            rows.push(cells);
        }
    }
    rows
}

/// A pipe behind a backslash belongs to the cell.
fn split_cells(inner: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in inner.chars() {
        if c == '|' && !escaped {
            cells.push(String::new());
        } else {
            cells.last_mut().expect("there is always a cell").push(c);
        }
        escaped = c == '\\';
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// The part of a text from the heading that is exactly `heading` to the next of the same or a higher
/// level.
pub fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let level = heading.chars().take_while(|c| *c == '#').count();
    let mut start = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let this = line.chars().take_while(|c| *c == '#').count();
        match start {
            None if line.trim_end() == heading => start = Some(offset),
            Some(from) if this > 0 && this <= level => return Some(&text[from..offset]),
            _ => {}
        }
        offset += line.len();
    }
    start.map(|from| &text[from..])
}

/// The words in backticks outside of fenced blocks.
pub fn backticked(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            words.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_without_rules() {
        let rows = rows("| a | b |\n| --- | --- |\n| 1 \\| 2 | - |\ntext\n");
        assert_eq!(rows, [vec!["a", "b"], vec!["1 \\| 2", "-"]]);
    }

    #[test]
    fn a_table_is_found_by_its_heading_and_ends_with_it() {
        let text = "| x | y |\n|---|---|\n| 0 | 0 |\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c | d |\n| 3 | 4 |\n";
        assert_eq!(table(text, &["a", "b"]), [["1", "2"]]);
        assert!(table(text, &["a"]).is_empty());
    }

    #[test]
    fn a_section_ends_at_its_own_level() {
        let text = "# t\n## a\n1\n### b\n2\n## c\n3\n";
        assert_eq!(section(text, "## a"), Some("## a\n1\n### b\n2\n"));
        assert_eq!(section(text, "## c"), Some("## c\n3\n"));
        assert_eq!(section(text, "## d"), None);
    }

    #[test]
    fn fences_hold_no_words() {
        assert_eq!(backticked("`a` b `c`\n```\n`d`\n```\n"), ["a", "c"]);
    }
}
