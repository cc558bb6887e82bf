//! `outlast run`: starts a command in the foreground or in the background.

mod terminal;
mod request;
mod input;
mod foreground;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use outlast::{Delivery, Demotion, Finished, Outcome, RunRequest, Session};
use outlast_core::names::display_line;
use outlast_core::request::{Lifetime, Streams, Survivors};

use super::{Context, Scope, context};
use crate::exit::{self, Answer, Failure};
use crate::view::CommandView;
use crate::words;

/// Runs a command; one that is not done when its grace is over moves to the background
#[derive(Args)]
#[command(
    override_usage = "outlast run [OPTIONS] [--] PROGRAM [ARGS]...\n       outlast run [OPTIONS] -c 'SHELL LINE'",
    after_help = "\
Ends with the command's code, or with 75 when it moved to the background.
Ctrl-C goes to the command. Ctrl-Z moves it to the background, and so does a
terminal or a reader that goes away. TTL is 24h unless told.
D is 250ms, 10s, 1h30m; SIZE is 64KiB, 1GiB. A limit of 0 is no limit.

Examples:
  outlast run -- make -j8
  outlast run --grace 30s --limit 10m -- cargo test
  outlast run -b --label web -- python3 -m http.server
  outlast run -c 'make && make test' --json"
)]
pub struct RunArgs {
    /// The program and its arguments; options of outlast stand before it
    #[arg(trailing_var_arg = true, value_name = "PROGRAM", hide = true)]
    pub argv: Vec<OsString>,
    /// Run this line with sh
    #[arg(short = 'c', value_name = "LINE", conflicts_with = "argv", allow_hyphen_values = true)]
    line: Option<OsString>,
    /// How long it runs in the foreground [default: 10s; in a terminal no end]
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    grace: Option<Duration>,
    /// Start in the background at once and print the id
    #[arg(short, long)]
    background: bool,
    /// Stop it after this time
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    limit: Option<Duration>,
    /// Stop it after this time without output
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    idle_limit: Option<Duration>,
    /// Say once in the foreground that it is silent; 0s: never [default: 15m]
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    quiet_after: Option<Duration>,
    /// In the background, tell its consumer of lines that match; repeatable
    #[arg(long, value_name = "RE", conflicts_with = "join")]
    notify: Vec<String>,
    /// Tell with its end which files below this directory changed
    #[arg(long, value_name = "DIR", conflicts_with = "join")]
    track_changes: Option<OsString>,
    /// The working directory
    #[arg(long, value_name = "DIR")]
    cwd: Option<OsString>,
    /// Set an environment variable; may be given several times
    #[arg(short, long, value_name = "K=V")]
    env: Vec<OsString>,
    /// A line for people, shown in lists
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// What bounds it: session, detached, detached:TTL
    #[arg(long, value_name = "HOW", default_value = "session", value_parser = outlast_core::request::parse_lifetime)]
    lifetime: Lifetime,
    /// What becomes of processes that it leaves
    #[arg(long, value_name = "HOW", default_value = "keep")]
    survivors: SurvivorsName,
    /// One pipe for both streams or one each
    #[arg(long, value_name = "HOW", default_value = "merged")]
    streams: StreamsName,
    /// Leave its standard input open, for `send` or for what comes in here
    #[arg(long)]
    stdin: bool,
    /// Give it a terminal of its own, for `send` or for what is typed here
    #[arg(long)]
    pty: bool,
    /// Who starts it [default: $OUTLAST_CONSUMER, else human or model]
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// How its end is told: on its own, with what comes next, or to who asks
    #[arg(long, value_name = "FORM", default_value = "task")]
    delivery: DeliveryName,
    /// Keep so much of head and tail, at least 1KiB [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = context::size, allow_hyphen_values = true)]
    max_log: Option<u64>,
    /// Stop it when its whole tree has more memory than this
    #[arg(long, value_name = "SIZE", value_parser = context::size, allow_hyphen_values = true)]
    memory: Option<u64>,
    /// Stop it when its tree has more processes than this
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_hyphen_values = true)]
    pids: Option<u64>,
    /// Ask for a right beyond a sandbox (a network, a path, a device); refused, because there is no sandbox
    #[arg(long, value_name = "WHAT")]
    right: Vec<String>,
    /// Print one JSON object, at the end or when it moves to the background
    #[arg(long)]
    json: bool,
    /// Join an identical command that runs, if it was started with --join too
    #[arg(long, conflicts_with_all = ["unique", "stdin", "pty"])]
    join: bool,
    /// Join nothing and be joined by nothing, which is the default
    #[arg(long)]
    unique: bool,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Clone, Copy, ValueEnum)]
