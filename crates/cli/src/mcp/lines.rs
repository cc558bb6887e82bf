//! One JSON-RPC message a line: every request that can be told is answered, whatever else is wrong with its line.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;
use rmcp::ErrorData;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};

/// The longest line, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// A transport of lines.
pub struct Lines<R, W> {
    input: FramedRead<R, AnyDelimiterCodec>,
    /// What is left of a batch.
    batch: VecDeque<Line>,
    output: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    /// Over these streams.
    pub fn over(input: R, output: W) -> Lines<R, W> {
        let codec = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), MOST_BYTES);
        Lines {
            input: FramedRead::new(input, codec),
            batch: VecDeque::new(),
            output: Arc::new(Mutex::new(Some(output))),
        }
    }
}

impl<R, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    fn refuse(&self, id: Option<RequestId>, error: ErrorData) {
        let output = self.output.clone();
        let answer = TxJsonRpcMessage::<RoleServer>::error(error, id);
        tokio::spawn(async move {
            // A client that is gone is heard of elsewhere.
            let _ = write(&output, &answer).await;
        });
    }
}

/// What a line is, or a part of one.
enum Line {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// It is answered with this error, to the request that it names if it names one.
    Wrong(Option<RequestId>, ErrorData),
    Nothing,
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = self.output.clone();
        async move { write(&output, &message).await }
    }

    /// Cancel-safe: what was read of a line stays in the buffer. An answer to a wrong line is written by a task of its
    /// own, so that a client that does not read holds up nobody here.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(line) = self.batch.pop_front() {
                match line {
                    Line::Message(message) => return Some(*message),
                    Line::Wrong(id, error) => self.refuse(id, error),
                    Line::Nothing => {}
                }
                continue;
            }
            self.batch = match self.input.next().await {
                Some(Ok(line)) => understand(&line),
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    // The stream says that it ended, once, behind an error that it goes on after.
                    let _over = self.input.next().await;
                    let text = format!("a line is longer than {MOST_BYTES} bytes");
                    [Line::Wrong(None, ErrorData::invalid_request(text, None))].into()
                }
                // An input that cannot be read any more is as good as closed.
                Some(Err(AnyDelimiterCodecError::Io(_))) | None => return None,
            };
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.lock().await.take();
        Ok(())
    }
}

async fn write<W: AsyncWrite + Unpin>(
    output: &Mutex<Option<W>>,
    message: &TxJsonRpcMessage<RoleServer>,
) -> Result<(), std::io::Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    let Some(output) = output.as_mut() else {
        return Err(std::io::Error::new(std::io::ErrorKind::NotConnected, "the output is closed"));
    };
    output.write_all(&line).await?;
    output.flush().await
}

/// What a line says: one message, or those of a batch, which revision 2025-03-26 has. Each is answered by itself.
fn understand(line: &[u8]) -> VecDeque<Line> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return VecDeque::new();
    }
    if let Some(message) = message(line) {
        return [message].into();
    }
    // Half a character, as a program leaves that cuts its texts: shown as what it is.
    let mended = without_halves(&String::from_utf8_lossy(line));
    if let Some(message) = message(mended.as_bytes()) {
        return [message].into();
    }
    match serde_json::from_str::<Value>(&mended) {
        Ok(Value::Array(parts)) if !parts.is_empty() => {
            let part = |part: Value| message(part.to_string().as_bytes()).unwrap_or_else(|| not_understood(&part));
            parts.into_iter().map(part).collect()
        }
        Ok(value) => [not_understood(&value)].into(),
        Err(error) => [Line::Wrong(None, ErrorData::parse_error(format!("a line is no JSON: {error}"), None))].into(),
    }
}

/// A message of the protocol. What has an id that none can have is no notification.
fn message(text: &[u8]) -> Option<Line> {
    let message: RxJsonRpcMessage<RoleServer> = serde_json::from_slice(text).ok()?;
    let is_notification = matches!(message, JsonRpcMessage::Notification(_));
    if is_notification && serde_json::from_slice::<Value>(text).is_ok_and(|value| value.get("id").is_some()) {
        return None;
    }
    Some(Line::Message(Box::new(message)))
}

