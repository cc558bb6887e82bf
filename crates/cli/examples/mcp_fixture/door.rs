//! A second door: streamable HTTP with sessions for older clients, which outlast itself does not offer.

use std::convert::Infallible;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use rmcp::handler::server::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until TERM.
pub async fn serve_with_sessions<H: ServerHandler + Clone>(handler: H, listener: TcpListener) -> std::io::Result<()> {
    let sessions = Arc::<LocalSessionManager>::default();
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), sessions, StreamableHttpServerConfig::default());
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        let (stream, _) = tokio::select! {
            _ = terminate.recv() => return Ok(()),
            accepted = listener.accept() => accepted?,
        };
        let service = service.clone();
        let answer = hyper::service::service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.handle(request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
        // A client that breaks off has nobody left to be told.
        tokio::spawn(async move { drop(connection.await) });
    }
}
