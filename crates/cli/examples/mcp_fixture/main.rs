//! A server for protocol suites, for tests only: outlast's real handler with the tools that such suites call on top.
//!
//! It protects nothing: whoever reaches its port may call. Modules are listed in reading order.
#![forbid(unsafe_code)]

mod door;
mod contents;
mod asks;
mod jobs;
mod tools;
mod handler;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use outlast_cli::mcp::{Access, Server, Settings, listen, serve_on};

use crate::handler::Fixture;

#[derive(Parser)]
struct Arguments {
    /// Where to listen; the port 0 takes a free one, which the first line of standard error names.
    #[arg(long, default_value = "127.0.0.1:0")]
    http: SocketAddr,
    /// Where the records go.
    #[arg(long)]
    state: PathBuf,
    /// The program `outlast` whose keeper runs the commands.
    #[arg(long)]
    outlast: PathBuf,
    /// Serve the real handler alone.
    #[arg(long)]
    bare: bool,
    /// Give older clients a session, which the scenarios need in which the server asks the client.
    #[arg(long, conflicts_with = "bare")]
    sessions: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let served = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
        let served = runtime.block_on(serve(arguments));
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(text)) => fail(&text),
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(text: &str) -> ExitCode {
    say(text);
    ExitCode::FAILURE
}

async fn serve(arguments: Arguments) -> Result<(), String> {
    let mut library = outlast::Config::new(&arguments.state);
    library.executable = Some(arguments.outlast);
    let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let settings = Settings::own("mcp-fixture", std::env::temp_dir(), vec![path]);
    let server = Server::new(library, settings);
    let listener = listen(arguments.http).await.map_err(|failure| format!("{failure:?}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    say(&format!("http://{address}/mcp"));
    if arguments.sessions {
        return door::serve_with_sessions(Fixture::over(server), listener).await.map_err(|error| error.to_string());
    }
    let served = if arguments.bare {
        serve_on(server, listener, Access::Anybody, say).await
    } else {
        serve_on(Fixture::over(server), listener, Access::Anybody, say).await
    };
    served.map_err(|failure| format!("{failure:?}"))
}

#[expect(clippy::print_stderr, reason = "standard error is where a server of tests speaks")]
fn say(text: &str) {
    eprintln!("{text}");
}
