//! What a task is asked for with, checked, and as it stands in its records.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::id::{CommandId, SessionId};
use outlast_core::names::{NameField, check_label, check_name, shown_label};
use outlast_core::origin::{Origin, Provenance};
use outlast_core::record::{PROCESS, TASK};
use outlast_core::request::{Delivery, Limits, LogCap, OsText, Request, STOP_GRACE_MS, Stdin};

use crate::request::millis;
use crate::session::Session;

/// Takes what is sent to a task. It is called where the sender's request is served, so it hands the bytes on and returns.
pub type TaskInput = Arc<dyn Fn(Vec<u8>) + Send + Sync>;

/// The consumer of a task whose own one was refused.
const CONSUMER: &str = "model";

/// What a task is and how it runs.
#[derive(Clone)]
pub struct TaskRequest {
    /// What kind of work it is, a name: `task` unless it is set, never `process`. The cap of a session counts each kind
    /// for itself.
    pub kind: String,
    /// What it is to do, for people: it stands where a process has its arguments.
    pub words: Vec<OsString>,
    /// The directory that it works in, for people; nothing is done with it.
    pub cwd: PathBuf,
    /// The time since its start after which it is stopped.
    pub limit: Option<Duration>,
    /// The time since the last byte of its output after which it is stopped.
    pub idle_limit: Option<Duration>,
    /// How long a stop waits for the body to heed it, before the body is dropped.
    pub stop_grace: Duration,
    /// The log's cap.
    pub cap: LogCap,
    /// The project that it belongs to, for the text policy ([`TextPolicy`](crate::TextPolicy)).
    pub project: Option<String>,
    /// A line for people, of at most 200 characters.
    pub label: Option<String>,
    /// The consumer that starts it.
    pub consumer: String,
    /// Who asks; how far that is believed follows from it.
    pub provenance: Provenance,
    /// The form in which its end is told.
    pub delivery: Delivery,
    /// The trace event of the turn that asks, where there is one.
    pub turn: Option<String>,
    /// The command on whose behalf it runs, where there is one.
    pub parent_command: Option<CommandId>,
    /// The session of whoever asks, where it is another one.
    pub parent_session: Option<SessionId>,
    /// Takes what is sent to it, until it ends or its input is closed; without one nothing can be sent.
    pub input: Option<TaskInput>,
}

impl TaskRequest {
    /// A task of kind `task` that does what these words say, everything else at its default: no limits, consumer
    /// `model`, asked for by nobody who is known (an event, which is not trusted), nothing can be sent to it.
    pub fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        TaskRequest {
            kind: TASK.to_owned(),
            words: words.into_iter().map(Into::into).collect(),
            cwd: PathBuf::from("/"),
            limit: None,
            idle_limit: None,
            stop_grace: Duration::from_millis(STOP_GRACE_MS),
            cap: LogCap::default(),
            project: None,
            label: None,
            consumer: CONSUMER.to_owned(),
            provenance: Provenance::from(Origin::Event),
            delivery: Delivery::default(),
            turn: None,
            parent_command: None,
            parent_session: None,
            input: None,
        }
    }

    /// As it is, with `take` for what is sent to it ([`TaskRequest::input`]).
    #[must_use]
    pub fn on_input(self, take: impl Fn(Vec<u8>) + Send + Sync + 'static) -> Self {
        TaskRequest { input: Some(Arc::new(take)), ..self }
    }

    /// What is wrong with it, if anything.
    pub(super) fn fault(&self) -> Option<String> {
        let name = |field, name: &str| check_name(field, name).err().map(|error| error.to_string());
        let taken = || (self.kind == PROCESS).then(|| "the kind must not be `process`, which no task is".to_owned());
        let texts = self.words.iter().map(|word| ("words", word.as_bytes()));
        let texts = texts.chain([("directory", self.cwd.as_os_str().as_bytes())]);
        let nul = || {
            let mut texts = texts.filter(|(_, text)| text.contains(&0));
            texts.next().map(|(field, _)| format!("the {field} must not hold a NUL byte"))
        };
        name(NameField::Kind, &self.kind)
            .or_else(taken)
            .or_else(|| name(NameField::Consumer, &self.consumer))
            .or_else(|| self.label.as_deref().and_then(|label| check_label(label).err()).map(|error| error.to_string()))
            .or_else(nul)
    }

    /// The kind that stands in its records.
    pub(super) fn stored_kind(&self) -> String {
        let good = check_name(NameField::Kind, &self.kind).is_ok() && self.kind != PROCESS;
        if good { self.kind.clone() } else { TASK.to_owned() }
    }

    /// It as its records have it.
    pub(super) fn stored(&self, session: &Session, id: CommandId) -> Request {
        let good = check_name(NameField::Consumer, &self.consumer).is_ok();
        Request {
            id,
            session: *session.id(),
            argv: [OsText::from(self.stored_kind())].into_iter().chain(self.words.iter().map(OsText::from)).collect(),
            cwd: OsText::from(&self.cwd),
            env: Vec::new(),
            stdin: if self.input.is_some() { Stdin::Open } else { Stdin::Null },
            streams: Default::default(),
            grace_ms: None,
            background: true,
            can_be_told: true,
            follow: false,
            limits: Limits {
                wall_ms: self.limit.map(millis),
                idle_ms: self.idle_limit.map(millis),
                ..Limits::default()
            },
            stop_grace_ms: millis(self.stop_grace),
            conceal: session.conceals(),
            trace_all: false,
            lifetime: Default::default(),
            survivors: Default::default(),
            cap: self.cap,
            over_cap: Default::default(),
            hold: 0,
            label: self.label.as_deref().map(shown_label),
            consumer: if good { self.consumer.clone() } else { CONSUMER.to_owned() },
            trust: self.provenance.trust(),
            delivery: self.delivery,
            notify: Vec::new(),
            track_changes: None,
            umask: None,
            inherited: Vec::new(),
            turn: self.turn.clone(),
            parent_command: self.parent_command,
            parent_session: self.parent_session,
        }
    }
}

impl std::fmt::Debug for TaskRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskRequest").field("kind", &self.kind).field("words", &self.words).finish_non_exhaustive()
    }
}
