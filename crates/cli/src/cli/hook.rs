//! `outlast hook`: answers an event of an agent host.

use clap::Args;

use crate::config::Config;
use crate::exit::{self, Answer, Failure};
use crate::hook;
use crate::output::Printer;

/// Answers one event of an agent host, in the form of its hooks (`outlast setup` puts it there)
#[derive(Args)]
#[command(after_help = "\
The event is one JSON object on standard input. The answer has the ends of background commands
that the model was not told of, and after a start the commands that still run; it is empty where
there is nothing to say. The session is the one of the host's process; none is ever made here.
It ends with 0 whatever happens, so that no host is ever stopped by it; what went wrong is said
on standard error.

Example:
  outlast hook claude             as a command in the hooks of Claude Code
  outlast hook codex --redirect   before the shell tool, which is refused then")]
pub struct HookArgs {
    /// claude, codex, gemini or opencode
    #[arg(value_name = "HOST")]
    host: String,
    /// Refuse the built-in shell tool of the host and name `run`; `outlast` itself may be asked
    #[arg(long)]
    redirect: bool,
}

/// Answers; what went wrong is said, and is no failure of the host.
pub fn hook(args: &HookArgs, config: &Config, printer: Printer) -> Answer {
    let answered = match hook::form(&args.host) {
        Some(form) => hook::answer(form, args.redirect, config),
        None => Err(Failure::Unknown(format!(
            "a host {} with hooks; there are claude, codex, gemini and opencode",
            args.host
        ))),
    };
    if let Some(message) = answered.err().and_then(|failure| failure.message()) {
        printer.say(&message);
    }
    Ok(exit::DONE)
}
