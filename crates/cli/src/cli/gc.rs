//! `outlast gc`: clears what a crash left behind.

use clap::Args;
use outlast_core::names::display_line;

use super::Context;
use crate::exit::{self, Answer};
use crate::view::GcView;

/// Clears what a crash left behind: records that were never finished, names of dead processes
#[derive(Args)]
#[command(after_help = "\
Sessions, records of commands and their output are never touched.

Examples:
  outlast gc --dry-run
  outlast gc")]
pub struct GcArgs {
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object, outlast.gc/1
    #[arg(long)]
    json: bool,
}

/// Cleans up.
pub async fn gc(args: GcArgs, context: &Context) -> Answer {
    let removed = context.runtime.clear_leftovers(args.dry_run).await?;
    let removed: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
    if args.json {
        context.printer.json(&GcView::of(args.dry_run, removed))?;
        return Ok(exit::DONE);
    }
    let verb = if args.dry_run { "would remove" } else { "removed" };
    let text: String = removed.iter().map(|path| format!("{verb} {}\n", display_line(path))).collect();
    context.printer.print(if text.is_empty() { "nothing to remove\n".to_owned() } else { text })?;
    Ok(exit::DONE)
}
