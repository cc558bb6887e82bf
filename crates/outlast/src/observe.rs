//! Observers: each is told what happens, of every command before its work begins, on a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use outlast_core::ending::End;
use outlast_core::id::{CommandId, SessionId};
use outlast_core::policy::redact::{Edges, Redactor};
use outlast_core::record::ExitRecord;
use outlast_core::request::{OsText, Request};
use tokio::sync::{oneshot, watch};

use crate::error::{Error, Result};
use crate::race;

/// How long the work of a command waits for an observer to return. One that is slower is told all the same, and is
/// not waited for again before it has caught up.
const OBSERVER_BOUND: Duration = Duration::from_millis(100);

/// An event as an observer sees it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Counts what this observer was told, from 1 and without a gap.
    pub number: u64,
    /// The session in which it happened.
    pub session: SessionId,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A command is about to start in this process; its work begins once the observers have seen this.
    Starting(Starting),
    /// It was not started after all: that was refused, or one that runs was joined in its place.
    NotStarted {
        /// The command.
        id: CommandId,
    },
    /// A command has ended.
    Ended {
        /// The command.
        id: CommandId,
        /// How.
        end: End,
        /// The same as one of three.
        outturn: Outturn,
    },
    /// This process has become the owner of a session whose owner was gone.
    Adopted,
    /// This process has become the owner of a session in place of the one that it waited for.
    Replaced,
}

/// How a command came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outturn {
    /// With success.
    Ended,
    /// Not with success.
    Failed,
    /// It was stopped, whatever it made of that.
    Stopped,
}

impl Outturn {
    pub(crate) fn of(exit: &ExitRecord) -> Outturn {
        match exit.end {
            // Abandoned: its session ends.
            End::Stopped { .. } | End::Abandoned { .. } => Outturn::Stopped,
            _ if exit.is_ok() => Outturn::Ended,
            _ => Outturn::Failed,
        }
    }
}

/// A command that is about to start.
#[derive(Clone, Debug)]
pub struct Starting {
    /// The command.
    pub id: CommandId,
    /// `process`, or the kind of a task.
    pub kind: String,
    /// A line for people.
    pub label: Option<String>,
    /// The command line.
    pub command: Vec<OsText>,
    /// The consumer that starts it.
    pub consumer: String,
    /// The command on whose behalf it runs, where there is one.
    pub parent_command: Option<CommandId>,
    /// The session of whoever asked, where it is another one.
    pub parent_session: Option<SessionId>,
    end: watch::Receiver<Option<Arc<ExitRecord>>>,
}

impl Starting {
    /// Waits for the end. None where nobody can tell it: it was not started after all, its records are gone, or no
    /// handle of its session is left in this process.
    pub async fn ended(&self) -> Option<Arc<ExitRecord>> {
        let mut end = self.end.clone();
        let known = end.wait_for(Option::is_some).await.ok()?;
        known.clone()
    }
}

/// Tells the end of a command to the observers of its start.
pub(crate) type Ends = watch::Sender<Option<Arc<ExitRecord>>>;

/// An observer as long as it is held; dropping it takes it away.
#[derive(Debug)]
pub struct Observer {
    post: Arc<Post>,
}

impl Drop for Observer {
    fn drop(&mut self) {
        // Its thread ends with the queue.
        *self.post.queue() = None;
    }
}

/// Where the thread of an observer is told.
#[derive(Debug)]
struct Post {
    /// Only what happens in this session; all of it where there is none.
    of: Option<SessionId>,
    /// None once the observer is taken away.
    queue: Mutex<Option<Queue>>,
    /// Whether it was not back in time for the last one.
    late: AtomicBool,
}

#[derive(Debug)]
struct Queue {
    told: u64,
    events: mpsc::Sender<(Observed, Option<oneshot::Sender<()>>)>,
}

/// All observers of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    posts: Mutex<Vec<Arc<Post>>>,
}

