//! One call: who makes it, in which session, and what it is told meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast::{Claim, Command, Session, Snapshot, Via};
use outlast_core::names::{display_line, shorten};
use outlast_core::record::Phase;
use outlast_core::text::readable;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use super::client;
use super::delivery::{Delivery, Receipt};
use super::inbox::Notices;
use super::settings::Settings;

/// How often a call that waits says so, to a client that listens.
const EVERY: Duration = Duration::from_secs(5);
/// How long a caller that leaves is waited for.
const LEAVE_BOUND: Duration = Duration::from_secs(2);
/// Output that is looked at for its last line, in bytes.
pub const LAST_BYTES: usize = 1024;
/// The longest line that progress shows, in characters.
const LINE: usize = 200;

/// Callers that have given up a command in the foreground, which is being moved to the background for that. Clones are
/// the same.
#[derive(Clone, Default)]
pub struct Departures(Arc<RwLock<()>>);

impl Departures {
    /// Somebody leaves, until this is dropped. None where somebody is waiting for all who left before.
    pub fn leave(&self) -> Option<OwnedRwLockReadGuard<()>> {
        self.0.clone().try_read_owned().ok()
    }

    /// Waits, within a bound, until nobody is leaving: what they have left is listed then.
    pub async fn settled(&self) {
        let _bounded = tokio::time::timeout(LEAVE_BOUND, self.0.write()).await;
    }
}

/// One call of a tool.
pub struct Call {
    /// How the server is set up.
    pub settings: Arc<Settings>,
    /// The session it is in.
    pub session: Session,
    /// Who is spoken for.
    pub consumer: String,
    /// Fired when the client gives the call up, or the server ends.
    pub cancelled: CancellationToken,
    /// Who listens to progress.
    pub progress: Option<Progress>,
    /// What its reply tells.
    pub delivery: Delivery,
    /// Whether it may go on as a task.
    pub tasks: bool,
    /// The name that the client gives itself.
    pub client: Option<String>,
    /// What is to be told of commands that run.
    pub notices: Notices,
    /// Who has given up a command.
    pub departures: Departures,
}

impl Call {
    /// The longest that it may take.
    pub fn longest(&self) -> Duration {
        client::longest_call(self.client.as_deref(), self.progress.is_some(), self.settings.longest_call)
    }

    /// Counts the end of a command as told by this reply once that went out. The line says so where it was told before.
    pub async fn tells(&self, command: &Command, snapshot: &Snapshot, via: Via) -> Option<String> {
        if snapshot.phase != Phase::Ended {
            return None;
        }
        let claim = match command.session().claim(&self.consumer, command.id()).await {
            Ok(claim) => claim,
            // The end itself is known, and is not held back for this.
            Err(error) => Claim::Unrecorded { reason: error.to_string() },
        };
        match claim {
            Claim::Ours(guard) => {
                let again = guard.completion().redelivered;
                self.delivery.add(Receipt::Completion(guard, via));
                again.then(|| "its end was perhaps told before, by a reply that did not arrive".to_owned())
            }
            Claim::Before { .. } => Some("its end was told before".to_owned()),
            Claim::Elsewhere => Some("its end is told by another reply at this moment".to_owned()),
            Claim::NotDue => None,
            Claim::Unrecorded { reason } => {
                Some(format!("that its end is told here cannot be recorded: {}", display_line(&reason)))
            }
        }
    }
}

/// A client that listens to the progress of a call.
pub struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    began: Instant,
}

impl Progress {
    /// From now on.
    pub fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Progress {
        Progress { peer, token, began: Instant::now() }
    }

    /// Says that the call still waits, and the last line of what the command has printed; for a command in the
    /// foreground also its grace as the total, and its command line where it has printed nothing.
    pub async fn tell(&self, output: &[u8], running: Option<&outlast::Progress>) {
        let seconds = self.began.elapsed().as_secs_f64();
        let mut progress = ProgressNotificationParam::new(self.token.clone(), seconds.floor());
        if let Some(total) = running.and_then(|running| running.total) {
            progress = progress.with_total(total.as_secs_f64());
        }
        if let Some(line) = last_line(output).or_else(|| running.map(|running| running.label.clone())) {
            progress = progress.with_message(line);
        }
        // A client that is gone has cancelled the call, which is heard elsewhere.
        let _ = self.peer.notify_progress(progress).await;
    }
}

/// The clock of progress: nothing at first, then each five seconds.
pub fn ticks() -> Interval {
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + EVERY, EVERY);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

fn last_line(output: &[u8]) -> Option<String> {
    let text = readable(output);
    let line = text.lines().rev().map(display_line).find(|line| !line.trim().is_empty())?;
    Some(shorten(&line, LINE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: E8
    #[test]
    fn e8_progress_shows_the_last_line_that_says_something() {
        assert_eq!(last_line(b"one\n\x1b[1mtwo\x1b[0m\n\n").as_deref(), Some("two"));
        assert_eq!(last_line(b"10%\r20%").as_deref(), Some("20%"));
        assert_eq!(last_line(b" \n"), None);
        assert!(last_line(&[b'x'; 5000]).is_some_and(|line| line.chars().count() <= LINE));
    }
}
