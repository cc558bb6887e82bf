//! The server over streamable HTTP: stateless, on one address, for clients that show the token.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::handler::server::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::delivery::Delivery;
use super::server::Server;
use super::stdio::end_on_signal;
use super::wire::{Say, say_all};
use crate::exit::Failure;

/// The one path that is served.
const PATH: &str = "/mcp";
/// How long open answers are waited for when the server ends.
const END_BOUND: Duration = Duration::from_secs(3);

/// How long no connection is accepted after one could not be.
const PAUSE: Duration = Duration::from_millis(200);

/// Who may call.
#[derive(Clone)]
pub enum Access {
    /// Whoever shows this token.
    Token(Arc<str>),
    /// Anybody on this machine: for a server of tests, that has nothing to protect.
    Anybody,
}

/// Listens on this address. One that other machines reach has to be asked for by `public`.
pub async fn listen_guarded(address: SocketAddr, public: bool) -> Result<TcpListener, Failure> {
    if !address.ip().is_loopback() && !public {
        let text = format!("{address} can be reached by other machines; --public says that this is meant");
        return Err(Failure::Refused(text));
    }
    listen(address).await
}

/// Serves clients that show the token until INT or TERM.
pub async fn serve_http(server: Server, listener: TcpListener, say: Say) -> Result<(), Failure> {
    let (token, file) = server.runtime()?.http_token()?;
    let at = listener.local_addr().map_err(|error| Failure::System("cannot listen".to_owned(), error))?;
    say(&format!("listening on http://{at}{PATH}; clients show the token of {}", file.display()));
    serve_on(server, listener, Access::Token(token.into()), say).await
}

/// Listens on an address.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            Failure::Refused(format!("cannot listen on {address}: another process does; end it, or name another port"))
        }
        _ => Failure::System(format!("cannot listen on {address}"), error),
    })
}

/// Serves a handler until INT or TERM.
pub async fn serve_on<H: ServerHandler + Clone>(
    handler: H,
    listener: TcpListener,
    access: Access,
    say: Say,
) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    end_on_signal(stop.clone())?;
    let address = listener.local_addr().map_err(|error| Failure::System("cannot listen".to_owned(), error))?;
    let door = Arc::new(Door { service: service(handler, address, &stop), access, say });
    let open = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // The client is gone again, or descriptors are short, of which nobody tells when that is over.
            Err(error) => {
                say(&format!("cannot accept a connection: {error}"));
                let _over = tokio::time::timeout(PAUSE, stop.cancelled()).await;
                continue;
            }
        };
        let door = door.clone();
        let service = hyper::service::service_fn(move |request| {
            let door = door.clone();
            async move { Ok::<_, Infallible>(door.answer(request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let connection = open.watch(connection);
        tokio::spawn(async move {
            // A client that breaks off has nobody left to be told.
            let _ = connection.await;
        });
    }
    let _ended_or_given_up = tokio::time::timeout(END_BOUND, open.shutdown()).await;
    Ok(())
}

type Service<H> = StreamableHttpService<H, LocalSessionManager>;

fn service<H: ServerHandler + Clone>(handler: H, address: SocketAddr, stop: &CancellationToken) -> Service<H> {
    let port = address.port();
    let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.ip().is_loopback() && !address.ip().is_unspecified() {
        hosts.push(address.ip().to_string());
    }
    // A page in a browser may only be one of this very server.
    let origins: Vec<String> = hosts
        .iter()
        .map(
            |host| if host.contains(':') { format!("http://[{host}]:{port}") } else { format!("http://{host}:{port}") },
        )
        .collect();
    let config = StreamableHttpServerConfig::default()
        // The priming event of a session breaks clients, and nothing here depends on a connection.
        .with_legacy_session_mode(false)
        .with_allowed_origins(origins)
        .with_cancellation_token(stop.child_token());
    let config =
        if address.ip().is_unspecified() { config.disable_allowed_hosts() } else { config.with_allowed_hosts(hosts) };
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config)
}

/// What stands before the protocol.
struct Door<H> {
    service: Service<H>,
    access: Access,
    say: Say,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl<H: ServerHandler + Clone> Door<H> {
    async fn answer(&self, mut request: Request<Incoming>) -> Answer {
        if request.uri().path() != PATH {
            return refuse(StatusCode::NOT_FOUND, "only /mcp is served here\n");
        }
        if !self.admits(request.headers()) {
            let text =
                "show the token of this server as `Authorization: Bearer TOKEN`; its file was named at the start\n";
            let mut refused = refuse(StatusCode::UNAUTHORIZED, text);
            refused.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            return refused;
        }
        let delivery = Delivery::default();
        request.extensions_mut().insert(delivery.clone());
        let answer = self.service.handle(request).await;
        let say = self.say;
        answer.map(|body| Told { body, delivery: Some(delivery), answered: false, say }.boxed())
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Access::Token(token) = &self.access else { return true };
        let shown = headers.get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
        let shown = shown.and_then(|value| {
            let (scheme, rest) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(rest)
        });
        shown.is_some_and(|shown| bool::from(shown.ct_eq(token.as_bytes())))
    }
}

fn refuse(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer
}

/// A body that knows when the reply in it was handed to the connection.
struct Told {
    body: BoxBody<Bytes, Infallible>,
    delivery: Option<Delivery>,
    /// Whether the reply itself was among what went by, and not only its progress.
    answered: bool,
    say: Say,
}

impl Told {
    fn went_out(&mut self) {
        if let Some(delivery) = self.delivery.take() {
            let say = self.say;
            tokio::spawn(async move { say_all(say, &delivery.went_out().await) });
        }
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // The connection asks for more once it has taken what it had.
        if self.answered {
            self.went_out();
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => self.answered |= frame.data_ref().is_some_and(|data| is_reply(data)),
            Poll::Ready(None) if self.answered => self.went_out(),
            Poll::Ready(_) | Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // Of a body that is all one frame nothing more is asked for.
        if self.answered && self.body.is_end_stream() {
            self.went_out();
        }
    }
}

/// Whether a frame holds the reply: the keys of a JSON-RPC response, which inside of a text would be escaped.
fn is_reply(frame: &[u8]) -> bool {
    let holds = |key: &[u8]| frame.windows(key.len()).any(|window| window == key);
    (holds(b"\"result\":") || holds(b"\"error\":")) && !holds(b"\"method\":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_told_from_progress() {
        for (frame, reply) in [
            (&br#"data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#[..], true),
            (br#"data: {"jsonrpc":"2.0","id":1,"error":{"code":-32602}}"#, true),
            (br#"data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#, false),
            (br#"{"jsonrpc":"2.0","method":"x","params":{"message":"\"result\":"}}"#, false),
            (b": keep-alive", false),
        ] {
            assert_eq!(is_reply(frame), reply, "{}", String::from_utf8_lossy(frame));
        }
    }
}
