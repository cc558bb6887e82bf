//! The effects of the real tree.

use outlast_tidy::{effects, tree};

fn hold(faults: &[String], help: &str) {
    assert!(faults.is_empty(), "\n{}\n\n{help}\n", faults.join("\n"));
}

#[test]
fn every_effect_has_a_name() {
    hold(
        &effects::outside_the_doors(&tree::rust_files()),
        "Call it through `outlast_host::effect` (or `sys`), with the name of what it acts on; give it a function there if it \
         has none. Then a test can kill the process right before it.",
    );
}

#[test]
fn every_effect_stands_behind_its_crash_point() {
    hold(&effects::unnamed(&tree::rust_files()), "Come by `point(\"verb\", &object)` first, in the same function.");
}

#[test]
fn every_excuse_is_of_a_function() {
    hold(&effects::stale_excuses(&tree::rust_files()), "Take it out of the list in tidy/src/effects.rs.");
}
