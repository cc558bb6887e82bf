//! `outlast ps`: the commands of a session.

use clap::Args;

use super::{Context, Scope};
use crate::exit::{self, Answer};
use crate::view::{CommandView, ListView};
use crate::words;

/// Lists the commands of the session that run or have survivors
#[derive(Args)]
#[command(after_help = "\
Examples:
  outlast ps            what runs
  outlast ps -a         what ended, too
  outlast ps -a --json  for programs: outlast.list/1")]
pub struct PsArgs {
    /// Also those that ended
    #[arg(short, long)]
    all: bool,
    /// Print one JSON object, outlast.list/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: Scope,
}

/// Lists commands.
pub async fn ps(args: PsArgs, context: &Context) -> Answer {
    let list = match context.session_if_any(&args.scope).await? {
        Some(session) => session.list(args.all).await?,
        None => Vec::new(),
    };
    if args.json {
        context.printer.json(&ListView::of(list.iter().map(CommandView::listed).collect()))?;
    } else {
        context.printer.print(words::commands(&list, context.printer.width(), context.printer.colour))?;
    }
    Ok(exit::DONE)
}
