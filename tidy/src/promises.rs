//! Promises: stored file names with one writer, JSON schemas and exit codes that STABILITY.md has.

use std::collections::BTreeSet;

use crate::markdown;
use crate::tree::{self, Source};

/// Names of the files that outlast stores, as they stand in the tree of docs/contract.md: the first
/// word of each line between the fences of section "On disk" that looks like a file name.
pub fn stored_names(contract: &str) -> Vec<String> {
    let Some(disk) = markdown::section(contract, "## 3. On disk") else {
        return Vec::new();
    };
    disk.split("```")
        .nth(1)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| !word.contains(['/', '…']))
        .map(str::to_owned)
        .collect()
}

/// Stored names that do not stand, as a whole string, in the code of exactly one file, and that below
/// `crates/host/src/store`. So that folder alone knows the layout.
pub fn scattered_names(names: &[String], sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for name in names {
        let literal = format!("\"{name}\"");
        let holders: Vec<&str> = sources
            .iter()
            .filter(|source| !source.is_test() && source.path.starts_with("crates/"))
            .filter(|source| tree::code_lines(&source.text).iter().any(|(_, line)| line.contains(&literal)))
            .map(|source| source.path.as_str())
            .collect();
        match holders.as_slice() {
            [one] if one.starts_with("crates/host/src/store/") => {}
            [] => faults.push(format!("{literal} stands in no file below crates/host/src/store")),
            [one] => faults.push(format!("{literal} stands in {one}, outside of crates/host/src/store")),
            many => faults.push(format!("{literal} stands in several files: {}", many.join(", "))),
        }
    }
    faults
}

/// Calls that write a file of a given name.
const WRITES: [&str; 7] =
    ["put(", "put_once(", "write_once(", "replace(", "create_new(", "create_append(", "create_file("];

/// Second writers that are there on purpose: function, and why.
const SECOND_WRITERS: [(&str, &str); 1] =
    [("amend_exit", "a caller that vanishes before it was told makes a recorded end a completion")];

/// Stored files that several functions write, or none. `names` is the
/// text with the constants `pub const EXIT: &str = "exit.json";`; only files with data count, that is
/// those whose names end in `.json`, `.jsonl`, `.log` or `.idx`.
pub fn several_writers(names: &str, sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for (constant, file) in constants(names) {
        if ![".json", ".jsonl", ".log", ".idx"].iter().any(|ending| file.ends_with(ending)) {
            continue;
        }
        let word = format!("name::{constant}");
        let mut places = Vec::new();
        for source in sources.iter().filter(|source| !source.is_test()) {
            let mut function = String::new();
            for (_, line) in tree::code_lines(&source.text) {
                function = function_of(&line).unwrap_or(function);
                let named = line.match_indices(&word).any(|(at, _)| {
                    let next = line[at + word.len()..].chars().next().unwrap_or(' ');
                    !next.is_alphanumeric() && next != '_'
                });
                let place = format!("{} in {}", function, source.path);
                let known = places.contains(&place) || SECOND_WRITERS.iter().any(|(name, _)| *name == function);
                if named && !known && WRITES.iter().any(|call| line.contains(call)) {
                    places.push(place);
                }
            }
        }
        match places.as_slice() {
            [one] if one.contains(" in crates/host/src/store/") => {}
            [] => faults.push(format!("{file} is written nowhere")),
            several => faults.push(format!("{file} is written by {}", several.join(", "))),
        }
    }
    faults
}

/// The name of the function that a line begins.
fn function_of(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("fn ")?;
    let begins = before.split_whitespace().all(|word| word.starts_with("pub") || word == "async" || word == "const");
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (begins && !name.is_empty()).then_some(name)
}

/// Constants of a Rust text that hold a text: (name, value).
fn constants(text: &str) -> Vec<(String, String)> {
    tree::code_lines(text)
        .into_iter()
        .filter_map(|(_, line)| {
            let rest = line.trim().strip_prefix("pub const ")?.to_owned();
            let (name, value) = rest.split_once(": &str = \"")?;
            Some((name.to_owned(), value.strip_suffix("\";")?.to_owned()))
        })
        .collect()
}

/// All schemas `outlast.<name>/<version>` that shipped code has in its strings.
pub fn schemas(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        for (_, line) in tree::code_lines(&source.text) {
            for (at, _) in line.match_indices("\"outlast.") {
                let word: String = line[at + 1..].chars().take_while(|c| *c != '"').collect();
                if let Some((_, version)) = word.split_once('/')
                    && !version.is_empty()
                    && version.chars().all(|c| c.is_ascii_digit())
                {
                    found.insert(word);
                }
            }
        }
    }
    found
}

/// How the variables begin that only builds for tests read (feature `crash-points`).
const TEST_VARIABLES: &str = "OUTLAST_CRASH_";

/// All environment variables `OUTLAST_…` that shipped code has in its strings.
pub fn variables(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        for (_, line) in tree::code_lines(&source.text) {
            for (at, _) in line.match_indices("\"OUTLAST_") {
                let word: String = line[at + 1..].chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
                if !word.starts_with(TEST_VARIABLES) {
                    found.insert(word);
                }
            }
        }
    }
    found
}

/// The schemas that a document names in backticks.
pub fn promised_schemas(document: &str) -> BTreeSet<String> {
    markdown::backticked(document)
        .into_iter()
        .filter(|word| word.starts_with("outlast.") && word.contains('/'))
        .collect()
}

