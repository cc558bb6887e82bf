//! Our lines in a file of instructions that a person writes: a block between two marks.
//!
//! Hosts of one project read the same file, so that the first mark names those that were set up: the block stays for
//! as long as one of them is.

use super::entry::Edited;

const OPEN: (&str, &str) = ("<!-- outlast setup for ", ": begin -->");
const CLOSE: &str = "<!-- outlast setup: end -->";
const PLACE: &str = "the block of lines for the model";

/// A block, and what stands around it.
struct Block<'a> {
    before: &'a str,
    hosts: Vec<&'a str>,
    lines: &'a str,
    after: &'a str,
}

/// Puts the lines at the end, or the host's name to a block that is there.
pub fn put(text: &str, host: &str, lines: &str) -> Result<Edited, String> {
    let mut edited = Edited { text: text.to_owned(), ..Edited::default() };
    match find(text)? {
        None => {
            let gap = match text {
                "" => "",
                text if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            edited.text = format!("{text}{gap}{}", block(&[host], lines));
            edited.added.push(PLACE.to_owned());
        }
        Some(found) if !same(found.lines, lines) => edited.left.push(PLACE.to_owned()),
        Some(found) if found.hosts.contains(&host) => {}
        Some(Block { before, mut hosts, after, .. }) => {
            hosts.push(host);
            edited.text = format!("{before}{}{after}", block(&hosts, lines));
            edited.added.push(format!("{host} to those whose model reads the lines"));
        }
    }
    Ok(edited)
}

/// Takes the host's name out, and the block with the last of them, with the empty line before it.
pub fn take(text: &str, host: &str, lines: &str) -> Result<Edited, String> {
    let mut edited = Edited { text: text.to_owned(), ..Edited::default() };
    let Some(Block { before, mut hosts, lines: found, after }) = find(text)? else { return Ok(edited) };
    if !hosts.contains(&host) {
        return Ok(edited);
    }
    if !same(found, lines) {
        edited.left.push(PLACE.to_owned());
        return Ok(edited);
    }
    hosts.retain(|one| *one != host);
    if hosts.is_empty() {
        let before = if before.ends_with("\n\n") { &before[..before.len() - 1] } else { before };
        edited.text = format!("{before}{after}");
        edited.removed.push(PLACE.to_owned());
    } else {
        edited.text = format!("{before}{}{after}", block(&hosts, lines));
        edited
            .removed
            .push(format!("{host} from those whose model reads the lines; they stay for {}", hosts.join(", ")));
    }
    Ok(edited)
}

/// Whether a block stands in it, for whichever host.
pub fn has(text: &str) -> bool {
    find(text).is_ok_and(|found| found.is_some())
}

fn block(hosts: &[&str], lines: &str) -> String {
    format!("{}{}{}\n{lines}{CLOSE}\n", OPEN.0, hosts.join(", "), OPEN.1)
}

/// Whether the lines are the same but for how they end.
fn same(found: &str, lines: &str) -> bool {
    found.lines().eq(lines.lines())
}

fn find(text: &str) -> Result<Option<Block<'_>>, String> {
    let (mut at, mut open) = (0, None);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        match open {
            None => {
                let hosts = line.trim_end().strip_prefix(OPEN.0).and_then(|rest| rest.strip_suffix(OPEN.1));
                open = hosts.map(|hosts| (number + 1, at, end, hosts));
            }
            Some((_, begin, first, hosts)) if line.trim_end() == CLOSE => {
                return Ok(Some(Block {
                    before: &text[..begin],
                    hosts: hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).collect(),
                    lines: &text[first..at],
                    after: &text[end..],
                }));
            }
            Some(_) => {}
        }
        at = end;
    }
    match open {
        None => Ok(None),
        Some((line, ..)) => Err(format!("line {line}: a block of outlast begins here that does not end with {CLOSE}")),
    }
}
