//! The server on standard input and output: until the client closes them, or a signal ends it.

use rmcp::service::{QuitReason, RoleServer, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::server::Server;
use super::wire::{Say, Wire};
use crate::exit::Failure;

/// Serves one client. INT, TERM and the end of input mean the same: what can be answered is answered, the session is
/// free for another server, and what becomes of its commands is for its anchor to decide.
pub async fn serve_stdio(server: Server, say: Say) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    end_on_signal(stop.clone())?;
    let (input, output) = stdio_pipes();
    let wire = Wire::over(AsyncRwTransport::<RoleServer, _, _>::new(input, output), say);
    let running = match serve_server_with_ct(server, wire, stop).await {
        Ok(running) => running,
        // A client that goes before it has said anything was looking, or was stopped.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(Failure::Refused(format!("this is no MCP client: {error}"))),
    };
    match running.waiting().await {
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
