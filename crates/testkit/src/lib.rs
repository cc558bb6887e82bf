//! A sealed world for end-to-end tests: its own directories, environment, anchor and session, and a
//! clean-up that fails the test when anything is left.
//!
//! [`World`] is the entry. Everything a test starts belongs to one world and is recognised by the
//! world's directory in its environment, however it tried to leave, so that leftovers are found and
//! nothing else is ever signalled. Every JSON object that `outlast --json` prints is held against the
//! rules of `outlast.command/1` in [`contract`] before the test sees it.
#![forbid(unsafe_code)]

pub mod world;
mod sessions;
pub mod call;
pub mod front;
pub mod output;
pub mod json;
pub mod contract;
pub mod proc;
mod cleanup;
pub mod cast;
pub mod mcp;

pub use call::Call;
pub use cast::Cast;
pub use front::Front;
pub use json::Json;
pub use output::Output;
pub use proc::Proc;
pub use rustix::process::Signal;
pub use sessions::Sleeper;
pub use world::World;
