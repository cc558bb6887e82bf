//! Hands a command to a supervisor, through the session's keeper.

use std::time::Duration;

use outlast_core::id::CommandId;
use outlast_core::request::Request;
use outlast_core::wire::{FromKeeper, FromSupervisor, Joining, Refusal, ToKeeper, ToSupervisor};
use outlast_host::frame::Frame;

use crate::error::{Error, Result};
use crate::keeper::{self, ANSWER_BOUND, Keepers};
use crate::link::Link;
use crate::session::Session;

/// How often a start is tried whose supervisor went away before it had started anything.
const ATTEMPTS: usize = 5;
/// How long a keeper that gave no supervisor may take to say why.
const REASON_BOUND: Duration = Duration::from_millis(200);

/// A command that a supervisor has accepted.
pub(crate) struct Launched {
    /// The conversation with its supervisor.
    pub(crate) channel: Link,
    /// What it said first after its yes, where it started the command; none where it died over that.
    first: Option<Frame>,
    /// The keeper of a session that is nowhere on disk, which has no door to find it again by.
    pub(crate) keeper: Option<Link>,
    /// The command that ran already and that was joined.
    pub(crate) joined: Option<CommandId>,
    /// Which command of its joining key it is, counted from 1; none where it cannot be joined.
    pub(crate) generation: Option<u32>,
}

impl Launched {
    /// The next that the supervisor says; none when it closed its end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.channel.next().await,
        }
    }
}

/// What is launched: the request, and what it may join.
struct Launch<'a> {
    request: &'a Request,
    join: Option<Joining>,
}

/// Hands the request over until a supervisor has begun it: one of its own or, with `join`, that of an identical
/// command. Where it fails nothing was started.
pub(crate) async fn launch(session: &Session, request: &Request, join: Option<Joining>) -> Result<Launched> {
    let launch = Launch { request, join: join.filter(|_| session.has_records()) };
    for _ in 0..ATTEMPTS {
        let (launched, mut keeper) = if !session.has_records() {
            let mut keeper = keeper::spawn(&session.runtime().birth()?, None).await?;
            (offer(&mut keeper, &launch).await?, Some(keeper))
        } else if session.is_owned_here() {
            // Only the handing over needs the shared connection; the answer comes on the channel.
            let channel = match session.owner_link().await? {
                Some(mut link) => hand_over(&mut link, &launch).await?,
                None => return Err(nobody()),
            };
            (accepted(channel, request).await?, None)
        } else {
            let mut keepers = Keepers::of(session.runtime().birth()?, session.dir()?.dir());
            loop {
                let mut keeper = keepers.connect().await?;
                if let Some(launched) = keepers.within(offer(&mut keeper, &launch)).await? {
                    break (Some(launched), Some(keeper));
                }
            }
        };
        if let Some(launched) = launched
            && let Some(begun) = begun(session, launched, keeper.as_mut(), request.id).await?
        {
            // That of a session with records is found again by its door, and may leave once it has nothing to keep.
            return Ok(Launched { keeper: keeper.filter(|_| !session.has_records()), ..begun });
        }
    }
    Err(nobody())
}

/// Waits for what the supervisor says after its yes; none if it died before it started anything, which its keeper
/// knows: the one behind this connection, which does not leave as long as that is open.
async fn begun(
    session: &Session,
    mut launched: Launched,
    keeper: Option<&mut Link>,
    id: CommandId,
) -> Result<Option<Launched>> {
    if launched.joined.is_some() {
        return Ok(Some(launched));
    }
    launched.first = launched.channel.next().await?;
    if launched.first.is_none()
        && let Some(FromKeeper::Fate { never_begun: true, .. }) = fate(session, keeper, id).await?
    {
        return Ok(None);
    }
    Ok(Some(launched))
}

/// What the keeper of a command says became of it: the one behind this connection, else that of the session. None from
/// one that is gone or silent; a later one is asked by whoever needs to know.
pub(crate) async fn fate(session: &Session, keeper: Option<&mut Link>, id: CommandId) -> Result<Option<FromKeeper>> {
    let question = ToKeeper::Fate { id };
    let answer = match keeper {
        Some(keeper) => {
            let answer = async {
                keeper.send(&question).await?;
                keeper.message::<FromKeeper>().await
            };
            tokio::time::timeout(ANSWER_BOUND, answer).await.unwrap_or(Ok(None))
        }
        None => match session.dir_if_any()? {
            Some(dir) => keeper::ask(dir.dir(), &question, ANSWER_BOUND).await,
            None => Ok(None),
        },
    };
    match answer {
        // One that could not be asked may know.
        Err(error) if error.is_unknown() => Err(error),
        Err(_) => Ok(None),
        Ok(answer) => Ok(answer),
    }
}

/// Offers the request to a supervisor of this keeper; none if it is no keeper, or goes away.
async fn offer(keeper: &mut Link, launch: &Launch<'_>) -> Result<Option<Launched>> {
    let channel = hand_over(keeper, launch).await?;
    if let Some(launched) = accepted(channel, launch.request).await? {
        return Ok(Some(launched));
    }
    // A keeper that is none says why before it goes.
    match tokio::time::timeout(REASON_BOUND, keeper.message::<FromKeeper>()).await {
        Ok(Ok(Some(FromKeeper::Failed { reason }))) => Err(Error::Unreachable(reason)),
        _ => Ok(None),
    }
}

/// Gives the keeper one end of a fresh channel, for a supervisor.
async fn hand_over(keeper: &mut Link, launch: &Launch<'_>) -> Result<Link> {
    let (ours, theirs) = Link::pair()?;
    let start = ToKeeper::Start { id: launch.request.id, join: launch.join };
    keeper.send_with(&start, vec![theirs]).await?;
    Ok(ours)
}

/// Sends the request; none if the channel was closed before anybody had accepted it.
async fn accepted(mut channel: Link, request: &Request) -> Result<Option<Launched>> {
    channel.send(&ToSupervisor::Start { request: Box::new(request.clone()) }).await?;
    match channel.message::<FromSupervisor>().await? {
        Some(FromSupervisor::Accepted { joined, generation, .. }) => {
            Ok(Some(Launched { channel, first: None, keeper: None, joined, generation }))
        }
        Some(FromSupervisor::Refused { refusal, reason, running }) => Err(refused(refusal, reason, running)),
        Some(other) => Err(Error::Protocol(format!("the supervisor answered a start with {other:?}"))),
        None => Ok(None),
    }
}

/// The error of a start that was refused.
pub(crate) fn refused(refusal: Refusal, reason: String, running: Vec<outlast_core::id::CommandId>) -> Error {
    match refusal {
        Refusal::Cap => Error::Cap { reason, running },
        Refusal::NoRecords => Error::NoRecords(reason),
        Refusal::Ending | Refusal::Sealed => Error::Refused(reason),
        Refusal::Machine => Error::Unreachable(reason),
        Refusal::Invalid => Error::Usage(reason),
    }
}

fn nobody() -> Error {
    Error::Unreachable(format!(
        "no supervisor took the command in {ATTEMPTS} attempts; nothing was started; `outlast doctor` looks into it"
    ))
}
