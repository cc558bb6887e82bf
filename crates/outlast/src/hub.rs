//! Who hears of what happens to commands: listeners and observers, none of which can hold anything up.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::ending::End;
use outlast_core::id::{CommandId, SessionId};
use outlast_core::record::ExitRecord;
use outlast_core::request::Request;

use crate::observe::{Ends, Event, Observers, Outturn};
use crate::redaction::Redaction;
use crate::telemetry::CommandSpan;

/// Commands that are remembered after their end.
const REMEMBERED: usize = 256;

/// How much a notice asks for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It went as it should.
    Info,
    /// A failure, silence, or output that was asked for.
    Warning,
}

/// What a person may want to see at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The command.
    pub id: CommandId,
    /// How much it asks for attention.
    pub level: Level,
    /// One sentence of fixed form.
    pub text: String,
}

/// How many commands came to nothing, each counted once, whoever waited for it. One that ended with success or was
/// stopped does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Those that a time limit ended, and those that say the same with their code (124).
    pub timeouts: u64,
    /// All others.
    pub commands: u64,
}

impl Failures {
    /// Counts one more.
    pub(crate) fn add(&mut self, end: &End) {
        // The number that the command line ends with: 124 is that of a time limit.
        let count = if end.exit_code() == Some(124) { &mut self.timeouts } else { &mut self.commands };
        *count += 1;
    }
}

/// Hears notices.
pub type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

/// What is said of a silent command to a consumer, in its next note.
#[derive(Clone, Debug)]
pub(crate) struct Silent {
    pub(crate) session: SessionId,
    pub(crate) consumer: String,
    pub(crate) id: CommandId,
    pub(crate) text: String,
}

/// The one place from which all of them are told, in order: observers each by their own thread, listeners by one that
/// lives while there is something to tell.
#[derive(Clone)]
pub(crate) struct Hub(Arc<Inner>);

struct Inner {
    observers: Observers,
    state: Mutex<State>,
    redaction: Arc<Redaction>,
}

#[derive(Default)]
struct State {
    listeners: HashMap<SessionId, Listener>,
    queue: VecDeque<(SessionId, Notice)>,
    /// Sessions whose owner is being replaced: their notices wait.
    held: HashSet<SessionId>,
    telling: bool,
    failures: Option<Failures>,
    /// Commands that have not ended.
    open: HashMap<CommandId, Open>,
    /// The last that have: a caller that joined one of them may hear of it later than another.
    over: VecDeque<CommandId>,
    silent: HashMap<CommandId, Silent>,
}

/// What is known of a command that has not ended.
#[derive(Default)]
struct Open {
    /// Tells its end to who saw its start.
    ends: Option<Ends>,
    /// Its span, where somebody subscribes to spans.
    span: Option<CommandSpan>,
    /// Whether it was said that it runs.
    runs: bool,
    /// Whether its life in the background is attended to.
    attended: bool,
}

/// The notices of a session wait while this is there.
pub(crate) struct Held {
    hub: Hub,
    session: SessionId,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Held({})", self.session)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.hub.state().held.remove(&self.session);
        self.hub.tell();
    }
}

impl Hub {
    /// One that masks in what it tells what the redaction asks for.
    pub(crate) fn new(redaction: Arc<Redaction>) -> Hub {
        Hub(Arc::new(Inner { observers: Observers::default(), state: Mutex::default(), redaction }))
    }

    /// Whether anybody listens: else nothing is kept, and nobody waits for ends on their behalf.
    pub(crate) fn is_used(&self) -> bool {
        let used = {
            let state = self.state();
            !state.listeners.is_empty() || state.failures.is_some()
        };
        used || !self.0.observers.is_empty()
    }

    /// Whether somebody wants to hear how this command goes on.
    pub(crate) fn is_heard(&self, id: CommandId) -> bool {
        self.is_used() || self.state().open.contains_key(&id)
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.0.observers
    }

    pub(crate) fn listen(&self, session: SessionId, listener: Option<Listener>) {
        let listeners = &mut self.state().listeners;
        match listener {
            Some(listener) => listeners.insert(session, listener),
            None => listeners.remove(&session),
        };
    }

    pub(crate) fn count_failures(&self) {
        self.state().failures.get_or_insert_default();
    }

    pub(crate) fn failures(&self) -> Failures {
        self.state().failures.unwrap_or_default()
    }

    /// Keeps the notices of a session, to be told in order afterwards.
    pub(crate) fn hold(&self, session: SessionId) -> Held {
        self.state().held.insert(session);
        Held { hub: self.clone(), session }
    }

    /// A command is about to start: returns when the observers have seen it, or their bound is over.
    pub(crate) async fn starting(&self, request: &Request, kind: &str) {
        let redactor = self.0.redaction.redactor();
        let Some((starting, ends)) = self.0.observers.starting(request, kind, redactor.as_deref()) else { return };
        self.state().open.entry(request.id).or_default().ends = Some(ends);
        self.0.observers.show(request.session, starting).await;
    }

    /// It was not started after all.
    pub(crate) fn not_started(&self, session: SessionId, id: CommandId) {
        let open = self.state().forget(id);
        if open.is_some_and(|open| open.ends.is_some()) {
            self.0.observers.tell(session, &Event::NotStarted { id });
        }
    }

    /// A command runs. Whoever joins it says so as well, and is not counted.
    pub(crate) fn runs(&self, request: &Request, kind: &str, pid: Option<u32>) {
        self.traces(request, kind, pid);
        let (session, id) = (request.session, request.id);
        if !self.is_used() {
            return;
        }
        let mut state = self.state();
        if state.over.contains(&id) || std::mem::replace(&mut state.open.entry(id).or_default().runs, true) {
            return;
        }
        drop(state);
        self.notice(session, id, Level::Info, format!("{id} runs"));
    }

