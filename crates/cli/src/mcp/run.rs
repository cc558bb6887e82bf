//! `run`: a command in the foreground until its grace is over, or in the background at once.

use std::ffi::OsString;
use std::pin::pin;
use std::time::Duration;

use outlast::{Demotion, Finished, Outcome, RunEvent, RunRequest, Running, Snapshot, Via};
use outlast_core::ending::End;
use outlast_core::names::{PROCESS_CHARACTERS, check_label, display_line, shorten};
use outlast_core::notice::{self, Prospects};
use outlast_core::policy::decisive;
use outlast_core::request::{Delivery, Lifetime, Limits, LogCap, Stdin, parse_lifetime};
use outlast_core::text::excerpt::excerpt_text;
use outlast_core::units::format_elapsed;
use outlast_core::wire::DemotedBy;

use super::arguments::{RunArguments, Time};
use super::call::{Call, LAST_BYTES, ticks};
use super::delivery::Receipt;
use super::inbox::REACH;
use super::reply::{Answer, META_COMMAND, OUTPUT_BYTES, Reply, fenced, last_part};
use super::settings::Settings;
use super::task;
use crate::environment;
use crate::exit::Failure;
use crate::view::CommandView;
use crate::words::{self, Reader};

/// How long a start that was given up is given to be accepted, before it counts as not started.
const ACCEPT_BOUND: Duration = Duration::from_millis(250);

/// Said where no second process was started.
const JOINED: &str = "The same command was running already: this is that one (`unique` starts another).\n";

/// Runs a command.
pub async fn run(call: &Call, arguments: RunArguments) -> Result<Answer, Failure> {
    let quiet = outlast::quiet_time(arguments.quiet_after.as_ref().map(|Time(time)| *time));
    let background = arguments.background == Some(true);
    if background && call.settings.foreground_only {
        return Ok(Reply::error("`background` is not offered: this server runs with --foreground-only").into());
    }
    let request = request(&call.settings, arguments, &call.consumer, call.progress.is_some())?;
    let outcome = if background {
        tokio::select! {
            biased;
            () = call.cancelled.cancelled() => return Ok(Answer::Cancelled),
            outcome = call.session.start(request) => outcome?,
        }
    } else {
        match foreground(call, request).await? {
            Some(outcome) => outcome,
            None => return Ok(Answer::Cancelled),
        }
    };
    match outcome {
        Outcome::Finished(finished) => {
            let told = told(call, &finished).await;
            ended(&finished, told)
        }
        Outcome::Demoted(demotion) => demoted(call, &demotion, quiet).await,
    }
}

/// Until its end or its demotion; none once the client has given the call up, which demotes the command.
async fn foreground(call: &Call, request: RunRequest) -> Result<Option<Outcome>, Failure> {
    let can_be_told = request.can_be_told;
    // What was given up before it began is not run.
    if call.cancelled.is_cancelled() {
        return Ok(None);
    }
    let mut launching = pin!(call.session.run(request));
    let mut running = tokio::select! {
        biased;
        () = call.cancelled.cancelled() => {
            let _leaving = call.departures.leave();
            // A supervisor may be about to accept it: then it runs, and is left like any other.
            return match tokio::time::timeout(ACCEPT_BOUND, launching).await {
                Ok(running) => leave(call, running?).await,
                Err(_) => Ok(None),
            };
        }
        running = launching.as_mut() => running?,
    };
    let mut ticks = ticks();
    loop {
        tokio::select! {
            biased;
            () = call.cancelled.cancelled() => return leave(call, running).await,
            event = running.next_but_output() => match event? {
                Some(RunEvent::Demoted(demotion)) if can_be_told => return Ok(Some(Outcome::Demoted(demotion))),
                Some(RunEvent::Demoted(demotion)) => {
                    return Err(outlast::Error::DemotedUnasked { id: *demotion.command.id() }.into());
                }
                Some(_) => {}
                None => return end_of(call, running).await.map(Some),
            },
            _ = ticks.tick() => if let Some(progress) = &call.progress {
                progress.tell(&running.last_output(LAST_BYTES)?, Some(&running.progress())).await;
            },
        }
    }
}

/// Moves a command to the background whose caller has given it up: its end is told by a later reply.
async fn leave(call: &Call, mut running: Running) -> Result<Option<Outcome>, Failure> {
    let _leaving = call.departures.leave();
    running.demote().await?;
    // Whatever comes of it, nobody is answered: an end that nobody was told becomes a completion when this is dropped.
    while let Some(event) = running.next_but_output().await? {
        if matches!(event, RunEvent::Demoted(_) | RunEvent::NotDemoted { .. }) {
            break;
        }
    }
    Ok(None)
}

