//! Hands a command to a supervisor, through the session's keeper.

use std::time::Duration;

use outlast_core::id::CommandId;
use outlast_core::request::Request;
use outlast_core::wire::{FromKeeper, FromSupervisor, Joining, Refusal, ToKeeper, ToSupervisor};

use crate::error::{Error, Result};
use crate::keeper::{self, Keepers};
use crate::link::Link;
use crate::session::Session;

/// How often a start is tried whose supervisor went away before it had read the request.
const ATTEMPTS: usize = 5;
/// How long a keeper that gave no supervisor may take to say why.
const REASON_BOUND: Duration = Duration::from_millis(200);

/// A command that a supervisor has accepted.
pub(crate) struct Launched {
    /// The conversation with its supervisor.
    pub(crate) channel: Link,
    /// The keeper of a session that is nowhere on disk, which has no door to find it again by.
    pub(crate) keeper: Option<Link>,
    /// The command that ran already and that was joined.
    pub(crate) joined: Option<CommandId>,
    /// Which command of its joining key it is, counted from 1; none where it cannot be joined.
    pub(crate) generation: Option<u32>,
}

/// What is launched: the request, and what it may join.
struct Launch<'a> {
    request: &'a Request,
    join: Option<Joining>,
}

/// Hands the request over until a supervisor accepts it: one of its own or, with `join`, that of an identical
/// command. Nothing was started before that.
pub(crate) async fn launch(session: &Session, request: &Request, join: Option<Joining>) -> Result<Launched> {
    let launch = Launch { request, join: join.filter(|_| session.has_records()) };
    let birth = session.runtime().birth()?;
    if !session.has_records() {
        for _ in 0..ATTEMPTS {
            let mut keeper = keeper::spawn(&birth, None).await?;
            if let Some(launched) = offer(&mut keeper, &launch).await? {
                return Ok(Launched { keeper: Some(keeper), ..launched });
            }
        }
        return Err(nobody());
    }
    if session.is_owned_here() {
        for _ in 0..ATTEMPTS {
            // Only the handing over needs the shared connection; the answer comes on the channel.
            let channel = match session.owner_link().await? {
                Some(mut link) => hand_over(&mut link, &launch).await?,
                None => return Err(nobody()),
            };
            if let Some(launched) = accepted(channel, request).await? {
                return Ok(launched);
            }
        }
        return Err(nobody());
    }
    let mut keepers = Keepers::of(birth, session.dir()?.dir());
    loop {
        let mut keeper = keepers.connect().await?;
        if let Some(launched) = keepers.within(offer(&mut keeper, &launch)).await? {
            return Ok(launched);
        }
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
            Ok(Some(Launched { channel, keeper: None, joined, generation }))
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
