//! `outlast stats`: how the commands of a session came out, in numbers.

use clap::Args;
use outlast::Totals;

use super::{Context, Scope};
use crate::exit::{self, Answer};
use crate::view::StatsView;

/// Counts the commands of a session by how they came out
#[derive(Args)]
#[command(after_help = "\
Each command with records counts once, whoever waited for it. One that ended in
the foreground leaves no records and is not counted.

Examples:
  outlast stats
  outlast stats --json   for programs: outlast.stats/1")]
pub struct StatsArgs {
    /// Print one JSON object, outlast.stats/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: Scope,
}

/// Counts.
pub async fn stats(args: StatsArgs, context: &Context) -> Answer {
    let totals = match context.session_if_any(&args.scope).await? {
        Some(session) => session.totals().await?,
        None => Totals::default(),
    };
    if args.json {
        context.printer.json(&StatsView::of(&totals))?;
    } else {
        context.printer.print(text(&totals))?;
    }
    Ok(exit::DONE)
}

fn text(totals: &Totals) -> String {
    let lines = [
        ("commands", totals.commands()),
        ("running", totals.running),
        ("ok", totals.ok),
        ("stopped", totals.stopped),
        ("timeouts", totals.failures.timeouts),
        ("failures", totals.failures.commands),
        ("unknown", totals.unknown),
    ];
    lines.iter().map(|(name, count)| format!("{name:<9} {count}\n")).collect()
}