/// The end of a command that has ended in the foreground. It counts as told with the reply.
async fn end_of(call: &Call, mut running: Running) -> Result<Outcome, Failure> {
    running.skip_output();
    loop {
        match running.next().await? {
            Some(RunEvent::Ended(finished)) => {
                call.delivery.add(Receipt::Foreground(Box::new(running)));
                return Ok(Outcome::Finished(finished));
            }
            Some(_) => {}
            None => return Err(outlast::Error::Protocol("the supervisor said nothing of an end".to_owned()).into()),
        }
    }
}

fn request(
    settings: &Settings,
    arguments: RunArguments,
    consumer: &str,
    has_progress: bool,
) -> Result<RunRequest, Failure> {
    let usage = |text: String| Failure::Usage(format!("`run` was called wrongly: {text}"));
    if arguments.command.trim().is_empty() {
        return Err(usage("argument `command` is empty: give a shell line".to_owned()));
    }
    if let Some(error) = arguments.label.as_deref().and_then(|label| check_label(label).err()) {
        return Err(usage(format!("argument `label` {}", error.reason)));
    }
    let cwd = match arguments.cwd.as_deref() {
        Some("") => return Err(usage("argument `cwd` is empty".to_owned())),
        Some(dir) => settings.cwd.join(dir),
        None => settings.cwd.clone(),
    };
    let entries = entries(arguments.env.unwrap_or_default()).map_err(&usage)?;
    let asked = entries.iter().map(|(name, _)| name.clone()).collect();
    let env = environment::with_entries(settings.environment.clone(), entries);
    let time = |time: Option<Time>| time.map(|Time(time)| time).filter(|time| !time.is_zero());
    let mut request = RunRequest::new(["sh".into(), "-c".into(), OsString::from(arguments.command)], cwd, env);
    request.asked = asked;
    request.grace = settings.grace(arguments.grace.map(|Time(time)| time));
    request.limits = Limits {
        wall_ms: settings.bounds.wall(time(arguments.limit)).map(millis),
        idle_ms: time(arguments.idle_limit).map(millis),
        ..Limits::default()
    };
    request.lifetime = match arguments.lifetime.as_deref() {
        None => Lifetime::Session,
        Some(text) => parse_lifetime(text).map_err(|error| usage(format!("argument `lifetime`: {error}")))?,
    };
    request.stdin = if arguments.stdin == Some(true) { Stdin::Open } else { Stdin::Null };
    // What is typed into a command makes it another one.
    request.join = arguments.unique != Some(true) && request.stdin == Stdin::Null;
    request.label = arguments.label;
    request.consumer = consumer.to_owned();
    request.can_be_told = !settings.foreground_only;
    if let Some(size) = settings.bounds.max_log {
        request.cap = LogCap::of(size);
    }
    // What the reply cuts must not be out of reach: more output than it shows makes records.
    request.hold = OUTPUT_BYTES as u64;
    request.open_files = settings.open_files;
    request.follow = has_progress;
    Ok(request)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn entries(given: Vec<String>) -> Result<Vec<(OsString, OsString)>, String> {
    let entries = given.into_iter().map(|entry| match entry.split_once('=') {
        Some((name, value)) if !name.is_empty() => match decisive::in_a_call(name) {
            None => Ok((OsString::from(name), OsString::from(value))),
            Some(why) => Err(format!("argument `env`: {} is refused: {why}", display_line(name))),
        },
        _ => Err(format!("argument `env`: {} is not NAME=value", display_line(&shorten(&entry, PROCESS_CHARACTERS)))),
    });
    entries.collect()
}

/// A command that somebody else moved to the background while this caller waited for its end has a completion, which
/// this reply tells.
async fn told(call: &Call, finished: &Finished) -> Option<String> {
    if !finished.exit.demoted {
        return None;
    }
    let found = async {
        let Some(command) = call.session.get(&finished.exit.id).await? else { return Ok(None) };
        let snapshot = command.brief().await?;
        Ok::<_, outlast::Error>(Some((command, snapshot)))
    };
    match found.await {
        Ok(Some((command, snapshot))) => call.tells(&command, &snapshot, Via::Wait).await,
        Ok(None) => None,
        Err(error) => {
            Some(format!("that its end is told here cannot be recorded: {}", display_line(&error.to_string())))
        }
    }
}

/// The reply that tells an end in the foreground.
fn ended(finished: &Finished, told: Option<String>) -> Result<Answer, Failure> {
    let exit = &finished.exit;
    let lines = words::ended_inline(finished, None, None, Reader::Tools);
    if matches!(exit.end, End::SpawnFailed { .. }) {
        let text = lines.first().cloned().unwrap_or_else(|| "the command cannot be started".to_owned());
        return Ok(Reply::error(format!("{text}\n")).with(META_COMMAND, &CommandView::finished(finished))?.into());
    }
    let mut text = format!("{}\n", fact(finished));
    if finished.joined {
        text.push_str(JOINED);
    }
    text.extend(told.map(|line| line + "\n"));
    for line in &lines {
        text.push_str(&format!("{}\n", display_line(line)));
    }
    text.push_str(&exit.end.exit_code().and_then(notice::exit_line).unwrap_or_default());
    text.push_str(&fenced(last_part(&output_text(finished), 2 * OUTPUT_BYTES))?);
    text.push_str(&remarks(&finished.remarks));
    Ok(Reply::text(text).with(META_COMMAND, &CommandView::finished(finished))?.into())
}

/// The first line: how it ended, and where the rest of the output is if there is more.
fn fact(finished: &Finished) -> String {
    let exit = &finished.exit;
    let code = exit.end.exit_code().map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
    let status = if exit.is_ok() { "ok" } else { "error" };
    let time = format_elapsed(Duration::from_millis(exit.duration_ms));
    let mut text = format!("ended: {}, {code}, {status}, after {time}", words::end_words(&exit.end));
    if finished.excerpts.iter().any(|one| one.missing > 0) {
        let name = exit.alias.map_or_else(|| exit.id.to_string(), |alias| alias.to_string());
        text.push_str(&format!("; {} bytes of output, not all shown: `read` {name} shows more", exit.output.bytes));
    } else if let Some(reason) = &finished.not_demoted {
        text.push_str(&format!("; it stayed in the foreground: {}", display_line(reason)));
    }
    text
}

fn output_text(finished: &Finished) -> String {
    let texts: Vec<String> = finished
        .excerpts
        .iter()
        .map(|one| {
            let total = one.head.len() as u64 + one.tail.len() as u64 + one.missing;
            excerpt_text(total, &one.head, &one.tail)
        })
        .collect();
    texts.concat()
}

/// What the policies made of a start, at the end of its reply.
fn remarks(remarks: &[String]) -> String {
    remarks.iter().map(|remark| format!("{}\n", display_line(remark))).collect()
}

/// The reply of a demotion or a background start.
async fn demoted(call: &Call, demotion: &Demotion, quiet: Option<Duration>) -> Result<Answer, Failure> {
    let snapshot = match demotion.command.snapshot().await {
        Ok(snapshot) => snapshot,
        Err(error) => return Ok(unseen(demotion, &error).into()),
    };
    if let Some(quiet) = quiet {
        let name = words::short_name(&snapshot);
        call.notices.when_quiet(demotion.command.clone(), name, call.consumer.clone(), quiet);
    }
    if call.tasks {
        return Ok(Answer::Task(Box::new(task::created(&snapshot))));
    }
    let mut text = format!("{}\n", demotion_text(demotion, &snapshot));
    if demotion.joined {
        text.push_str(JOINED);
    }
    for error in &demotion.errors {
        text.push_str(&format!("records incomplete: {}\n", display_line(error)));
    }
    text.push_str(&remarks(&demotion.remarks));
    // What it has printed so far is for `read`: this text depends on nothing that the command does.
    Ok(Reply::text(text).with(META_COMMAND, &CommandView::demoted(demotion, &snapshot))?.into())
}

/// The reply of a demotion whose records cannot be looked at: the command runs, and its id is what counts.
fn unseen(demotion: &Demotion, error: &outlast::Error) -> Reply {
    let prospects = Prospects {
        tools: true,
        push: REACH.push(Delivery::default()),
        detached: false,
        kept: demotion.errors.is_empty(),
    };
    let text = notice::demotion(*demotion.command.id(), prospects);
    Reply::text(format!("{text}\nIts records cannot be looked at now: {}\n", display_line(&error.to_string())))
}

fn demotion_text(demotion: &Demotion, snapshot: &Snapshot) -> String {
    let prospects = Prospects {
        tools: true,
        push: REACH.push(snapshot.delivery),
        detached: snapshot.detached,
        kept: demotion.errors.is_empty(),
    };
    match demotion.by {
        DemotedBy::Background => notice::started(snapshot.id, snapshot.label.as_deref(), prospects),
        DemotedBy::Grace | DemotedBy::Asked | DemotedBy::CallerGone => notice::demotion(snapshot.id, prospects),
    }
}
