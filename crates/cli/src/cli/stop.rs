//! `outlast stop`: ends commands and everything that they started, and says what was verified.

use std::time::Duration;

use clap::Args;
use outlast::{Command, StopOptions, StopOutcome, Via};
use outlast_core::ending::signal_name;
use outlast_core::names::display_line;
use outlast_core::record::{Phase, Survivor};
use tokio::task::JoinSet;

use super::{Context, Scope, context, signals};
use crate::exit::{self, Answer, Failure};
use crate::view::{CommandView, ListView, ProcessView, StoppedView};
use crate::words;

/// Stops commands: TERM, the grace, KILL, until nothing of their trees is left
#[derive(Args)]
#[command(
    override_usage = "outlast stop [OPTIONS] ID...\n       outlast stop [OPTIONS] --all [--detached]",
    after_help = "\
Ends with 0 when everything named is verified to have ended, with 1 when something is alive.

Examples:
  outlast stop w1
  outlast stop w1 w2 --grace 10s --signal INT
  outlast stop w1 --grace 0s        KILL at once
  outlast stop --all                every command of the session, and what ended ones left behind"
)]
pub struct StopArgs {
    /// Ids, aliases, or beginnings of ids
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// The time between the first signal and KILL [default: 2s]
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    grace: Option<Duration>,
    /// The first signal in place of TERM
    #[arg(long, value_name = "S", value_parser = context::signal)]
    signal: Option<i32>,
    /// Every command of the session, survivors of ended ones included
    #[arg(long)]
    all: bool,
    /// With --all: detached commands too
    #[arg(long, requires = "all")]
    detached: bool,
    /// Also when several callers wait for it; --all always does
    #[arg(long)]
    force: bool,
    /// Who asks [default: $OUTLAST_CONSUMER, else human or model]
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Print one JSON object: outlast.command/1, or outlast.list/1 for several ids
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: Scope,
}

/// Stops, shows, and counts as told what was shown.
pub async fn stop(args: StopArgs, context: &Context) -> Answer {
    let by = context.consumer(args.consumer.as_deref())?;
    let options = StopOptions { by: by.clone(), grace: args.grace, signal: args.signal, force: args.force };
    let mut failures = Vec::new();
    let outcomes = if args.all {
        match context.session_if_any(&args.scope).await? {
            Some(session) => session.stop_all(options, args.detached).await?,
            None => Vec::new(),
        }
    } else {
        let mut commands = Vec::new();
        for id in &args.ids {
            match context.command(&args.scope, id).await {
                Ok(command) => commands.push(command),
                Err(failure) => failures.push(failure),
            }
        }
        let (outcomes, refused) = stop_each(commands, &options).await;
        failures.extend(refused);
        outcomes
    };
    show(&args, &outcomes, context).await?;
    commit(&outcomes, &by, context).await?;
    if let Some(last) = failures.pop() {
        for failure in &failures {
            context.printer.say(&failure.message().unwrap_or_default());
        }
        return Err(last);
    }
    let gone = outcomes.iter().all(|outcome| outcome.verified && outcome.alive.is_empty());
    Ok(if gone { exit::DONE } else { exit::NOT_ALL })
}

/// Stops them side by side, so that one that takes its whole grace delays no other.
async fn stop_each(commands: Vec<Command>, options: &StopOptions) -> (Vec<StopOutcome>, Vec<Failure>) {
    let mut stops = JoinSet::new();
    for (index, command) in commands.into_iter().enumerate() {
        let options = options.clone();
        stops.spawn(async move { (index, command.stop(options).await) });
    }
    let (mut outcomes, mut failures) = (Vec::new(), Vec::new());
    while let Some(joined) = stops.join_next().await {
        match joined {
            Ok((index, Ok(outcome))) => outcomes.push((index, outcome)),
            Ok((_, Err(error))) => failures.push(Failure::from(error)),
            Err(error) => failures.push(Failure::System("a stop broke off".to_owned(), error.into())),
        }
    }
    outcomes.sort_by_key(|(index, _)| *index);
    (outcomes.into_iter().map(|(_, outcome)| outcome).collect(), failures)
}

async fn show(args: &StopArgs, outcomes: &[StopOutcome], context: &Context) -> Result<(), Failure> {
    for note in outcomes.iter().filter_map(|outcome| outcome.note.as_deref()) {
        context.printer.say(&display_line(note));
    }
    if !args.json {
        return show_text(args, outcomes, context).await;
    }
    for (outcome, one) in outcomes.iter().flat_map(|outcome| outcome.alive.iter().map(move |one| (outcome, one))) {
        let whose = outcome.snapshot.id;
        context.printer.say(&format!("running: {} (pid {}) of {whose}", display_line(&one.name), one.pid));
    }
    match outcomes {
        [only] if args.ids.len() == 1 => context.printer.json(&view(only, CommandView::whole(&only.snapshot))),
        // Nothing was stopped; the failure that follows is the answer.
        [] if !args.all => Ok(()),
        all => {
            let views = all.iter().map(|one| view(one, CommandView::listed(&one.snapshot)));
            context.printer.json(&ListView::of(views.collect()))
        }
    }
}

async fn show_text(args: &StopArgs, outcomes: &[StopOutcome], context: &Context) -> Result<(), Failure> {
    let first = match (args.grace, args.signal) {
        (Some(Duration::ZERO), _) => "KILL".to_owned(),
        (_, signal) => signal_name(signal.unwrap_or(signals::TERM)),
    };
    let mut text = String::new();
    for outcome in outcomes {
        let owner = context.runtime.open_session(&outcome.snapshot.session).await?;
        let elsewhere = context.elsewhere(&args.scope, &owner).await;
        text.push_str(&words::stopped(outcome, &first, elsewhere.as_deref()));
    }
    context.printer.print(text)
}

fn view(outcome: &StopOutcome, command: CommandView) -> StoppedView {
    let process = |one: &Survivor| ProcessView { pid: one.pid, name: one.name.clone() };
    StoppedView {
        command,
        signals: outcome.signals,
        already_ended: outcome.already_ended,
        verified: outcome.verified,
        ended_survivors: outcome.ended_survivors.iter().map(process).collect(),
    }
}

/// A reply that tells an end to a consumer consumes that consumer's completion and no other's.
async fn commit(outcomes: &[StopOutcome], consumer: &str, context: &Context) -> Result<(), Failure> {
    for outcome in outcomes.iter().filter(|outcome| outcome.snapshot.phase == Phase::Ended) {
        let session = context.runtime.open_session(&outcome.snapshot.session).await?;
        let told = session.commit(consumer, &outcome.snapshot.id, Via::Stop).await?;
        context.say_unrecorded(&outcome.snapshot.id, &told);
    }
    Ok(())
}
