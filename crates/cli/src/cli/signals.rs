//! Signals to outlast itself, as values.

use std::future::poll_fn;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failure;

/// Signal numbers that are the same on every Linux (signal(7)), but for TSTP on MIPS.
pub const INT: i32 = 2;
/// Quit from the keyboard.
pub const QUIT: i32 = 3;
/// The terminal hung up.
pub const HUP: i32 = 1;
/// Termination.
pub const TERM: i32 = 15;
/// Stop typed at the terminal.
pub const TSTP: i32 = 20;

/// Signals that are caught from its making on.
pub struct Signals {
    caught: Vec<(i32, Signal)>,
}

impl Signals {
    /// Catches these; needs a runtime around it.
    pub fn catch(numbers: &[i32]) -> Result<Signals, Failure> {
        let caught = numbers.iter().map(|number| Ok((*number, signal(SignalKind::from_raw(*number))?)));
        let caught = caught.collect::<std::io::Result<Vec<_>>>();
        let caught = caught.map_err(|error| Failure::System("cannot catch signals".to_owned(), error))?;
        Ok(Signals { caught })
    }

    /// The next one that comes. Cancel-safe.
    pub async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            for (number, signal) in &mut self.caught {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }
}
