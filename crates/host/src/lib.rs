//! What outlast touches: processes, files, locks, sockets and the clock.
//!
//! All `unsafe` code of the project is behind the door of [`sys`]; callers see safe functions that
//! tell what happened, to which path or pid.
//!
//! Modules are listed in reading order; a module uses only those above it.
#![deny(unsafe_code)]

pub mod crash;
#[allow(unsafe_code)]
pub mod sys;
pub mod effect;
pub mod proc;
pub mod clock;
pub mod files;
pub mod strays;
pub mod program;
pub mod terminal;
pub mod inherit;
pub mod mark;
pub mod cgroup;
pub mod dir;
pub mod atomic;
pub mod lock;
pub mod frame;
pub mod door;
pub mod store;
