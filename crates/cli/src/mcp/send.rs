//! `send`: types into a command, closes its input, or sends it a signal.

use outlast_core::ending::{signal_name, signal_number};
use outlast_core::names::{display_line, shorten};

use super::arguments::SendArguments;
use super::call::Call;
use super::reply::{Answer, META_COMMAND, Reply};
use crate::exit::Failure;
use crate::view::CommandView;
use crate::words;

/// Sends.
pub async fn send(call: &Call, arguments: SendArguments) -> Result<Answer, Failure> {
    let usage = |text: String| Failure::Usage(format!("`send` was called wrongly: {text}"));
    let close = arguments.eof == Some(true);
    if arguments.text.is_none() && !close && arguments.signal.is_none() {
        return Err(usage("give `text`, `eof` or `signal`".to_owned()));
    }
    let signal = match arguments.signal.as_deref() {
        None => None,
        Some(name) => Some(signal_number(name).ok_or_else(|| {
            usage(format!("argument `signal`: {} is no signal, such as INT or HUP", shorten(&display_line(name), 48)))
        })?),
    };
    let command = call.session.command(&arguments.id).await?;
    let mut done = Vec::new();
    if arguments.text.is_some() || close {
        let mut bytes = arguments.text.unwrap_or_default().into_bytes();
        let typed = !bytes.is_empty();
        if typed && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        let count = bytes.len();
        tokio::select! {
            biased;
            () = call.cancelled.cancelled() => return Ok(Answer::Cancelled),
            sent = command.send(&bytes, close) => sent?,
        }
        if typed {
            done.push(format!("{count} bytes delivered"));
        }
        if close {
            done.push("its input is closed".to_owned());
        }
    }
    if let Some(signal) = signal {
        command.signal(signal).await?;
        done.push(format!("{} sent", signal_name(signal)));
    }
    let snapshot = command.snapshot().await?;
    let text = format!("{}: {}\n", words::short_name(&snapshot), done.join(", "));
    Ok(Reply::text(text).with(META_COMMAND, &CommandView::whole(&snapshot))?.into())
}
