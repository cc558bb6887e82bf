//! Coverage: every row of the acceptance list and every case has a test that names it, or a reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::markdown;
use crate::tree::Source;

/// What docs/coverage.toml says: table, then id, then reason.
pub type Reasons = BTreeMap<String, BTreeMap<String, String>>;

/// The row ids of the area tables of the acceptance list. An id that stands twice is a fault.
pub fn row_ids(acceptance: &str) -> Result<BTreeSet<String>, String> {
    let areas = acceptance.split("\n## Numbers on one page").next().unwrap_or(acceptance);
    let mut ids = BTreeSet::new();
    for row in markdown::rows(areas) {
        if row.len() == 5 && is_row_id(&row[0]) && !ids.insert(row[0].clone()) {
            return Err(format!("row {} stands twice", row[0]));
        }
    }
    Ok(ids)
}

/// The numbers of the cases, from headings `### case-NNN …`.
pub fn case_ids(cases: &str) -> BTreeSet<String> {
    cases
        .lines()
        .filter_map(|line| line.strip_prefix("### case-"))
        .filter_map(|rest| rest.get(..3))
        .map(str::to_owned)
        .collect()
}

/// Reads the tables of docs/coverage.toml: `[table]` and `ID = "reason"`, nothing else.
pub fn reasons(text: &str) -> Result<Reasons, String> {
    let mut tables = Reasons::new();
    let mut table = String::new();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = name.to_owned();
            tables.entry(table.clone()).or_default();
            continue;
        }
        let (id, reason) = line
            .split_once(" = \"")
            .and_then(|(id, rest)| Some((id, rest.strip_suffix('"')?)))
            .ok_or(format!("line {at}: not `ID = \"reason\"`"))?;
        if reason.len() < 20 || !reason.ends_with('.') {
            return Err(format!("line {at}: the reason is no sentence"));
        }
        let rows = tables.get_mut(&table).ok_or(format!("line {at}: it stands in no table"))?;
        if rows.insert(id.to_owned(), reason.to_owned()).is_some() {
            return Err(format!("line {at}: {id} stands twice in [{table}]"));
        }
    }
    Ok(tables)
}

/// What the tests of the project name.
#[derive(Debug, Default)]
pub struct Claims {
    /// Row id to the tests that name it, as `path:line`.
    pub rows: BTreeMap<String, Vec<String>>,
    /// Case number to the tests that name it.
    pub cases: BTreeMap<String, Vec<String>>,
    /// Claims that are none: a `Covers:` on something that is no test, or with a word that is no id.
    pub faults: Vec<String>,
}

/// Reads the claims of all tests: `Covers: A1, B2` in a comment of a test, or a name that
/// begins with an id. A case may stand behind `Covers:` too; what counts for it is a test of its name.
pub fn claims(sources: &[Source]) -> Claims {
    let mut claims = Claims::default();
    for source in sources.iter().filter(|source| !source.path.starts_with("tidy/")) {
        let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let at = format!("{}:{}", source.path, index + 1);
            if let Some(list) = covers(line) {
                if !in_head_of_test(&lines, index) {
                    claims.faults.push(format!("{at}: `Covers:` stands on something that is no test"));
                }
                for id in list.split([',', ' ']).map(|id| id.trim_end_matches('.')).filter(|id| !id.is_empty()) {
                    if is_row_id(id) {
                        claims.rows.entry(id.to_owned()).or_default().push(at.clone());
                    } else if !id.strip_prefix("case-").is_some_and(is_case_number) {
                        claims.faults.push(format!("{at}: `{id}` is no row id"));
                    }
                }
            }
            if let Some(name) = function_name(line).filter(|_| in_head_of_test(&lines, index)) {
                let first = name.split('_').next().unwrap_or(name).to_uppercase();
                if is_row_id(&first) {
                    claims.rows.entry(first).or_default().push(at.clone());
                } else if let Some(case) = name.strip_prefix("case_").and_then(|rest| rest.get(..3)) {
                    claims.cases.entry(case.to_owned()).or_default().push(at);
                }
            }
        }
    }
    claims
}

