//! Acting on commands: stop, signal, input.

use std::time::Duration;

use outlast_core::record::{Phase, Survivor};
use outlast_core::request::STOP_GRACE_MS;
use outlast_core::wire::{FromSupervisor, ToSupervisor};
use outlast_host::store::command::CommandDir;
use outlast_host::store::understood;

use crate::command::Command;
use crate::deliver::check_consumer;
use crate::error::{Error, Result};
use crate::hide;
use crate::probe::{self, Probe};
use crate::race;
use crate::request::millis;
use crate::session::{Session, is_alive};
use crate::settle::{self, Report, Standing};
use crate::snapshot::Snapshot;
use crate::stopping::StopOptions;

/// What a supervisor needs beyond the grace: its bound after KILL, and time to answer.
const STOP_SLACK: Duration = Duration::from_secs(5);
/// How long a command may take to read its input before the call returns.
const INPUT_BOUND: Duration = Duration::from_secs(5);

/// What a stop did, verified.
#[derive(Clone, Debug)]
pub struct StopOutcome {
    /// The command after the stop.
    pub snapshot: Snapshot,
    /// Rounds of signals sent to the tree.
    pub signals: u32,
    /// Whether it had ended before.
    pub already_ended: bool,
    /// Whether nothing of the tree is left.
    pub verified: bool,
    /// Survivors of an ended command that this stop ended.
    pub ended_survivors: Vec<Survivor>,
    /// What is still alive.
    pub alive: Vec<Survivor>,
    /// What else there is to say.
    pub note: Option<String>,
}

impl Command {
    /// Stops the whole tree and answers when that is verified or its bound is over. A command that has
    /// ended keeps its end; survivors of it are ended. Where several callers wait for it nothing is done without
    /// [`StopOptions::force`] ([`Error::OthersWait`]). Dropping the future does not take the stop back.
    pub async fn stop(&self, options: StopOptions) -> Result<StopOutcome> {
        let mut outcome = self.stop_raw(options).await?;
        if let Some(mut mask) = self.session.mask(false) {
            outcome.ended_survivors.iter_mut().chain(&mut outcome.alive).for_each(|one| hide::name(one, &mut mask));
        }
        Ok(outcome)
    }

    async fn stop_raw(&self, options: StopOptions) -> Result<StopOutcome> {
        check_consumer(&options.by)?;
        let dir = self.dir()?;
        let mut asked = false;
        loop {
            let standing = settle::settle(&self.session, &dir, Report::default()).await?.0;
            let watched = matches!(standing, Standing::Watched)
                || (matches!(standing, Standing::Ended(_)) && dir.lease_is_held()?);
            if watched && asked && dir.lease_is_held()? {
                return self.unanswered(&dir, probe::silent_note(&dir)).await;
            }
            if !watched || asked {
                return self.without_supervisor(&standing).await;
            }
            match self.ask_to_stop(&dir, &options).await? {
                Some(outcome) => return Ok(outcome),
                // It went away meanwhile: what it left behind says the rest.
                None => asked = true,
            }
        }
    }

    async fn ask_to_stop(&self, dir: &CommandDir, options: &StopOptions) -> Result<Option<StopOutcome>> {
        let own_grace = understood(dir.request())?.map_or(STOP_GRACE_MS, |record| record.request.stop_grace_ms);
        let grace = options.grace.map_or(own_grace, millis);
        let question = options.message();
        let bound = Duration::from_millis(grace).saturating_add(STOP_SLACK);
        let answer = match tokio::time::timeout(bound, probe::ask(dir, &question)).await {
            Ok(Err(Error::Unreachable(note))) => return self.unanswered(dir, note).await.map(Some),
            Ok(answer) => answer?,
            Err(_) => return self.unanswered(dir, probe::silent_note(dir)).await.map(Some),
        };
        let report = match answer {
            Some(FromSupervisor::Stopped(report)) => report,
            Some(FromSupervisor::NotStopped { others }) => return Err(Error::OthersWait { id: self.id, others }),
            Some(FromSupervisor::Note { text }) => return Err(Error::Usage(text)),
            Some(other) => return Err(probe::unexpected("Stop", &other)),
            None => return Ok(None),
        };
        Ok(Some(StopOutcome {
            snapshot: self.brief().await?,
            signals: report.signals,
            already_ended: report.already_ended,
            verified: report.verified,
            ended_survivors: report.ended_survivors,
            alive: report.alive,
            note: None,
        }))
    }

