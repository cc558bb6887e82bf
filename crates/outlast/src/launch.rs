//! Hands a command to a supervisor, through the session's keeper.

use std::time::Duration;

use outlast_core::id::CommandId;
use outlast_core::request::Request;
use outlast_core::wire::{FromKeeper, FromSupervisor, Refusal, ToKeeper, ToSupervisor};

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
}

/// Hands the request over until a supervisor accepts it. Nothing was started before that.
pub(crate) async fn launch(session: &Session, request: &Request) -> Result<Launched> {
    let birth = session.runtime().birth()?;
    if !session.has_records() {
        for _ in 0..ATTEMPTS {
            let mut keeper = keeper::spawn(&birth, None).await?;
            if let Some(channel) = offer(&mut keeper, request).await? {
                return Ok(Launched { channel, keeper: Some(keeper) });
            }
        }
        return Err(nobody());
    }
    if session.is_owned_here() {
        for _ in 0..ATTEMPTS {
            // Only the handing over needs the shared connection; the answer comes on the channel.
            let mut channel = match session.owner_link().await? {
                Some(mut link) => hand_over(&mut link, request.id).await?,
                None => return Err(nobody()),
            };
            if accepted(&mut channel, request).await? {
                return Ok(Launched { channel, keeper: None });
            }
        }
        return Err(nobody());
    }
    let mut keepers = Keepers::of(birth, session.dir()?.dir());
    loop {
        let mut keeper = keepers.connect().await?;
        if let Some(channel) = keepers.within(offer(&mut keeper, request)).await? {
            return Ok(Launched { channel, keeper: None });
        }
    }
}

/// Offers the request to a supervisor of this keeper; none if it is no keeper, or goes away.
async fn offer(keeper: &mut Link, request: &Request) -> Result<Option<Link>> {
    let mut channel = hand_over(keeper, request.id).await?;
    if accepted(&mut channel, request).await? {
        return Ok(Some(channel));
    }
    // A keeper that is none says why before it goes.
    match tokio::time::timeout(REASON_BOUND, keeper.message::<FromKeeper>()).await {
        Ok(Ok(Some(FromKeeper::Failed { reason }))) => Err(Error::Unreachable(reason)),
        _ => Ok(None),
    }
}

/// Gives the keeper one end of a fresh channel, for a supervisor.
async fn hand_over(keeper: &mut Link, id: CommandId) -> Result<Link> {
    let (ours, theirs) = Link::pair()?;
    keeper.send_with(&ToKeeper::Start { id }, vec![theirs]).await?;
    Ok(ours)
}

/// Sends the request; false if the channel was closed before anybody had read it whole.
async fn accepted(channel: &mut Link, request: &Request) -> Result<bool> {
    channel.send(&ToSupervisor::Start { request: Box::new(request.clone()) }).await?;
    match channel.message::<FromSupervisor>().await? {
        Some(FromSupervisor::Accepted { .. }) => Ok(true),
        Some(FromSupervisor::Refused { refusal, reason, running }) => Err(refused(refusal, reason, running)),
        Some(other) => Err(Error::Protocol(format!("the supervisor answered a start with {other:?}"))),
        None => Ok(false),
    }
}

/// The error of a start that was refused.
pub(crate) fn refused(refusal: Refusal, reason: String, running: Vec<outlast_core::id::CommandId>) -> Error {
    match refusal {
        Refusal::Cap => Error::Cap { reason, running },
        Refusal::NoRecords => Error::NoRecords(reason),
        Refusal::Ending => Error::Refused(reason),
        Refusal::Machine => Error::Unreachable(reason),
        Refusal::Invalid => Error::Usage(reason),
    }
}

fn nobody() -> Error {
    Error::Unreachable(format!(
        "no supervisor took the command in {ATTEMPTS} attempts; nothing was started; `outlast doctor` looks into it"
    ))
}
