//! The server on standard input and output: until the client closes them, or a signal ends it.

use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::stdio_pipes;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::lines::Lines;
use super::server::Server;
use super::wire::{Say, Wire};
use crate::exit::Failure;

/// How long the server takes for its last answers after the end of input: the calls that are under way get 5 s.
const END_BOUND: Duration = Duration::from_secs(7);
/// The same after a signal: they get 2 s.
const STOP_BOUND: Duration = Duration::from_secs(3);

/// Serves one client. INT, TERM and the end of input mean the same: what can be answered is answered, the session is
/// free for another server, and what becomes of its commands is for its anchor to decide.
pub async fn serve_stdio(server: Server, say: Say) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    end_on_signal(stop.clone())?;
    let (input, output) = stdio_pipes();
    let ended = CancellationToken::new();
    let wire = Wire::over(Lines::over(input, output), say, ended.clone());
    let running = match serve_server_with_ct(server, wire, stop.clone()).await {
        Ok(running) => running,
        // A client that goes before it has said anything was looking, or was stopped.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(Failure::Refused(format!("this is no MCP client: {error}"))),
    };
    let over = async {
        let bound = tokio::select! {
            () = stop.cancelled() => STOP_BOUND,
            () = ended.cancelled() => END_BOUND,
        };
        // Nothing fires it: it is a clock that starts with the end.
        let _passed = tokio::time::timeout(bound, std::future::pending::<()>()).await;
    };
    let served = tokio::select! {
        served = running.waiting() => served,
        // A client that does not read takes no answers: what they would have told stays to be told.
        () = over => return Ok(()),
    };
    match served {
        Ok(QuitReason::JoinError(error)) | Err(error) => {
            Err(Failure::System("the MCP server broke off".to_owned(), error.into()))
        }
        Ok(_) => Ok(()),
    }
}

/// Fires the token at the first INT or TERM.
pub fn end_on_signal(stop: CancellationToken) -> Result<(), Failure> {
    let failed = |error| Failure::System("cannot listen for signals".to_owned(), error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
    });
    Ok(())
}
