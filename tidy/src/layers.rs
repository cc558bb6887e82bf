//! Layers: which crate may use which, and which module may use which.

use crate::markdown;
use crate::tree::{self, Source};

/// The edges that ARCHITECTURE.md allows, as (crate, may use), from its table "crate | may use".
pub fn allowed_edges(architecture: &str) -> Vec<(String, String)> {
    let mut edges = Vec::new();
    for row in markdown::table(architecture, &["crate", "may use"]) {
        let from = row[0].trim_matches('`').to_owned();
        edges.extend(markdown::backticked(&row[1]).into_iter().map(|to| (from.clone(), to)));
    }
    edges
}

/// The edges that a manifest has, as (crate, uses), for crates of this project. Only
/// `[dependencies]` and `[build-dependencies]` count.
pub fn real_edges(manifest: &str) -> Vec<(String, String)> {
    dependencies(manifest, &["[dependencies]", "[build-dependencies]"])
}

/// The crates of this project that only the tests of a crate use, as (crate, uses).
pub fn test_edges(manifest: &str) -> Vec<(String, String)> {
    dependencies(manifest, &["[dev-dependencies]"])
}

fn dependencies(manifest: &str, tables: &[&str]) -> Vec<(String, String)> {
    let mut name = String::new();
    let mut table = "";
    let mut edges = Vec::new();
    for line in manifest.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            table = line;
        } else if table == "[package]" && line.starts_with("name") {
            name = line.split('"').nth(1).unwrap_or_default().to_owned();
        } else if tables.contains(&table) && line.starts_with("outlast") {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            edges.push((name.clone(), line[..end].to_owned()));
        }
    }
    edges
}

/// The modules of a crate in the order in which its root lists them.
pub fn modules(root: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for (_, line) in tree::code_lines(root) {
        let line = line.trim();
        let item = ["pub mod ", "pub(crate) mod ", "mod "].iter().find_map(|start| line.strip_prefix(start));
        if let Some(name) = item.and_then(|rest| rest.strip_suffix(';')) {
            modules.push(name.trim().to_owned());
        }
    }
    modules
}

/// Uses of a module that its crate's root lists below the user. `src` is the folder of the crate's
/// sources; the root itself may use everything.
pub fn downward_uses(src: &str, modules: &[String], sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        let Some(inside) = source.path.strip_prefix(src).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let own = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
        let Some(rank) = modules.iter().position(|module| module == own) else {
            continue;
        };
        for used in crate_references(&source.text) {
            if modules.iter().position(|module| *module == used).is_some_and(|other| other > rank) {
                faults.push(format!("{}: uses `crate::{used}`, which is listed below `{own}`", source.path));
            }
        }
    }
    faults
}

/// The first names behind `crate::` in the code of a file, those of groups in braces included.
fn crate_references(text: &str) -> Vec<String> {
    let code: String = tree::code_lines(text).into_iter().map(|(_, line)| line + "\n").collect();
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back().unwrap_or(' ');
        if before.is_alphanumeric() || before == '_' || before == '$' {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            names.extend(group_heads(group));
        } else {
            names.push(head(rest));
        }
    }
    names
}

/// The first names of the parts of `a::b, c::{d, e}, f}`, up to the brace that closes the group.
fn group_heads(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let mut depth = 0;
    let mut part = String::new();
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.push(head(&std::mem::take(&mut part))),
            _ if depth == 0 => part.push(c),
            _ => {}
        }
    }
    heads.push(head(&part));
    heads
}

fn head(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Lines of the command line's sources that name the supervisor, as `path:line`.
pub fn supervisor_doors(sources: &[Source]) -> Vec<String> {
    let mut lines = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates/cli/src/")) {
        for (number, line) in tree::code_lines(&source.text) {
            if line.contains("outlast_supervisor") {
                lines.push(format!("{}:{number}", source.path));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_read_from_both_sides() {
        let table =
            "| crate | may use |\n| --- | --- |\n| `outlast-host` | `outlast-core` |\n| `outlast-core` | nothing |\n";
        assert_eq!(allowed_edges(table), [("outlast-host".to_owned(), "outlast-core".to_owned())]);
        let manifest = "[package]\nname = \"outlast-host\"\n[dependencies]\noutlast-core.workspace = true\nlibc = \"0\"\n[dev-dependencies]\noutlast-testkit = { path = \"\" }\n";
        assert_eq!(real_edges(manifest), allowed_edges(table));
        assert_eq!(test_edges(manifest), [("outlast-host".to_owned(), "outlast-testkit".to_owned())]);
    }

    #[test]
    fn a_use_of_a_lower_module_is_found() {
        let list = modules("pub mod id;\n#[allow(x)]\npub mod store;\nmod late;\n");
        assert_eq!(list, ["id", "store", "late"]);
        let good = Source::sample("crates/x/src/store/log.rs", "use crate::{id::Id, store::a};\n");
        let bad = Source::sample("crates/x/src/id.rs", "use crate::{\n    id::B,\n    late::{C, D},\n};\n");
        let worse = Source::sample("crates/x/src/store.rs", "fn f() { crate::late::go() }\n");
        let faults = downward_uses("crates/x/src", &list, &[good, bad, worse]);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("crate::late") && faults[1].contains("store.rs"));
    }

    #[test]
    fn names_in_comments_and_macros_are_no_uses() {
        let list = modules("mod a;\nmod b;\n");
        let source = Source::sample("crates/x/src/a.rs", "// crate::b\nfn f() { $crate::b() }\n");
        assert!(downward_uses("crates/x/src", &list, &[source]).is_empty());
    }

    #[test]
    fn the_door_to_the_supervisor_is_counted() {
        let text = "fn main() {\n    outlast_supervisor::enter();\n    outlast_supervisor::again();\n}\n";
        let doors = supervisor_doors(&[Source::sample("crates/cli/src/main.rs", text)]);
        assert_eq!(doors, ["crates/cli/src/main.rs:2", "crates/cli/src/main.rs:3"]);
    }
}
