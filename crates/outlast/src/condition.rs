//! When a condition on one command holds.

use std::time::Duration;

use outlast_core::record::Phase;
use outlast_host::proc;

use crate::command::Command;
use crate::ended::ended;
use crate::error::{Error, Result};
use crate::output::Piece;
use crate::probe::{self, Probe};
use crate::race::{self, First};

/// What is waited for.
#[derive(Clone, Debug, Default)]
pub enum Until {
    /// The end.
    #[default]
    Exit,
    /// A line of output (its beginning included) that matches as it is shown to who waits: what is masked or withheld
    /// matches nothing. What is there already counts.
    Output(regex::bytes::Regex),
    /// No byte of output for so long.
    Quiet(Duration),
    /// Somebody listens at this TCP port, whoever it is, while a process of the command lives.
    Port(u16),
}

/// How the wait for a condition came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It holds.
    Met,
    /// The command ended first.
    EndedBefore,
}

/// The longest line that is matched as a whole, in bytes.
const LONGEST_LINE: usize = 64 * 1024;
/// How often a port is looked up: the kernel tells nobody when a socket begins to listen. A connection as a
/// trial would use up a server that takes one, and be a line in the log of any other.
const PORT_EVERY: Duration = Duration::from_millis(100);

/// Waits until the condition holds, or cannot hold any more.
pub(crate) async fn hold(command: &Command, until: &Until) -> Result<Held> {
    match until {
        Until::Exit => ended(command).await.map(|()| Held::Met),
        Until::Output(pattern) => matches(command, pattern).await,
        Until::Quiet(bound) => or_end(command, quiet(command, *bound)).await,
        Until::Port(port) => opens(command, *port).await,
    }
}

async fn or_end(command: &Command, condition: impl Future<Output = Result<Held>>) -> Result<Held> {
    match race::first(condition, ended(command)).await {
        First::Left(held) => held,
        First::Right(end) => end.map(|()| Held::EndedBefore),
    }
}

async fn matches(command: &Command, pattern: &regex::bytes::Regex) -> Result<Held> {
    let mut follower = command.follow(0).await?;
    let mut lines = Lines { pattern, line: Vec::new() };
    loop {
        match race::first(follower.next(), ended(command)).await {
            First::Left(piece) => {
                let Some(piece) = piece? else { return Ok(Held::EndedBefore) };
                if lines.take(piece) {
                    return Ok(Held::Met);
                }
            }
            First::Right(end) => {
                end?;
                break;
            }
        }
    }
    // What came between the last piece and the end counts too.
    follower.end()?;
    while let Some(piece) = follower.next().await? {
        if lines.take(piece) {
            return Ok(Held::Met);
        }
    }
    Ok(Held::EndedBefore)
}

/// Lines of output as they come, and the beginning of the last one.
struct Lines<'a> {
    pattern: &'a regex::bytes::Regex,
    line: Vec<u8>,
}

impl Lines<'_> {
    /// Takes a piece; true if a line in it, or the line it begins, matches.
    fn take(&mut self, piece: Piece) -> bool {
        let bytes = match piece {
            Piece::Bytes { bytes, .. } => bytes,
            Piece::Gap { .. } => {
                self.line.clear();
                return false;
            }
        };
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            if self.pattern.is_match(text) {
                return true;
            }
            if part.ends_with(b"\n") || self.line.len() > LONGEST_LINE {
                self.line.clear();
            }
        }
        false
    }
}

async fn quiet(command: &Command, bound: Duration) -> Result<Held> {
    let dir = command.dir()?;
    let (from, mut left) = match probe::status(&dir).await? {
        Probe::Live(status, _) => (status.output.bytes, bound.saturating_sub(Duration::from_millis(status.quiet_ms))),
        Probe::Silent { .. } | Probe::Nobody => (u64::MAX, bound),
    };
    let mut follower = command.follow_raw(from, None).await?;
    loop {
        match tokio::time::timeout(left, follower.next()).await {
            Err(_) => return Ok(Held::Met),
            Ok(Ok(Some(_))) => left = bound,
            Ok(Ok(None)) => return Ok(Held::EndedBefore),
            Ok(Err(error)) => return Err(error),
        }
    }
}

/// Waits until a port is open, as long as there is a process of the command that may open it.
async fn opens(command: &Command, port: u16) -> Result<Held> {
    let Some(pid) = network(command).await? else { return Ok(Held::EndedBefore) };
    match or_end(command, looks(pid, port)).await? {
        Held::Met => Ok(Held::Met),
        // A server that moves itself into the background opens it with its leader already on the way out.
        Held::EndedBefore => match network(command).await? {
            Some(pid) if is_open(pid, port)? => Ok(Held::Met),
            _ => Ok(Held::EndedBefore),
        },
    }
}

/// The process of the command in whose network its ports are, if one is known; nothing where none lives.
async fn network(command: &Command) -> Result<Option<Option<u32>>> {
    let snapshot = command.brief().await?;
    let survivor = snapshot.survivors.first().map(|one| one.pid);
    let is_over = snapshot.phase == Phase::Ended && survivor.is_none();
    Ok((!is_over).then_some(snapshot.pid.or(survivor)))
}

async fn looks(pid: Option<u32>, port: u16) -> Result<Held> {
    let mut looks = tokio::time::interval(PORT_EVERY);
    loop {
        looks.tick().await;
        if is_open(pid, port)? {
            return Ok(Held::Met);
        }
    }
}

fn is_open(pid: Option<u32>, port: u16) -> Result<bool> {
    proc::listens(pid, port)
        .map_err(|error| Error::Unreachable(format!("cannot see whether anybody listens at port {port}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Missing, Stream};

    fn bytes(text: &str) -> Piece {
        Piece::Bytes { offset: 0, stream: Stream::Merged, at_ms: None, bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn lines_match_over_pieces_and_before_they_end() {
        let pattern = regex::bytes::Regex::new("^ready$|^prompt> ").expect("a valid expression");
        let check = |pieces: &[Piece]| {
            let mut lines = Lines { pattern: &pattern, line: Vec::new() };
            pieces.iter().cloned().any(|piece| lines.take(piece))
        };
        assert!(check(&[bytes("a\nrea"), bytes("dy\n")]));
        assert!(check(&[bytes("x\nprompt> ")]));
        assert!(!check(&[bytes("not ready\nalready\n")]));
        assert!(!check(&[bytes("prom"), Piece::Gap { why: Missing::Capped, offset: 4, bytes: 9 }, bytes("pt> ")]));
    }
}