enum SurvivorsName {
    Keep,
    Kill,
}

impl From<SurvivorsName> for Survivors {
    fn from(name: SurvivorsName) -> Survivors {
        match name {
            SurvivorsName::Keep => Survivors::Keep,
            SurvivorsName::Kill => Survivors::Kill,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum StreamsName {
    Merged,
    Separate,
}

impl From<StreamsName> for Streams {
    fn from(name: StreamsName) -> Streams {
        match name {
            StreamsName::Merged => Streams::Merged,
            StreamsName::Separate => Streams::Separate,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum DeliveryName {
    Task,
    Note,
    Poll,
}

impl From<DeliveryName> for Delivery {
    fn from(name: DeliveryName) -> Delivery {
        match name {
            DeliveryName::Task => Delivery::Task,
            DeliveryName::Note => Delivery::Note,
            DeliveryName::Poll => Delivery::Poll,
        }
    }
}

/// Runs a command.
pub async fn run(args: RunArgs, context: &Context) -> Answer {
    let request = request::build(&args, context)?;
    if let Err(reason) = context.runtime.records()
        && !args.background
    {
        context.printer.say(&format!("no records can be kept, the command runs to its end here: {reason}"));
    }
    let session = context.session_or_new(&args.scope).await?;
    if args.background {
        start(&session, request, args.json, context).await
    } else {
        let how = foreground::How {
            json: args.json,
            forward_input: args.stdin || args.pty,
            terminal: args.pty,
            quiet_after: outlast::quiet_time(args.quiet_after),
            detached: matches!(args.lifetime, Lifetime::Detached { .. }),
        };
        foreground::run(&session, request, how, context).await
    }
}

async fn start(session: &Session, request: RunRequest, json: bool, context: &Context) -> Answer {
    match session.start(request).await? {
        Outcome::Finished(finished) => ended(&finished, json, context),
        Outcome::Demoted(demotion) => {
            if demotion.joined {
                context.printer.say(&words::joined(demotion.command.id()));
            }
            for line in demotion.remarks.iter().cloned().chain(record_errors(&demotion)) {
                context.printer.say(&line);
            }
            if json {
                context.printer.json(&CommandView::demoted(&demotion, &demotion.command.snapshot().await?))?;
            } else {
                context.printer.print(format!("{}  {}\n", demotion.alias, demotion.command.id()))?;
            }
            Ok(exit::DONE)
        }
    }
}

/// Shows an end, with what the output cannot say beside it.
fn ended(finished: &Finished, json: bool, context: &Context) -> Answer {
    for line in words::ended_inline(finished, None, None, words::Reader::Shell).iter().chain(&finished.remarks) {
        context.printer.say(line);
    }
    if json {
        context.printer.json(&CommandView::finished(finished))?;
    }
    Ok(exit::of_end(&finished.exit.end))
}

/// What is held against the records of a demotion, one line each.
fn record_errors(demotion: &Demotion) -> Vec<String> {
    demotion.errors.iter().map(|error| format!("records incomplete: {}", display_line(error))).collect()
}

/// What makes no sense in the arguments.
fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(text.into())
}
