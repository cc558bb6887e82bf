//! Many who wait, for one command and for many.

use std::process::Child;
use std::time::Duration;

use outlast::core::request::Stdin;
use outlast::{Command, RunRequest, Session, WaitOptions};
use tokio::task::JoinSet;

use super::data::Data;
use super::tools;
use crate::Result;
use crate::place::{self, Place};
use crate::proc::{Used, descriptors, pss};
use crate::samples::Samples;
use crate::stand_in::monotonic;

/// How long they are watched while nothing happens.
const IDLE: Duration = Duration::from_secs(5);
/// Processes whose memory is looked at.
const LOOKED_AT: usize = 20;
/// Rounds for commands that end one after another.
const ROUNDS: usize = 5;
/// Wake-ups of the waiter that has a bound: it is held by their median.
const WAKES: usize = 20;
/// From the leader's exit to the waiter's return, in ms: see docs/benchmarks.md.
const MOST_WAKE: f64 = 1.0;

/// Who waits in the program with the library: each tells when it was told.
type Waiting = JoinSet<Result<Duration>>;

const LIBRARY: &str = "one program with the library, one command";
const PROCESSES: &str = "processes `outlast wait`, one command";
const MANY: &str = "one program with the library, as many commands";
const ALL: &str = "one wait for as many commands, the first of them";

/// Each size in each form.
pub async fn measure(place: &Place, sizes: &[u64], data: &mut Data) -> Result<()> {
    let session = place.session().await?;
    let nothing = idle(&[std::process::id()], Used::default()).await?;
    let fresh = pss(std::process::id())?;
    for size in sizes {
        in_one_program(place, &session, *size, (nothing, fresh), data).await?;
    }
    for size in sizes {
        as_processes(place, &session, *size, data).await?;
        for_many(place, &session, *size, nothing, data).await?;
    }
    data.bound("waiters-told", LIBRARY, 1, MOST_WAKE);
    place::end(&session).await
}

/// The pair is what this process uses by itself, and its memory before anybody waited: what a smaller size has left to it
/// is used again.
async fn in_one_program(
    place: &Place,
    session: &Session,
    size: u64,
    (nothing, fresh): (Used, u64),
    data: &mut Data,
) -> Result<()> {
    let own = std::process::id();
    let command = start(place, session).await?;
    let supervisor = tools::supervisor(&command).await?;
    let (keeper, _) = tools::watchers(supervisor)?;
    let before = (fresh, pss(supervisor)?);
    let mut waiting = Waiting::new();
    connect(supervisor, size, || {
        wait(&mut waiting, session, &command);
        Ok(())
    })
    .await?;
    let after = (pss(own)?, pss(supervisor)?);
    for (name, before, after) in
        [("one program with the library", before.0, after.0), ("the supervisor, for them", before.1, after.1)]
    {
        data.value("waiters-memory", name, size, after.saturating_sub(before) as f64);
    }
    let used = idle(&[own, supervisor, keeper], nothing).await?;
    data.value("waiters-switches", LIBRARY, size, used.switches as f64);
    command.close_input().await?;
    let mut last = Duration::ZERO;
    while let Some(told) = waiting.join_next().await {
        last = last.max(told??);
    }
    let mut told = since_end(&command, last).await?;
    if size == 1 {
        for _ in 1..WAKES {
            told.0.extend(woken(place, session).await?.0);
        }
    }
    data.time("waiters-told", LIBRARY, size, &told);
    Ok(())
}

/// The wake-up of one who waits for one command.
async fn woken(place: &Place, session: &Session) -> Result<Samples> {
    let command = start(place, session).await?;
    let mut waiting = Waiting::new();
    connect(tools::supervisor(&command).await?, 1, || {
        wait(&mut waiting, session, &command);
        Ok(())
    })
    .await?;
    command.close_input().await?;
    since_end(&command, waiting.join_next().await.ok_or("nobody waited")???).await
}

async fn as_processes(place: &Place, session: &Session, size: u64, data: &mut Data) -> Result<()> {
    let command = start(place, session).await?;
    let supervisor = tools::supervisor(&command).await?;
    let (keeper, _) = tools::watchers(supervisor)?;
    let mut waiting: Vec<Child> = Vec::new();
    let id = command.id().to_string();
    connect(supervisor, size, || {
        waiting.push(place.program(place.outlast()).args(["wait", &id]).spawn()?);
        Ok(())
    })
    .await?;
    let mut pids: Vec<u32> = waiting.iter().map(Child::id).collect();
    let mut memory = 0;
    for pid in pids.iter().take(LOOKED_AT) {
        memory += pss(*pid)?;
    }
    let each = memory as f64 / pids.len().min(LOOKED_AT) as f64;
    data.value("waiters-memory", "processes `outlast wait`", size, each * size as f64);
    pids.extend([supervisor, keeper]);
    let used = idle(&pids, Used::default()).await?;
    data.value("waiters-switches", PROCESSES, size, used.switches as f64);
    command.close_input().await?;
    for child in &mut waiting {
        let status = child.wait()?;
        if !status.success() {
            return Err(format!("a wait of {size}: {status}").into());
        }
    }
    let told = since_end(&command, monotonic()).await?;
    data.time("waiters-told", PROCESSES, size, &told);
    Ok(())
}

