//! Unsafe code: where it may stand, that each block is argued, and that every crate says so.

use crate::tree::{self, Source};

/// The only folder in which unsafe code may stand.
pub const DOOR: &str = "crates/host/src/sys";

/// Unsafe code outside of the one door.
pub fn outside_the_door(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        .filter(|source| !is_door(&source.path))
        .flat_map(|source| {
            unsafe_lines(&source.text)
                .into_iter()
                .map(|number| format!("{}:{number}: unsafe code outside of {DOOR}", source.path))
        })
        .collect()
}

/// Unsafe blocks and implementations that no `// SAFETY:` comment argues. The comment stands right
/// above the statement that has the block.
pub fn unargued(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        let lines: Vec<&str> = source.text.lines().collect();
        for number in unsafe_lines(&source.text) {
            let line = tree::without_strings(lines[number - 1]);
            let needs = line.contains("unsafe {") || line.contains("unsafe impl");
            if needs && !is_argued(&lines, number - 1) {
                faults.push(format!("{}:{number}: no `// SAFETY:` above it", source.path));
            }
        }
    }
    faults
}

/// Crate roots that do not forbid unsafe code. The crate that has the door denies it, and allows it
/// for the door alone.
pub fn unlocked_roots(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        if !(source.path.ends_with("/src/lib.rs") || source.path.ends_with("/src/main.rs")) {
            continue;
        }
        let wanted =
            if source.path == "crates/host/src/lib.rs" { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
        if !source.text.lines().any(|line| line == wanted) {
            faults.push(format!("{}: `{wanted}` is missing", source.path));
        }
    }
    faults
}

/// Places that lift the ban on unsafe code, other than the line above the door.
pub fn lifted_bans(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| !is_door(&source.path)) {
        let lines = tree::code_lines(&source.text);
        for (index, (number, line)) in lines.iter().enumerate() {
            let lifts = (line.contains("allow(") || line.contains("expect(")) && line.contains("unsafe_code");
            let next = lines.get(index + 1).map_or("", |(_, next)| next.trim());
            let is_the_door = source.path == "crates/host/src/lib.rs" && next == "pub mod sys;";
            if lifts && line.trim_start().starts_with('#') && !is_the_door {
                faults.push(format!("{}:{number}: unsafe code is allowed here", source.path));
            }
        }
    }
    faults
}

fn is_door(path: &str) -> bool {
    path.strip_prefix(DOOR).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}

fn unsafe_lines(text: &str) -> Vec<usize> {
    tree::code_lines(text)
        .into_iter()
        .filter(|(_, line)| {
            let line = tree::without_strings(line);
            ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait", "#[unsafe("]
                .iter()
                .any(|word| line.contains(word))
        })
        .map(|(number, _)| number)
        .collect()
}

/// Up to three lines of the same statement may stand between the comment and the block.
fn is_argued(lines: &[&str], at: usize) -> bool {
    if lines[at].contains("// SAFETY:") {
        return true;
    }
    let mut above = at;
    for _ in 0..4 {
        if above == 0 {
            return false;
        }
        above -= 1;
        if lines[above].trim_start().starts_with("//") {
            break;
        }
        if lines[above].trim_end().ends_with(['}', ';']) {
            return false;
        }
    }
    lines[..=above]
        .iter()
        .rev()
        .take_while(|line| line.trim_start().starts_with("//"))
        .any(|line| line.contains("SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "fn f() {\n    unsafe { g() }\n}\n";

    #[test]
    fn unsafe_outside_the_door_is_found() {
        let outside = Source::sample("crates/host/src/proc.rs", BLOCK);
        let inside = Source::sample("crates/host/src/sys/spawn.rs", BLOCK);
        let word = Source::sample("crates/core/src/id.rs", "fn f() { let a = \"unsafe {\"; } // unsafe {\n");
        assert_eq!(outside_the_door(&[outside, inside, word]).len(), 1);
    }

    #[test]
    fn a_block_without_an_argument_is_found() {
        let bad = Source::sample("a.rs", BLOCK);
        let good = Source::sample(
            "b.rs",
            "fn f() {\n    // SAFETY: g does\n    // nothing.\n    let x =\n        unsafe { g() };\n}\n",
        );
        let far = Source::sample("c.rs", "// SAFETY: of another one\nlet a = 1;\nlet b = unsafe { g() };\n");
        let faults = unargued(&[bad, good, far]);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("a.rs:2") && faults[1].starts_with("c.rs:3"));
    }

    #[test]
    fn a_root_without_a_lock_is_found() {
        let good = Source::sample("crates/core/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n");
        let bad = Source::sample("crates/cli/src/main.rs", "//! x\n#![deny(unsafe_code)]\n");
        let host = Source::sample("crates/host/src/lib.rs", "#![deny(unsafe_code)]\n");
        assert_eq!(unlocked_roots(&[good, bad, host]).len(), 1);
    }

    #[test]
    fn a_lifted_ban_is_found() {
        let door = Source::sample(
            "crates/host/src/lib.rs",
            "#[allow(unsafe_code)]\npub mod sys;\n#[allow(unsafe_code)]\npub mod proc;\n",
        );
        let faults = lifted_bans(&[door]);
        assert_eq!(faults, ["crates/host/src/lib.rs:3: unsafe code is allowed here"]);
    }
}
