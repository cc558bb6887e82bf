//! `outlast wait`: until commands end, or print something, or fall silent.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use clap::Args;
use outlast::{Command, Until, Via, WaitEnd, WaitOptions, WaitReport, Waited};
use outlast_core::names::{PROCESS_CHARACTERS, shorten};
use outlast_core::notice;
use outlast_core::record::Phase;
use outlast_core::text::TEXT_BYTES;
use outlast_core::text::excerpt::Tail;
use outlast_core::units;

use super::signals::{self, Signals};
use super::{Context, Scope, context};
use crate::exit::{self, Answer, Failure};
use crate::view::{CommandView, ListView, WaitedView};
use crate::words;

/// Waits for commands; ends with the command's own code
#[derive(Args)]
#[command(after_help = "\
Several ids: 0 if all are ok, else 1; 3 if one of them is unknown. --any: the
code of the first that ended. A stopped command may have the code 0: the text says so.
--until was met: 0; the command ended before: its code, or 1. Time is up: 124.
Ctrl-C ends the wait alone, with 130.

Examples:
  outlast wait w1
  outlast wait w1 w2 --any --timeout 5m
  outlast wait w1 --until 'output:Serving HTTP' --timeout 20s
  outlast wait w1 --until quiet:3s
  outlast wait w1 --until port:8080   somebody listens there, whoever it is")]
pub struct WaitArgs {
    /// Ids, aliases, or beginnings of ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// The first one is enough
    #[arg(long)]
    any: bool,
    /// Wait no longer than this; 0 looks once [default: to the end]
    #[arg(long, value_name = "D", value_parser = context::duration, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// What to wait for: exit, output:RE, quiet:D, port:N
    #[arg(long, value_name = "WHAT", default_value = "exit")]
    until: String,
    /// Who is told of the ends [default: $OUTLAST_CONSUMER, else human or model]
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Print one JSON object: outlast.command/1, or outlast.list/1 for several ids
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: Scope,
}

fn until(text: &str) -> Result<Until, Failure> {
    let usage = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("--until {}: {error}", shorten(text, PROCESS_CHARACTERS)))
    };
    match text.split_once(':') {
        None if text == "exit" => Ok(Until::Exit),
        Some(("output", expression)) => {
            let regex = regex::bytes::Regex::new(expression).map_err(|error| usage(&reason_of(&error)))?;
            Ok(Until::Output(regex))
        }
        Some(("quiet", time)) => Ok(Until::Quiet(units::parse_duration(time).map_err(|error| usage(&error))?)),
        Some(("port", number)) => match number.parse() {
            Ok(port) if port > 0 => Ok(Until::Port(port)),
            _ => Err(usage(&"a port is a number from 1 to 65535")),
        },
        _ => Err(usage(&"it must be exit, output:RE, quiet:D or port:N")),
    }
}

/// The last line of the message, which has the fact; the lines before it draw the expression.
pub fn reason_of(error: &regex::Error) -> String {
    let message = error.to_string();
    let fact = message.lines().last().unwrap_or_default().trim();
    format!("no regular expression: {}", fact.strip_prefix("error: ").unwrap_or(fact))
}

/// Waits, shows, and counts as told what was shown.
pub async fn wait(args: WaitArgs, context: &Context) -> Answer {
    let until = until(&args.until)?;
    let by_exit = matches!(until, Until::Exit);
    let consumer = context.consumer(args.consumer.as_deref())?;
    let mut signals = Signals::catch(&[signals::INT])?;
    let (commands, unknown) = find(&args, context).await?;
    let Some(first) = commands.first() else {
        return Err(Failure::Unknown(unknown.join("; ")));
    };
    for name in &unknown {
        context.printer.say(&format!("unknown: {name}"));
    }
    // It is counted as told below, once it was shown: what nobody saw stays to be told.
    let options = WaitOptions { any: args.any, timeout: args.timeout, until, consumer: None };
    let session = first.session().clone();
    let report = {
        let mut waiting = pin!(session.wait(&commands, options));
        let mut signal = pin!(signals.next());
        poll_fn(|task| match waiting.as_mut().poll(task) {
            Poll::Ready(report) => Poll::Ready(Some(report)),
            Poll::Pending => signal.as_mut().poll(task).map(|_| None),
        })
        .await
    };
    let Some(report) = report else { return interrupted(&commands, context).await };
    let report = report?;
    show(&report, args.json && args.ids.len() == 1, args.json, context)?;
    for (command, waited) in commands.iter().zip(&report.commands) {
        if waited.snapshot.phase == Phase::Ended {
            let told = command.session().commit(&consumer, command.id(), Via::Wait).await?;
            context.say_unrecorded(command.id(), &told);
        }
    }
    let what = Asked { by_exit, any: args.any, some_unknown: !unknown.is_empty() };
    Ok(code(&report, &what))
}

