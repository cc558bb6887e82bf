//! Every verb, stored name and message that the source has is come by in some life, and only a binary for tests can be
//! killed there. Which pairs of a verb and a name there are only the lives themselves tell.

use std::collections::BTreeSet;

use super::points::{Stage, Step, recorded};

/// What no life comes by, and why.
const NOT_WALKED: &[(&str, &str)] = &[
    ("verb link", "only where a file system cannot rename without replacing; the tests of `dir` have it"),
    ("file given-up", "only a program that uses the library gives a session up"),
    ("file text.json", "only a task has a final text, and it dies with the program that it is in"),
    ("file text.lock", "as above"),
    (
        "file home",
        "an empty directory for commands whose environment is clean; one that is there already serves as well",
    ),
    (
        "verb signal",
        "only of one whom the kill of the group and of the leaf has not reached yet; walked where there is one",
    ),
    ("message ToKeeper.fate", "asked only where the keeper has not finished the record yet; walked where it is"),
    ("message FromKeeper.fate", "as above"),
    ("message ToKeeper.seal", "only a program that uses the library replaces an owner"),
    ("message FromKeeper.sealed", "as above"),
    ("message ToKeeper.task", "only a program that uses the library has tasks"),
    ("message FromSupervisor.note", "the answer to a word that makes no sense there, which no front end sends"),
    ("message FromSupervisor.refused", "the answer of a keeper that has done nothing, and after which it does nothing"),
    ("message FromKeeper.busy", "two keepers of one instant; the one that says it has done nothing and ends"),
    ("message FromKeeper.failed", "a keeper that cannot open its session has done nothing and ends"),
    (
        "message ToOwnKeeper.not_joined",
        "a start that comes within the instant in which the command ends that it would join",
    ),
    (
        "message FromSupervisor.not_demoted",
        "records that cannot be made; the torture fills and breaks disks, and kills there at moments that are drawn",
    ),
    ("message FromSupervisor.missing", "as above; it goes right before the output and the end, which are walked"),
];

/// The verbs of all points, from the two places that have effects.
fn verbs() -> BTreeSet<String> {
    let sources = [
        include_str!("../../../../host/src/effect.rs"),
        include_str!("../../../../host/src/sys/fork.rs"),
        include_str!("../../../../host/src/sys/pidfd.rs"),
        include_str!("../../../../host/src/sys/reap.rs"),
        include_str!("../../../../host/src/sys/spawn.rs"),
    ];
    let points = sources.iter().flat_map(|source| source.split("point(\"").skip(1));
    points.filter_map(|rest| rest.split('"').next()).map(|verb| format!("verb {verb}")).collect()
}

/// The names of all that is stored, from the module that has them.
fn files() -> BTreeSet<String> {
    let names = include_str!("../../../../host/src/store/mod.rs").split("pub mod name {").nth(1).expect("the names");
    let names = names.split("\n}").next().expect("the end of the names").split(": &str = \"").skip(1);
    names.filter_map(|rest| rest.split('"').next()).map(|name| format!("file {name}")).collect()
}

/// The variants of all messages, as they are called on the wire.
fn messages() -> BTreeSet<String> {
    let source = include_str!("../../../../core/src/wire.rs");
    let mut found = BTreeSet::new();
    for part in source.split("#[serde(tag = ").skip(1) {
        let mut lines = part.lines().skip(1);
        let head = lines.next().unwrap_or_default().strip_prefix("pub enum ").expect("a tag is that of an enum");
        let kind = head.trim_end_matches(" {");
        for line in lines.take_while(|line| *line != "}") {
            let variant = line.strip_prefix("    ").filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
            let name: Option<String> =
                variant.map(|line| line.chars().take_while(char::is_ascii_alphanumeric).collect());
            found.extend(name.map(|name| format!("message {kind}.{}", snake_case(&name))));
        }
    }
    found
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// What a step says of the source: its verb, and the file or message that it is about.
fn is_about(step: &Step, wanted: &str) -> bool {
    let mut words = step.name.splitn(3, ' ').skip(1);
    let (verb, object) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match wanted.split_once(' ') {
        Some(("verb", wanted)) => verb == wanted,
        // Itself, its temporary file, or what has it in front of an id.
        Some(("file", wanted)) => {
            let made = object == wanted || object.starts_with(&format!(".{wanted}."));
            made || wanted.ends_with('-') && object.starts_with(wanted)
        }
        Some(("message", wanted)) => object == wanted,
        _ => false,
    }
}

/// Prints all lives with their steps, for who wants to see them: `--nocapture`.
#[test]
fn every_effect_of_the_source_is_walked() {
    let lives = recorded();
    for (life, steps) in lives {
        println!("{}:", life.name);
        steps.iter().for_each(|step| println!("    {} {}", step.name, step.nth));
    }
    let all: BTreeSet<String> = [verbs(), files(), messages()].into_iter().flatten().collect();
    assert!(all.len() > 100, "the source is read: {all:?}");
    let walked = |wanted: &str| lives.iter().any(|(_, steps)| steps.iter().any(|step| is_about(step, wanted)));
    let missing: Vec<&String> =
        all.iter().filter(|one| !walked(one) && NOT_WALKED.iter().all(|(name, _)| name != one)).collect();
    assert!(missing.is_empty(), "no life comes by these; add one to `lives` or `fronts`: {missing:#?}");
    // What only happens within an instant may be walked now and then all the same.
    let stale: Vec<&str> = NOT_WALKED.iter().map(|(name, _)| *name).filter(|name| !all.contains(*name)).collect();
    assert!(stale.is_empty(), "these are no more: {stale:?}");
}

#[test]
fn binary_under_test_has_crash_points_and_an_installed_one_has_not() {
    let stage = Stage::new(Some(Step { name: "supervisor send ToOwnKeeper.recorded".into(), nth: 1 }));
    let told = stage.call(&["run", "-b", "--json", "true"]);
    stage.world.wait_until("the point has killed", || stage.has_killed());
    stage.world.wait(told.ok().json().str("/id")).ends("exited", 0);
    // The features of a table count for what it is the table of: tests here, everything elsewhere.
    let manifests = [
        include_str!("../../../Cargo.toml"),
        include_str!("../../../../supervisor/Cargo.toml"),
        include_str!("../../../../host/Cargo.toml"),
        include_str!("../../../../outlast/Cargo.toml"),
        include_str!("../../../../../Cargo.toml"),
    ];
    for manifest in manifests {
        let mut table = "";
        for line in manifest.lines().filter(|line| !line.trim_start().starts_with('#')) {
            table = if line.starts_with('[') { line } else { table };
            let turned_on = line.contains("crash-points") && !matches!(table, "[dev-dependencies]" | "[features]");
            assert!(!turned_on && !line.starts_with("default ="), "{table} {line}");
        }
    }
}
