//! What the body of a task is given: a writer, and a word when it is to stop.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use outlast_core::id::CommandId;
use tokio::sync::watch;

use super::output::Sink;
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::publish::absolute;

/// What the body of a task works with.
#[derive(Debug)]
pub struct TaskContext {
    /// The command.
    pub id: CommandId,
    /// Where its output goes.
    pub output: TaskWriter,
    /// Where it says what it changed.
    pub receipts: TaskReceipts,
    /// Tells when it is to stop.
    pub stop: StopToken,
}

/// Says what a task changed, for those who are told its end.
#[derive(Clone, Debug)]
pub struct TaskReceipts {
    pub(super) core: Weak<Shared>,
}

impl TaskReceipts {
    /// Says that the task has changed these absolute paths. When it returns without an error they are kept. Refused once
    /// the task has ended, beyond 1 MiB of paths in all, and where they cannot be recorded.
    pub fn publish<P: Into<PathBuf>>(&self, paths: impl IntoIterator<Item = P>) -> Result<()> {
        let paths = absolute(paths.into_iter().map(Into::into).collect())?;
        // Without the task nothing runs that could have changed anything.
        let refused = self.core.upgrade().map_or_else(|| Some("it has ended".to_owned()), |core| core.receipt(paths));
        refused.map_or(Ok(()), |why| Err(Error::Refused(format!("not published: {why}"))))
    }
}

/// Writes the output of a task. Each call is in the log when it returns; a log that cannot be written is told in the
/// records and fails nothing. Clones write to the same output, until the task has ended.
#[derive(Clone, Debug)]
pub struct TaskWriter {
    pub(super) sink: Arc<Sink>,
}

impl TaskWriter {
    /// Adds output; an error once the task has ended.
    pub fn write(&self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.sink.write(bytes.as_ref())
    }
}

impl io::Write for TaskWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The word that a task is to stop. A body that does not heed it is dropped at its next `await` after the grace.
#[derive(Clone, Debug)]
pub struct StopToken {
    pub(super) raised: watch::Receiver<bool>,
}

impl StopToken {
    /// Whether the task is to stop.
    pub fn is_raised(&self) -> bool {
        *self.raised.borrow()
    }

    /// Waits until the task is to stop. Cancel-safe.
    pub async fn raised(&self) {
        // Where nobody is left to raise it, it stays as it is, and so does whoever waits.
        if self.raised.clone().wait_for(|raised| *raised).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