async fn find(args: &WaitArgs, context: &Context) -> Result<(Vec<Command>, Vec<String>), Failure> {
    let (mut commands, mut unknown) = (Vec::new(), Vec::new());
    for id in &args.ids {
        match context.command(&args.scope, id).await {
            Ok(command) => commands.push(command),
            Err(failure) if failure.code() == exit::UNKNOWN => {
                let message = failure.message().unwrap_or_default();
                unknown.push(message.strip_prefix("unknown: ").unwrap_or(&message).to_owned());
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok((commands, unknown))
}

async fn interrupted(commands: &[Command], context: &Context) -> Answer {
    let mut running = Vec::new();
    for command in commands {
        // A command that cannot be asked now is still not one that the wait has ended.
        let ended = command.snapshot().await.is_ok_and(|snapshot| snapshot.phase == Phase::Ended);
        if !ended {
            running.push(command.id().to_string());
        }
    }
    let what = if running.is_empty() { "nothing that was waited for".to_owned() } else { running.join(", ") };
    context.printer.say(&format!("the wait was interrupted; still running as before: {what}"));
    Ok(exit::INTERRUPTED)
}

fn show(report: &WaitReport, single: bool, json: bool, context: &Context) -> Result<(), Failure> {
    let waited_ms = u64::try_from(report.waited.as_millis()).unwrap_or(u64::MAX);
    let view = |one: &Waited| WaitedView { command: CommandView::whole(&one.snapshot), met: one.met, waited_ms };
    if json {
        return match report.commands.first() {
            Some(only) if single => context.printer.json(&view(only)),
            _ => context.printer.json(&ListView::of(report.commands.iter().map(view).collect())),
        };
    }
    let texts: Vec<(String, String)> = report
        .commands
        .iter()
        .map(|one| {
            let (bytes, end) = one.snapshot.shown();
            let text = Tail::of(bytes, end, TEXT_BYTES).text();
            (words::waited(&one.snapshot, report.waited, one.met), text)
        })
        .collect();
    let parts: Vec<notice::Waited<'_>> = report
        .commands
        .iter()
        .zip(&texts)
        .map(|(one, (phase, text))| {
            let label = one.snapshot.label.as_deref();
            notice::Waited { id: one.snapshot.id, label, phase, text }
        })
        .collect();
    context.printer.print(notice::wait_text(&parts))
}

/// What a wait was asked for, as far as its exit code depends on it.
#[derive(Clone, Copy)]
struct Asked {
    /// It waited for ends.
    by_exit: bool,
    /// The first one was enough.
    any: bool,
    /// Nobody knows one of the ids.
    some_unknown: bool,
}

/// The exit code of a wait.
fn code(report: &WaitReport, asked: &Asked) -> u8 {
    let of = |waited: &Waited| waited.snapshot.end.as_ref().map_or(exit::NOT_ALL, exit::of_end);
    let not_met = |waited: &Waited| of(waited).max(exit::NOT_ALL);
    match (report.end, report.first.and_then(|index| report.commands.get(index))) {
        (WaitEnd::Bound, _) => exit::TIMED_OUT,
        _ if asked.some_unknown => exit::UNKNOWN,
        (WaitEnd::Met, _) if !asked.by_exit => exit::DONE,
        (WaitEnd::EndedBefore, first) => first.or(report.commands.first()).map_or(exit::NOT_ALL, not_met),
        (WaitEnd::Met | WaitEnd::Nothing, _) => match report.commands.as_slice() {
            [only] => of(only),
            all if asked.any => first_ended(all).map_or(exit::NOT_ALL, of),
            all if all.iter().all(|one| one.snapshot.ok == Some(true)) => exit::DONE,
            _ => exit::NOT_ALL,
        },
    }
}

/// The one that ended first; one whose time of end nobody knows comes last.
fn first_ended(all: &[Waited]) -> Option<&Waited> {
    let ended = all.iter().filter(|one| one.snapshot.end.is_some());
    ended.min_by_key(|one| one.snapshot.ended_at_ms.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use outlast::Snapshot;
    use outlast_core::ending::End;

    use super::*;
    use crate::view::tests::{ended, snapshot};

    fn report(end: WaitEnd, first: Option<usize>, snapshots: Vec<Snapshot>) -> WaitReport {
        let commands = snapshots.into_iter().map(|snapshot| Waited { snapshot, met: false, told: None }).collect();
        WaitReport { end, waited: Duration::from_secs(1), commands, first }
    }

    /// Covers: E4, E7
    #[test]
    fn e7_the_code_of_a_wait() {
        let (good, bad) = (ended(End::Exited { code: 0 }), ended(End::Exited { code: 7 }));
        let lost = ended(End::Lost);
        let earlier = Snapshot { ended_at_ms: bad.ended_at_ms.map(|at| at - 1), ..ended(End::Exited { code: 4 }) };
        let exits = Asked { by_exit: true, any: false, some_unknown: false };
        let any = Asked { any: true, ..exits };
        let unknown = Asked { some_unknown: true, ..exits };
        let until = Asked { by_exit: false, ..exits };
        for (report, asked, expected) in [
            (report(WaitEnd::Met, Some(0), vec![bad.clone()]), exits, 7),
            (report(WaitEnd::Met, Some(0), vec![lost]), exits, 69),
            (report(WaitEnd::Met, Some(0), vec![good.clone(), bad.clone()]), exits, 1),
            (report(WaitEnd::Met, Some(0), vec![good.clone(), good.clone()]), exits, 0),
            (report(WaitEnd::Met, Some(0), vec![good.clone()]), unknown, 3),
            (report(WaitEnd::Bound, None, vec![snapshot()]), unknown, 124),
            (report(WaitEnd::Met, Some(1), vec![snapshot(), bad.clone()]), any, 7),
            (report(WaitEnd::Met, Some(0), vec![bad.clone(), earlier.clone()]), any, 4),
            (report(WaitEnd::Met, Some(0), vec![earlier, bad.clone()]), any, 4),
            (report(WaitEnd::Bound, None, vec![snapshot()]), exits, 124),
            (report(WaitEnd::Met, Some(0), vec![snapshot()]), until, 0),
            (report(WaitEnd::EndedBefore, None, vec![good]), until, 1),
            (report(WaitEnd::EndedBefore, None, vec![bad]), until, 7),
        ] {
            assert_eq!(code(&report, &asked), expected, "{report:?}");
        }
    }

    /// Covers: E7
    #[test]
    fn e7_what_can_be_waited_for() {
        assert!(matches!(until("exit"), Ok(Until::Exit)));
        assert!(matches!(until("output:a:b"), Ok(Until::Output(_))));
        assert!(matches!(until("quiet:2s"), Ok(Until::Quiet(time)) if time == Duration::from_secs(2)));
        assert!(matches!(until("port:8080"), Ok(Until::Port(8080))));
        for wrong in ["", "end", "output:(", "quiet:2", "port:0", "port:65536", "port:http", "port:", "exit:1"] {
            assert!(until(wrong).is_err_and(|failure| failure.code() == exit::USAGE), "{wrong}");
        }
    }
}
