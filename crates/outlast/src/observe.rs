//! Observers of starts: each is told of every command before its work begins, and can wait for its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

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

/// A command that is about to start.
#[derive(Clone, Debug)]
pub struct Starting {
    /// The command.
    pub id: CommandId,
    /// Its session.
    pub session: SessionId,
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
    /// Waits for the end. None where nobody can tell it: it was not started after all, or its records are gone.
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
    /// None once the observer is taken away.
    queue: Mutex<Option<Queue>>,
    /// Whether it was not back in time for the last one.
    late: AtomicBool,
}

type Queue = mpsc::Sender<(Starting, oneshot::Sender<()>)>;

/// The observers of one session.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    posts: Mutex<Vec<Arc<Post>>>,
}

impl Observers {
    /// Calls `observe` on a thread of its own for each command from now on, one after the other.
    pub(crate) fn add(&self, observe: impl Fn(&Starting) + Send + 'static) -> Result<Observer> {
        let (queue, starts) = mpsc::channel::<(Starting, oneshot::Sender<()>)>();
        let watch = move || {
            for (starting, seen) in starts {
                // A panic is the observer's own affair; the next command is told to it like any other.
                let _ = catch_unwind(AssertUnwindSafe(|| observe(&starting)));
                let _ = seen.send(());
            }
        };
        let named = std::thread::Builder::new().name("observer".to_owned());
        named.spawn(watch).map_err(|error| Error::system("cannot start a thread", error))?;
        let post = Arc::new(Post { queue: Mutex::new(Some(queue)), late: AtomicBool::new(false) });
        self.posts().push(Arc::clone(&post));
        Ok(Observer { post })
    }

    /// Tells all observers and waits until they have seen it, within the bound. None where there is no observer, so that
    /// nobody has to be told the end. The redactor masks secrets in what they are told.
    pub(crate) async fn tell(&self, request: &Request, kind: &str, redactor: Option<&Redactor>) -> Option<Ends> {
        let posts = self.posts().clone();
        if posts.is_empty() {
            return None;
        }
        let (ends, end) = watch::channel(None);
        let mut starting = Starting {
            id: request.id,
            session: request.session,
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
        race::all(posts.iter().map(|post| post.tell(starting.clone()))).await;
        Some(ends)
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

    async fn tell(&self, starting: Starting) {
        let (seen, back) = oneshot::channel();
        let queued = self.queue().as_ref().is_some_and(|queue| queue.send((starting, seen)).is_ok());
        if !queued {
            return;
        }
        let bound = if self.late.load(Ordering::Relaxed) { Duration::ZERO } else { OBSERVER_BOUND };
        let in_time = tokio::time::timeout(bound, back).await.is_ok();
        self.late.store(!in_time, Ordering::Relaxed);
    }
}
