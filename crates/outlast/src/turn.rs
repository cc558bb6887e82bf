//! A turn of an agent: what it learned of changes, and what still runs when it is cancelled.

use std::sync::{Mutex, PoisonError};

use outlast_core::id::CommandId;
use outlast_core::record::{Phase, TraceLine};
use outlast_core::request::{OsText, line_of};
use outlast_host::clock;
use outlast_host::store::trace;
use serde::Serialize;

use crate::attend::{WaitOptions, WaitReport};
use crate::command::Command;
use crate::error::Result;
use crate::read::{ReadOptions, Reading};
use crate::receipts::{Consumed, ReceiptLease, Receipts};
use crate::session::Session;

/// What a turn may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TurnKind {
    /// It acts, and takes notice of what was changed.
    #[default]
    Acting,
    /// It only reads: what was changed is left to a later turn.
    ReadOnly,
}

/// One turn of an agent, with its ledger of what was changed. It has a line in the trace, which the demotions of its
/// commands hang off where their requests name it ([`RunRequest::turn`](crate::RunRequest::turn)).
///
/// Reads and waits through it merge the receipts of the commands that ended into that ledger and consume them for its
/// consumer, once. The same calls without a turn consume none.
#[derive(Debug)]
pub struct Turn {
    session: Session,
    consumer: String,
    kind: TurnKind,
    event: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    over: bool,
    receipts: Vec<Receipts>,
    notes: Vec<String>,
}

/// A command that still runs when its turn is cancelled. The cancel does not stop it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Residue {
    /// `process`.
    pub kind: String,
    /// The command.
    pub id: CommandId,
    /// The program.
    pub program: OsText,
    /// The command line.
    pub command: String,
    /// Unix time of the start in milliseconds.
    pub started_at_ms: u64,
}

/// The answer to a cancel. Without anything that runs it has no key at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cancelled {
    /// What ran at that moment, by id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub residue: Vec<Residue>,
}

impl Session {
    /// Begins a turn for this consumer.
    pub async fn begin_turn(&self, consumer: &str, kind: TurnKind) -> Result<Turn> {
        crate::deliver::check_consumer(consumer)?;
        let event = self.runtime().new_event_id()?.to_string();
        let turn = Turn { session: self.clone(), consumer: consumer.to_owned(), kind, event, state: Mutex::default() };
        let parent = self.record().map(|record| record.start_event.clone());
        turn.trace(TraceLine { kind: "turn".to_owned(), event: turn.event.clone(), parent, ..TraceLine::default() })?;
        Ok(turn)
    }
}

impl Turn {
    /// Its event in the trace, for the requests of its commands.
    pub fn event(&self) -> &str {
        &self.event
    }

    /// Reads a range of a command's output, as [`Command::read`].
    pub async fn read(&self, command: &Command, options: ReadOptions) -> Result<Reading> {
        let reading = command.read(options).await?;
        self.merge(&command.session, &command.id).await?;
        Ok(reading)
    }

    /// Waits for commands, as [`Session::wait`].
    pub async fn wait(&self, commands: &[Command], options: WaitOptions) -> Result<WaitReport> {
        let report = self.session.wait(commands, options).await?;
        for waited in report.commands.iter().filter(|waited| waited.snapshot.phase == Phase::Ended) {
            let whose = self.session.runtime().open_session(&waited.snapshot.session).await?;
            self.merge(&whose, &waited.snapshot.id).await?;
        }
        Ok(report)
    }

    /// What it learned of changes so far, in the order in which it did.
    pub fn receipts(&self) -> Vec<Receipts> {
        self.state().receipts.clone()
    }

    /// What could not be recorded: these receipts are offered again.
    pub fn notes(&self) -> Vec<String> {
        self.state().notes.clone()
    }

    /// Ends it: what is cancelled or merged later changes nothing.
    pub fn end(&self) {
        self.state().over = true;
    }

    /// Says that it was cancelled, and names what still runs, in the trace and in the answer; both are what was seen
    /// at this moment. Nothing is stopped. A turn that has ended is left as it is.
    pub async fn cancel(&self) -> Result<Cancelled> {
        if std::mem::replace(&mut self.state().over, true) {
            return Ok(Cancelled::default());
        }
        let listed = self.session.list(false).await?;
        let running = listed.into_iter().filter(|snapshot| snapshot.phase != Phase::Ended);
        let residue: Vec<Residue> = running
            .map(|snapshot| Residue {
                kind: snapshot.kind,
                id: snapshot.id,
                command: line_of(&snapshot.command),
                program: snapshot.program,
                started_at_ms: snapshot.started_at_ms,
            })
            .collect();
        self.trace(TraceLine {
            kind: "cancelled".to_owned(),
            event: self.session.runtime().new_event_id()?.to_string(),
            parent: Some(self.event.clone()),
            running: residue.iter().map(|one| one.id).collect(),
            ..TraceLine::default()
        })?;
        Ok(Cancelled { residue })
    }

    async fn merge(&self, session: &Session, id: &CommandId) -> Result<()> {
        if self.kind == TurnKind::ReadOnly || self.state().over {
            return Ok(());
        }
        let ReceiptLease::Ready(receipts) = session.lease_receipts(&self.consumer, id).await? else { return Ok(()) };
        // Of two at a time only one is told that it consumed them.
        let consumed = session.commit_receipts(&self.consumer, id).await?;
        let mut state = self.state();
        let known = state.receipts.iter().any(|one| one.id == *id);
        match consumed {
            Consumed::Unrecorded { reason } if !known => {
                state.notes.push(format!("the receipts of {id} will be offered again: {reason}"));
                state.receipts.push(receipts);
            }
            Consumed::Now if !known => state.receipts.push(receipts),
            _ => {}
        }
        Ok(())
    }

    fn trace(&self, line: TraceLine) -> Result<()> {
        let dir = self.session.dir()?;
        let line = TraceLine { session: self.session.id().to_string(), at_ms: clock::unix_ms(), ..line };
        Ok(trace::append(dir.dir(), &line, dir.durability())?)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
