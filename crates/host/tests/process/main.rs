//! Real processes, one test process per test: starting, signalling, marking, sweeping.

mod stage;

mod cgroup;
mod identity;
mod program;
mod signal;
mod spawn;
mod tree;
