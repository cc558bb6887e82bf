//! Work inside this process as a command: under an id, with a log, waited for, stopped and told like a process.

mod stack;
mod output;
mod request;
mod body;
mod shared;
mod door;
mod attend;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use outlast_core::ending::End;
use outlast_core::id::{Alias, CommandId};
use outlast_core::lifecycle::Life;
use outlast_core::record::{Phase, TraceLine};
use outlast_core::request::OsText;
use outlast_host::clock;
use outlast_host::store::log::LogWriter;
use outlast_host::store::records::{self, Records};
use outlast_host::store::trace;
use tokio::io::Interest;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::instrument::{Instrument, WithSubscriber};

use crate::command::Command;
use crate::deliver::check_consumer;
use crate::error::{Error, Result};
use crate::ready;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::stop::StopOutcome;
use crate::stopping::StopOptions;
use attend::Attendant;
use output::Sink;
use shared::Shared;

pub use body::{StopToken, TaskContext, TaskReceipts, TaskWriter};
pub use request::{TaskInput, TaskRequest};
pub use stack::keep_panic_stacks;

/// A task of this process. Dropping the handle does nothing to it.
#[derive(Clone, Debug)]
pub struct Task {
    core: Arc<Shared>,
}

impl Session {
    /// Runs `body` as a command of this session, in the background, and returns when it has begun. The records are made
    /// first; where they cannot be made the body runs all the same, and the handle says what is wrong with them.
    ///
    /// What the body returns is shown as its output, unless it wrote some itself; an error or a panic makes the status
    /// `error`. A stop raises [`StopToken`], and after the task's grace drops the body at its next `await`. When this
    /// process dies the task is interrupted, so only the owner of a session has tasks. Names that are refused
    /// give a handle of a task that ended at once, whose body never ran. Dropping the future does not take the
    /// start back.
    ///
    /// ```no_run
    /// # async fn example(session: outlast::Session) -> Result<(), outlast::Error> {
    /// use outlast::TaskRequest;
    ///
    /// let task = session
    ///     .spawn_task(TaskRequest::new(["index", "the", "manual"]), |work| async move {
    ///         for page in 1..=142 {
    ///             if work.stop.is_raised() {
    ///                 return Err(format!("stopped at page {page}"));
    ///             }
    ///             work.output.write(format!("page {page}\n")).map_err(|error| error.to_string())?;
    ///         }
    ///         Ok("142 pages".to_owned())
    ///     })
    ///     .await?;
    /// assert_eq!(task.ended().await?.ok, Some(true));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn spawn_task<F, Fut>(&self, request: TaskRequest, body: F) -> Result<Task>
    where
        F: FnOnce(TaskContext) -> Fut + Send + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let Some(owner) = &self.inner.owner else {
            return Err(Error::Refused(format!(
                "{} is not owned by this process; only its owner has tasks",
                self.id()
            )));
        };
        self.ensure_open().await?;
        self.runtime().inner.texts.look(clock::monotonic());
        let id = self.runtime().new_command_id()?;
        if let Some(fault) = request.fault() {
            return Ok(self.refused(&request, id, fault));
        }
        let cap = self.record().map_or(0, |record| record.running_cap);
        let place = owner.tasks.take(&request.kind, id, cap)?;
        let (mut attendant, stop) = self.begin(&request, id);
        attendant.place = Some(place);
        let core = Arc::clone(&attendant.core);
        let context = TaskContext {
            id,
            output: TaskWriter { sink: Arc::clone(&core.sink) },
            receipts: TaskReceipts { core: Arc::downgrade(&core) },
            stop,
        };
        let (started, has_started) = oneshot::channel();
        let attended = attendant.attend(Box::pin(async move { body(context).await }), started);
        // Whoever subscribes to spans here sees that of the task, within the present one.
        tokio::spawn(attended.in_current_span().with_current_subscriber());
        // Whoever attends to it says so once, unless this tokio is being shut down.
        let _ = has_started.await;
        Ok(Task { core })
    }

    /// The task of names that are refused: over before it began.
    fn refused(&self, request: &TaskRequest, id: CommandId, fault: String) -> Task {
        let (mut attendant, _) = self.begin(request, id);
        attendant.core.hold_against(fault);
        attendant.record_as(End::SpawnFailed { step: "validate".to_owned(), errno: "EINVAL".to_owned() });
        attendant.close();
        Task { core: Arc::clone(&attendant.core) }
    }

    /// Makes the records of a task and opens its door.
    fn begin(&self, request: &TaskRequest, id: CommandId) -> (Attendant, body::StopToken) {
        let (kind, mut stored) = (request.stored_kind(), request.stored(self, id));
        let redactor = stored.redactor();
        if let Some(redactor) = &redactor {
            stored = redactor.conceal(&stored);
        }
        let program = OsText::from(&kind);
        let me = self.inner.owner.as_ref().map(|owner| owner.mark.clone()).expect("only an owner has tasks");
        let mut errors = Vec::new();
        let built = self.dir().map_err(|error| error.to_string());
        let built = built
            .and_then(|dir| records::build(dir, &kind, &stored, &program, &me).inspect_err(|_| dir.remove_unmade(id)));
        let unpublished = built.map_err(|reason| errors.push(reason)).ok();
        let log = unpublished.as_ref().map(|new| {
            let dir = new.dir().dir();
            let made = LogWriter::create(dir, &stored.line(), stored.cap);
            made.unwrap_or_else(|failure| LogWriter::failed(dir, stored.cap, failure))
        });
        let (asks, asked) = mpsc::unbounded_channel();
        let mut core = Shared {
            session: self.clone(),
            kind,
            program,
            me,
            alias: None,
            dir: None,
            started_at_ms: clock::unix_ms(),
            started: clock::monotonic(),
            sink: Arc::new(Sink::new(log, redactor.clone())),
            redactor,
            receipts: Mutex::new(Some(Default::default())),
            inbox: Mutex::new(request.input.clone()),
            kept: watch::Sender::new(false),
            asks,
            errors: Mutex::new(errors),
            waiting: AtomicUsize::new(0),
            project: request.project.clone(),
            request: stored,
        };
        let records = unpublished.and_then(|new| {
            if let Err(error) = new.dir().write_status(&attend::status(&core, true)) {
                core.hold_against(error.to_string());
            }
            new.publish().map_err(|reason| core.hold_against(reason)).ok()
        });
        if let Some(records) = &records {
            (core.alias, core.dir) = (Some(records.alias), Some(records.dir.clone()));
            if let Err(error) = self.trace_task(&core) {
                core.hold_against(format!("the trace has no line of this start: {error}"));
            }
        }
        let core = Arc::new(core);
        let (stop, raised) = watch::channel(false);
        let attendant = Attendant {
            life: Life::begin(&core.request, core.started),
            door: records.as_ref().and_then(|records| open_door(&core, records)),
            core,
            records,
            asks: asked,
            stop,
            text: String::new(),
            limit: None,
            place: None,
        };
        (attendant, body::StopToken { raised })
    }

    fn trace_task(&self, core: &Shared) -> Result<()> {
        let dir = self.dir()?;
        let start = self.record().map(|record| record.start_event.clone());
        let line = TraceLine {
            kind: "demoted".to_owned(),
            event: self.runtime().new_event_id()?.to_string(),
            parent: core.request.turn.clone().or(start),
            session: self.id().to_string(),
            at_ms: core.started_at_ms,
            id: Some(core.request.id),
            program: Some(core.program.lossy()),
            command: Some(core.request.line()),
            grace_ms: Some(0),
            detail: Some("background".to_owned()),
            ..TraceLine::default()
        };
        Ok(trace::append(dir.dir(), &line, dir.durability())?)
    }
}

