//! The command `outlast`: becomes a keeper where it was started as one, else answers its arguments.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    outlast_supervisor::enter_if_asked();
    // Where there is no room for a pipe, what is printed goes nowhere, as it would have.
    let _ = outlast_supervisor::leave_output_closed();
    let code = outlast_cli::answer(outlast_supervisor::fork_keeper);
    outlast_supervisor::reap_forked();
    code
}