impl Observers {
    /// Calls `observe` on a thread of its own for each event from now on, one after the other.
    pub(crate) fn add(&self, of: Option<SessionId>, observe: impl Fn(&Observed) + Send + 'static) -> Result<Observer> {
        let (events, queue) = mpsc::channel::<(Observed, Option<oneshot::Sender<()>>)>();
        let watch = move || {
            for (observed, seen) in queue {
                // A panic is the observer's own affair; what follows is told to it like anything else.
                let _ = catch_unwind(AssertUnwindSafe(|| observe(&observed)));
                if let Some(seen) = seen {
                    let _ = seen.send(());
                }
            }
        };
        let named = std::thread::Builder::new().name("observer".to_owned());
        named.spawn(watch).map_err(|error| Error::system("cannot start a thread", error))?;
        let queue = Mutex::new(Some(Queue { told: 0, events }));
        let post = Arc::new(Post { of, queue, late: AtomicBool::new(false) });
        self.posts().push(Arc::clone(&post));
        Ok(Observer { post })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.posts().is_empty()
    }

    /// What tells the end of a command to those who see its start; none where nobody does. The redactor masks secrets in
    /// what they see.
    pub(crate) fn starting(
        &self,
        request: &Request,
        kind: &str,
        redactor: Option<&Redactor>,
    ) -> Option<(Starting, Ends)> {
        self.of(request.session).next()?;
        let (ends, end) = watch::channel(None);
        let mut starting = Starting {
            id: request.id,
            kind: kind.to_owned(),
            label: request.label.clone(),
            command: request.argv.clone(),
            consumer: request.consumer.clone(),
            parent_command: request.parent_command,
            parent_session: request.parent_session,
            end,
        };
        if let Some(redactor) = redactor {
            starting.label = starting.label.map(|label| redactor.text(&label));
            for word in &mut starting.command {
                redactor.mask(&mut word.0, Edges::default());
            }
        }
        Some((starting, ends))
    }

    /// Tells a start to all who observe it and waits until they have seen it, within the bound.
    pub(crate) async fn show(&self, session: SessionId, starting: Starting) {
        let posts: Vec<Arc<Post>> = self.of(session).collect();
        race::all(posts.iter().map(|post| post.show(session, starting.clone()))).await;
    }

    /// Tells an event to all who observe it.
    pub(crate) fn tell(&self, session: SessionId, event: &Event) {
        for post in self.of(session) {
            post.put(session, event.clone(), None);
        }
    }

    fn of(&self, session: SessionId) -> impl Iterator<Item = Arc<Post>> + use<> {
        let posts = self.posts().clone();
        posts.into_iter().filter(move |post| post.of.is_none_or(|of| of == session))
    }

    fn posts(&self) -> MutexGuard<'_, Vec<Arc<Post>>> {
        let mut posts = self.posts.lock().unwrap_or_else(PoisonError::into_inner);
        posts.retain(|post| post.queue().is_some());
        posts
    }
}

impl Post {
    fn queue(&self) -> MutexGuard<'_, Option<Queue>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells it; false where it was taken away.
    fn put(&self, session: SessionId, event: Event, seen: Option<oneshot::Sender<()>>) -> bool {
        let mut queue = self.queue();
        let Some(queue) = queue.as_mut() else { return false };
        queue.told += 1;
        queue.events.send((Observed { number: queue.told, session, event }, seen)).is_ok()
    }

    async fn show(&self, session: SessionId, starting: Starting) {
        let (seen, back) = oneshot::channel();
        if !self.put(session, Event::Starting(starting), Some(seen)) {
            return;
        }
        let bound = if self.late.load(Ordering::Relaxed) { Duration::ZERO } else { OBSERVER_BOUND };
        let in_time = tokio::time::timeout(bound, back).await.is_ok();
        self.late.store(!in_time, Ordering::Relaxed);
    }
}
