//! Prose and habits: what each file says at its top, its length, waiting, and words that never stand in the project.

use crate::markdown;
use crate::tree::{self, Source};

/// The most lines that a Rust file may have.
pub const MOST_LINES: usize = 500;

/// Files that do not open with a sentence of purpose (`//!`).
pub fn without_purpose(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        .filter(|source| {
            let first = source.text.lines().find(|line| !line.starts_with("#!") && !line.trim().is_empty());
            first.is_none_or(|line| line.strip_prefix("//! ").is_none_or(|text| text.len() <= 10))
        })
        .map(|source| format!("{}: the first line is no `//!` that says what the file is for", source.path))
        .collect()
}

/// Files that are too long.
pub fn too_long(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        .map(|source| (source, source.text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(source, lines)| format!("{}: {lines} lines, {MOST_LINES} are the most", source.path))
        .collect()
}

/// Sleeps outside the test kit. `allowed` holds lines `path: reason`.
pub fn sleeps(sources: &[Source], allowed: &str) -> Vec<String> {
    let allowed: Vec<(&str, &str)> = allowed
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .filter_map(|line| line.split_once(": "))
        .collect();
    let mut faults = Vec::new();
    for source in sources {
        if source.path.starts_with("crates/testkit/") || source.path.starts_with("tidy/") {
            continue;
        }
        let found: Vec<usize> = source
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
            .map(|(index, line)| (index, tree::without_strings(line)))
            .filter(|(_, line)| line.contains("thread::sleep") || line.contains("time::sleep"))
            .map(|(index, _)| index + 1)
            .collect();
        let listed = allowed.iter().any(|(path, reason)| *path == source.path && reason.len() > 20);
        if !listed {
            faults
                .extend(found.iter().map(|line| format!("{}:{line}: sleeps; wait for the event itself", source.path)));
        } else if found.is_empty() {
            faults.push(format!("{}: is in the list of sleepers and does not sleep", source.path));
        }
    }
    faults
}

/// Tests that are switched off.
pub fn ignored(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        for (index, line) in source.text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("#[ignore") || (line.starts_with("#[cfg_attr") && line.contains("ignore")) {
                faults.push(format!("{}:{}: a test is ignored", source.path, index + 1));
            }
        }
    }
    faults
}

/// Settings that run a failed test again.
pub fn retries(config: &str) -> Vec<String> {
    config
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("retries") && line.split('=').nth(1).map(str::trim) != Some("0"))
        .map(|line| format!("a failed test would run again: {line}"))
        .collect()
}

/// Files that have one of `words` in them.
pub fn forbidden_words(sources: &[Source], words: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        for (index, line) in source.text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                faults.push(format!(
                    "{}:{}: `{word}` means nothing to a reader of the project",
                    source.path,
                    index + 1
                ));
            }
        }
    }
    faults
}

/// Paths in backticks of a document that do not exist. A path is a word with a `/` that begins with
/// one of the `tops`, or a file name that stands at the top of the tree.
pub fn dead_paths(document: &str, tops: &[String], exists: impl Fn(&str) -> bool) -> Vec<String> {
    markdown::backticked(document)
        .into_iter()
        // What lies in a home is not of this tree.
        .filter(|word| !word.contains([' ', '…', '<', '*', '~']))
        .filter(|word| {
            let top = word.split('/').next().unwrap_or(word);
            word.contains('/') && tops.iter().any(|known| known == top)
                || word.ends_with(".md")
                || word.ends_with(".toml")
        })
        .filter(|word| !exists(word.trim_end_matches('/')))
        .map(|word| format!("`{word}` does not exist"))
        .collect()
}

/// Folders that a document does not name in backticks, as they are or with a `/` at the end.
pub fn unnamed_folders(document: &str, folders: &[String]) -> Vec<String> {
    let words = markdown::backticked(document);
    folders
        .iter()
        .filter(|folder| !words.iter().any(|word| word.trim_end_matches('/') == *folder))
        .map(|folder| format!("`{folder}` is not named"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_purpose_is_found() {
        let good = Source::sample("a.rs", "//! Says what it is for.\n");
        let bad = Source::sample("b.rs", "use std::fs;\n");
        let empty = Source::sample("c.rs", "//!\n");
        assert_eq!(without_purpose(&[good, bad, empty]).len(), 2);
    }

    #[test]
    fn a_long_file_is_found() {
        let long = Source::sample("a.rs", &"x\n".repeat(MOST_LINES + 1));
        let fits = Source::sample("b.rs", &"x\n".repeat(MOST_LINES));
        assert_eq!(too_long(&[long, fits]), ["a.rs: 501 lines, 500 are the most"]);
    }

    #[test]
    fn a_sleep_is_found_and_can_be_allowed() {
        let sleeper = Source::sample("crates/x/src/a.rs", "fn f() { thread::sleep(d); }\n// thread::sleep\n");
        assert_eq!(sleeps(std::slice::from_ref(&sleeper), "").len(), 1);
        let list = "crates/x/src/a.rs: there is no event for this in any kernel\n";
        assert!(sleeps(std::slice::from_ref(&sleeper), list).is_empty());
        assert_eq!(sleeps(&[sleeper], "crates/x/src/a.rs: why not\n").len(), 1);
        let awake = Source::sample("crates/x/src/a.rs", "fn f() {}\n");
        assert_eq!(sleeps(&[awake], list).len(), 1);
    }

    #[test]
    fn ignored_tests_and_retries_are_found() {
        let text = "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n#[cfg_attr(unix, ignore)]\n";
        assert_eq!(ignored(&[Source::sample("a.rs", text)]).len(), 2);
        assert_eq!(retries("[profile.ci]\nretries = 2\n").len(), 1);
        assert!(retries("retries = 0\n").is_empty());
    }

    #[test]
    fn forbidden_words_are_found() {
        let faults = forbidden_words(&[Source::sample("a.md", "one\nsee elsewhere/x\n")], &["elsewhere/"]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("a.md:2"));
    }

    #[test]
    fn dead_paths_and_unnamed_folders_are_found() {
        let text = "`crates/a` and `crates/b/` and `NONE.md` and `work/wrk_…` and `and/or` and `~/x.toml`";
        let tops = ["crates".to_owned()];
        let faults = dead_paths(text, &tops, |path| path == "crates/a");
        assert_eq!(faults, ["`crates/b/` does not exist", "`NONE.md` does not exist"]);
        let folders = ["crates/b".to_owned(), "crates/c".to_owned()];
        assert_eq!(unnamed_folders(text, &folders), ["`crates/c` is not named"]);
    }
}
