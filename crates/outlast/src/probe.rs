//! Asks the living supervisor of a command, within a bound.

use outlast_core::wire::{FromSupervisor, LiveStatus, ToKeeper, ToSupervisor};
use outlast_host::door::DoorError;
use outlast_host::frame::Body;
use outlast_host::store::command::CommandDir;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::keeper::{self, ANSWER_BOUND};
use crate::link::{self, Link};
use crate::watch::Watch;

/// What a supervisor said when it was asked how its command stands.
pub(crate) enum Probe {
    /// It answered, with the last bytes of the output.
    Live(Box<LiveStatus>, Vec<u8>),
    /// It lives and does not answer.
    Silent {
        /// What to tell: its pid, and what can be done.
        note: String,
    },
    /// There is none.
    Nobody,
}

/// What came of a knock at the door of a supervisor.
enum Knocked {
    /// The connection, and whether its keeper was asked to pass it on.
    In(Link, bool),
    /// It lives and cannot be reached.
    Silent(String),
    Nobody,
}

/// Knocks at the door of a supervisor. Where it lives and somebody took its door away its keeper passes the caller on,
/// or closes the connection; without a keeper it makes its door again.
async fn knock(dir: &CommandDir) -> Result<Knocked> {
    let mut patience = Patience::of(dir);
    loop {
        match dir.connect() {
            Ok(channel) => return Ok(Knocked::In(Link::new(channel)?, false)),
            Err(DoorError::Busy(_)) => return Ok(Knocked::Silent(silent_note(dir))),
            Err(DoorError::Nobody(_)) if dir.lease_is_held()? => {}
            Err(DoorError::Nobody(_)) => return Ok(Knocked::Nobody),
            Err(error) => return Err(link::door_error(error)),
        }
        let keeper = match dir.session_dir() {
            Some(session) => keeper::living(session, ANSWER_BOUND).await,
            None => Ok(None),
        };
        match keeper {
            Ok(Some(mut keeper)) => {
                let (ours, theirs) = Link::pair()?;
                keeper.send_with(&ToKeeper::Reach { id: dir.id() }, vec![theirs]).await?;
                return Ok(Knocked::In(ours, true));
            }
            Err(error) if error.is_unknown() => return Err(error),
            Err(error) => return Ok(Knocked::Silent(error.to_string())),
            Ok(None) if patience.lasts().await? => {}
            Ok(None) => return Ok(Knocked::Silent(silent_note(dir))),
        }
    }
}

/// How long is waited for a supervisor that lives and has no door: it comes, goes, or makes one.
struct Patience<'a> {
    dir: &'a CommandDir,
    until: Instant,
    watch: Option<Watch>,
}

impl<'a> Patience<'a> {
    fn of(dir: &'a CommandDir) -> Patience<'a> {
        Patience { dir, until: Instant::now() + ANSWER_BOUND, watch: None }
    }

    /// Waits for a change of its directory, from the second look on; false once that took too long.
    async fn lasts(&mut self) -> Result<bool> {
        match &mut self.watch {
            None => self.watch = Some(Watch::on(self.dir.dir())?),
            Some(watch) => match tokio::time::timeout_at(self.until, watch.changed()).await {
                Ok(changed) => changed?,
                Err(_) => return Ok(false),
            },
        }
        Ok(Instant::now() < self.until)
    }
}

/// Connects to the supervisor of a command; none where there is none.
pub(crate) async fn connect(dir: &CommandDir) -> Result<Option<Link>> {
    match knock(dir).await? {
        Knocked::In(link, _) => Ok(Some(link)),
        Knocked::Silent(note) => Err(Error::Unreachable(note)),
        Knocked::Nobody => Ok(None),
    }
}

/// Asks how the command stands.
pub(crate) async fn status(dir: &CommandDir) -> Result<Probe> {
    let mut patience = Patience::of(dir);
    loop {
        let (mut link, is_passed_on) = match knock(dir).await? {
            Knocked::In(link, is_passed_on) => (link, is_passed_on),
            Knocked::Silent(note) => return Ok(Probe::Silent { note }),
            Knocked::Nobody => return Ok(Probe::Nobody),
        };
        return match tokio::time::timeout(ANSWER_BOUND, ask_status(&mut link)).await {
            Ok(Ok(Some((status, tail)))) => Ok(Probe::Live(status, tail)),
            // A keeper that does not watch it closes the connection.
            Ok(Ok(None)) if is_passed_on && dir.lease_is_held()? => match patience.lasts().await? {
                true => continue,
                false => Ok(Probe::Silent { note: silent_note(dir) }),
            },
            Ok(Ok(None)) => Ok(Probe::Nobody),
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(Probe::Silent { note: silent_note(dir) }),
        };
    }
}

async fn ask_status(link: &mut Link) -> Result<Option<(Box<LiveStatus>, Vec<u8>)>> {
    link.send(&ToSupervisor::Status).await?;
    let Some(answer) = link.message::<FromSupervisor>().await? else { return Ok(None) };
    let FromSupervisor::Status(status) = answer else { return Err(unexpected("Status", &answer)) };
    if status.output.bytes == 0 {
        return Ok(Some((status, Vec::new())));
    }
    let tail = match link.next().await? {
        Some(frame) => match frame.body {
            Body::Bytes { bytes, .. } => bytes,
            Body::Json(_) => Vec::new(),
        },
        None => Vec::new(),
    };
    Ok(Some((status, tail)))
}

/// Asks one question that is answered by one message, without a bound of its own; none where no
/// supervisor lives.
pub(crate) async fn ask(dir: &CommandDir, question: &ToSupervisor) -> Result<Option<FromSupervisor>> {
    let Some(mut link) = connect(dir).await? else { return Ok(None) };
    link.send(question).await?;
    link.message().await
}

/// The error for an answer that does not belong to the question.
pub(crate) fn unexpected(question: &str, answer: &FromSupervisor) -> Error {
    Error::Protocol(format!("the supervisor answered {question} with {answer:?}"))
}

/// Says which supervisor does not answer and what to do.
pub(crate) fn silent_note(dir: &CommandDir) -> String {
    match dir.lease_mark() {
        Ok(Some(mark)) => format!(
            "its supervisor (pid {pid}) does not answer; if it is stopped, `kill -CONT {pid}` lets it go on, and if its socket \
             is gone, `outlast session end` ends it",
            pid = mark.pid
        ),
        _ => "its supervisor does not answer, and its pid is not recorded".to_owned(),
    }
}
