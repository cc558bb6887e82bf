//! Waiting for commands: for their end, for output that matches, for quiet. Holds no thread, polls nothing.

use std::task::Poll;
use std::time::{Duration, Instant};

use outlast_core::delivery::Via;
use outlast_core::record::Phase;

use crate::command::Command;
use crate::condition::{self, Held, Until};
use crate::deliver::Told;
use crate::error::Result;
use crate::session::Session;
use crate::snapshot::Snapshot;

/// How to wait.
#[derive(Clone, Debug, Default)]
pub struct WaitOptions {
    /// Whether the first one is enough.
    pub any: bool,
    /// The bound; none means no bound, zero looks once.
    pub timeout: Option<Duration>,
    /// What is waited for.
    pub until: Until,
    /// The consumer that is told the ends by this wait: committed for it before the wait returns.
    pub consumer: Option<String>,
}

/// Why a wait came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// What was waited for has come: the end, or the condition.
    Met,
    /// A command ended before the condition held.
    EndedBefore,
    /// The bound was reached.
    Bound,
    /// There was nothing to wait for.
    Nothing,
}

/// One command of a wait.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The command now.
    pub snapshot: Snapshot,
    /// Whether the condition held for this command.
    pub met: bool,
    /// What the ledger says, where its end was told to a consumer.
    pub told: Option<Told>,
}

/// How a wait came out.
#[derive(Clone, Debug)]
pub struct WaitReport {
    /// Why it came back.
    pub end: WaitEnd,
    /// How long it really waited.
    pub waited: Duration,
    /// Every command that was waited for, in the order given.
    pub commands: Vec<Waited>,
    /// Index in `commands` of the first for which it was met.
    pub first: Option<usize>,
}

impl Session {
    /// Waits for commands of this session or, by their handles, of any other. No command means all that
    /// run in this one. Cancel-safe: dropping it leaves nothing behind, and nothing is told before the
    /// wait is over.
    pub async fn wait(&self, commands: &[Command], options: WaitOptions) -> Result<WaitReport> {
        let began = Instant::now();
        let commands = if commands.is_empty() { self.running().await? } else { commands.to_vec() };
        if commands.is_empty() {
            let waited = began.elapsed();
            return Ok(WaitReport { end: WaitEnd::Nothing, waited, commands: Vec::new(), first: None });
        }
        let mut held = vec![None; commands.len()];
        let mut first = None;
        let conditions = gather(&commands, &options, &mut held, &mut first);
        let in_time = match options.timeout {
            Some(bound) => tokio::time::timeout(bound, conditions).await.ok().transpose()?,
            None => Some(conditions.await?),
        };
        let waited = began.elapsed();
        let end = match in_time {
            None => WaitEnd::Bound,
            Some(()) if options.any && first.is_some() => WaitEnd::Met,
            Some(()) if held.iter().all(|held| *held == Some(Held::Met)) => WaitEnd::Met,
            Some(()) => WaitEnd::EndedBefore,
        };
        let mut reports = Vec::with_capacity(commands.len());
        for (command, held) in commands.iter().zip(held) {
            reports.push(self.report(command, held == Some(Held::Met), options.consumer.as_deref()).await?);
        }
        Ok(WaitReport { end, waited, commands: reports, first })
    }

    async fn report(&self, command: &Command, met: bool, consumer: Option<&str>) -> Result<Waited> {
        let mut snapshot = command.snapshot().await?;
        let told = match consumer {
            Some(consumer) if snapshot.phase == Phase::Ended => {
                Some(command.session.commit(consumer, &command.id, Via::Wait).await?)
            }
            _ => None,
        };
        if let Some(Told::Unrecorded { reason }) = &told {
            let note = format!("that its end was told here is not recorded, so it will be told again: {reason}");
            snapshot.note = Some(snapshot.note.map_or(note.clone(), |before| format!("{before}; {note}")));
        }
        Ok(Waited { snapshot, met, told })
    }
}

/// Polls the conditions of all commands in this one task, until all are decided, or with `any` one is met.
async fn gather(
    commands: &[Command],
    options: &WaitOptions,
    held: &mut [Option<Held>],
    first: &mut Option<usize>,
) -> Result<()> {
    let mut waiting: Vec<_> =
        commands.iter().map(|command| Some(Box::pin(condition::hold(command, &options.until)))).collect();
    std::future::poll_fn(move |context| {
        for (index, slot) in waiting.iter_mut().enumerate() {
            let Some(future) = slot else { continue };
            let Poll::Ready(result) = future.as_mut().poll(context) else { continue };
            *slot = None;
            let decided = match result {
                Ok(decided) => decided,
                Err(error) => return Poll::Ready(Err(error)),
            };
            held[index] = Some(decided);
            if decided == Held::Met {
                first.get_or_insert(index);
                if options.any {
                    return Poll::Ready(Ok(()));
                }
            }
        }
        if waiting.iter().all(Option::is_none) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}
