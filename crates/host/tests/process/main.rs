//! Real processes, one test process per test: starting, signalling, marking, sweeping.
//!
//! Some reap every child of theirs, so each runs in a process of its own, whatever runs the tests.
#![allow(clippy::print_stdout, reason = "a skipped test says why")]
#![allow(
    clippy::disallowed_methods,
    reason = "roles are told by the environment; the kernel has no event for a free cgroup"
)]

mod stage;

mod cgroup;
mod identity;
mod program;
mod signal;
mod spawn;
mod strays;
mod tree;
