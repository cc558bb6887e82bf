//! What a reply tells counts as told once the reply went out, and not before.

use std::sync::{Arc, Mutex, PoisonError};

use outlast::{CompletionGuard, HeadsUp, Running, Told, Via};

/// What one reply tells. Clones are the same; when the last one is dropped before the reply went out, everything in it
/// is offered again.
#[derive(Clone, Default)]
pub struct Delivery(Arc<Mutex<Vec<Receipt>>>);

/// One thing that a reply tells.
pub enum Receipt {
    /// A completion, and the way in which it is told.
    Completion(Box<CompletionGuard>, Via),
    /// Lines of a command that runs.
    HeadsUp(Box<HeadsUp>),
    /// The end of a command in the foreground, told to its caller.
    Foreground(Box<Running>),
}

impl Delivery {
    /// Adds what the reply tells.
    pub fn add(&self, receipt: Receipt) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(receipt);
    }

    /// The reply went out: everything in it was told. What could not be recorded is said, and told again later.
    pub async fn went_out(&self) -> Vec<String> {
        let receipts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failures = Vec::new();
        for receipt in receipts {
            match receipt {
                Receipt::Completion(guard, via) => {
                    let id = guard.completion().snapshot.id;
                    match guard.commit(via).await {
                        Ok(Told::Unrecorded { reason }) => failures.push(format!("{id}: {reason}")),
                        Ok(_) => {}
                        Err(error) => failures.push(format!("{id}: {error}")),
                    }
                }
                Receipt::HeadsUp(one) => {
                    let id = one.snapshot.id;
                    if let Err(error) = one.commit().await {
                        failures.push(format!("{id}: {error}"));
                    }
                }
                Receipt::Foreground(running) => {
                    let id = *running.id();
                    if let Err(error) = running.told().await {
                        failures.push(format!("{id}: {error}"));
                    }
                }
            }
        }
        failures
    }
}
