//! `outlast inbox`: the ends that a consumer has not been told of, and lines that it wanted to hear of.

use clap::Args;
use outlast::{Completion, HeadsUp, Session, Via};

use super::{Context, Scope};
use crate::exit::{self, Answer};
use crate::view::{CommandView, CompletionView, HeadsUpView, InboxView};
use crate::words;

/// Shows what a consumer has not been told of background commands: ends, and lines of `run --notify`
#[derive(Args)]
#[command(after_help = "\
Examples:
  outlast inbox                       look; they stay to be told
  outlast inbox --ack                 look, and count them as told
  outlast inbox --consumer ci --ack   for another consumer, who is told on its own")]
pub struct InboxArgs {
    /// Count what is shown as told
    #[arg(long)]
    ack: bool,
    /// Who is told [default: $OUTLAST_CONSUMER, else human or model]
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Print one JSON object, outlast.inbox/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: Scope,
}

/// Shows what there is to tell, and commits it once it was shown.
pub async fn inbox(args: InboxArgs, context: &Context) -> Answer {
    let consumer = context.consumer(args.consumer.as_deref())?;
    let Some(session) = context.session_if_any(&args.scope).await? else {
        if args.json {
            context.printer.json(&InboxView::of(Vec::new(), Vec::new()))?;
        } else {
            context.printer.print(words::inbox(&[], &[], None))?;
        }
        return Ok(exit::DONE);
    };
    if !args.ack {
        let heads_ups = session.heads_ups(&consumer).await?;
        show(&session.pending(&consumer).await?, &heads_ups, &session, args.json, context)?;
        return Ok(exit::DONE);
    }
    let leased = session.lease(&consumer).await?;
    let completions: Vec<Completion> = leased.iter().map(|guard| guard.completion().clone()).collect();
    let heads_ups = session.heads_ups(&consumer).await?;
    show(&completions, &heads_ups, &session, args.json, context)?;
    for guard in leased {
        guard.commit(Via::Inbox).await?;
    }
    for one in heads_ups {
        one.commit().await?;
    }
    Ok(exit::DONE)
}

fn show(
    completions: &[Completion],
    heads_ups: &[HeadsUp],
    session: &Session,
    json: bool,
    context: &Context,
) -> Result<(), exit::Failure> {
    if json {
        let views = completions
            .iter()
            .map(|one| CompletionView { command: CommandView::listed(&one.snapshot), redelivered: one.redelivered });
        let lines = heads_ups.iter().map(HeadsUpView::of);
        return context.printer.json(&InboxView::of(views.collect(), lines.collect()));
    }
    context.printer.print(words::inbox(completions, heads_ups, Some(*session.id())))
}
