//! `outlast trace`: what happened in a session, as it was recorded.

use clap::Args;

use super::{Context, Scope};
use crate::exit::{self, Answer};
use crate::words;

/// Shows what happened in a session, line by line
#[derive(Args)]
#[command(after_help = "\
Examples:
  outlast trace
  outlast trace ses_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e --json   the lines as they are stored")]
pub struct TraceArgs {
    /// The session [default: the one that is meant by --session]
    #[arg(value_name = "SESSION", conflicts_with = "session")]
    id: Option<String>,
    /// Print the lines as they are stored, one JSON object each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: Scope,
}

/// Shows a trace.
pub async fn trace(args: TraceArgs, context: &Context) -> Answer {
    let scope = Scope { session: args.id.or(args.scope.session) };
    let session = context.session(&scope).await?;
    if args.json {
        context.printer.print(session.raw_trace().await?)?;
    } else {
        context.printer.print(words::trace(&session.trace().await?))?;
    }
    Ok(exit::DONE)
}
