//! What outlast decides: states, rules and words, as functions of values.
//!
//! This crate touches nothing: no clock, no file, no environment, no randomness. Whatever it needs of
//! the world is handed in, so every rule can be tested as a table.
//!
//! Modules are listed in reading order; a module uses only those above it.
#![forbid(unsafe_code)]

pub mod id;
pub mod names;
pub mod units;
pub mod ending;
pub mod origin;
pub mod lanes;
pub mod request;
pub mod push;
pub mod joining;
pub mod tracking;
pub mod record;
pub mod receipt;
pub mod wire;
pub mod lifecycle;
pub mod text;
pub mod policy;
pub mod notice;
pub mod delivery;
pub mod retention;
pub mod memory;
pub mod reconcile;
