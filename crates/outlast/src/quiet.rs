//! Commands that print nothing: noticed once, with what can be seen of them, and never stopped for it.

use std::time::Duration;

use outlast_core::id::CommandId;
use outlast_core::notice::{self, Silence};
use outlast_host::proc;
use outlast_host::store::command::CommandDir;

use crate::command::Command;
use crate::ended;
use crate::error::Result;
use crate::probe::{self, Probe};
use crate::race::{self, First};

/// The silence after which a notice is given by default.
pub const QUIET_AFTER: Duration = Duration::from_secs(900);
/// The longest silence that is waited for; a longer one is cut to it.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A command has printed nothing for a while. It runs, and that is all that is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// The command.
    pub id: CommandId,
    /// What is known of it.
    pub silence: Silence,
}

impl Quiet {
    /// What can be seen of a command with this leader.
    pub(crate) fn of(id: CommandId, silent: Duration, leader: Option<u32>) -> Quiet {
        let (mut cpu, mut reads_input) = (None, false);
        if let Some(leader) = leader {
            let tree = proc::descendants(leader).unwrap_or_default().into_iter().map(|stat| stat.pid);
            // What has ended meanwhile, or cannot be looked at, adds nothing.
            for stat in tree.chain([leader]).filter_map(|pid| proc::stat(pid).ok().flatten()) {
                cpu = Some(cpu.unwrap_or_default() + stat.cpu);
                reads_input |= proc::reads_input(stat.pid);
            }
        }
        Quiet { id, silence: Silence { silent, cpu, reads_input } }
    }

    /// It as a sentence of fixed form. `tools`: its reader has the tools of the MCP server, else the command line. `how`
    /// says how the notice is switched off.
    pub fn text(&self, name: &str, tools: bool, how: &str) -> String {
        notice::quiet(name, self.silence, tools, how)
    }
}

/// The silence to wait for: what was asked, else 15 minutes; none where zero was asked, which switches it off.
pub fn quiet_time(asked: Option<Duration>) -> Option<Duration> {
    let time = asked.unwrap_or(QUIET_AFTER).min(LONGEST);
    (!time.is_zero()).then_some(time)
}

impl Command {
    /// Waits until it has printed nothing for so long; none where it ended before. Output starts the time anew.
    /// Cancel-safe. Whoever wants one notice asks once.
    pub async fn when_quiet(&self, after: Duration) -> Result<Option<Quiet>> {
        match race::first(silence(&self.dir()?, self.id, after.min(LONGEST)), ended::ended(self)).await {
            First::Left(quiet) => quiet,
            First::Right(ended) => ended.map(|()| None),
        }
    }
}

/// As [`Command::when_quiet`], for who hears of the end elsewhere.
pub(crate) async fn silence(dir: &CommandDir, id: CommandId, after: Duration) -> Result<Option<Quiet>> {
    loop {
        // Its supervisor knows when the last byte came, so it is asked once for each time that could be over.
        let left = match probe::status(dir).await? {
            Probe::Live(status, _) => {
                let silent = Duration::from_millis(status.quiet_ms);
                if status.exit.is_some() {
                    return Ok(None);
                }
                if silent >= after {
                    return Ok(Some(Quiet::of(id, silent, status.leader.map(|leader| leader.pid))));
                }
                after - silent
            }
            Probe::Silent { .. } => after,
            // Its end is heard elsewhere.
            Probe::Nobody => return std::future::pending().await,
        };
        // A bound on nothing: the time itself is what is waited for.
        drop(tokio::time::timeout(left, std::future::pending::<()>()).await);
    }
}
