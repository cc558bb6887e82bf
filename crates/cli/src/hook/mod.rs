//! Hooks of agent hosts: what is told to a host, its model or its person at a moment of their conversation.
//!
//! A hook finds the session of its host, and makes none. Whatever goes wrong here is said on standard error and
//! never stops a host.

mod form;
mod claude;
mod gemini;
mod opencode;

use std::io::{self, Read, Write};
use std::time::Duration;

use outlast::{Claim, CompletionGuard, Runtime, Session, Snapshot, Via};
use outlast_core::notice::{RunningLine, still_running};
use outlast_core::push::{Push, Reach};
use outlast_core::record::Phase;
use outlast_core::request::Delivery;

use crate::config::Config;
use crate::exit::Failure;
use crate::host::Surroundings;
use crate::output::json_line;
use crate::words;
use form::{Call, Reply, asks_outlast};
pub use form::{Form, Moment};

/// Who is told: what a hook says stands where the model reads.
const CONSUMER: &str = "model";

/// Bytes of an event that are looked at; one carries the whole output of a tool.
const MOST_BYTES: u64 = 8 << 20;

/// Ends, and commands that run, that one reply names; each end has about 250 bytes. The rest is told by the next.
const MOST_NAMED: usize = 16;

/// What is told with the next message, and wakes nobody.
const QUEUE: Reach = Reach { queue: true, wake: false };

/// What the model reads in place of what it asked of the built-in shell.
const DENIED: &str = "This command was not run. Shell commands go through the `run` tool of outlast here. Use the tool \
                      `run` of outlast with the same command line; it answers with the result, or with an id where \
                      the command goes on in the background.";

/// The form of a host that runs hooks.
pub fn form(host: &str) -> Option<&'static Form> {
    match host {
        "claude" => Some(&claude::CLAUDE),
        "codex" => Some(&claude::CODEX),
        "gemini" => Some(&gemini::GEMINI),
        "opencode" => Some(&opencode::OPENCODE),
        _ => None,
    }
}

/// What is said at an event.
#[derive(Debug)]
pub enum Heard {
    /// Nothing.
    Nothing,
    /// This line, which ends with a line break.
    Answer(Vec<u8>),
    /// What is to be told at this moment.
    News {
        /// The name of the event.
        event: String,
        /// Its moment.
        moment: Moment,
    },
}

/// Answers the event on standard input. `redirect` refuses the built-in shell. An error says why nothing was
/// answered.
pub fn answer(form: &Form, redirect: bool, config: &Config) -> Result<(), Failure> {
    match hear(form, redirect, io::stdin().lock())? {
        Heard::Nothing => Ok(()),
        Heard::Answer(line) => print(&line),
        Heard::News { event, moment } => {
            let Some(runtime) = Runtime::find(config.library(true))? else { return Ok(()) };
            let waiter = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Failure::System("cannot start an asynchronous runtime".to_owned(), error))?;
            waiter.block_on(tell(form, &event, moment, &runtime, config))
        }
    }
}

/// Reads an event, whatever it is, and says what is to be said at it. It looks at nothing but the event.
pub fn hear(form: &Form, redirect: bool, input: impl Read) -> Result<Heard, Failure> {
    let call = read_call(input)?;
    let event = call.hook_event_name.as_str();
    let Some(moment) = form.moment(event) else {
        return Err(Failure::Unknown(format!("the hook event {event:?}; nothing is said at it")));
    };
    // A sub-agent starts nothing that is told here and has no session by inheritance; it may not even have the tools
    // of outlast, so that it keeps its shell.
    if call.agent_id.is_some() {
        return Ok(Heard::Nothing);
    }
    match moment {
        Moment::Nothing => Ok(Heard::Nothing),
        Moment::BeforeTool if redirect && is_shell(form, &call) => {
            line(form, event, &Reply::Deny(DENIED.to_owned())).map(Heard::Answer)
        }
        Moment::BeforeTool => Ok(Heard::Nothing),
        // This stop was reached because something was told at the one before it.
        Moment::Stop if call.stop_hook_active => Ok(Heard::Nothing),
        Moment::Start | Moment::Prompt | Moment::AfterTool | Moment::Compacting | Moment::Stop => {
            Ok(Heard::News { event: event.to_owned(), moment })
        }
    }
}

fn is_shell(form: &Form, call: &Call) -> bool {
    let named = call.tool_name.as_deref().is_some_and(|tool| form.shells.contains(&tool));
    named && !call.command().is_some_and(asks_outlast)
}

