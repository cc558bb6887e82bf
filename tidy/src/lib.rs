//! Rules over the source text of outlast: what must stay true of the tree, and no compiler checks.
//!
//! Each rule is a function of texts that gives a list of faults, so that every rule is shown to fail on
//! a bad sample next to its definition. The tests in `tidy/tests` apply the rules to the real tree.
#![forbid(unsafe_code)]

pub mod tree;
pub mod markdown;
pub mod layers;
pub mod prose;
pub mod safety;
pub mod effects;
pub mod promises;
pub mod coverage;
