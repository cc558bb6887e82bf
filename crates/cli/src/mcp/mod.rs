//! The MCP server: six tools over the library, on stdio and streamable HTTP, for both protocol generations.
//!
//! It decides nothing: what a command is, how it ends and who was told is the library's. Here are the words for a
//! model, the limits of the clients that are known, and what makes a reply told only once it went out.
//!
//! Modules are listed in reading order.

pub mod arguments;
mod tools;
mod client;
mod delivery;
mod settings;
mod places;
mod reply;
mod call;
mod inbox;
mod run;
mod wait;
mod read;
mod list;
mod stop;
mod send;
mod task;
mod server;
mod lines;
mod wire;
mod stdio;
mod http;

pub use delivery::Delivery;
pub use http::{Access, listen, listen_guarded, serve_http, serve_on};
pub use reply::Reply;
pub use server::{Server, guarded};
pub use settings::{Place, Settings};
pub use stdio::serve_stdio;
