//! Starting commands: in the foreground as a stream of events, to the end, or in the background.

use std::pin::pin;
use std::time::Duration;

use outlast_core::joining::JoinKey;
use outlast_core::names::{NameField, check_name};
use outlast_core::record::PROCESS;
use outlast_core::wire::Joining;
use outlast_host::clock;

use crate::error::{Error, Result};
use crate::event::{Demotion, RunEvent};
use crate::finished::Finished;
use crate::launch;
use crate::race::{self, First};
use crate::request::RunRequest;
use crate::running::Running;
use crate::session::Session;

/// How long a cancelled start is given to be accepted, before it counts as not started.
const ACCEPT_BOUND: Duration = Duration::from_millis(250);

/// How a start, or a run in the foreground, came out.
#[derive(Debug)]
pub enum Outcome {
    /// It ended in the foreground.
    Finished(Box<Finished>),
    /// It runs in the background now.
    Demoted(Demotion),
}

impl Outcome {
    /// Whether the caller joined a command that was there already.
    pub fn joined(&self) -> bool {
        match self {
            Outcome::Finished(finished) => finished.joined,
            Outcome::Demoted(demotion) => demotion.joined,
        }
    }
}

impl Session {
    /// Starts a command in the foreground, or joins one where the request asks for that. Dropping the future before it resolves means that the
    /// command does not run, or was demoted if it was started already.
    pub async fn run(&self, request: RunRequest) -> Result<Running> {
        self.submit(request, false).await
    }

    /// Runs a command until it ends or is demoted. Dropping the future demotes it.
    pub async fn run_to_end(&self, request: RunRequest) -> Result<Outcome> {
        self.run_until(request, std::future::pending()).await
    }

    /// As [`Session::run_to_end`]; when `cancel` resolves the command is demoted at once, or not run at
    /// all if it was not started yet ([`Error::Cancelled`]).
    pub async fn run_until(&self, request: RunRequest, cancel: impl Future<Output = ()>) -> Result<Outcome> {
        self.run_with(request, cancel, Raised::Demotes).await
    }

    /// As [`Session::run_to_end`]; when `stop` resolves the whole tree is stopped at once on behalf of `by`,
    /// and the outcome has the real end; a command that was not started yet does not run at all
    /// ([`Error::Cancelled`]). Where others wait for the same command nothing is stopped
    /// ([`Error::OthersWait`]): this caller leaves.
    pub async fn run_until_stopped(
        &self,
        request: RunRequest,
        by: &str,
        stop: impl Future<Output = ()>,
    ) -> Result<Outcome> {
        check_name(NameField::Consumer, by).map_err(|error| Error::Usage(error.to_string()))?;
        self.run_with(request, stop, Raised::Stops { by }).await
    }

    async fn run_with(
        &self,
        request: RunRequest,
        sign: impl Future<Output = ()>,
        raised: Raised<'_>,
    ) -> Result<Outcome> {
        let can_be_told = request.can_be_told;
        let mut sign = pin!(sign);
        let mut seen = false;
        let mut running = {
            let mut launching = pin!(self.run(request));
            match race::first(sign.as_mut(), std::future::ready(())).await {
                First::Left(()) => return Err(Error::Cancelled),
                First::Right(()) => {}
            }
            match race::first(sign.as_mut(), launching.as_mut()).await {
                First::Right(running) => running?,
                // A supervisor may be about to accept it: then it runs and is treated like any other.
                First::Left(()) => match tokio::time::timeout(ACCEPT_BOUND, launching).await {
                    Ok(running) => {
                        seen = true;
                        let mut running = running?;
                        raised.tell(&mut running).await?;
                        running
                    }
                    Err(_) => return Err(Error::Cancelled),
                },
            }
        };
        loop {
            let event = if seen {
                running.next().await?
            } else {
                match race::first(running.next(), sign.as_mut()).await {
                    First::Left(event) => event?,
                    First::Right(()) => {
                        seen = true;
                        raised.tell(&mut running).await?;
                        continue;
                    }
                }
            };
            match event {
                Some(RunEvent::Ended(finished)) => {
                    running.told().await?;
                    return Ok(Outcome::Finished(finished));
                }
                Some(RunEvent::Demoted(demotion)) if can_be_told => return Ok(Outcome::Demoted(demotion)),
                Some(RunEvent::Demoted(_)) => return Err(Error::DemotedUnasked { id: *running.id() }),
                Some(_) => {}
                None => return Err(Error::Protocol("the supervisor said nothing of an end".to_owned())),
            }
        }
    }

    /// Starts a command in the background: its records are complete before this returns. A command
    /// that could not be started is [`Outcome::Finished`] with that end. One that joins a command in the
    /// foreground moves it to the background; whoever waits for that goes on waiting.
    pub async fn start(&self, request: RunRequest) -> Result<Outcome> {
        if !self.has_records() {
            // The state directory says why there are none.
            self.runtime().state_to_write()?;
            self.dir()?;
        }
        let mut running = self.submit(request, true).await?;
        while let Some(event) = running.next().await? {
            match event {
                RunEvent::Demoted(demotion) => return Ok(Outcome::Demoted(demotion)),
                RunEvent::Ended(finished) => {
                    running.told().await?;
                    return Ok(Outcome::Finished(finished));
                }
                RunEvent::Started { .. }
                | RunEvent::Output { .. }
                | RunEvent::OutputGap { .. }
                | RunEvent::InputTaken { .. }
                | RunEvent::NotDemoted { .. } => {}
            }
        }
        Err(Error::Protocol("the supervisor said nothing of its background start".to_owned()))
    }

    async fn submit(&self, mut request: RunRequest, background: bool) -> Result<Running> {
        let remarks = self.admit(&mut request, background)?;
        self.runtime().inner.texts.look(clock::monotonic());
        let id = self.runtime().new_command_id()?;
        let (joins, quiet_after) = (request.join, request.quiet_after);
        let request = request.for_supervisor(self, id, background)?;
        self.runtime().inner.redaction.learn(&request.env);
        self.ensure_open().await?;
        let join = joins.then(|| Joining { key: JoinKey::of(&request), background });
        self.hub().starting(&request, PROCESS).await;
        let launched = launch::launch(self, &request, join).await;
        if !matches!(&launched, Ok(launched) if launched.joined.is_none()) {
            self.hub().not_started(*self.id(), id);
        }
        // What is recorded of it in place of a supervisor that vanished is recorded from here on.
        let request = request.redactor().map_or_else(|| request.clone(), |redactor| redactor.conceal(&request));
        Ok(Running::new(self.clone(), request, launched?, quiet_after, remarks))
    }
}

/// What a sign that is raised while a command is in the foreground does to it.
#[derive(Clone, Copy)]
enum Raised<'a> {
    Demotes,
    Stops { by: &'a str },
}

impl Raised<'_> {
    async fn tell(self, running: &mut Running) -> Result<()> {
        match self {
            Raised::Demotes => running.demote().await,
            Raised::Stops { by } => running.stop(by).await,
        }
    }
}
