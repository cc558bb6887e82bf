//! The keeper of a session: found at its door, or started.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use outlast_core::wire::{FromKeeper, ToKeeper};
use outlast_host::dir::Dir;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::link::Link;
use crate::watch::Watch;

/// The name by which the executable knows that it is to be a keeper.
pub(crate) const KEEPER_ARG0: &str = "outlast-keeper";
/// The keeper's door in the session's directory.
pub(crate) const KEEPER_DOOR: &str = "keeper.sock";
/// How long a keeper may take to come or to go before that is an error.
const KEEPER_BOUND: Duration = Duration::from_secs(5);
/// How long a keeper may take to answer a plain question.
pub(crate) const ANSWER_BOUND: Duration = Duration::from_secs(2);

/// Starts a keeper for this directory, or one without any records, with one connection open to it.
///
/// It may find another keeper there and say so; what was sent to it has not happened then.
pub(crate) async fn spawn(executable: PathBuf, dir: Option<&Dir>) -> Result<Link> {
    let (ours, theirs) = Link::pair()?;
    let place = dir.map_or_else(|| PathBuf::from("-"), |dir| dir.path().to_owned());
    let (started, hear) = oneshot::channel();
    // The keeper detaches itself by forking twice, so the process started here ends at once. It is
    // reaped on the blocking thread, also when nobody waits for this future any more.
    tokio::task::spawn_blocking(move || {
        let result = command(&executable, &place, theirs).spawn();
        let (result, child) = match result {
            Ok(child) => (Ok(()), Some(child)),
            Err(error) => (Err(Error::system(format!("cannot start {}", executable.display()), error)), None),
        };
        let _ = started.send(result);
        child.map(|mut child| child.wait())
    });
    hear.await.map_err(|_| Error::Unreachable("the runtime ended while a keeper was started".to_owned()))??;
    Ok(ours)
}

fn command(executable: &PathBuf, place: &PathBuf, stdin: OwnedFd) -> std::process::Command {
    let mut command = std::process::Command::new(executable);
    command.arg0(KEEPER_ARG0).arg(place).current_dir("/");
    command.stdin(Stdio::from(stdin)).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// What came of handing something to a keeper.
pub(crate) enum Handed<T> {
    /// It was taken.
    Taken(T),
    /// This keeper was none, or went away: try another.
    NoKeeper,
}

/// Finds or starts the keeper of a directory and hands it something, again with the next one as long
/// as keepers come and go, within a bound.
///
/// `hand` gets a fresh connection each time and says whether that keeper took it.
pub(crate) async fn with_keeper<T>(
    executable: &PathBuf,
    dir: &Dir,
    mut hand: impl AsyncFnMut(Link) -> Result<Handed<T>>,
) -> Result<T> {
    let attempts = async {
        loop {
            // The watch comes first, so that no change between a look and the wait is missed.
            let mut watch = Watch::on(dir)?;
            if let Some(living) = Link::connect(dir, KEEPER_DOOR)?
                && let Handed::Taken(taken) = hand(living).await?
            {
                return Ok(taken);
            }
            let fresh = spawn(executable.clone(), Some(dir)).await?;
            if let Handed::Taken(taken) = hand(fresh).await? {
                return Ok(taken);
            }
            watch.changed().await?;
        }
    };
    match tokio::time::timeout(KEEPER_BOUND, attempts).await {
        Ok(result) => result,
        Err(_) => Err(Error::Unreachable(format!(
            "no keeper answers for {} although its lock is held; `outlast doctor` tells which process holds it",
            dir.path().display()
        ))),
    }
}

/// Asks the living keeper one question; none where no keeper lives or it went away.
pub(crate) async fn ask(dir: &Dir, question: &ToKeeper, bound: Duration) -> Result<Option<FromKeeper>> {
    let Some(mut link) = Link::connect(dir, KEEPER_DOOR)? else { return Ok(None) };
    let pid = link.peer_pid();
    let answer = async {
        link.send(question).await?;
        link.message::<FromKeeper>().await
    };
    match tokio::time::timeout(bound, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::Silent {
            what: format!("the keeper of {}", dir.path().display()),
            pid,
            bound_ms: u64::try_from(bound.as_millis()).unwrap_or(u64::MAX),
        }),
    }
}
