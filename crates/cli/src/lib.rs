//! What the binary `outlast` says and hears: the command line, the MCP server, the hooks of agent hosts.
//!
//! It is a library only so that a test can build its own server on the real handler, and fuzzing can call what reads the
//! words of others; nothing outside of this project uses it, and it promises nothing.
//!
//! Modules are listed in reading order; a module uses only those above it.
#![forbid(unsafe_code)]
#![doc(hidden)]

mod exit;
mod policy;
mod config;
mod environment;
mod host;
mod view;
mod words;
mod streams;
mod output;
pub mod mcp;
pub mod hook;
mod setup;
mod cli;

pub use cli::answer;