/// Rows that are neither covered nor listed, listed wrongly, or claimed without being in the list.
pub fn row_faults(rows: &BTreeSet<String>, claims: &Claims, reasons: &Reasons) -> Vec<String> {
    let none = BTreeMap::new();
    let of = |table: &str| reasons.get(table).unwrap_or(&none);
    let mut faults = Vec::new();
    for table in ["open", "by-design", "part"] {
        let unknown = of(table).keys().filter(|id| !rows.contains(*id));
        faults.extend(unknown.map(|id| format!("[{table}] names {id}, which is no row")));
    }
    for (id, tests) in &claims.rows {
        if !rows.contains(id) {
            faults.push(format!("{} names {id}, which is no row", tests[0]));
        }
    }
    for id in rows {
        let covered = claims.rows.get(id);
        let tables: Vec<&str> =
            ["open", "by-design", "part"].into_iter().filter(|table| of(table).contains_key(id)).collect();
        match (covered, tables.as_slice()) {
            (_, [_, _, ..]) => faults.push(format!("{id} stands in several tables: {}", tables.join(", "))),
            (Some(tests), [table @ ("open" | "by-design")]) => {
                faults.push(format!("{id} is in [{table}], and {} covers it", tests[0]));
            }
            (None, ["part"]) => faults.push(format!("{id} is in [part], and no test covers what is built")),
            (None, []) if !of("areas").contains_key(&id[..1]) => {
                faults.push(format!("{id} is covered by no test and listed nowhere"));
            }
            _ => {}
        }
    }
    faults
}

/// The same for cases.
pub fn case_faults(cases: &BTreeSet<String>, claims: &Claims, reasons: &Reasons) -> Vec<String> {
    let none = BTreeMap::new();
    let of = |table: &str| reasons.get(table).unwrap_or(&none);
    let mut faults = Vec::new();
    for (id, place) in claims
        .cases
        .iter()
        .map(|(id, tests)| (id, tests[0].as_str()))
        .chain(of("cases-open").keys().map(|id| (id, "[cases-open]")))
        .chain(of("cases-part").keys().map(|id| (id, "[cases-part]")))
    {
        if !cases.contains(id) {
            faults.push(format!("{place} names case {id}, which is no case"));
        }
    }
    for id in cases {
        let tested = claims.cases.contains_key(id);
        let open = of("cases-open").contains_key(id);
        let part = of("cases-part").contains_key(id);
        match (tested, open, part) {
            (_, true, true) => faults.push(format!("case {id} is both open and built in part")),
            (true, true, _) => faults.push(format!("case {id} is listed as open and has a test")),
            (false, false, true) => faults.push(format!("case {id} is in [cases-part] and has no test")),
            (false, false, false) => faults.push(format!("case {id} has no test `case_{id}_…` and is listed nowhere")),
            _ => {}
        }
    }
    faults
}

fn is_row_id(word: &str) -> bool {
    let mut chars = word.chars();
    let area = chars.next().is_some_and(|c| ('A'..='U').contains(&c));
    let number = chars.as_str();
    area && (1..=2).contains(&number.len()) && number.chars().all(|c| c.is_ascii_digit()) && !number.starts_with('0')
}

fn is_case_number(word: &str) -> bool {
    word.len() == 3 && word.chars().all(|c| c.is_ascii_digit())
}

fn covers(line: &str) -> Option<&str> {
    let comment = line.strip_prefix("//")?;
    comment.trim_start_matches(['/', '!']).trim_start().strip_prefix("Covers:")
}

