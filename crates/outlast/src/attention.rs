//! Attending to commands in the background on behalf of who listens: their silence, and their end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_core::id::CommandId;
use outlast_core::wire::{FromSupervisor, ToSupervisor};
use outlast_host::store::command::CommandDir;

use crate::error::Result;
use crate::hub::{Failures, Hub, Listener, Observer, Recorder, Silent};
use crate::probe;
use crate::quiet::{self, quiet_time};
use crate::race::{self, First};
use crate::runtime::{Runtime, SessionInner};
use crate::session::Session;

impl Session {
    /// Hands notices of this session to this listener from now on, in place of an earlier one: that a command runs, that
    /// it ended, failed or was stopped, and that it prints nothing. They come one after the other, from a thread of
    /// their own, with nothing held; a slow listener delays notices and nothing else. None takes it away.
    ///
    /// Ends in the background are heard of commands that were demoted in this process while somebody was listening,
    /// observing, recording or counting.
    pub fn listen(&self, listener: Option<Listener>) {
        self.runtime().inner.hub.listen(*self.id(), listener);
    }
}

impl Runtime {
    /// Counts failures from now on, of commands that this process starts.
    pub fn count_failures(&self) {
        self.inner.hub.count_failures();
    }

    /// How many commands have failed since that; nothing where they are not counted.
    pub fn failures(&self) -> Failures {
        self.inner.hub.failures()
    }

    /// Also tells this observer of every event, in order.
    pub fn observe(&self, observer: Observer) {
        self.inner.hub.observe(observer);
    }

    /// Has starts and ends taken down from now on. None takes the recorder away.
    pub fn record_with(&self, recorder: Option<Arc<dyn Recorder>>) {
        self.inner.hub.record(recorder);
    }

    /// Keeps everything that would be told until [`Runtime::resume_notices`], for a time in which the listener is being
    /// replaced.
    pub fn pause_notices(&self) {
        self.inner.hub.pause(true);
    }

    /// Tells what was kept, in order, and goes on.
    pub fn resume_notices(&self) {
        self.inner.hub.pause(false);
    }
}

/// What is watched of a command after its demotion. It keeps no session open.
pub(crate) struct Attention {
    pub(crate) id: CommandId,
    pub(crate) dir: CommandDir,
    pub(crate) session: Weak<SessionInner>,
    pub(crate) consumer: String,
    pub(crate) quiet_after: Option<Duration>,
    pub(crate) hub: Hub,
}

impl Attention {
    /// Watches until the end.
    pub(crate) fn begin(self) {
        tokio::spawn(async move {
            // Whoever cannot be asked any more is heard of by the next look, like every command.
            let _ = self.attend().await;
        });
    }

    async fn attend(&self) -> Result<()> {
        if let Some(after) = quiet_time(self.quiet_after) {
            match race::first(quiet::silence(&self.dir, self.id, after), self.ended()).await {
                First::Left(Ok(Some(found))) => {
                    if let Some(session) = self.session.upgrade() {
                        let text = found.text(&self.id.to_string(), true, "a quiet time of 0s");
                        let (session, consumer) = (session.id, self.consumer.clone());
                        self.hub.silent(Silent { session, consumer, id: self.id, text });
                    }
                }
                First::Left(_) => {}
                First::Right(ended) => return ended,
            }
        }
        self.ended().await
    }

    async fn ended(&self) -> Result<()> {
        if let Some(mut link) = probe::connect(&self.dir)? {
            link.send(&ToSupervisor::Subscribe { growth: false }).await?;
            while let Some(message) = link.message::<FromSupervisor>().await? {
                if let FromSupervisor::Ended { exit, .. } = message {
                    self.hub.ended(&exit);
                    return Ok(());
                }
            }
        }
        // Its supervisor is gone: what is recorded of the end says how it came out.
        if let Some(inner) = self.session.upgrade() {
            crate::condition::ended(&crate::command::Command { session: Session { inner }, id: self.id }).await?;
        }
        if let Some(exit) = self.dir.exit()? {
            self.hub.ended(&exit);
        }
        Ok(())
    }
}
