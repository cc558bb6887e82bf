//! Attending to commands in the background on behalf of who listens: their silence, and their end.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use outlast_core::delivery::HEADS_UP_EVERY_MS;
use outlast_core::id::{CommandId, SessionId};
use outlast_core::notice::heads_up;
use outlast_core::wire::{FromSupervisor, ToSupervisor};
use outlast_host::store::command::CommandDir;
use outlast_host::store::name;
use outlast_host::store::session::SessionDir;

use crate::command::Command;
use crate::ended;
use crate::error::Result;
use crate::hub::{Failures, Hub, Listener, Silent};
use crate::keeper::ANSWER_BOUND;
use crate::matching;
use crate::observe::{Event, Observed, Observer};
use crate::probe;
use crate::quiet::{self, quiet_time};
use crate::race::{self, First};
use crate::runtime::{Runtime, RuntimeInner};
use crate::session::Session;
use crate::watch::Watch;

impl Session {
    /// Hands notices of this session to this listener from now on, in place of an earlier one: that a command runs, that
    /// it ended, failed or was stopped, that it prints nothing, and that it printed what was asked for
    /// ([`RunRequest::notify`](crate::RunRequest::notify)): that at once, and then once in ten seconds. They come one after the other, from a thread of
    /// their own, with nothing held; a slow listener delays notices and nothing else. None takes it away. While the
    /// session is sealed ([`Session::seal`]) they wait, and come in order afterwards.
    ///
    /// Ends in the background are heard of commands that were demoted in this process while somebody was listening,
    /// observing or counting, and of all that run in a session that this process owns; as long as it has a handle of
    /// the session.
    pub fn listen(&self, listener: Option<Listener>) {
        self.hub().listen(*self.id(), listener);
        self.attend_all();
    }

    /// Tells this observer what happens in this session from now on, as [`Runtime::observe`] does for all sessions.
    pub fn observe(&self, observe: impl Fn(&Observed) + Send + 'static) -> Result<Observer> {
        let observer = self.hub().observers().add(Some(*self.id()), observe)?;
        self.attend_all();
        Ok(observer)
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.runtime().inner.hub
    }

    /// This process owns it now, where it did not before: those who observe hear of that, and of what goes on.
    pub(crate) fn taken_over(&self, how: &Event) {
        if self.is_owned_here() {
            self.hub().observers().tell(*self.id(), how);
            self.attend_all();
        }
    }

    /// Hears how all that runs in it goes on, where this process owns it and somebody wants to hear.
    pub(crate) fn attend_all(&self) {
        if !self.is_owned_here() || !self.hub().is_used() {
            return;
        }
        // What cannot be read now is heard of by the next look, like every command.
        let Ok(dir) = self.dir() else { return };
        for id in dir.commands().unwrap_or_default() {
            if let Ok(Some(command)) = dir.command(id)
                && matches!(command.has_exit(), Ok(false))
            {
                // Its silence is told by the process that started it, which knows the quiet time.
                self.attend(id, String::new(), Some(Duration::ZERO));
            }
        }
    }

    /// Sees to it that who listens hears how a command goes on in the background.
    pub(crate) fn attend(&self, id: CommandId, consumer: String, quiet_after: Option<Duration>) {
        let hub = self.hub().clone();
        if !hub.is_heard(id) || !hub.attends(id) {
            return;
        }
        let (Ok(tokio), Ok(dir)) = (tokio::runtime::Handle::try_current(), self.dir()) else {
            // Outside of tokio nobody can wait.
            return hub.lose(id);
        };
        let (session, runtime) = (*self.id(), Arc::downgrade(&self.runtime().inner));
        let attention = Attention { id, session, runtime, dir: dir.clone(), consumer, quiet_after, hub };
        tokio.spawn(async move {
            // Whoever cannot be asked any more is heard of by the next look, like every command.
            let _ = attention.attend().await;
            attention.hub.lose(attention.id);
        });
    }
}

impl Runtime {
    /// Tells this observer every event of this runtime from now on, in order, until the observer is dropped. It is called
    /// on a thread of its own; a slow one delays a start by 100 ms at most and nothing else, and a panic in it harms
    /// nobody. Of which ends it hears stands at [`Session::listen`].
    pub fn observe(&self, observe: impl Fn(&Observed) + Send + 'static) -> Result<Observer> {
        self.inner.hub.observers().add(None, observe)
    }

    /// Counts failures from now on, of commands that this process starts.
    pub fn count_failures(&self) {
        self.inner.hub.count_failures();
    }