fn function_name(line: &str) -> Option<&str> {
    let rest = ["pub async fn ", "async fn ", "pub fn ", "fn "].iter().find_map(|start| line.strip_prefix(start))?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

/// Whether the comments and attributes around a line belong to a function that is a test.
fn in_head_of_test(lines: &[&str], at: usize) -> bool {
    let is_head = |line: &str| line.starts_with("//") || line.starts_with("#[");
    let above = lines[..at].iter().rev().take_while(|line| is_head(line));
    let below = lines[at..].iter().take_while(|line| is_head(line));
    above.chain(below).any(|line| {
        line.starts_with("#[") && (line.contains("test]") || line.contains("test(")) && !line.contains("cfg(")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "| A1 | x | - | - | c |\n| A2 | x | - | - | c |\n| H1 | x | - | - | c |\n\n## Numbers on one page\n| A3 | x | - | - | c |\n";
    const TESTS: &str = "/// Covers: A1, H1.\n#[test]\nfn works() {}\n\n#[tokio::test(flavor = \"x\")]\nasync fn a2_too() {}\n\n#[test]\nfn case_009_told() {}\n";

    fn faults(tests: &str, toml: &str) -> Vec<String> {
        let rows = row_ids(LIST).expect("the sample is sound");
        let claims = claims(&[Source::sample("crates/x/tests/a.rs", tests)]);
        let reasons = reasons(toml).expect("the sample is sound");
        row_faults(&rows, &claims, &reasons)
    }

    #[test]
    fn covered_rows_have_no_fault() {
        assert_eq!(faults(TESTS, "[open]\n"), [""; 0]);
        assert_eq!(
            faults("", "[areas]\nA = \"This area is not built yet.\"\nH = \"This area is not built yet.\"\n"),
            [""; 0]
        );
    }

    #[test]
    fn an_uncovered_row_is_found() {
        assert_eq!(
            faults("", "[open]\nA1 = \"It is not built yet at all.\"\nH1 = \"It is not built yet at all.\"\n").len(),
            1
        );
    }

    #[test]
    fn a_row_that_is_both_is_found() {
        assert_eq!(faults(TESTS, "[open]\nA1 = \"It is not built yet at all.\"\n").len(), 1);
        assert_eq!(faults(TESTS, "[by-design]\nA1 = \"The type has no such variant.\"\n").len(), 1);
        assert_eq!(faults(TESTS, "[part]\nA1 = \"It is not built yet at all.\"\n"), [""; 0]);
    }

    #[test]
    fn a_part_without_a_test_is_found() {
        let both = "[areas]\nA = \"This area is not built yet.\"\nH = \"This area is not built yet.\"\n[part]\nA1 = \"It is not built yet at all.\"\n";
        assert_eq!(faults("", both).len(), 1);
    }

    #[test]
    fn an_unknown_row_is_found() {
        let tests = format!("{TESTS}#[test]\nfn b9_unknown() {{}}\n");
        assert_eq!(faults(&tests, "[open]\nC1 = \"It is not built yet at all.\"\n").len(), 2);
    }

    #[test]
    fn a_claim_of_something_else_is_found() {
        let case = "/// Covers: A1, case-009\n#[test]\nfn x() {}\n";
        assert_eq!(claims(&[Source::sample("crates/x/src/a.rs", case)]).faults, [""; 0]);
        let text = "/// Covers: A1\nfn helper() {}\n/// Covers: A1 and B\n#[test]\nfn x() {}\n";
        assert_eq!(claims(&[Source::sample("crates/x/src/a.rs", text)]).faults.len(), 3);
    }

    #[test]
    fn a_helper_that_is_named_like_a_row_covers_nothing() {
        assert!(claims(&[Source::sample("crates/x/src/a.rs", "fn a1_helper() {}\n")]).rows.is_empty());
    }

    #[test]
    fn a_reason_must_be_a_sentence() {
        assert!(reasons("[open]\nA1 = \"later\"\n").is_err());
        assert!(reasons("A1 = \"It is not built yet at all.\"\n").is_err());
        assert!(row_ids("| A1 | x | - | - | c |\n| A1 | x | - | - | c |\n").is_err());
    }

    #[test]
    fn cases_are_matched_with_tests() {
        let cases = case_ids("### case-009 a\n### case-011 b\n### case-012 c (MCP)\n");
        let claims = claims(&[Source::sample("crates/x/tests/a.rs", TESTS)]);
        let list = |toml| case_faults(&cases, &claims, &reasons(toml).expect("the sample is sound"));
        assert_eq!(
            list("[cases-open]\n011 = \"It is not built yet at all.\"\n012 = \"It is not built yet at all.\"\n"),
            [""; 0]
        );
        assert_eq!(list("[cases-open]\n009 = \"It is not built yet at all.\"\n").len(), 3);
        assert_eq!(
            list("[cases-part]\n011 = \"It is not built yet at all.\"\n013 = \"It is not built yet at all.\"\n").len(),
            3
        );
    }
}
