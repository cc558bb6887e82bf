//! A state directory that is removed when nobody uses it any more.

use outlast_host::store::removal;
use outlast_host::store::state::State;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// Tells when a temporary state directory is removed. Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "whoever ends the process before it was removed leaves the directory behind"]
pub struct Temporary {
    done: oneshot::Receiver<Result<()>>,
}

impl Temporary {
    /// Waits until it is removed, which begins when the last handle of its runtime is gone: drop them before.
    /// An error says why it stays. Cancel-safe.
    pub async fn removed(&mut self) -> Result<()> {
        let gone = || Error::Unreachable("nobody is left who would remove the temporary state directory".to_owned());
        (&mut self.done).await.map_err(|_| gone())?
    }
}

/// Has the directory removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Removal {
    state: State,
    done: Option<oneshot::Sender<Result<()>>>,
}

impl Removal {
    pub(crate) fn of(state: State) -> (Removal, Temporary) {
        let (tell, done) = oneshot::channel();
        (Removal { state, done: Some(tell) }, Temporary { done })
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        let (state, done) = (self.state.clone(), self.done.take());
        // A thread that sleeps in the kernel until keepers and owners are gone, because that is all that locks can tell.
        // Where none can be had nobody removes it, and who waits is told so.
        let thread = std::thread::Builder::new().name("removal".to_owned());
        let _ = thread.spawn(move || {
            let removed = removal::remove_all(&state).map_err(Error::from);
            // Whoever does not wait need not know.
            let _ = done.map(|done| done.send(removed));
        });
    }
}
