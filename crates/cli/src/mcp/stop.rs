//! `stop`: ends commands with everything that they started.

use futures_util::future::join_all;
use outlast::{Command, StopOptions, StopOutcome, Via};
use outlast_core::names::{display_line, shorten};
use outlast_core::record::Survivor;

use super::arguments::{StopArguments, check_ids, ids};
use super::call::Call;
use super::reply::{Answer, META_COMMAND, META_LIST, Reply, failure_text};
use crate::exit::Failure;
use crate::view::{CommandView, ListView, ProcessView, StoppedView};
use crate::words;

/// Stops.
pub async fn stop(call: &Call, arguments: StopArguments) -> Result<Answer, Failure> {
    let ids = ids(arguments.id, arguments.ids);
    check_ids("stop", &ids).map_err(Failure::Usage)?;
    if ids.iter().all(|id| id.trim().is_empty()) {
        return Err(Failure::Usage("`stop` was called wrongly: give `id` or `ids`; `list` shows what runs".to_owned()));
    }
    let (mut commands, mut lines) = (Vec::new(), Vec::new());
    for id in ids {
        match call.session.command(&id).await {
            Ok(command) => commands.push(command),
            // Asking for the stop of what is not there is no error: nothing of it runs.
            Err(outlast::Error::Unknown { .. }) => {
                lines.push(format!("unknown: {}\n", shorten(&display_line(&id), 48)))
            }
            Err(outlast::Error::EarlierSession { .. }) => {
                lines.push(format!("{}: of an earlier session, nothing was sent\n", shorten(&display_line(&id), 48)));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let outcomes = {
        let stops = join_all(commands.iter().map(|command| one(call, command, arguments.force == Some(true))));
        tokio::select! {
            biased;
            () = call.cancelled.cancelled() => return Ok(Answer::Cancelled),
            outcomes = stops => outcomes,
        }
    };
    let (mut text, mut views, mut refused) = (String::new(), Vec::new(), false);
    for (command, outcome) in commands.iter().zip(outcomes) {
        match outcome {
            Ok(outcome) => {
                text.push_str(&words::stopped(&outcome, "TERM", None));
                text.extend(outcome.note.as_deref().map(|note| format!("{}\n", display_line(note))));
                if let Some(line) = call.tells(command, &outcome.snapshot, Via::Stop).await {
                    text.push_str(&format!("{line}\n"));
                }
                views.push(view(&outcome));
            }
            Err(failure) => {
                refused = true;
                text.push_str(&format!("{}: {}\n", command.id(), failure_text(&failure)));
            }
        }
    }
    text.extend(lines);
    let reply = if refused && views.is_empty() { Reply::error(text) } else { Reply::text(text) };
    Ok(match views.as_slice() {
        [only] => reply.with(META_COMMAND, only)?,
        all => reply.with(META_LIST, &ListView::of(all.iter().collect()))?,
    }
    .into())
}

async fn one(call: &Call, command: &Command, force: bool) -> Result<StopOutcome, Failure> {
    Ok(command.stop(StopOptions { force, ..StopOptions::by(&call.consumer) }).await?)
}

fn view(outcome: &StopOutcome) -> StoppedView {
    let process = |one: &Survivor| ProcessView { pid: one.pid, name: one.name.clone() };
    StoppedView {
        command: CommandView::listed(&outcome.snapshot),
        signals: outcome.signals,
        already_ended: outcome.already_ended,
        verified: outcome.verified,
        ended_survivors: outcome.ended_survivors.iter().map(process).collect(),
    }
}
