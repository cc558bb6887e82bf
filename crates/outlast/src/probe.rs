//! Asks the living supervisor of a command, within a bound.

use outlast_core::wire::{FromSupervisor, LiveStatus, ToKeeper, ToSupervisor};
use outlast_host::door::DoorError;
use outlast_host::frame::{Body, Channel};
use outlast_host::store::command::CommandDir;

use crate::error::{Error, Result};
use crate::keeper::ANSWER_BOUND;
use crate::link::{self, Link};

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

/// Knocks at the door of a supervisor. Where it lives and somebody took its door away its keeper passes the caller on,
/// or closes the connection.
fn knock(dir: &CommandDir) -> std::result::Result<Channel, DoorError> {
    match dir.connect() {
        Err(DoorError::Nobody(_)) if dir.lease_is_held()? => {
            let mut keeper = dir.connect_keeper()?;
            let (ours, theirs) = Channel::pair()?;
            keeper.send_json_with(&ToKeeper::Reach { id: dir.id() }, vec![theirs.into_fd()])?;
            Ok(ours)
        }
        knocked => knocked,
    }
}

/// Connects to the supervisor of a command; none where there is none.
pub(crate) fn connect(dir: &CommandDir) -> Result<Option<Link>> {
    match knock(dir) {
        Ok(channel) => Link::new(channel).map(Some),
        Err(DoorError::Nobody(_)) => Ok(None),
        Err(error) => Err(link::door_error(error)),
    }
}

/// Asks how the command stands.
pub(crate) async fn status(dir: &CommandDir) -> Result<Probe> {
    let mut link = match knock(dir) {
        Ok(channel) => Link::new(channel)?,
        Err(DoorError::Nobody(_)) => return Ok(Probe::Nobody),
        Err(DoorError::Busy(_)) => return Ok(Probe::Silent { note: silent_note(dir) }),
        Err(error) => return Err(link::door_error(error)),
    };
    match tokio::time::timeout(ANSWER_BOUND, ask_status(&mut link)).await {
        Ok(Ok(Some((status, tail)))) => Ok(Probe::Live(status, tail)),
        Ok(Ok(None)) => Ok(Probe::Nobody),
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(Probe::Silent { note: silent_note(dir) }),
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
    let Some(mut link) = connect(dir)? else { return Ok(None) };
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
            "its supervisor (pid {pid}) does not answer; if it is stopped, `kill -CONT {pid}` lets it go on",
            pid = mark.pid
        ),
        _ => "its supervisor does not answer, and its pid is not recorded".to_owned(),
    }
}