async fn for_many(place: &Place, session: &Session, size: u64, nothing: Used, data: &mut Data) -> Result<()> {
    let mut commands = Vec::new();
    for _ in 0..size {
        commands.push(start(place, session).await?);
    }
    let mut supervisors = Vec::new();
    for command in &commands {
        supervisors.push(tools::supervisor(command).await?);
    }
    let (keeper, _) = tools::watchers(*supervisors.first().ok_or("nothing runs")?)?;
    // The one that was asked last is left alone last.
    settled(*supervisors.last().ok_or("nothing runs")?).await?;
    let before = supervisors.iter().map(|pid| descriptors(*pid)).collect::<Result<Vec<_>>>()?;
    let mut waiting: Vec<Waiting> = commands.iter().map(|_| Waiting::new()).collect();
    for (one, command) in waiting.iter_mut().zip(&commands) {
        wait(one, session, command);
    }
    for (supervisor, before) in supervisors.iter().zip(before) {
        tools::until("each has who waits", || Ok(descriptors(*supervisor)? > before)).await?;
    }
    let pids = [&supervisors[..], &[std::process::id()]].concat();
    let (mut one_each, mut all) = (Samples::default(), Samples::default());
    let used = idle(&[&pids[..], &[keeper]].concat(), nothing).await?;
    data.value("waiters-switches", MANY, size, used.switches as f64);
    let mut left: Vec<(Command, Waiting)> = commands.into_iter().zip(waiting).collect();
    // As many as are told by a waiter of their own are left for the wait for all.
    for _ in 0..ROUNDS.min(left.len().div_ceil(2)) {
        let (command, mut one) = left.pop().ok_or("nothing runs")?;
        command.close_input().await?;
        let told = one.join_next().await.ok_or("nobody waited")???;
        one_each.0.extend(since_end(&command, told).await?.0);
    }
    data.time("waiters-told", MANY, size, &one_each);
    let rest: Vec<Command> = left.into_iter().map(|(command, _)| command).collect();
    for round in 0..ROUNDS.min(rest.len()) {
        // Those that have ended are not waited for again.
        let open = &rest[..rest.len() - round];
        let last = open.last().ok_or("nothing runs")?;
        let supervisor = tools::supervisor(last).await?;
        let (session, commands, about) = (session.clone(), open.to_vec(), settled(supervisor).await?);
        let wait = tokio::spawn(async move {
            session.wait(&commands, WaitOptions { any: true, ..WaitOptions::default() }).await?;
            Result::Ok(monotonic())
        });
        tools::until("it waits for all", || Ok(descriptors(supervisor)? > about)).await?;
        last.close_input().await?;
        let told = wait.await??;
        all.0.extend(since_end(last, told).await?.0);
    }
    if !all.0.is_empty() {
        data.time("waiters-told", ALL, size, &all);
    }
    for command in &rest {
        command.close_input().await.or_else(|error| if command_is_over(&error) { Ok(()) } else { Err(error) })?;
    }
    session.wait(&rest, WaitOptions::default()).await?;
    Ok(())
}

/// Whether input could not be closed because the command has ended.
fn command_is_over(error: &outlast::Error) -> bool {
    error.kind() == outlast::ErrorKind::Refused
}

/// A command that ends when its input does.
async fn start(place: &Place, session: &Session) -> Result<Command> {
    let request = place.stand_in_request(&["scale", "stamp-at-end"]);
    tools::start(session, RunRequest { stdin: Stdin::Open, ..request }).await
}

fn wait(waiting: &mut Waiting, session: &Session, command: &Command) {
    let (session, command) = (session.clone(), command.clone());
    waiting.spawn(async move {
        session.wait(&[command], WaitOptions::default()).await?;
        Ok(monotonic())
    });
}

/// Has so many begin to wait, and returns when the supervisor is connected with each.
async fn connect(supervisor: u32, size: u64, mut begin: impl FnMut() -> Result<()>) -> Result<()> {
    let before = settled(supervisor).await?;
    for _ in 0..size {
        begin()?;
    }
    let wanted = before + usize::try_from(size)?;
    tools::until("all wait", || Ok(descriptors(supervisor)? >= wanted)).await
}

/// The descriptors of a supervisor once those who started or asked it are gone.
async fn settled(supervisor: u32) -> Result<usize> {
    let (mut seen, mut same) = (0, 0);
    tools::until("a supervisor is left alone", || {
        let now = descriptors(supervisor)?;
        same = if now == seen { same + 1 } else { 0 };
        seen = now;
        Ok(same > 1)
    })
    .await?;
    Ok(seen)
}

/// What these have used in a while in which nothing happened, without what this process needs for the while itself.
async fn idle(pids: &[u32], nothing: Used) -> Result<Used> {
    // Whoever connected last may still be on its way to sleep.
    tools::pass(IDLE / 2).await;
    let before = tools::used_by(pids)?;
    tools::pass(IDLE).await;
    Ok(tools::used_by(pids)?.since(before).since(nothing))
}

/// From what the command printed as its last act to then.
async fn since_end(command: &Command, then: Duration) -> Result<Samples> {
    let tail = command.snapshot().await?.output.tail;
    let printed = String::from_utf8_lossy(&tail).trim().parse()?;
    let mut samples = Samples::default();
    samples.push(then.saturating_sub(Duration::from_nanos(printed)));
    Ok(samples)
}