/// Reads the event. One that is too large is read to its end all the same, so that the host can write it.
fn read_call(mut input: impl Read) -> Result<Call, Failure> {
    let failed = |error| Failure::System("cannot read the event on standard input".to_owned(), error);
    let mut bytes = Vec::new();
    input.by_ref().take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let more = io::copy(&mut input, &mut io::sink()).map_err(failed)?;
    if more > 0 {
        return Err(Failure::Refused(format!("the event on standard input is larger than {MOST_BYTES} bytes")));
    }
    let unclear = |reason: String| Failure::Refused(format!("the event on standard input is not understood: {reason}"));
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(unclear("it is no JSON object".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_slice(&bytes);
    let call =
        serde_path_to_error::deserialize(&mut reader).map_err(|error| match error.path().to_string().as_str() {
            "." => unclear(error.inner().to_string()),
            field => unclear(format!("{field}: {}", error.inner())),
        })?;
    reader.end().map(|()| call).map_err(|error| unclear(error.to_string()))
}

async fn tell(form: &Form, event: &str, moment: Moment, runtime: &Runtime, config: &Config) -> Result<(), Failure> {
    let anchor = Surroundings::find(config, None)?.anchor;
    let Some(session) = runtime.find_session_for(anchor).await? else { return Ok(()) };
    let guards = claim(&session, |one| is_told(form, moment, one.delivery)).await?;
    let running = match moment {
        Moment::Start | Moment::Compacting | Moment::Stop => running(&session).await?,
        Moment::Prompt | Moment::BeforeTool | Moment::AfterTool | Moment::Nothing => Vec::new(),
    };
    let ends = (!guards.is_empty()).then(|| {
        let ends: Vec<_> = guards.iter().map(|guard| guard.completion().clone()).collect();
        words::completions(&ends, Some(*session.id()))
    });
    let heads_ups = match moment {
        Moment::Start | Moment::Prompt | Moment::AfterTool => {
            let mut due = session.pushed_heads_ups(CONSUMER, QUEUE).await?;
            due.truncate(MOST_NAMED);
            due
        }
        // It wakes nobody.
        Moment::Stop | Moment::Compacting | Moment::BeforeTool | Moment::Nothing => Vec::new(),
    };
    let ends = joined(ends, (!heads_ups.is_empty()).then(|| words::heads_ups(&heads_ups, true)));
    let reminder = (!running.is_empty()).then(|| remind(&running));
    let reply = match moment {
        Moment::Stop => Reply::Tell {
            model: ends,
            person: (!running.is_empty()).then(|| words::still_running(&running, MOST_NAMED)),
        },
        Moment::Start
        | Moment::Prompt
        | Moment::BeforeTool
        | Moment::AfterTool
        | Moment::Compacting
        | Moment::Nothing => Reply::Tell { model: joined(ends, reminder), person: None },
    };
    if (Reply::Tell { model: None, person: None }) == reply {
        return Ok(());
    }
    print(&line(form, event, &reply)?)?;
    // Only now it is told: where the host does not read, the guards are dropped and the ends are told again.
    for guard in guards {
        guard.commit(Via::Hook).await?;
    }
    for one in heads_ups {
        one.commit().await?;
    }
    Ok(())
}

/// Whether an end of this form of delivery is told at a moment. A stop is the one at which the model is idle.
fn is_told(form: &Form, moment: Moment, delivery: Delivery) -> bool {
    match moment {
        Moment::Start | Moment::Prompt | Moment::AfterTool => QUEUE.push(delivery) != Push::Never,
        Moment::Stop => Reach { queue: form.reads_at_stop, wake: form.reads_at_stop }.push(delivery) == Push::Wakes,
        Moment::BeforeTool | Moment::Compacting | Moment::Nothing => false,
    }
}

/// Takes what is pending and told now, as much as one reply holds. What somebody else tells at this moment is left to them.
async fn claim(session: &Session, is_told: impl Fn(&Snapshot) -> bool) -> Result<Vec<CompletionGuard>, Failure> {
    let mut guards = Vec::new();
    for one in session.pending(CONSUMER).await?.iter().filter(|one| is_told(&one.snapshot)) {
        if guards.len() == MOST_NAMED {
            break;
        }
        match session.claim(CONSUMER, &one.snapshot.id).await? {
            Claim::Ours(guard) => guards.push(*guard),
            Claim::Before { .. } | Claim::Elsewhere | Claim::NotDue => {}
            Claim::Unrecorded { reason } => {
                return Err(Failure::Refused(format!("an end is not told, because that cannot be recorded: {reason}")));
            }
        }
    }
    Ok(guards)
}

async fn running(session: &Session) -> Result<Vec<Snapshot>, Failure> {
    let mut listed = session.list(false).await?;
    listed.retain(|one| one.phase != Phase::Ended);
    Ok(listed)
}

fn remind(running: &[Snapshot]) -> String {
    let lines: Vec<RunningLine<'_>> = running
        .iter()
        .take(MOST_NAMED)
        .map(|one| RunningLine {
            id: one.id,
            label: one.label.as_deref(),
            elapsed: Duration::from_millis(one.duration_ms),
        })
        .collect();
    still_running(&lines, running.len() - lines.len())
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first + &second),
        (first, second) => first.or(second),
    }
}

fn line(form: &Form, event: &str, reply: &Reply) -> Result<Vec<u8>, Failure> {
    json_line(&(form.write)(event, reply))
}

fn print(line: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    // A host that has closed its end was told nothing, unlike the reader of any other verb.
    out.write_all(line)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::Refused(format!("the host took no answer: {error}")))
}
