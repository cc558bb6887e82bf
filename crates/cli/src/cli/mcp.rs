//! `outlast mcp`: the MCP server.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;

use super::context;
use crate::config::Config;
use crate::environment;
use crate::exit::{self, Answer, Failure};
use crate::host::Surroundings;
use crate::mcp::{self, Place, Server, Settings};
use crate::output::Printer;

/// Serves the tools run, wait, read, list, stop and send to an MCP client
#[derive(Args)]
#[command(after_help = "\
On standard input and output it serves the agent host that started it: the
session is the host's, is opened by the first call, and ends with the host.
Over HTTP clients show the token of the file that is named at the start, as
`Authorization: Bearer TOKEN`; the session is the server's own, and its commands
end 30 s after the server unless another one takes its place.

Examples:
  outlast mcp
  outlast mcp --http 127.0.0.1:8765
  claude mcp add outlast -- outlast mcp")]
pub struct McpArgs {
    /// Serve streamable HTTP at /mcp of this address in place of standard input and output
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    http: Option<SocketAddr>,
    /// Let --http listen at an address that other machines reach
    #[arg(long, requires = "http")]
    public: bool,
    /// The process whose life bounds the session [default: the agent host]
    #[arg(long, value_name = "PID", conflicts_with = "http")]
    anchor: Option<u32>,
    /// Serve this session and no other
    #[arg(long, value_name = "ID", conflicts_with = "anchor")]
    session: Option<String>,
    /// How long a run waits for its end before it moves to the background, at most 110s [default: 45s]
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    grace: Option<Duration>,
    /// The longest call that the client allows, where it was configured [default: what is known of it]
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    longest_call: Option<Duration>,
    /// Keep every command in the foreground, and offer the tool run alone
    #[arg(long)]
    foreground_only: bool,
    /// Hand this variable on to commands although it is the key of a model; may be given several times
    #[arg(long, value_name = "NAME")]
    keep_env: Vec<String>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "it must be an address and a port (example: 127.0.0.1:8765)".to_owned())
}

/// Serves until its client is gone.
pub async fn mcp(args: McpArgs, config: Config, printer: Printer) -> Answer {
    for ignored in &config.bounds.ignored {
        printer.say(ignored);
    }
    let mut library = config.library(true);
    let environment = environment::of_agent(config.environment(), &args.keep_env);
    library.keeper_environment = Some(environment.clone());
    let listener = match args.http {
        Some(address) => Some(mcp::listen_guarded(address, args.public).await?),
        None => None,
    };
    let mut settings = Settings {
        place: place(&args, &config, listener.as_ref())?,
        environment,
        cwd: config.cwd.clone(),
        open_files: raise_open_files(),
        bounds: config.bounds.clone(),
        longest_call: args.longest_call,
        foreground_only: args.foreground_only,
    };
    settings.bounds.grace = args.grace.or(settings.bounds.grace);
    let server = Server::new(library, settings);
    match listener {
        Some(listener) => mcp::serve_http(server, listener, say).await?,
        None => mcp::serve_stdio(server, say).await?,
    }
    Ok(exit::DONE)
}

fn place(args: &McpArgs, config: &Config, listener: Option<&TcpListener>) -> Result<Place, Failure> {
    if let Some(id) = &args.session {
        let id = id.parse().map_err(|error| Failure::Usage(format!("--session: {error}")))?;
        return Ok(Place::Named(id));
    }
    Ok(match listener {
        Some(listener) => {
            // The port that was taken, and not a 0 that asked for any: servers that run side by side have their own.
            let at = listener.local_addr().map_err(|error| Failure::System("cannot listen".to_owned(), error))?;
            Place::Own { context: format!("mcp-http:{at}") }
        }
        None => Place::Host(Surroundings::find(config, args.anchor)?),
    })
}

/// Takes as many open files as this process may have, for hundreds of calls that wait, and returns how many it had:
/// that is what its commands get.
fn raise_open_files() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let most = Rlimit { current: before.maximum, ..before };
    // Where it may not, it works with what it has.
    setrlimit(Resource::Nofile, most).is_ok().then_some(before.current).flatten()
}

/// Standard output is the protocol's.
fn say(line: &str) {
    Printer { colour: false, columns: 80 }.say(line);
}
