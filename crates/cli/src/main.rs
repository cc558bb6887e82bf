//! The command `outlast`: becomes a keeper where it was started as one, else answers its arguments.
//!
//! Modules are listed in reading order; a module uses only those above it.
#![forbid(unsafe_code)]

mod exit;
mod config;
mod view;
mod words;
mod streams;
mod output;
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    outlast_supervisor::enter_if_asked();
    let code = cli::answer(outlast_supervisor::fork_keeper);
    outlast_supervisor::reap_forked();
    code
}
