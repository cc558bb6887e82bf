//! `outlast gc`: keeps the state directory within bounds, and clears what a crash left behind.

use std::time::Duration;

use clap::Args;
use outlast::Retained;
use outlast_core::names::display_line;
use outlast_core::retention::{Limits, SessionBounds};

use super::{Context, context};
use crate::exit::{self, Answer, Failure};
use crate::view::GcView;

/// Removes sessions and output beyond the bounds, and what a crash left behind
#[derive(Args)]
#[command(after_help = "\
Sessions go only where a bound is set, here or by OUTLAST_KEEP_SESSIONS and
OUTLAST_KEEP_AGE: one that breaks either bound, with all of its files. What runs
stays, and so does what is newer than a session that runs. Output goes oldest
end first. What somebody was not told of stays, unless --untold is given.

Examples:
  outlast gc --dry-run
  outlast gc --keep-sessions 100 --keep-age 30d
  outlast gc --keep-output 500MiB")]
pub struct GcArgs {
    /// Keep at most so many sessions
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    keep_sessions: Option<u64>,
    /// Keep sessions that are at most so old
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    keep_age: Option<Duration>,
    /// Keep so much output of all sessions together [default: 2GiB]
    #[arg(long, value_name = "SIZE", value_parser = context::size, allow_hyphen_values = true)]
    keep_output: Option<u64>,
    /// Also what nobody was told of, in sessions that are over
    #[arg(long)]
    untold: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object, outlast.gc/1
    #[arg(long)]
    json: bool,
}

/// Cleans up.
pub async fn gc(args: GcArgs, context: &Context) -> Answer {
    let retained = context.runtime.retain(&limits(&args, context.config.bounds.keep)?, args.dry_run).await?;
    if args.json {
        context.printer.json(&GcView::of(args.dry_run, &retained))?;
        return Ok(exit::DONE);
    }
    for line in &retained.kept {
        context.printer.say(line);
    }
    context.printer.print(text(&retained, args.dry_run))?;
    Ok(exit::DONE)
}

/// The operator's bounds, and in place of them those that were asked for.
fn limits(args: &GcArgs, operator: Limits) -> Result<Limits, Failure> {
    let refused = |why: &dyn std::fmt::Display| Failure::Usage(why.to_string());
    let mut limits = Limits { untold: args.untold, ..operator };
    if args.keep_sessions.is_some() || args.keep_age.is_some() {
        let age_ms = args.keep_age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        limits.sessions = Some(SessionBounds::new(args.keep_sessions, age_ms).map_err(|error| refused(&error))?);
    }
    if let Some(bytes) = args.keep_output {
        limits.log_bytes = bytes.try_into().map_err(|_| refused(&"a bound of 0 would keep nothing"))?;
    }
    Ok(limits)
}

fn text(retained: &Retained, dry_run: bool) -> String {
    let verb = if dry_run { "would remove" } else { "removed" };
    let line = |path: &std::path::PathBuf| format!("{verb} {}\n", display_line(&path.display().to_string()));
    let text: String = retained.removed.iter().map(line).collect();
    if text.is_empty() { "nothing to remove\n".to_owned() } else { text }
}
