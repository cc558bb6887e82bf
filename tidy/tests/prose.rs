//! The prose of the real tree: purposes, lengths, waiting, paths in documents, words.

use outlast_tidy::{prose, tree};

fn hold(faults: &[String], help: &str) {
    assert!(faults.is_empty(), "\n{}\n\n{help}\n", faults.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    hold(&prose::without_purpose(&tree::rust_files()), "Open the file with `//!` and one sentence.");
}

#[test]
fn no_file_is_too_long() {
    hold(&prose::too_long(&tree::rust_files()), "Split the file by what it is about, not by its length.");
}

#[test]
fn nothing_sleeps() {
    let allowed = tree::read("tidy/allow-sleep.txt");
    hold(
        &prose::sleeps(&tree::rust_files(), &allowed),
        "Tests wait with the bounded waits of crates/testkit. An exception goes into tidy/allow-sleep.txt with its reason.",
    );
}

#[test]
fn no_test_is_ignored() {
    hold(&prose::ignored(&tree::rust_files()), "Mend the test, or delete it.");
}

#[test]
fn no_test_runs_again() {
    hold(&prose::retries(&tree::read(".config/nextest.toml")), "A test that fails has failed.");
}

#[test]
fn documents_name_paths_that_exist() {
    let folders = tree::folders();
    let tops: Vec<String> = folders.iter().filter(|folder| !folder.contains('/')).cloned().collect();
    let mut faults = Vec::new();
    for document in ["ARCHITECTURE.md", "GLOSSARY.md", "README.md", "CONTRIBUTING.md", "STABILITY.md"] {
        let dead = prose::dead_paths(&tree::read(document), &tops, |path| tree::root().join(path).exists());
        faults.extend(dead.into_iter().map(|fault| format!("{document}: {fault}")));
    }
    hold(&faults, "Change the document together with the tree.");
}

#[test]
fn the_architecture_names_every_folder() {
    // A folder next to a file of its name holds the parts of that file and needs no paragraph.
    let continues = |folder: &str| tree::root().join(format!("{folder}.rs")).exists();
    let folders: Vec<String> = tree::folders()
        .into_iter()
        .filter(|folder| !folder.contains('/') || folder.starts_with("crates/"))
        .filter(|folder| folder != "crates" && !folder.ends_with("/src") && !folder.ends_with("/tests"))
        .filter(|folder| !folder.contains("/tests/") && !folder.contains("/fixtures/") && !continues(folder))
        .collect();
    hold(
        &prose::unnamed_folders(&tree::read("ARCHITECTURE.md"), &folders),
        "Each folder has a paragraph that says what it does and what it never does.",
    );
}

#[test]
fn no_text_speaks_of_a_workplace() {
    let words = [
        concat!("../", "shared"),
        concat!("/work/", "main"),
        concat!("/work/", "shared"),
        concat!("/tmp/", "plan"),
        concat!("/root", "/"),
    ];
    let endings = [".rs", ".md", ".toml", ".txt", ".sh", ".py", "/run", ".yml", ".yaml", ".json"];
    hold(&prose::forbidden_words(&tree::files(&endings), &words), "The project stands by itself.");
}
