//! `outlast session`: sessions made, listed, ended and resumed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use outlast::{Anchor, Bound, END_BOUND, Predecessor, Session, SessionOptions};
use outlast_core::id::CommandId;
use outlast_core::names::{check_context, display_line};
use outlast_core::record::{ClosedRecord, Ownership};

use super::context;
use super::{Context, Scope};
use crate::exit::{self, Answer, Failure};
use crate::view::{BoundView, ResumeView, SessionView, SessionsView};
use crate::words;

/// Starts, lists, shows, ends and resumes sessions
#[derive(Args)]
#[command(after_help = "\
Examples:
  export OUTLAST_SESSION=$(outlast session start --anchor $PPID)
  outlast session list
  outlast session end $OUTLAST_SESSION      stops all of its commands but detached ones
  outlast session resume ses_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e")]
pub struct SessionArgs {
    #[command(subcommand)]
    verb: SessionVerb,
}

#[derive(Subcommand)]
enum SessionVerb {
    /// Make a session and print its id
    #[command(after_help = START_EXAMPLES)]
    Start(NewArgs),
    /// List all sessions, oldest first
    #[command(after_help = "Example:\n  outlast session list")]
    List(PlainArgs),
    /// Show one session
    #[command(after_help = "Example:\n  outlast session show --json")]
    Show(ShowArgs),
    /// End a session: stop its commands and say what was discarded
    #[command(after_help = END_EXAMPLES)]
    End(EndArgs),
    /// Make a session that follows an earlier one, and say what became of that one's commands
    #[command(after_help = "Example:\n  outlast session resume ses_0192f0c1 --anchor $PPID")]
    Resume(ResumeArgs),
    /// Keep the records of a session beside a transcript, or give it a context
    #[command(after_help = BIND_EXAMPLES)]
    Bind(BindArgs),
}

const START_EXAMPLES: &str = "\
The anchor depends on who calls: in a terminal or a script it is this shell, under
an agent that starts a shell for each line it is the agent.

Examples:
  export OUTLAST_SESSION=$(outlast session start --anchor $$)      as long as this shell
  export OUTLAST_SESSION=$(outlast session start --anchor $PPID)   as long as its caller
  outlast session start --context my-project --json";

const END_EXAMPLES: &str = "\
Examples:
  outlast session end $OUTLAST_SESSION      all of its commands but detached ones
  outlast session end ses_0192f0c1 --detached";

const BIND_EXAMPLES: &str = "\
Records of commands that are over move into a directory of the session's id in
DIR, those of others follow at their end. Every id is found all the while.

Examples:
  outlast session bind $OUTLAST_SESSION ~/transcripts/today
  outlast session bind $OUTLAST_SESSION --context my-project";

#[derive(Args)]
struct PlainArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct NewArgs {
    /// The conversation or project: sessions of one context follow one another
    #[arg(long, value_name = "KEY", default_value = "", hide_default_value = true)]
    context: String,
    /// The process whose life bounds the session [default: the session leader or the parent]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    anchor: Option<u32>,
    /// How long a new owner is waited for, where a session has one
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    linger: Option<Duration>,
    #[command(flatten)]
    plain: PlainArgs,
}

#[derive(Args)]
struct ShowArgs {
    /// The session [default: the one that is meant]
    #[arg(value_name = "ID", conflicts_with = "session")]
    id: Option<String>,
    #[command(flatten)]
    plain: PlainArgs,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Args)]
struct EndArgs {
    /// The session
    #[arg(value_name = "ID")]
    id: String,
    /// Stop detached commands too
    #[arg(long)]
    detached: bool,
    #[command(flatten)]
    plain: PlainArgs,
}

#[derive(Args)]
struct ResumeArgs {
    /// The earlier session
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    new: NewArgs,
}

#[derive(Args)]
struct BindArgs {
    /// The session
    #[arg(value_name = "ID")]
    id: String,
    /// The directory that the records are kept in from now on
    #[arg(value_name = "DIR", required_unless_present = "context")]
    dir: Option<PathBuf>,
    /// The conversation or project of a session that was made without one
    #[arg(long, value_name = "KEY")]
    context: Option<String>,
    #[command(flatten)]
    plain: PlainArgs,
}

/// Does what is asked of sessions.
pub async fn session(args: SessionArgs, context: &Context) -> Answer {
    match args.verb {
        SessionVerb::Start(args) => start(&args, context).await,
        SessionVerb::List(args) => list(&args, context).await,
        SessionVerb::Show(args) => show(args, context).await,
        SessionVerb::End(args) => end(&args, context).await,
        SessionVerb::Resume(args) => resume(&args, context).await,
        SessionVerb::Bind(args) => bind(&args, context).await,
    }
}

