//! What several groups need: commands in the background, their watchers, calls of the command line, a while that passes.

use std::process::Stdio;
use std::time::{Duration, Instant};

use outlast::{Command, Outcome, RunRequest, Session};

use crate::Result;
use crate::place::Place;
use crate::proc::{Used, children, parent, used};
use crate::samples::Samples;

/// How often something is looked at that no event announces.
const LOOK: Duration = Duration::from_millis(20);
/// The longest that such a thing is waited for.
const LOOK_BOUND: Duration = Duration::from_secs(60);
/// A command that does nothing.
pub const SLEEP: [&str; 2] = ["/bin/sleep", "86400"];

/// Starts a command in the background.
pub async fn start(session: &Session, request: RunRequest) -> Result<Command> {
    match session.start(request).await? {
        Outcome::Demoted(demotion) => Ok(demotion.command),
        Outcome::Finished(finished) => Err(format!("it could not be started: {:?}", finished.exit.end).into()),
    }
}

/// The supervisor of a running command.
pub async fn supervisor(command: &Command) -> Result<u32> {
    parent(command.brief().await?.pid.ok_or("the command is not running")?)
}

/// The keeper that a supervisor belongs to, and all of its supervisors, the spare one too.
pub fn watchers(supervisor: u32) -> Result<(u32, Vec<u32>)> {
    let keeper = parent(supervisor)?;
    Ok((keeper, children(keeper)?))
}

/// What processes have used together.
pub fn used_by(pids: &[u32]) -> Result<Used> {
    let mut all = Used::default();
    for pid in pids {
        let one = used(*pid)?;
        all.cpu += one.cpu;
        all.switches += one.switches;
    }
    Ok(all)
}

/// Lets time pass while this process waits for events as ever.
pub async fn pass(time: Duration) {
    drop(tokio::time::timeout(time, std::future::pending::<()>()).await);
}

/// Looks until something is so; an error at the bound.
pub async fn until(what: &str, mut so: impl FnMut() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !so()? {
        if began.elapsed() > LOOK_BOUND {
            return Err(format!("waited in vain until {what}").into());
        }
        pass(LOOK).await;
    }
    Ok(())
}

/// A call of the command line on a session; what it prints is read through a pipe, as an agent does.
pub fn call(place: &Place, session: &Session, words: &[&str]) -> Result<String> {
    let mut program = place.program(place.outlast());
    program.args(words).env("OUTLAST_SESSION", session.id().to_string());
    let output = program.stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("outlast {}: {}, {said}", words.join(" "), output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The times of some calls.
pub fn calls(place: &Place, session: &Session, rounds: usize, words: &[&str]) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..rounds {
        samples.time(|| call(place, session, words))?;
    }
    Ok(samples)
}
