//! The promises of the real tree: stored names, schemas and exit codes.

use outlast_tidy::{promises, tree};

fn hold(faults: &[String], help: &str) {
    assert!(faults.is_empty(), "\n{}\n\n{help}\n", faults.join("\n"));
}

#[test]
fn each_stored_file_has_one_writer() {
    let faults = promises::several_writers(&tree::read("crates/host/src/store/mod.rs"), &tree::rust_files());
    hold(&faults, "Each stored file is written by one function below crates/host/src/store.");
}

#[test]
fn each_stored_name_stands_in_one_place() {
    let names = promises::stored_names(&tree::read("docs/contract.md"));
    assert!(names.len() > 10, "docs/contract.md has no tree of the files on disk");
    hold(
        &promises::scattered_names(&names, &tree::rust_files()),
        "A stored name is a constant next to the function that writes the file.",
    );
}

#[test]
fn every_schema_stands_in_the_stability_page() {
    let promised = promises::promised_schemas(&tree::read("STABILITY.md"));
    let real = promises::schemas(&tree::rust_files());
    let faults: Vec<String> = real
        .difference(&promised)
        .map(|schema| format!("STABILITY.md does not name {schema}"))
        .chain(promised.difference(&real).map(|schema| format!("no code has {schema}, which STABILITY.md promises")))
        .collect();
    hold(&faults, "Outside programs read these.");
}

#[test]
fn every_key_of_json_stands_in_the_contract() {
    let contract = tree::read("docs/contract.md");
    let faults: Vec<String> = promises::view_keys(&tree::rust_files())
        .into_iter()
        .filter(|key| !contract.contains(&format!("`{key}`")) && !contract.contains(&format!("\"{key}\"")))
        .map(|key| format!("docs/contract.md does not name the key {key}"))
        .collect();
    hold(&faults, "Programs read these.");
}

#[test]
fn every_variable_stands_in_the_contract() {
    let contract = tree::read("docs/contract.md");
    let faults: Vec<String> = promises::variables(&tree::rust_files())
        .into_iter()
        .filter(|name| !contract.contains(&format!("`{name}`")) && !contract.contains(&format!("`${name}`")))
        .map(|name| format!("docs/contract.md does not name {name}"))
        .collect();
    hold(&faults, "Who sets the environment must be able to look it up.");
}

#[test]
fn every_exit_code_stands_in_the_stability_page() {
    let table = promises::exit_table(&tree::read("STABILITY.md"));
    let promised: Vec<u32> = table.iter().filter_map(|(code, _)| code.parse().ok()).collect();
    let real = promises::exit_numbers(&tree::read("crates/cli/src/exit.rs"));
    let faults: Vec<String> = real
        .iter()
        .filter(|code| !promised.contains(code) && **code != 128)
        .map(|code| format!("STABILITY.md does not have {code}"))
        .chain(
            promised
                .iter()
                .filter(|code| !real.contains(code))
                .map(|code| format!("crates/cli/src/exit.rs does not have {code}")),
        )
        .collect();
    hold(&faults, "There is one table of exit codes, in STABILITY.md.");
}

#[test]
fn the_exit_code_table_is_the_same_everywhere() {
    let table = promises::exit_table(&tree::read("STABILITY.md"));
    assert!(!table.is_empty(), "STABILITY.md has no table `code | meaning`");
    for document in ["README.md", "docs/contract.md"] {
        assert_eq!(promises::exit_table(&tree::read(document)), table, "{document} and STABILITY.md differ");
    }
}

#[test]
fn the_script_runs_the_tests_as_the_readme_says() {
    let script = tree::read(".ci/run");
    let readme = tree::read("README.md");
    let command = "cargo test --workspace";
    assert!(readme.lines().any(|line| line == command), "README.md does not have the line `{command}`");
    assert!(script.lines().any(|line| line == command), ".ci/run does not run `{command}`");
}