fn options(args: &NewArgs, context: &Context) -> Result<SessionOptions, Failure> {
    check_context(&args.context).map_err(|error| Failure::Usage(error.to_string()))?;
    let defaults = SessionOptions::default();
    Ok(SessionOptions {
        context: args.context.clone(),
        anchor: Anchor::Process(args.anchor.unwrap_or_else(|| context.config.anchor())),
        ownership: Ownership::OneShot,
        linger: args.linger.unwrap_or(defaults.linger),
        ..defaults
    })
}

async fn view(session: &Session) -> Result<SessionView, Failure> {
    Ok(SessionView::of(&session.summary().await?, session.path().as_deref()))
}

async fn start(args: &NewArgs, context: &Context) -> Answer {
    let session = context.runtime.create_session(options(args, context)?).await?;
    if args.plain.json {
        context.printer.json(&view(&session).await?)?;
    } else {
        context.printer.print(format!("{}\n", session.id()))?;
    }
    Ok(exit::DONE)
}

async fn list(args: &PlainArgs, context: &Context) -> Answer {
    let all = context.runtime.sessions().await?;
    if args.json {
        let views = all.iter().map(|one| SessionView::of(one, None));
        context.printer.json(&SessionsView::of(views.collect()))?;
    } else {
        context.printer.print(words::sessions(&all, context.printer.colour))?;
    }
    Ok(exit::DONE)
}

async fn show(args: ShowArgs, context: &Context) -> Answer {
    let session = context.session(&Scope { session: args.id.or(args.scope.session) }).await?;
    if args.plain.json {
        let mut view = view(&session).await?;
        if let Some(closed) = session.closed().await? {
            view = view.closed(&closed);
        }
        context.printer.json(&view)?;
        return Ok(exit::DONE);
    }
    context.printer.print(words::sessions(&[session.summary().await?], context.printer.colour))?;
    let commands = session.list(true).await?;
    context.printer.print(words::commands(&commands, context.printer.width(), context.printer.colour))?;
    Ok(exit::DONE)
}

async fn end(args: &EndArgs, context: &Context) -> Answer {
    let session = context.runtime.open_session(&context.session_id(&args.id).await?).await?;
    let before = session.closed().await?;
    let closed = session.end(&context.config.consumer, END_BOUND, args.detached).await?;
    // The report of an end is made once; `session show --json` has it for ever.
    if before.is_none()
        && let Some(report) = words::end_report(&closed, &logs(&session, &closed).await)
    {
        context.printer.tell(&report);
    }
    if args.plain.json {
        context.printer.json(&view(&session).await?.closed(&closed))?;
    } else {
        let how = if before.is_none() { "ended" } else { "had already ended" };
        context.printer.print(format!("{} {how}\n", session.id()))?;
    }
    let verified = closed.commands.iter().all(|one| one.state != "unwinding");
    Ok(if verified { exit::DONE } else { exit::NOT_ALL })
}

/// The logs of the commands that had ended before they could be told.
async fn logs(session: &Session, closed: &ClosedRecord) -> BTreeMap<CommandId, String> {
    let mut logs = BTreeMap::new();
    for one in closed.commands.iter().filter(|one| one.state == "ended") {
        // The report stands without the path of a log that cannot be found.
        let Ok(command) = session.command(&one.id.to_string()).await else { continue };
        let log = command.snapshot().await.ok().and_then(|snapshot| snapshot.output.log);
        logs.extend(log.map(|path| (one.id, path.display().to_string())));
    }
    logs
}

async fn resume(args: &ResumeArgs, context: &Context) -> Answer {
    let predecessor = Predecessor::Session(context.session_id(&args.id).await?);
    let options = options(&args.new, context)?;
    let (session, report) = context.runtime.resume(&predecessor, options, &context.config.consumer).await?;
    for note in &report.notes {
        context.printer.say(note);
    }
    if args.new.plain.json {
        context.printer.json(&ResumeView::of(view(&session).await?, &report))?;
        return Ok(exit::DONE);
    }
    context.printer.print(format!("{}\n", session.id()))?;
    if let Some(line) = words::resumed(&report) {
        context.printer.say(&line);
    }
    Ok(exit::DONE)
}

async fn bind(args: &BindArgs, context: &Context) -> Answer {
    let session = context.runtime.open_session(&context.session_id(&args.id).await?).await?;
    if let Some(key) = &args.context {
        session.give_context(key).await?;
    }
    let bound = match &args.dir {
        Some(dir) => session.bind(&context.config.cwd.join(dir)).await?,
        None => Bound::default(),
    };
    for (id, why) in &bound.left {
        context.printer.say(&format!("the records of {id} stay where they are: {}", display_line(why)));
    }
    if args.plain.json {
        context.printer.json(&BoundView::of(view(&session).await?, &bound))?;
    } else {
        context.printer.print(words::bound(session.id(), &bound, args.dir.is_some()))?;
    }
    Ok(exit::DONE)
}
