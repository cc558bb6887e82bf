//! `list`: the commands of the session.

use outlast_core::record::Phase;

use super::arguments::ListArguments;
use super::call::Call;
use super::reply::{Answer, META_LIST, Reply};
use crate::exit::Failure;
use crate::view::{CommandView, ListView};
use crate::words;

/// Columns of the table: whole ids fit in.
const COLUMNS: usize = 160;
/// Commands that one reply lists; of more the last ones.
const MOST: usize = 50;

/// Lists.
pub async fn list(call: &Call, arguments: ListArguments) -> Result<Answer, Failure> {
    let all = call.session.list(arguments.all == Some(true)).await?;
    let ended = all.iter().filter(|one| one.phase == Phase::Ended).count();
    let mut text = match (all.len() - ended, ended) {
        (0, 0) if arguments.all == Some(true) => "This session has no commands.\n".to_owned(),
        (0, 0) => "No command is running; all=true lists those that have ended.\n".to_owned(),
        (running, 0) => format!("{running} running\n"),
        (running, ended) => format!("{running} running, {ended} ended\n"),
    };
    let shown = &all[all.len().saturating_sub(MOST)..];
    if shown.len() < all.len() {
        text.push_str(&format!("the last {} of {} are shown\n", shown.len(), all.len()));
    }
    text.push_str(&words::commands(shown, COLUMNS, false));
    let view = ListView::of(shown.iter().map(CommandView::listed).collect());
    Ok(Reply::text(text).with(META_LIST, &view)?.into())
}