fn open_door(core: &Arc<Shared>, records: &Records) -> Option<tokio::task::JoinHandle<()>> {
    let opened = records.door.try_clone().map_err(|error| error.to_string());
    let opened = opened.and_then(|door| ready::register(door, Interest::READABLE).map_err(|error| error.to_string()));
    match opened {
        Ok(listener) => Some(tokio::spawn(door::open(Arc::clone(core), listener))),
        Err(error) => {
            core.hold_against(format!("nobody can knock at its door: {error}"));
            None
        }
    }
}

impl Task {
    /// Its id.
    pub fn id(&self) -> &CommandId {
        &self.core.request.id
    }

    /// Its session.
    pub fn session(&self) -> &Session {
        &self.core.session
    }

    /// Its number; none where no records could be made.
    pub fn alias(&self) -> Option<Alias> {
        self.core.alias
    }

    /// The handle that every command has; none where no records could be made.
    pub fn command(&self) -> Option<Command> {
        self.core.dir.as_ref().map(|_| Command { session: self.core.session.clone(), id: self.core.request.id })
    }

    /// Everything about it now, with the end of its output. Where no records could be made this process is the only one
    /// that knows, and its text goes from memory some time after its end: five minutes later, or when more than 64 ended
    /// tasks or 16 MiB are there, oldest first. `pruned_at_ms` says so then.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        match self.command() {
            Some(command) => command.snapshot().await,
            None => self.remembered(),
        }
    }

    /// Waits until nothing of it is left, and says how it ended. As long as this waits, nothing of its text goes from
    /// memory. Cancel-safe.
    pub async fn ended(&self) -> Result<Snapshot> {
        let _waiting = self.core.wait();
        let mut state = self.core.sink.state().subscribe();
        // The task itself keeps the sender.
        let _ = state.wait_for(|state| state.over).await;
        self.snapshot().await
    }

    /// Stops it: raises its token, and after the grace drops its body. Answers when it has ended or the bound is over.
    /// Dropping the future does not take the stop back.
    pub async fn stop(&self, options: StopOptions) -> Result<StopOutcome> {
        check_consumer(&options.by)?;
        let _waiting = self.core.wait();
        let report = self.core.stop(options.by, options.grace).await;
        Ok(StopOutcome {
            snapshot: self.snapshot().await?,
            signals: report.signals,
            already_ended: report.already_ended,
            verified: report.verified,
            ended_survivors: Vec::new(),
            alive: Vec::new(),
            note: None,
        })
    }

    /// Hands bytes to its callback, with `close` for the last time; refused where it has none.
    pub fn send(&self, bytes: Vec<u8>, close: bool) -> Result<()> {
        self.core.input(bytes, close).map_or(Ok(()), |why| Err(Error::Refused(format!("not delivered: {why}"))))
    }

    /// Bytes of its output that are held in memory now: at most 64 KiB, and none once it has ended and its log is whole, or
    /// once its text was pruned.
    pub fn held(&self) -> usize {
        self.core.sink.held()
    }

    fn remembered(&self) -> Result<Snapshot> {
        let state = self.core.state();
        let exit = state.exit.as_deref().cloned().unwrap_or_else(|| self.core.draft());
        let mut snapshot = Snapshot::of_exit(exit, state.output, None)?;
        if let Some(text) = &state.text {
            snapshot = snapshot.with_text(text);
        }
        let tail = self.core.sink.tail();
        let from = state.output.bytes.saturating_sub(tail.len() as u64);
        snapshot.output.show(tail, from);
        snapshot.pruned_at_ms = state.pruned_at_ms;
        snapshot.changes = state.changes;
        if state.phase != Phase::Ended {
            snapshot.phase = state.phase;
            (snapshot.end, snapshot.exit_code, snapshot.ok, snapshot.ended_at_ms) = (None, None, None, None);
            snapshot.duration_ms = crate::request::millis(clock::monotonic().saturating_sub(self.core.started));
            snapshot.output.capturing = true;
            snapshot.stopping_by = state.stopping_by;
        }
        self.core.session.hide(&mut snapshot, || Ok(None))?;
        Ok(snapshot)
    }
}
