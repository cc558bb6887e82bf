//! The unsafe code of the real tree.

use outlast_tidy::{safety, tree};

fn hold(faults: &[String], help: &str) {
    assert!(faults.is_empty(), "\n{}\n\n{help}\n", faults.join("\n"));
}

#[test]
fn unsafe_code_stands_behind_one_door() {
    hold(&safety::outside_the_door(&tree::rust_files()), "Give the door a safe function for it.");
}

#[test]
fn every_unsafe_block_is_argued() {
    hold(&safety::unargued(&tree::rust_files()), "Say right above the block why it is sound.");
}

#[test]
fn every_crate_forbids_unsafe_code() {
    hold(
        &safety::unlocked_roots(&tree::rust_files()),
        "The root of each crate has the attribute on a line of its own.",
    );
}

#[test]
fn nothing_lifts_the_ban() {
    hold(&safety::lifted_bans(&tree::rust_files()), "Only `pub mod sys` of the host may.");
}
