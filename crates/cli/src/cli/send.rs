//! `outlast send`: types into a command, or sends it a signal that is not a stop.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use outlast_core::ending::signal_name;

use super::{Context, Scope, context};
use crate::exit::{self, Answer, Failure};

/// Sends text to the standard input of a command that was started with --stdin or --pty, or a signal
#[derive(Args)]
#[command(after_help = "\
Examples:
  outlast send w1 yes              the text and a line break
  outlast send w1 'last line' --eof  and then the end of input
  outlast send w1 $'\\x03'           Ctrl-C, at the terminal of a command with --pty
  outlast send w1 --signal HUP     to its process group; not a stop")]
pub struct SendArgs {
    /// Id, alias, or the beginning of an id
    #[arg(value_name = "ID")]
    id: String,
    /// What to send
    #[arg(value_name = "TEXT")]
    text: Option<OsString>,
    /// Add no line break to the text
    #[arg(long, requires = "text")]
    no_newline: bool,
    /// Close the command's standard input, after the text; at a terminal, type ^D
    #[arg(long)]
    eof: bool,
    /// Send this signal to the command's process group
    #[arg(long, value_name = "S", value_parser = context::signal)]
    signal: Option<i32>,
    #[command(flatten)]
    scope: Scope,
}

/// Sends, and says what was delivered.
pub async fn send(args: SendArgs, context: &Context) -> Answer {
    if args.text.is_none() && !args.eof && args.signal.is_none() {
        return Err(Failure::Usage("nothing to send: give a TEXT, --eof or --signal".to_owned()));
    }
    let command = context.command(&args.scope, &args.id).await?;
    let mut delivered = Vec::new();
    if let Some(text) = args.text {
        let mut bytes = text.into_vec();
        if !args.no_newline {
            bytes.push(b'\n');
        }
        command.send(&bytes, args.eof).await?;
        delivered.push(format!("{} bytes", bytes.len()));
    } else if args.eof {
        command.close_input().await?;
    }
    if args.eof {
        delivered.push("the end of input".to_owned());
    }
    if let Some(signal) = args.signal {
        command.signal(signal).await?;
        delivered.push(format!("the signal {}", signal_name(signal)));
    }
    context.printer.print(format!("delivered to {}: {}\n", command.id(), delivered.join(", ")))?;
    Ok(exit::DONE)
}
