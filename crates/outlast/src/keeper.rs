//! The keeper of a session: found at its door, or started.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use outlast_core::wire::{FromKeeper, KEEPER_NAME, ToKeeper};
use outlast_host::dir::Dir;
use outlast_host::store::name;
use outlast_host::sys::pidfd;
use outlast_host::{effect, lock};
use tokio::time::Instant;

use crate::config::Birth;
use crate::error::{Error, Result};
use crate::link::Link;
use crate::ready;
use crate::watch::Watch;

/// How long a keeper may take to come or to go before that is an error.
const KEEPER_BOUND: Duration = Duration::from_secs(5);
/// How long a keeper may take to answer a plain question.
pub(crate) const ANSWER_BOUND: Duration = Duration::from_secs(2);

/// Starts a keeper for this directory, or one without any records, with one connection open to it.
///
/// It may find another keeper there and say so; what was sent to it has not happened then.
pub(crate) async fn spawn(birth: &Birth, dir: Option<&Dir>) -> Result<Link> {
    let (ours, theirs) = Link::pair()?;
    let place = dir.map_or_else(|| PathBuf::from("-"), |dir| dir.path().to_owned());
    if let Some(fork) = birth.fork
        && fork(theirs.as_fd(), &place).is_ok()
    {
        return Ok(ours);
    }
    let executable = &birth.executable;
    // posix_spawn borrows the memory until the exec, so this takes no longer in a large process.
    let mut command = command(executable, &place, theirs);
    if let Some(environment) = &birth.environment {
        command.env_clear().envs(environment.iter().map(|(key, value)| (key, value)));
    }
    let child = effect::spawn("keeper", &mut command)
        .map_err(|error| Error::system(format!("cannot start {}", executable.display()), error))?;
    // The keeper detaches itself by forking twice, so the process started here ends at once.
    tokio::spawn(reap(child));
    Ok(ours)
}

/// Reaps a child once it has ended, also when nobody waits for who started it any more.
async fn reap(mut child: Child) {
    if let Ok(pidfd) = pidfd::open(child.id()) {
        // A descriptor that cannot be watched leaves only the wait, which is short.
        let _ = ready::process_gone(pidfd).await;
    }
    // Somebody else who reaps every child of this process has reaped it then.
    let _ = child.wait();
}

fn command(executable: &PathBuf, place: &PathBuf, stdin: OwnedFd) -> std::process::Command {
    let mut command = std::process::Command::new(executable);
    command.arg0(KEEPER_NAME).arg(place).current_dir("/");
    command.stdin(Stdio::from(stdin)).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Connections to the keeper of a directory, one after the other: the living one, else a fresh one,
/// and again whenever something changed, within a bound over all.
pub(crate) struct Keepers<'a> {
    birth: Birth,
    dir: &'a Dir,
    until: Instant,
    watch: Option<Watch>,
    met: Option<u32>,
    next: Next,
}

/// Where the next connection comes from.
enum Next {
    Door,
    Fresh,
    Change,
}

impl<'a> Keepers<'a> {
    /// The keepers of this directory from now on.
    pub(crate) fn of(birth: Birth, dir: &'a Dir) -> Self {
        Keepers { birth, dir, until: Instant::now() + KEEPER_BOUND, watch: None, met: None, next: Next::Door }
    }

    /// The next connection to try, after the last one turned out to be none.
    pub(crate) async fn connect(&mut self) -> Result<Link> {
        loop {
            match self.next {
                Next::Door => {
                    self.next = Next::Fresh;
                    if let Some(living) = Link::connect(self.dir, name::KEEPER_DOOR)? {
                        self.met = Some(living.peer_pid());
                        return Ok(living);
                    }
                }
                Next::Fresh => {
                    self.next = Next::Change;
                    return spawn(&self.birth, Some(self.dir)).await;
                }
                Next::Change => {
                    self.next = Next::Door;
                    match self.watch.take() {
                        Some(mut watch) => {
                            self.within(watch.changed()).await?;
                            self.watch = Some(watch);
                        }
                        // Watched first and looked at again, so that no change in between is missed. Only
                        // here: the kernel takes milliseconds to take a watch down.
                        None => self.watch = Some(Watch::on(self.dir)?),
                    }
                }
            }
        }
    }

    /// Waits for what a keeper has to do, as long as the bound over all allows.
    pub(crate) async fn within<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout_at(self.until, future).await {
            Ok(result) => result,
            Err(_) => {
                let dir = self.dir.path().display();
                Err(Error::Unreachable(match self.met {
                    Some(pid) => format!(
                        "the keeper of {dir}, process {pid}, does not answer; if it is stopped let it go on (kill -CONT \
                         {pid}), `outlast doctor` tells its state"
                    ),
                    None if lock::is_held(self.dir, name::KEEPER_LOCK)? => doorless(self.dir),
                    None => format!("no keeper answers for {dir}; `outlast doctor` tells what is wrong"),
                }))
            }
        }
    }
}

/// Asks the living keeper one question; none where no keeper lives or it went away.
pub(crate) async fn ask(dir: &Dir, question: &ToKeeper, bound: Duration) -> Result<Option<FromKeeper>> {
    let Some(mut link) = living(dir, bound).await? else { return Ok(None) };
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

/// A connection to the living keeper; none where nobody holds its lock. One that comes or goes, or whose door was taken
/// away, has none for a moment: it is waited for, since it may know what is asked.
pub(crate) async fn living(dir: &Dir, bound: Duration) -> Result<Option<Link>> {
    let found = async {
        let mut watch = None;
        loop {
            if let Some(link) = Link::connect(dir, name::KEEPER_DOOR)? {
                return Ok(Some(link));
            }
            if !lock::is_held(dir, name::KEEPER_LOCK)? {
                return Ok(None);
            }
            match &mut watch {
                None => watch = Some(Watch::on(dir)?),
                Some(watch) => watch.changed().await?,
            }
        }
    };
    match tokio::time::timeout(bound, found).await {
        Ok(found) => found,
        // The kernel tells that a file is closed before it frees its lock.
        Err(_) if !lock::is_held(dir, name::KEEPER_LOCK)? => Ok(None),
        Err(_) => Err(Error::Unreachable(doorless(dir))),
    }
}

/// Says which keeper holds its lock and has no door.
fn doorless(dir: &Dir) -> String {
    let path = dir.path().join(name::KEEPER_LOCK);
    let text = lock::read_content(dir, name::KEEPER_LOCK).ok().flatten().unwrap_or_default();
    let pid = std::str::from_utf8(&text).ok().and_then(|text| text.trim().strip_prefix("kept "));
    let what = format!("holds {} and has no socket {} beside it", path.display(), name::KEEPER_DOOR);
    match pid {
        Some(pid) => format!("the keeper, process {pid}, {what}; if it is stopped, `kill -CONT {pid}` lets it go on"),
        None => format!("a keeper {what}; end whoever holds that file open (`fuser`)"),
    }
}
