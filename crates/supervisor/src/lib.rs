//! What outlast watches: the keeper of a session and the supervisor of one command.
//!
//! Both are synchronous, single-threaded and small: one epoll loop each, no async runtime, no argument
//! parser. The binary enters here before it parses anything ([`enter_if_asked`]).
//!
//! Modules are listed in reading order; a module uses only those above it.
#![forbid(unsafe_code)]

mod poll;
mod context;
mod patience;
mod tree;
mod birth;
mod veil;
mod capture;
mod limits;
mod clients;
mod watch;
mod keeper;

pub use keeper::birth::{enter_if_asked, fork_keeper, reap_forked};
pub use outlast_host::sys::closed::leave_output_closed;

/// When a process is looked for again that could not be watched, for want of a descriptor.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);
