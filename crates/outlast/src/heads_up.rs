//! Lines of a running command that its caller wanted to hear of: counted, told together, and never more often than now
//! and then.

use outlast_core::delivery::Heard;
use outlast_core::notice::{self, Matches};
use outlast_core::push::{Push, Reach};
use outlast_core::record::Phase;
use outlast_host::clock;
use outlast_host::store::ledger as stored;

use crate::command::Command;
use crate::deliver::check_consumer;
use crate::error::Result;
use crate::ledger;
use crate::matching::watched;
use crate::session::Session;
use crate::snapshot::Snapshot;

/// How much output without a match is looked at again by the next look, in bytes, before it is recorded that there is none.
const AGAIN: u64 = 256 << 10;

/// Lines that a command printed in the background, and that match what its caller wanted to hear of
/// ([`RunRequest::notify`](crate::RunRequest::notify)). Dropping it without a commit offers them again.
#[derive(Debug)]
pub struct HeadsUp {
    /// The command, which runs.
    pub snapshot: Snapshot,
    /// What it printed.
    pub matches: Matches,
    from: u64,
    through: u64,
    session: Session,
    consumer: String,
}

impl HeadsUp {
    /// It as a sentence of fixed form, under this name of the command. `tools`: its reader has the tools of the MCP
    /// server, else the command line.
    pub fn text(&self, name: &str, tools: bool) -> String {
        notice::heads_up(name, &self.matches, tools)
    }

    /// Says that it was shown; false where somebody else did at the same moment.
    pub async fn commit(self) -> Result<bool> {
        let heard = Heard { through: self.through, at_ms: Some(clock::unix_ms()) };
        ledger::hear(self.session.dir()?, &self.consumer, self.snapshot.id, self.from, heard)
    }
}

impl Session {
    /// What commands of this consumer printed that it wanted to hear of, and was not told: at most one for each command
    /// that runs in the background, in their order. Of one that has ended only its end is told.
    pub async fn heads_ups(&self, consumer: &str) -> Result<Vec<HeadsUp>> {
        self.heads_ups_where(consumer, |_, _| true).await
    }

    /// As [`Session::heads_ups`], for who tells what nobody asked for: only in a form that this host can receive, and on
    /// each command once in ten seconds. The rest waits, and is told with what comes then.
    pub async fn pushed_heads_ups(&self, consumer: &str, reach: Reach) -> Result<Vec<HeadsUp>> {
        let now_ms = clock::unix_ms();
        let wanted = |heard: Heard, one: &Snapshot| heard.is_due(now_ms) && reach.push(one.delivery) != Push::Never;
        self.heads_ups_where(consumer, wanted).await
    }

    async fn heads_ups_where(&self, consumer: &str, wanted: impl Fn(Heard, &Snapshot) -> bool) -> Result<Vec<HeadsUp>> {
        check_consumer(consumer)?;
        let Some(dir) = self.dir_if_any()? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for id in dir.commands()? {
            let Some(records) = dir.command(id)? else { continue };
            let Some(watched) = watched(&records)?.filter(|watched| watched.consumer == consumer) else { continue };
            let snapshot = Command { session: self.clone(), id }.brief().await?;
            let heard = stored::read(dir.dir())?.heard(consumer, id);
            let unheard = snapshot.phase != Phase::Ended && snapshot.output.bytes > heard.through;
            if !unheard || snapshot.demoted_at_ms.is_none() || !wanted(heard, &snapshot) {
                continue;
            }
            let look = watched.look(self, id, heard.through).await?;
            match look.matches {
                Some(matches) => found.push(HeadsUp {
                    snapshot,
                    matches,
                    from: heard.through,
                    through: look.through,
                    session: self.clone(),
                    consumer: consumer.to_owned(),
                }),
                None if look.through - heard.through > AGAIN => {
                    let heard_now = Heard { through: look.through, ..heard };
                    ledger::hear(dir, consumer, id, heard.through, heard_now)?;
                }
                None => {}
            }
        }
        Ok(found)
    }
}