    /// How many commands have failed since that; nothing where they are not counted.
    pub fn failures(&self) -> Failures {
        self.inner.hub.failures()
    }
}

/// What is watched of a command that its caller does not wait for any more. It keeps no session open.
struct Attention {
    id: CommandId,
    session: SessionId,
    runtime: Weak<RuntimeInner>,
    dir: SessionDir,
    consumer: String,
    quiet_after: Option<Duration>,
    hub: Hub,
}

impl Attention {
    async fn attend(&self) -> Result<()> {
        let Some(dir) = self.materialised().await? else { return Ok(()) };
        match race::first(race::first(self.silence(&dir), self.lines(&dir)), self.ended(&dir)).await {
            First::Left(First::Left(never) | First::Right(never)) => match never {},
            First::Right(ended) => ended,
        }
    }

    /// Tells that it prints nothing, once.
    async fn silence(&self, dir: &CommandDir) -> Infallible {
        if let Some(after) = quiet_time(self.quiet_after)
            && let Ok(Some(found)) = quiet::silence(dir, self.id, after).await
        {
            let text = found.text(&self.id.to_string(), true, "a quiet time of 0s");
            let (session, consumer) = (self.session, self.consumer.clone());
            self.hub.silent(Silent { session, consumer, id: self.id, text });
        }
        std::future::pending().await
    }

    /// Tells who listens of lines that match what was asked for.
    async fn lines(&self, dir: &CommandDir) -> Infallible {
        if self.hub.has_listener(self.session) {
            // Whoever cannot be asked any more, or read, has an end that is told.
            let _ = self.tell_lines(dir).await;
        }
        std::future::pending().await
    }

    async fn tell_lines(&self, dir: &CommandDir) -> Result<()> {
        let Some(watched) = matching::watched(dir)? else { return Ok(()) };
        let Some(mut link) = probe::connect(dir).await? else { return Ok(()) };
        link.send(&ToSupervisor::Subscribe { growth: true }).await?;
        let mut from = 0;
        loop {
            let Some(session) = self.handle() else { return Ok(()) };
            let look = watched.look(&session, self.id, from).await?;
            drop(session);
            from = look.through;
            if let Some(matches) = look.matches {
                let text = heads_up(&self.id.to_string(), &matches, true);
                self.hub.heads_up(self.session, self.id, text);
                // What comes meanwhile is told together. A bound on nothing: the time itself is what is waited for.
                let time = Duration::from_millis(HEADS_UP_EVERY_MS);
                drop(tokio::time::timeout(time, std::future::pending::<()>()).await);
                continue;
            }
            // A look has a bound: behind it there may be more.
            if look.cut {
                continue;
            }
            link.send(&ToSupervisor::More { seen: look.read }).await?;
            loop {
                match link.message::<FromSupervisor>().await? {
                    Some(FromSupervisor::Grew { .. }) => break,
                    Some(_) => {}
                    None => return Ok(()),
                }
            }
        }
    }

    /// The command once it has records, which a caller that went away makes its supervisor make; none where it gets none.
    async fn materialised(&self) -> Result<Option<CommandDir>> {
        let mut watch = Watch::on(&self.dir.dir().sub(name::WORK)?)?;
        let found = async {
            loop {
                if let Some(command) = self.dir.command(self.id)? {
                    return Ok(Some(command));
                }
                watch.changed().await?;
            }
        };
        tokio::time::timeout(ANSWER_BOUND, found).await.unwrap_or(Ok(None))
    }

    async fn ended(&self, dir: &CommandDir) -> Result<()> {
        if let Some(mut link) = probe::connect(dir).await? {
            link.send(&ToSupervisor::Subscribe { growth: false }).await?;
            while let Some(message) = link.message::<FromSupervisor>().await? {
                if let FromSupervisor::Ended { exit, .. } = message {
                    // Whoever has left the session to another owner hears nothing of it any more.
                    if self.handle().is_some() {
                        self.hub.ended(&exit);
                    }
                    return Ok(());
                }
            }
        }
        // Its supervisor is gone: what is recorded of the end says how it came out.
        let Some(session) = self.handle() else { return Ok(()) };
        let command = Command { session, id: self.id };
        ended::ended(&command).await?;
        if let Some(exit) = command.dir()?.exit()? {
            self.hub.ended(&exit.record);
        }
        Ok(())
    }

    /// A handle of the session, where this process has one.
    fn handle(&self) -> Option<Session> {
        let runtime = self.runtime.upgrade()?;
        let sessions = runtime.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = sessions.get(&self.session)?.upgrade()?;
        Some(Session { inner })
    }
}