/// The keys that the shapes of `--json` have: fields of the structures in files of `crates/cli/src/view`,
/// but for those whose keys are merged into the object around them.
pub fn view_keys(sources: &[Source]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates/cli/src/view")) {
        let mut inside = false;
        let mut merged = false;
        for (_, line) in tree::code_lines(&source.text) {
            let words = line.trim().trim_start_matches("pub ");
            if words.starts_with("struct ") && words.ends_with('{') {
                inside = true;
            } else if line.starts_with('}') {
                inside = false;
            } else if inside && words.starts_with("#[") {
                merged = words.contains("flatten");
            } else if let Some((key, _)) = words.split_once(": ").filter(|_| inside) {
                if !merged {
                    keys.insert(key.to_owned());
                }
                merged = false;
            }
        }
    }
    keys
}

/// The rows of the table "code | meaning" of a document.
pub fn exit_table(document: &str) -> Vec<(String, String)> {
    markdown::table(document, &["code", "meaning"])
        .into_iter()
        .filter_map(|row| Some((row.first()?.clone(), row.get(1)?.clone())))
        .collect()
}

/// Numbers that a Rust text gives as exit codes: constants of type `u8` or `i32`, and what stands
/// behind `ExitCode::from(`.
pub fn exit_numbers(text: &str) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    for (_, line) in tree::code_lines(text) {
        let line = tree::without_strings(&line);
        let constant = (line.contains("const ") && (line.contains(": u8 =") || line.contains(": i32 =")))
            .then(|| line.split_once('=').map(|(_, value)| value.to_owned()))
            .flatten();
        let made = line.split_once("ExitCode::from(").map(|(_, value)| value.to_owned());
        for value in [constant, made].into_iter().flatten() {
            let digits: String = value.trim().chars().take_while(char::is_ascii_digit).collect();
            numbers.extend(digits.parse::<u32>().ok());
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: &str = "## 3. On disk\n\ntext\n\n```\nby-anchor/<pid>   x\nsessions/ses_…/\n  exit.json   once\n  lease  flock\n```\n## 4. x\n";

    #[test]
    fn a_name_with_two_writers_is_found() {
        let names = stored_names(CONTRACT);
        assert_eq!(names, ["exit.json", "lease"]);
        let one = Source::sample("crates/host/src/store/command.rs", "const E: &str = \"exit.json\";\n");
        let two = Source::sample("crates/supervisor/src/end.rs", "f(\"exit.json\")\n");
        let test = Source::sample("crates/cli/tests/a.rs", "f(\"exit.json\")\n");
        let faults = scattered_names(&names, &[one.clone(), two.clone(), test.clone()]);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("several"));
        assert_eq!(scattered_names(&names[..1], &[one, test]), [""; 0]);
        assert_eq!(scattered_names(&names[..1], &[two]).len(), 1);
    }

    #[test]
    fn a_file_that_is_written_in_two_places_is_found() {
        let names = "pub const EXIT: &str = \"exit.json\";\npub const LEASE: &str = \"lease\";\n";
        let one = Source::sample(
            "crates/host/src/store/a.rs",
            "pub fn w() {\nput_once(&dir, name::EXIT, r)\nput(&dir, name::EXIT, r)\nput(&d, name::EXIT_X, r)\n}\nfn amend_exit() { put(&d, name::EXIT) }\n",
        );
        let two =
            Source::sample("crates/host/src/store/b.rs", "fn x() {\nput(&dir, name::EXIT, r)\nread(name::EXIT)\n");
        assert_eq!(several_writers(names, std::slice::from_ref(&one)), [""; 0]);
        assert_eq!(several_writers(names, &[one, two]).len(), 1);
        assert_eq!(several_writers(names, &[]), ["exit.json is written nowhere"]);
    }

    #[test]
    fn schemas_are_read_from_code_and_from_documents() {
        let code = Source::sample("crates/cli/src/view.rs", "a(\"outlast.list/1\", \"outlast.log\", \"outlast.x/\")\n");
        let test = Source::sample("crates/cli/tests/a.rs", "a(\"outlast.other/1\")\n");
        let found: Vec<String> = schemas(&[code, test]).into_iter().collect();
        assert_eq!(found, ["outlast.list/1"]);
        assert!(promised_schemas("`outlast.list/1` x").contains("outlast.list/1"));
    }

    #[test]
    fn keys_are_read_from_the_shapes() {
        let code = "#[derive(Serialize)]\npub struct A {\n    #[serde(flatten)]\n    inner: B,\n    /// Note: text.\n    pub told: bool,\n}\nfn f(x: u8) {}\n";
        let shapes = [Source::sample("crates/cli/src/view/a.rs", code), Source::sample("crates/cli/src/cli.rs", code)];
        assert_eq!(view_keys(&shapes).into_iter().collect::<Vec<_>>(), ["told"]);
    }

    #[test]
    fn variables_are_read_from_code() {
        let code = "f(\"OUTLAST_GRACE\", \"OUTLAST_CRASH_AT\") // \"OUTLAST_NOT\"\n";
        let found: Vec<String> = variables(&[Source::sample("crates/cli/src/config.rs", code)]).into_iter().collect();
        assert_eq!(found, ["OUTLAST_GRACE"]);
    }

    #[test]
    fn exit_codes_are_read_from_code_and_from_documents() {
        let table = exit_table("| code | meaning |\n| --- | --- |\n| 0 | done |\n| 128+N | signal |\n");
        assert_eq!(table[1], ("128+N".to_owned(), "signal".to_owned()));
        let text = "pub const USAGE: u8 = 2;\nconst N: &str = \"x\";\nf(ExitCode::from(75))\n// const X: u8 = 9;\n";
        assert_eq!(exit_numbers(text).into_iter().collect::<Vec<_>>(), [2, 75]);
    }
}
