//! What the body of a task is given: a writer, and a word when it is to stop.

use std::io;
use std::sync::Arc;

use outlast_core::id::CommandId;
use tokio::sync::watch;

use super::output::Sink;

/// What the body of a task works with.
#[derive(Debug)]
pub struct TaskContext {
    /// The command.
    pub id: CommandId,
    /// Where its output goes.
    pub output: TaskWriter,
    /// Tells when it is to stop.
    pub stop: StopToken,
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
