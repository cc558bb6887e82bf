//! `outlast status`: everything about some commands. Looking consumes nothing.

use clap::Args;

use super::{Context, Scope};
use crate::exit::{self, Answer};
use crate::view::{CommandView, ListView};
use crate::words;

/// Shows where a command is, how it ended, and the last of its output
#[derive(Args)]
#[command(after_help = "\
Examples:
  outlast status w1
  outlast status wrk_0192f0c1 --json")]
pub struct StatusArgs {
    /// Id, alias, or the beginning of an id
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Print one JSON object: outlast.command/1, or outlast.list/1 for several ids
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: Scope,
}

/// Shows commands.
pub async fn status(args: StatusArgs, context: &Context) -> Answer {
    let mut found = Vec::new();
    for id in &args.ids {
        let command = context.command(&args.scope, id).await?;
        found.push((command.snapshot().await?, command));
    }
    if args.json {
        let mut views: Vec<CommandView> = found.iter().map(|(snapshot, _)| CommandView::whole(snapshot)).collect();
        match (views.pop(), views.is_empty()) {
            (Some(only), true) => context.printer.json(&only)?,
            (last, _) => {
                views.extend(last);
                context.printer.json(&ListView::of(views))?;
            }
        }
        return Ok(exit::DONE);
    }
    let mut texts = Vec::new();
    for (snapshot, command) in &found {
        let elsewhere = context.elsewhere(&args.scope, command.session()).await;
        texts.push(words::status(snapshot, elsewhere.as_deref()));
    }
    context.printer.print(texts.join("\n"))?;
    Ok(exit::DONE)
}
