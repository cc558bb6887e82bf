//! A day of one command, by the state machine that decides it, and a minute of real processes that have nothing to do.

use std::time::Duration;

use outlast::{RunRequest, Session};
use outlast_core::delivery::Heard;
use outlast_core::ending::Fact;
use outlast_core::id::{CommandId, SessionId};
use outlast_core::lifecycle::{Action, Event, Life};
use outlast_core::origin::Trust;
use outlast_core::request::{Delivery, Lifetime, Limits, LogCap, OsText, OverCap, Request, Stdin, Streams, Survivors};

use super::data::Data;
use super::tools::{self, SLEEP};
use crate::Result;
use crate::place::{self, Place};

/// How long real processes are watched.
const WATCHED: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const HOURS: [u32; 3] = [1, 6, 24];

/// A way to spend a day.
struct Way {
    name: &'static str,
    /// How often it prints.
    prints: Option<Duration>,
    idle: Option<Duration>,
    detached: bool,
}

const WAYS: [Way; 5] = [
    Way { name: "silent", prints: None, idle: None, detached: false },
    Way { name: "a line each second", prints: Some(Duration::from_secs(1)), idle: None, detached: false },
    Way {
        name: "a line each second, idle limit of 10 minutes",
        prints: Some(Duration::from_secs(1)),
        idle: Some(Duration::from_secs(600)),
        detached: false,
    },
    Way {
        name: "a line each 9 minutes, idle limit of 10",
        prints: Some(Duration::from_secs(540)),
        idle: Some(Duration::from_secs(600)),
        detached: false,
    },
    Way { name: "silent and detached, which ends it after 24 hours", prints: None, idle: None, detached: true },
];

/// The minute first, then the day.
pub async fn measure(place: &Place, sizes: &[u64], data: &mut Data) -> Result<()> {
    minute(place, sizes, data).await?;
    for way in &WAYS {
        let lived = HOURS.map(|hours| live(way, HOUR * hours));
        let [one, six, day] = lived.each_ref().map(|lived| lived.timers.to_string());
        let last = &lived[HOURS.len() - 1];
        let mut actions: Vec<String> = last.actions.iter().map(|action| format!("{action:?}")).collect();
        if actions.is_empty() {
            actions.push("nothing".to_owned());
        }
        let found = format!(
            "{one}, {six} and {day} wake-ups by time; {} times output in the last; done at its end: {}",
            last.outputs,
            actions.join(", ")
        );
        data.say("day", format!("1 h, 6 h and 24 h simulated, {}", way.name), found);
    }
    data.say(
        "day",
        "what a supervisor remembers of its command's life, whatever it lasts",
        format!("{} bytes", size_of::<Life>()),
    );
    data.say(
        "day",
        "24 h simulated, heads-ups that are pushed of a command that prints a match each second",
        heads_ups(86_400).to_string(),
    );
    trace(place, data).await
}

/// Real processes. All are watched in the same minute.
async fn minute(place: &Place, sizes: &[u64], data: &mut Data) -> Result<()> {
    let mut watched = Vec::new();
    for size in sizes {
        let session = place.session().await?;
        let mut first = None;
        for _ in 0..*size {
            first = Some(tools::start(&session, place.request(&SLEEP)).await?);
        }
        watched.push((Some(*size), format!("{size} silent"), pids(&first.ok_or("nothing runs")?).await?, session));
    }
    let each_second = ["/bin/sh", "-c", "while :; do echo line; sleep 1; done"];
    let limits = |limits| RunRequest { limits, ..place.request(&SLEEP) };
    let hour = Some(3_600_000);
    for (name, request) in [
        ("one with a line each second, which its supervisor stores", place.request(&each_second)),
        (
            "one with a wall and an idle limit of an hour",
            limits(Limits { wall_ms: hour, idle_ms: hour, ..Limits::default() }),
        ),
        ("one with a bound on memory", limits(Limits { memory: Some(1 << 30), ..Limits::default() })),
    ] {
        let session = place.session().await?;
        let command = tools::start(&session, request).await?;
        let kept_by = command.brief().await?.limits_kept_by.map_or_else(String::new, |by| format!(", kept by {by}"));
        watched.push((None, format!("{name}{kept_by}"), pids(&command).await?, session));
    }
    // Starts leave a spare supervisor that is still on its way to sleep.
    tools::pass(Duration::from_secs(2)).await;
    let before = watched.iter().map(|(_, _, pids, _)| tools::used_by(pids)).collect::<Result<Vec<_>>>()?;
    tools::pass(WATCHED).await;
    for ((size, name, pids, session), before) in watched.into_iter().zip(before) {
        let used = tools::used_by(&pids)?.since(before);
        if let Some(size) = size {
            data.value("day-idle", "keeper and supervisors", size, used.switches as f64);
        }
        let cpu = used.cpu.as_secs_f64() * 1e3;
        let what = format!("60 s of keeper and supervisors: {name}");
        data.say("day", what, format!("{} wake-ups, {cpu:.3} ms of processor time", used.switches));
        place::end(&session).await?;
    }
    Ok(())
}