/// JSON that is no message: what asks for an answer gets one.
fn not_understood(value: &Value) -> Line {
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    match (&id, value.get("method")) {
        // A notification that nobody knows, and an answer that nobody asked for.
        (None, Some(Value::String(_))) if value.get("id").is_none() => Line::Nothing,
        _ if value.get("result").is_some() || value.get("error").is_some() => Line::Nothing,
        (None, Some(_)) if value.get("id").is_some() => {
            Line::Wrong(None, ErrorData::invalid_request("the id of a request is a text or a whole number", None))
        }
        _ => Line::Wrong(id, ErrorData::invalid_request("a line is no request of this protocol", None)),
    }
}

/// The text with a mark in the place of each `\ud8xx` that has no other half (RFC 8259 section 8.2).
fn without_halves(text: &str) -> String {
    let surrogate = |at: usize| -> Option<u16> {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
    };
    let (mut mended, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        match (surrogate(at), surrogate(at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..)) => {
                mended.push_str(&rest[..12]);
                at += 12;
            }
            (Some(_), _) => {
                mended.push_str("\\ufffd");
                at += 6;
            }
            (None, _) => {
                // An escape is taken whole, so that `\\ud800` is no surrogate.
                let step = if rest.starts_with('\\') { 2 } else { rest.chars().next().map_or(1, char::len_utf8) };
                let step = (step..=rest.len()).find(|step| rest.is_char_boundary(*step)).unwrap_or(rest.len());
                mended.push_str(&rest[..step]);
                at += step;
            }
        }
    }
    mended
}

/// Forgets a message that is a request which asks under a number that is still in use.
pub fn in_use(id: RequestId) -> TxJsonRpcMessage<RoleServer> {
    let text = format!("a request with the id {id} is still being answered");
    JsonRpcMessage::error(ErrorData::invalid_request(text, None), Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_characters_are_mended_and_nothing_else() {
        for (text, mended) in [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\ude00\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            (r#""你\\\ud83d""#, r#""你\\\ufffd""#),
            (r#""\u00e9 plain""#, r#""\u00e9 plain""#),
            ("\\", "\\"),
        ] {
            assert_eq!(without_halves(text), mended, "{text}");
        }
    }

    #[test]
    fn whatever_asks_for_an_answer_gets_one() {
        let wrong = |line: &[u8]| match understand(line).pop_front() {
            Some(Line::Wrong(id, error)) => Some((id, error.code.0)),
            Some(Line::Message(_) | Line::Nothing) | None => None,
        };
        let number = |id| Some(RequestId::Number(id));
        assert_eq!(wrong(b"{nope"), Some((None, -32700)));
        assert_eq!(wrong(b"17"), Some((None, -32600)));
        assert_eq!(wrong(br#"{"jsonrpc":"2.0","id":99}"#), Some((number(99), -32600)));
        assert_eq!(wrong(b"\xff\xfe"), Some((None, -32700)));
        for id in ["null", r#"{"a":1}"#, "1.5", "true"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert_eq!(wrong(line.as_bytes()), Some((None, -32600)), "{line}");
        }
        assert_eq!(wrong(b"[]"), Some((None, -32600)));
        let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7,{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
        let parts: Vec<bool> = understand(batch).iter().map(|part| matches!(part, Line::Message(_))).collect();
        assert_eq!(parts, [true, false, true]);
        for quiet in [&b""[..], b" \r", br#"{"jsonrpc":"2.0","id":98,"result":{}}"#] {
            assert_eq!(wrong(quiet), None, "{quiet:?}");
        }
        let half = br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"run","arguments":{"command":"\ud83d"}}}"#;
        assert!(matches!(understand(half).pop_front(), Some(Line::Message(_))));
    }
}
