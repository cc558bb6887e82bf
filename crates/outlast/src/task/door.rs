//! The door of a task: its owner answers there what a supervisor answers for a process.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use outlast_core::ending::BY_SESSION_END;
use outlast_core::lifecycle::Cause;
use outlast_core::wire::{FromOwnKeeper, FromSupervisor, ToOwnKeeper, ToSupervisor};
use outlast_host::door::Listener;
use outlast_host::frame::{Body, Stream};
use outlast_host::mark;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::shared::{Ask, INPUT_BYTES, Shared};
use crate::error::{Error, Result};
use crate::keeper::ANSWER_BOUND;
use crate::link::Link;
use crate::race::{self, First};
use crate::ready;

/// Lets in whoever knocks, for as long as it is polled.
pub(super) async fn open(core: Arc<Shared>, door: AsyncFd<Listener>) {
    loop {
        // A door that cannot be waited for any more lets nobody in; the task goes on.
        let Ok(mut ready) = door.ready(Interest::READABLE).await else { return };
        // A connection that failed before it was accepted, or one of another user, is nobody's loss.
        while let Ok(Some(channel)) = door.get_ref().accept() {
            if let Ok(link) = Link::new(channel) {
                let core = Arc::clone(&core);
                // A guest that breaks the protocol is hung up on.
                tokio::spawn(async move { Guest::new(core, link).serve().await });
            }
        }
        ready.clear_ready();
    }
}

/// One front end, or the keeper.
struct Guest {
    core: Arc<Shared>,
    link: Link,
    subscribed: bool,
    credit: bool,
    seen: u64,
    told_end: bool,
    input: Vec<u8>,
}

impl Guest {
    fn new(core: Arc<Shared>, link: Link) -> Guest {
        Guest { core, link, subscribed: false, credit: false, seen: 0, told_end: false, input: Vec::new() }
    }

    /// Answers until the other side or the task is over.
    async fn serve(mut self) -> Result<()> {
        let mut state = self.core.sink.state().subscribe();
        loop {
            let now = state.borrow_and_update().clone();
            if self.subscribed {
                if let Some(exit) = now.exit.as_deref().filter(|_| !self.told_end) {
                    let exit = Box::new(exit.clone());
                    self.link.send(&FromSupervisor::Ended { exit, materialised: true }).await?;
                    self.told_end = true;
                } else if self.credit && now.output.bytes > self.seen {
                    self.credit = false;
                    self.link.send(&FromSupervisor::Grew { output: now.output }).await?;
                }
            }
            if now.over {
                if self.subscribed {
                    self.link.send(&FromSupervisor::CaptureClosed { output: now.output }).await?;
                }
                return Ok(());
            }
            let frame = match race::first(self.link.next(), state.changed()).await {
                First::Left(frame) => frame?,
                First::Right(_) => continue,
            };
            let Some(frame) = frame else { return Ok(()) };
            if let Body::Bytes { bytes, .. } = frame.body {
                // What is too long is refused when it is all here, and need not be kept until then.
                let room = (INPUT_BYTES + 1).saturating_sub(self.input.len());
                self.input.extend_from_slice(&bytes[..bytes.len().min(room)]);
                continue;
            }
            match frame.json().map_err(crate::link::channel_error)? {
                ToSupervisor::Keep => return self.kept().await,
                message => self.answer(message).await?,
            }
        }
    }

    async fn answer(&mut self, message: ToSupervisor) -> Result<()> {
        let core = Arc::clone(&self.core);
        let answer = match message {
            ToSupervisor::Status => return self.status().await,
            ToSupervisor::Stop { by, grace_ms, .. } => {
                FromSupervisor::Stopped(core.stop(by, grace_ms.map(std::time::Duration::from_millis)).await)
            }
            ToSupervisor::InputDone { close } => {
                FromSupervisor::Delivered { refused: core.input(std::mem::take(&mut self.input), close) }
            }
            ToSupervisor::Receipt { id, paths } => {
                let ours = id == core.request.id;
                let refused = if ours { core.receipt(paths) } else { Some(format!("{id} has ended")) };
                FromSupervisor::Delivered { refused }
            }
            ToSupervisor::Signal { .. } => {
                let refused =
                    format!("{} is a task inside process {}: it takes no signals", core.request.id, core.me.pid);
                FromSupervisor::Delivered { refused: Some(refused) }
            }
            ToSupervisor::Subscribe { growth } => {
                (self.subscribed, self.credit, self.seen) = (true, growth, 0);
                return Ok(());
            }
            ToSupervisor::More { seen } => {
                (self.credit, self.seen) = (true, seen);
                return Ok(());
            }
            ToSupervisor::Demote | ToSupervisor::Told | ToSupervisor::Keep | ToSupervisor::Start { .. } => {
                FromSupervisor::Note { text: format!("{} is a task", core.request.id) }
            }
        };
        self.link.send(&answer).await
    }

    async fn status(&mut self) -> Result<()> {
        let state = self.core.state();
        let tail = self.core.sink.tail();
        if tail.is_empty() && state.output.bytes > 0 {
            // It is over by now, and its records say everything: as if nobody were here.
            return Err(Error::Protocol("asked of a task that is over".to_owned()));
        }
        self.link.send(&FromSupervisor::Status(Box::new(self.core.live(&state)))).await?;
        self.link.send_bytes(Stream::Out, &tail).await
    }

    /// A descriptor of the process on the other side, where it can be had.
    fn process(&self) -> Option<OwnedFd> {
        let mark = mark::mark_of(self.link.peer_pid()).ok().flatten()?;
        mark::open(&mark).ok().flatten()
    }

    /// The other side is the session's keeper: it can order the task to stop, and sees by this connection how long
    /// it lives.
    async fn kept(mut self) -> Result<()> {
        let keeper = self.process();
        let mut state = self.core.sink.state().subscribe();
        let draft = Box::new(self.core.draft());
        self.link.send(&ToOwnKeeper::Changed { draft, materialised: true }).await?;
        self.core.kept.send_replace(true);
        loop {
            let now = state.borrow_and_update().clone();
            if now.exit.is_some() && !self.told_end {
                self.told_end = true;
                self.link.send(&ToOwnKeeper::Recorded { exit: None }).await?;
            }
            if now.over {
                return Ok(());
            }
            match race::first(self.link.message(), state.changed()).await {
                First::Left(Ok(Some(FromOwnKeeper::Stop { by, .. }))) => {
                    let cause = if by == BY_SESSION_END { Cause::SessionEnd } else { Cause::Stop { by } };
                    let _ = self.core.asks.send(Ask { cause, grace: None });
                }
                // What is said of spares, joining and owners is not for tasks.
                First::Left(Ok(Some(_))) | First::Right(_) => {}
                First::Left(Ok(None) | Err(_)) => {
                    // The keeper is gone: the next one takes it, started where it is still missing.
                    self.core.kept.send_replace(false);
                    // A dying process closes one descriptor after the other: what is said to it meanwhile is lost.
                    if let Some(keeper) = keeper {
                        let _ = tokio::time::timeout(ANSWER_BOUND, ready::process_gone(keeper)).await;
                    }
                    return self.core.give_in_charge().await;
                }
            }
        }
    }
}