/// The keeper and the supervisors of a command's session.
async fn pids(command: &outlast::Command) -> Result<Vec<u32>> {
    let (keeper, mut all) = tools::watchers(tools::supervisor(command).await?)?;
    all.push(keeper);
    Ok(all)
}

/// What a simulated life came to.
struct Lived {
    outputs: u64,
    timers: u64,
    actions: Vec<Action>,
}

/// Lives so long as a supervisor does: it steps when something comes, and when the next deadline is there.
fn live(way: &Way, until: Duration) -> Lived {
    let mut life = Life::begin(&request(way), Duration::ZERO);
    let mut lived = Lived { outputs: 0, timers: 0, actions: Vec::new() };
    let mut next_output = way.prints;
    loop {
        let deadline = life.deadline().unwrap_or(Duration::MAX);
        let output = next_output.unwrap_or(Duration::MAX);
        let now = deadline.min(output);
        if now > until {
            break;
        }
        if output <= deadline {
            lived.outputs += 1;
            lived.actions.extend(life.step(Event::Output, now));
            next_output = way.prints.map(|every| output + every);
        } else {
            lived.timers += 1;
            lived.actions.extend(life.step(Event::Tick, now));
            if lived.actions.contains(&Action::Signal) {
                // It heeds the first signal.
                lived
                    .actions
                    .extend(life.step(Event::LeaderReaped { fact: Fact::Signaled(15), tree_left: false }, now));
                break;
            }
        }
    }
    lived
}

/// How many heads-ups are pushed of a match each second.
fn heads_ups(seconds: u64) -> u64 {
    let (mut heard, mut pushed) = (Heard::default(), 0);
    for second in 0..seconds {
        if heard.is_due(second * 1000) {
            heard = Heard { through: second, at_ms: Some(second * 1000) };
            pushed += 1;
        }
    }
    pushed
}

/// The trace of a real command: its lines come from what happened to it, not from how long it took.
async fn trace(place: &Place, data: &mut Data) -> Result<()> {
    let session: Session = place.session().await?;
    let before = session.raw_trace().await?.len();
    let command = tools::start(&session, place.request(&["/bin/true"])).await?;
    let consumer = Some("model".to_owned());
    session.wait(&[command], outlast::WaitOptions { consumer, ..outlast::WaitOptions::default() }).await?;
    let trace = session.raw_trace().await?.split_off(before);
    let lines = trace.iter().filter(|byte| **byte == b'\n').count();
    data.say(
        "day",
        "the trace of one real command, from its start to its end told",
        format!("{lines} lines, {} bytes", trace.len()),
    );
    place::end(&session).await
}

fn request(way: &Way) -> Request {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Request {
        id: CommandId::from_parts(1, 0, 0),
        session: SessionId::from_parts(1, 0, 0),
        argv: vec![OsText::from("true")],
        cwd: OsText::from("/"),
        env: Vec::new(),
        stdin: Stdin::Null,
        streams: Streams::Merged,
        grace_ms: None,
        background: true,
        can_be_told: true,
        follow: false,
        limits: Limits { idle_ms: way.idle.map(ms), ..Limits::default() },
        stop_grace_ms: 2000,
        lifetime: if way.detached { Lifetime::Detached { ttl_ms: 24 * 3_600_000 } } else { Lifetime::Session },
        survivors: Survivors::Keep,
        cap: LogCap::default(),
        over_cap: OverCap::Drop,
        hold: 16_384,
        label: None,
        consumer: "model".into(),
        trust: Trust::Trusted,
        delivery: Delivery::Task,
        turn: None,
        parent_command: None,
        parent_session: None,
        conceal: None,
        trace_all: false,
        notify: Vec::new(),
        track_changes: None,
        umask: None,
        inherited: Vec::new(),
    }
}