    /// The answer where a supervisor lives and does not answer.
    async fn unanswered(&self, dir: &CommandDir, note: String) -> Result<StopOutcome> {
        let snapshot = self.brief().await?;
        let mut alive = Vec::new();
        if let Some(leader) = understood(dir.status())?.and_then(|status| status.leader)
            && is_alive(&leader)?
        {
            alive.push(Survivor {
                pid: leader.pid,
                name: snapshot.program.lossy(),
                start: leader.start,
                fate: outlast_core::record::Fate::Kept,
            });
        }
        Ok(StopOutcome {
            snapshot,
            signals: 0,
            already_ended: false,
            verified: false,
            ended_survivors: Vec::new(),
            alive,
            note: Some(note),
        })
    }

    /// The answer where no supervisor is there to ask.
    async fn without_supervisor(&self, standing: &Standing) -> Result<StopOutcome> {
        let (verified, note) = match standing {
            Standing::Ended(_) | Standing::Lost(_) => (true, None),
            Standing::Watched => (false, Some("its supervisor went away and its end is being recorded".to_owned())),
            Standing::Deferred(note) => (false, Some(note.clone())),
        };
        Ok(StopOutcome {
            snapshot: self.brief().await?,
            signals: 0,
            already_ended: verified,
            verified,
            ended_survivors: Vec::new(),
            alive: Vec::new(),
            note,
        })
    }

    /// Sends one signal to the command's group; not a stop.
    pub async fn signal(&self, signal: i32) -> Result<()> {
        let dir = self.dir()?;
        self.delivered(&dir, probe::ask(&dir, &ToSupervisor::Signal { signal })).await
    }

    /// Writes bytes into the command's standard input, with `close` the end of input after them, and waits,
    /// within a bound, until they were taken; refused where it is not open.
    pub async fn send(&self, bytes: &[u8], close: bool) -> Result<()> {
        let dir = self.dir()?;
        let answer = async {
            let Some(mut link) = probe::connect(&dir).await? else { return Ok(None) };
            if !bytes.is_empty() {
                link.send_input(bytes).await?;
            }
            link.send(&ToSupervisor::InputDone { close }).await?;
            link.message::<FromSupervisor>().await
        };
        self.delivered(&dir, answer).await
    }

    /// Closes the command's standard input once what was sent before is written.
    pub async fn close_input(&self) -> Result<()> {
        self.send(&[], true).await
    }

    /// Waits for the word that something was delivered.
    async fn delivered(
        &self,
        dir: &CommandDir,
        answer: impl Future<Output = Result<Option<FromSupervisor>>>,
    ) -> Result<()> {
        match tokio::time::timeout(INPUT_BOUND, answer).await {
            Ok(Ok(Some(FromSupervisor::Delivered { refused: None }))) => Ok(()),
            Ok(Ok(Some(FromSupervisor::Delivered { refused: Some(why) }))) => Err(Error::Refused(why)),
            Ok(Ok(Some(other))) => Err(probe::unexpected("a delivery", &other)),
            Ok(Ok(None)) => {
                let snapshot = self.brief().await?;
                let why = if snapshot.phase == Phase::Ended { "has ended" } else { "has no supervisor any more" };
                Err(Error::Refused(format!("not delivered: {} {why}", self.id)))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                let why = match probe::status(dir).await? {
                    Probe::Silent { note } => note,
                    Probe::Live(..) | Probe::Nobody => "it does not read its input".to_owned(),
                };
                let (id, bound) = (self.id, INPUT_BOUND.as_secs());
                Err(Error::Refused(format!("{id} did not take it within {bound} s: {why}; what was sent waits for it")))
            }
        }
    }
}

impl Session {
    /// Stops every command of the session and every survivor, detached ones only if asked; whoever asks for all
    /// of them means also those that several callers wait for.
    pub async fn stop_all(&self, options: StopOptions, detached: bool) -> Result<Vec<StopOutcome>> {
        let options = StopOptions { force: true, ..options };
        let listed = self.list(false).await?;
        let meant = listed.into_iter().filter(|snapshot| detached || !snapshot.detached);
        let commands: Vec<Command> = meant.map(|snapshot| Command { session: self.clone(), id: snapshot.id }).collect();
        race::all(commands.iter().map(|command| command.stop(options.clone()))).await.into_iter().collect()
    }
}
