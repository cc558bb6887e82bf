//! `outlast status`: everything about some commands. Looking consumes nothing.

use clap::Args;
use outlast::{Session, Snapshot};

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
    let mut snapshots = Vec::new();
    for id in &args.ids {
        snapshots.push(context.command(&args.scope, id).await?.snapshot().await?);
    }
    if args.json {
        let mut views: Vec<CommandView> = snapshots.iter().map(CommandView::whole).collect();
        match (views.pop(), views.is_empty()) {
            (Some(only), true) => context.printer.json(&only)?,
            (last, _) => {
                views.extend(last);
                context.printer.json(&ListView::of(views))?;
            }
        }
        return Ok(exit::DONE);
    }
    // Which session was asked only matters for a command of another one, so that its absence is no error.
    let asked = context.session_if_any(&args.scope).await.ok().flatten();
    let texts: Vec<String> = snapshots.iter().map(|one| words::status(one, elsewhere(one, asked.as_ref()).as_deref())).collect();
    context.printer.print(texts.join("\n"))?;
    Ok(exit::DONE)
}

/// What to say of a command that is not of the session that was asked.
fn elsewhere(snapshot: &Snapshot, asked: Option<&Session>) -> Option<String> {
    let asked = asked.filter(|asked| *asked.id() != snapshot.session)?;
    let earlier = snapshot.session < *asked.id() && asked.record().is_some_and(|record| !record.context.is_empty());
    let which = if earlier { "belongs to an earlier session" } else { "belongs to another session" };
    Some(format!("{which}: {}", snapshot.session))
}
