//! The coverage of the acceptance list and of the cases by the tests of the real tree.

use outlast_tidy::{coverage, tree};

fn hold(faults: &[String], help: &str) {
    assert!(faults.is_empty(), "\n{}\n\n{} faults. {help}\n", faults.join("\n"), faults.len());
}

fn reasons() -> coverage::Reasons {
    coverage::reasons(&tree::read("docs/coverage.toml")).unwrap_or_else(|fault| panic!("docs/coverage.toml, {fault}"))
}

#[test]
fn claims_of_tests_are_well_formed() {
    hold(&coverage::claims(&tree::rust_files()).faults, "Write `/// Covers: A1, B2` on a test.");
}

#[test]
fn every_row_is_covered_or_has_a_reason() {
    let rows = coverage::row_ids(&tree::read("docs/acceptance.md"))
        .unwrap_or_else(|fault| panic!("docs/acceptance.md: {fault}"));
    assert!(rows.len() > 200, "docs/acceptance.md has only {} rows", rows.len());
    let claims = coverage::claims(&tree::rust_files());
    hold(
        &coverage::row_faults(&rows, &claims, &reasons()),
        "Write the test, or list the row in docs/coverage.toml with its reason.",
    );
}

#[test]
fn every_case_is_a_test_or_has_a_reason() {
    let cases = coverage::case_ids(&tree::read("docs/cases.md"));
    assert!(cases.len() > 60, "docs/cases.md has only {} cases", cases.len());
    let claims = coverage::claims(&tree::rust_files());
    hold(
        &coverage::case_faults(&cases, &claims, &reasons()),
        "Write the test, or list the case in docs/coverage.toml with its reason.",
    );
}

#[test]
fn all_tables_of_the_reasons_are_known() {
    let known = ["areas", "open", "by-design", "part", "cases-open", "cases-part"];
    for table in reasons().keys() {
        assert!(known.contains(&table.as_str()), "docs/coverage.toml has an unknown table [{table}]");
    }
}
