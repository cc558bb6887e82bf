//! `outlast inbox`: the ends that a consumer has not been told of.

use clap::Args;
use outlast::{Completion, Session, Via};

use super::{Context, Scope};
use crate::exit::{self, Answer};
use crate::view::{CommandView, CompletionView, InboxView};
use crate::words;

/// Shows the ends of background commands that a consumer has not been told of
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
            context.printer.json(&InboxView::of(Vec::new()))?;
        } else {
            context.printer.print(words::completions(&[], None))?;
        }
        return Ok(exit::DONE);
    };
    if !args.ack {
        show(&session.pending(&consumer).await?, &session, args.json, context)?;
        return Ok(exit::DONE);
    }
    let leased = session.lease(&consumer).await?;
    let completions: Vec<Completion> = leased.iter().map(|guard| guard.completion().clone()).collect();
    show(&completions, &session, args.json, context)?;
    for guard in leased {
        guard.commit(Via::Inbox).await?;
    }
    Ok(exit::DONE)
}

fn show(completions: &[Completion], session: &Session, json: bool, context: &Context) -> Result<(), exit::Failure> {
    if json {
        let views = completions
            .iter()
            .map(|one| CompletionView { command: CommandView::listed(&one.snapshot), redelivered: one.redelivered });
        return context.printer.json(&InboxView::of(views.collect()));
    }
    context.printer.print(words::completions(completions, Some(*session.id())))
}
