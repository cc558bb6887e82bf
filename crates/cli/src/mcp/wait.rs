//! `wait`: until commands end, print a line or fall silent, never longer than the client waits for the call.

use std::time::Duration;

use outlast::{Command, Snapshot, Via, WaitEnd, WaitOptions, WaitReport};
use outlast_core::names::{display_line, shorten};
use outlast_core::notice;
use outlast_core::record::Phase;
use outlast_core::text::excerpt::Tail;
use outlast_core::units::format_duration;

use super::arguments::{Time, WaitArguments, check_ids, ids, until};
use super::call::{Call, ticks};
use super::client::LONGEST_WAIT;
use super::reply::{Answer, META_COMMAND, META_LIST, OUTPUT_BYTES, Reply, fenced, last_part};
use crate::exit::Failure;
use crate::view::{CommandView, ListView, WaitedView};
use crate::words;

/// The shortest wait.
const SHORTEST: Duration = Duration::from_secs(1);
/// Commands of which one reply shows the output; of more it shows how each stands.
const MOST_WITH_OUTPUT: usize = 10;

/// Waits for commands.
pub async fn wait(call: &Call, arguments: WaitArguments) -> Result<Answer, Failure> {
    let until = until(arguments.until.as_deref()).map_err(Failure::Usage)?;
    let asked = arguments.timeout.map(|Time(time)| time);
    if asked.is_some_and(|time| time < SHORTEST) {
        let text = "`wait` was called wrongly: argument `timeout`: the shortest wait is 1s; `read` looks at once";
        return Err(Failure::Usage(text.to_owned()));
    }
    let ids = ids(arguments.id, arguments.ids);
    check_ids("wait", &ids).map_err(Failure::Usage)?;
    let (commands, unknown) = find(call, ids).await?;
    if commands.is_empty() && !unknown.is_empty() {
        return Ok(Reply::error(unknown.concat()).into());
    }
    let wanted = asked.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
    let bound = wanted.min(call.longest());
    let options = WaitOptions { any: arguments.any == Some(true), timeout: Some(bound), until, consumer: None };
    let Some(report) = attend(call, &commands, options).await? else { return Ok(Answer::Cancelled) };
    let mut text = told(call, &report).await?;
    text.extend(unknown);
    if report.end == WaitEnd::Bound && bound < asked.unwrap_or(LONGEST_WAIT) {
        text.push_str(&format!(
            "The wait was over after {}: {}. Wait again to go on.\n",
            format_duration(bound),
            match asked {
                Some(asked) if asked > LONGEST_WAIT && bound == LONGEST_WAIT => "no wait is longer",
                _ => "this client ends a call that takes longer",
            }
        ));
    }
    shown(&report, Reply::text(text))
}

/// Waits, and tells a client that listens that it does; none once the client has given up.
async fn attend(call: &Call, commands: &[Command], options: WaitOptions) -> Result<Option<WaitReport>, Failure> {
    let waiting = call.session.wait(commands, options);
    tokio::pin!(waiting);
    let mut ticks = ticks();
    loop {
        tokio::select! {
            biased;
            () = call.cancelled.cancelled() => return Ok(None),
            report = &mut waiting => return Ok(Some(report?)),
            _ = ticks.tick() => if let Some(progress) = &call.progress {
                progress.tell(&last_output(commands).await, None).await;
            },
        }
    }
}

/// What the first of them has printed last. A command that cannot be asked now has nothing to show.
async fn last_output(commands: &[Command]) -> Vec<u8> {
    match commands.first() {
        Some(command) => command.snapshot().await.map(|snapshot| snapshot.output.tail).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// The commands of these ids, and a line for each id that nobody knows.
async fn find(call: &Call, ids: Vec<String>) -> Result<(Vec<Command>, Vec<String>), Failure> {
    let (mut commands, mut unknown) = (Vec::new(), Vec::new());
    for id in ids {
        match call.session.command_to_read(&id).await {
            Ok(command) => commands.push(command),
            Err(outlast::Error::Unknown { .. } | outlast::Error::UnknownSession { .. }) => {
                let shown = shorten(&display_line(&id), 48);
                unknown.push(format!("unknown id: {shown}; `list` with all=true shows the commands of this session\n"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((commands, unknown))
}

async fn told(call: &Call, report: &WaitReport) -> Result<String, Failure> {
    let count = report.commands.len();
    let room = if count > MOST_WITH_OUTPUT { 0 } else { OUTPUT_BYTES / count.max(1) };
    let mut texts = Vec::with_capacity(report.commands.len());
    for one in &report.commands {
        let snapshot = &one.snapshot;
        let mut phase = words::waited(snapshot, report.waited, one.met);
        let command = call.session.command_to_read(&snapshot.id.to_string()).await?;
        if let Some(line) = call.tells(&command, snapshot, Via::Wait).await {
            phase.push_str(&format!("\n{line}"));
        }
        texts.push((phase, output(snapshot, room)?));
    }
    let parts: Vec<notice::Waited<'_>> = report
        .commands
        .iter()
        .zip(&texts)
        .map(|(one, (phase, text))| {
            let label = one.snapshot.label.as_deref();
            notice::Waited { id: one.snapshot.id, label, phase, text }
        })
        .collect();
    Ok(notice::wait_text(&parts))
}

/// The end of its output in a fence, with the code in front of it where that is not 0.
fn output(snapshot: &Snapshot, room: usize) -> Result<String, Failure> {
    let (bytes, end) = snapshot.shown();
    let tail = Tail::of(bytes, end, room);
    let mut text = String::new();
    if snapshot.phase == Phase::Ended {
        text.push_str(&snapshot.exit_code.and_then(notice::exit_line).unwrap_or_default());
    }
    if room == 0 {
        return Ok(text);
    }
    if tail.truncated {
        text.push_str(&format!("output: {bytes} bytes, the last {} shown\n", tail.bytes.len()));
    }
    text.push_str(&fenced(last_part(&tail.text(), 2 * room))?);
    Ok(text)
}

fn shown(report: &WaitReport, reply: Reply) -> Result<Answer, Failure> {
    let waited_ms = u64::try_from(report.waited.as_millis()).unwrap_or(u64::MAX);
    let view = |one: &outlast::Waited| {
        let command = CommandView::whole(&one.snapshot);
        WaitedView { command, met: one.met, waited_ms }
    };
    Ok(match report.commands.as_slice() {
        [only] => reply.with(META_COMMAND, &view(only))?,
        all => reply.with(META_LIST, &ListView::of(all.iter().map(view).collect()))?,
    }
    .into())
}
