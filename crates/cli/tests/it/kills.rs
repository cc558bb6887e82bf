//! Kill tests: whichever process is killed at whatever instant, what became of the command is known
//! afterwards, told once, and nothing is left.
//!
//! The binary under test has the crash points of `outlast-host` (the feature `crash-points`, turned on by
//! the `[dev-dependencies]` of this crate alone); a binary that is built or installed has none of them.

mod fronts;
mod names;
mod lives;
mod points;
mod random;
mod rows;
mod rules;
mod shapes;
mod told;
mod victims;
