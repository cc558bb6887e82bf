//! The tree of the project: its files as texts, and Rust text without comments, strings or tests.

use std::fs;
use std::path::{Path, PathBuf};

/// One text file of the project.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path from the root of the project, with `/` between its parts.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl Source {
    /// A source that exists only in a test of a rule.
    pub fn sample(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether the file is a test, or belongs to a crate that is never shipped.
    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
            || self.path.starts_with("tidy/")
            || self.path.starts_with("crates/testkit/")
            || self.path.starts_with("bench/")
            || self.path.starts_with("fuzz/")
    }
}

/// The root of the project.
pub fn root() -> PathBuf {
    let tidy = Path::new(env!("CARGO_MANIFEST_DIR"));
    tidy.parent().expect("tidy is a folder of the project").to_owned()
}

/// All files of the project whose name ends with one of `endings`, in the order of their paths. Build
/// results and hidden folders other than `.ci` and `.config` are left out.
pub fn files(endings: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    walk(&root(), "", &mut |path, full| {
        if endings.iter().any(|ending| path.ends_with(ending)) {
            let text = fs::read_to_string(full).unwrap_or_else(|error| panic!("{path}: {error}"));
            found.push(Source { path: path.to_owned(), text });
        }
    });
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// All Rust files of the project.
pub fn rust_files() -> Vec<Source> {
    files(&[".rs"])
}

/// The text of one file, named by its path from the root.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All folders of the project, as paths from its root.
pub fn folders() -> Vec<String> {
    let mut found = Vec::new();
    walk(&root(), "", &mut |path, _| {
        let mut parent = path;
        while let Some((folder, _)) = parent.rsplit_once('/') {
            if !found.iter().any(|known| known == folder) {
                found.push(folder.to_owned());
            }
            parent = folder;
        }
    });
    found.sort();
    found
}

fn walk(folder: &Path, prefix: &str, visit: &mut impl FnMut(&str, &Path)) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{prefix}: {error}"));
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| panic!("{prefix}: {error}"));
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type().unwrap_or_else(|error| panic!("{path}: {error}"));
        let hidden = name.starts_with('.') && !matches!(name.as_str(), ".ci" | ".config");
        if kind.is_dir() {
            if !hidden && name != "target" {
                walk(&entry.path(), &path, visit);
            }
        } else if kind.is_file() {
            visit(&path, &entry.path());
        }
    }
}

/// The lines of a Rust text with their numbers from 1, without comments and without the module of
/// unit tests at its end. What stands in strings is kept.
pub fn code_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut pending_test_module = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("#[cfg(test)]") && !line.starts_with(' ') {
            pending_test_module = true;
        } else if pending_test_module && trimmed.starts_with("mod ") && trimmed.ends_with('{') {
            break;
        } else if !trimmed.starts_with("#[") {
            pending_test_module = false;
        }
        lines.push((index + 1, without_comment(line)));
    }
    lines
}

/// One line without what follows `//`, unless that stands inside a string.
fn without_comment(line: &str) -> String {
    let mut in_string = false;
    let mut previous = ' ';
    for (at, c) in line.char_indices() {
        match c {
            '"' if previous != '\\' && previous != '\'' => in_string = !in_string,
            '/' if !in_string && previous == '/' => return line[..at - 1].to_owned(),
            _ => {}
        }
        previous = c;
    }
    line.to_owned()
}

/// One line in which every string is empty, so that words in messages are not taken for code.
pub fn without_strings(line: &str) -> String {
    let mut kept = String::new();
    let mut in_string = false;
    let mut previous = ' ';
    for c in line.chars() {
        let quote = c == '"' && previous != '\\' && previous != '\'';
        if quote {
            in_string = !in_string;
        }
        if quote || !in_string {
            kept.push(c);
        }
        previous = c;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_unit_tests_are_not_code() {
        let text = "let a = \"http://x\"; // note\n#[cfg(test)]\nmod tests {\n    sleep();\n}\n";
        let lines = code_lines(text);
        assert_eq!(lines[0], (1, "let a = \"http://x\"; ".to_owned()));
        assert!(!lines.iter().any(|(_, line)| line.contains("sleep")));
    }

    #[test]
    fn a_single_test_only_item_does_not_end_the_code() {
        let lines = code_lines("#[cfg(test)]\nuse a::b;\nfn after() {}\n");
        assert!(lines.iter().any(|(_, line)| line.contains("after")));
    }

    #[test]
    fn strings_are_emptied() {
        assert_eq!(without_strings("f(\"unsafe { }\", 'x')"), "f(\"\", 'x')");
    }

    #[test]
    fn the_tree_is_found() {
        assert!(rust_files().iter().any(|source| source.path == "tidy/src/tree.rs"));
        assert!(folders().contains(&"tidy/src".to_owned()));
    }
}
