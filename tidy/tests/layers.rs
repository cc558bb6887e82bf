//! The layers of the real tree: crates and modules use only what stands above them.

use outlast_tidy::{layers, tree};

fn hold(faults: &[String], help: &str) {
    assert!(faults.is_empty(), "\n{}\n\n{help}\n", faults.join("\n"));
}

#[test]
fn crate_edges_equal_the_table() {
    let allowed = layers::allowed_edges(&tree::read("ARCHITECTURE.md"));
    assert!(!allowed.is_empty(), "ARCHITECTURE.md has no table `crate | may use`");
    let manifests = tree::files(&["/Cargo.toml"]);
    let mut faults = Vec::new();
    let mut real = Vec::new();
    for manifest in &manifests {
        real.extend(layers::real_edges(&manifest.text));
        for (from, to) in layers::test_edges(&manifest.text) {
            let allowed = allowed.contains(&(from.clone(), to.clone()));
            if to != "outlast-testkit" && !allowed {
                faults.push(format!("the tests of {from} use {to}"));
            }
        }
    }
    faults.extend(real.iter().filter(|edge| !allowed.contains(edge)).map(|(from, to)| format!("{from} uses {to}")));
    faults.extend(
        allowed.iter().filter(|edge| !real.contains(edge)).map(|(from, to)| format!("{from} does not use {to}")),
    );
    hold(
        &faults,
        "The manifests and the table of allowed edges in ARCHITECTURE.md differ. Change the picture only with a reason.",
    );
}

#[test]
fn modules_use_only_those_above_them() {
    let sources = tree::rust_files();
    // The parts of the sealed world know each other: a world makes calls, a call belongs to a world.
    let mutual = ["crates/testkit/src/lib.rs"];
    let mut faults = Vec::new();
    for root in
        sources.iter().filter(|source| source.path.ends_with("/src/lib.rs") || source.path.ends_with("/src/main.rs"))
    {
        if mutual.contains(&root.path.as_str()) {
            continue;
        }
        let (src, _) = root.path.rsplit_once('/').expect("the root of a crate is in a folder");
        faults.extend(layers::downward_uses(src, &layers::modules(&root.text), &sources));
    }
    hold(&faults, "A crate's root lists its modules in reading order. Move the item up, or the module down.");
}

#[test]
fn the_command_line_has_one_door_to_the_supervisor() {
    let doors = layers::supervisor_doors(&tree::rust_files());
    assert!(
        !doors.is_empty() && doors.iter().all(|door| door.starts_with("crates/cli/src/main.rs:")),
        "\nOnly main knows the supervisor; it is named at: {doors:?}\n"
    );
}