    /// A command has its span from now on, if it has none and somebody subscribes to spans.
    pub(crate) fn traces(&self, request: &Request, kind: &str, pid: Option<u32>) {
        let known = || {
            let state = self.state();
            state.over.contains(&request.id) || state.open.get(&request.id).is_some_and(|open| open.span.is_some())
        };
        if known() {
            return;
        }
        // The subscriber is called with nothing held.
        let redactor = self.0.redaction.redactor();
        if let Some(span) = CommandSpan::begin(request, kind, pid, redactor.as_deref()) {
            self.state().open.entry(request.id).or_default().span = Some(span);
        }
    }

    /// A command has ended. Only the first who says so is heard.
    pub(crate) fn ended(&self, exit: &ExitRecord) {
        let id = exit.id;
        let never_ran = matches!(exit.end, End::SpawnFailed { .. });
        self.state().silent.remove(&id);
        if !self.is_heard(id) {
            return;
        }
        let Some(open) = self.state().close(id, never_ran) else { return };
        let exit = &self.0.redaction.shown(exit);
        if let Some(ends) = open.ends {
            ends.send_replace(Some(Arc::new(exit.clone())));
        }
        if let Some(span) = open.span {
            span.end(exit);
        }
        let (end, outturn) = (exit.end.clone(), Outturn::of(&exit.end, exit.is_ok()));
        if outturn == Outturn::Failed
            && let Some(failures) = &mut self.state().failures
        {
            failures.add(&end);
        }
        let told = match (outturn, &end) {
            (Outturn::Stopped, End::Stopped { by, .. }) => Some((Level::Info, format!("{id} was stopped by {by}"))),
            // Its session ends: whoever asked for that gets a report.
            (Outturn::Stopped, _) => None,
            (Outturn::Ended, _) => Some((Level::Info, format!("{id} has ended"))),
            (Outturn::Failed, _) => {
                let kind = end.kind().replace('_', " ");
                let code = end.exit_code().map(|code| format!(", exit code {code}")).unwrap_or_default();
                let detail = exit.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
                Some((Level::Warning, format!("{id} has failed: {kind}{code}{detail}")))
            }
        };
        self.0.observers.tell(exit.session, &Event::Ended { id, end, outturn });
        if let Some((level, text)) = told {
            self.notice(exit.session, id, level, text);
        }
    }

    /// Whether it falls to who asks to attend to a command in the background: only to the first.
    pub(crate) fn attends(&self, id: CommandId) -> bool {
        let mut state = self.state();
        !state.over.contains(&id) && !std::mem::replace(&mut state.open.entry(id).or_default().attended, true)
    }

    /// Nobody here will hear how a command ends.
    pub(crate) fn lose(&self, id: CommandId) {
        self.state().forget(id);
    }

    /// A command is silent: a warning for who listens, and a line in the next note of its consumer.
    pub(crate) fn silent(&self, silent: Silent) {
        self.notice(silent.session, silent.id, Level::Warning, silent.text.clone());
        self.state().silent.insert(silent.id, silent);
    }

    /// A command printed what its caller wanted to hear of.
    pub(crate) fn heads_up(&self, session: SessionId, id: CommandId, text: String) {
        self.notice(session, id, Level::Warning, text);
    }

    /// Whether anybody listens to this session.
    pub(crate) fn has_listener(&self, session: SessionId) -> bool {
        self.state().listeners.contains_key(&session)
    }

    /// What the next note of a consumer has to say of silent commands, in the order of their ids.
    pub(crate) fn silences(&self, session: SessionId, consumer: &str) -> Vec<Silent> {
        let state = self.state();
        let ours = state.silent.values().filter(|one| one.session == session && one.consumer == consumer);
        let mut ours: Vec<Silent> = ours.cloned().collect();
        ours.sort_by_key(|one| one.id);
        ours
    }

    pub(crate) fn told_silent(&self, id: CommandId) {
        self.state().silent.remove(&id);
    }

    fn notice(&self, session: SessionId, id: CommandId, level: Level, text: String) {
        self.state().queue.push_back((session, Notice { id, level, text }));
        self.tell();
    }

    /// Sees to it that what is queued is told.
    fn tell(&self) {
        let mut state = self.state();
        if state.telling || state.next().is_none() {
            return;
        }
        let hub = self.clone();
        let thread = std::thread::Builder::new().name("outlast-notices".to_owned());
        // Where the machine has no thread to give, the next one to say something tries again.
        state.telling = thread.spawn(move || hub.tell_all()).is_ok();
    }

    fn tell_all(&self) {
        loop {
            let mut state = self.state();
            let Some((session, notice)) = state.next().and_then(|at| state.queue.remove(at)) else {
                state.telling = false;
                return;
            };
            let listener = state.listeners.get(&session).cloned();
            drop(state);
            if let Some(listener) = listener {
                // A panic is shown by the hook that its program has for panics, and goes no further.
                let _ = catch_unwind(AssertUnwindSafe(|| listener(&notice)));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Where the next notice stands that may be told now.
    fn next(&self) -> Option<usize> {
        self.queue.iter().position(|(session, _)| !self.held.contains(session))
    }

    /// What was known of a command, if this is the first word of its end.
    fn close(&mut self, id: CommandId, never_ran: bool) -> Option<Open> {
        if self.over.contains(&id) || !(never_ran || self.open.contains_key(&id)) {
            return None;
        }
        Some(self.forget(id).unwrap_or_default())
    }

    /// What was known of a command of which nothing is to be heard any more.
    fn forget(&mut self, id: CommandId) -> Option<Open> {
        self.over.push_back(id);
        if self.over.len() > REMEMBERED {
            self.over.pop_front();
        }
        self.open.remove(&id)
    }
}
