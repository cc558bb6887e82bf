//! Who hears of what happens to commands: a listener, observers and a recorder, none of which can hold anything up.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::ending::End;
use outlast_core::id::{CommandId, SessionId};
use outlast_core::record::ExitRecord;

/// Commands that are remembered after their end.
const REMEMBERED: usize = 256;

/// How much a notice asks for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It went as it should.
    Info,
    /// A failure, or silence.
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

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A command of this runtime runs.
    Started {
        /// The command.
        id: CommandId,
    },
    /// It has ended.
    Ended {
        /// The command.
        id: CommandId,
        /// How.
        end: End,
    },
    /// This process has become the owner of a session that was there already.
    Adopted,
}

/// An event as an observer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Counts the events of this runtime from 1, without a gap.
    pub number: u64,
    /// The session in which it happened.
    pub session: SessionId,
    /// What happened.
    pub event: Event,
}

/// How a command came out, for a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outturn {
    /// With success.
    Ended,
    /// Not with success.
    Failed,
    /// It was stopped, whatever it made of that.
    Stopped,
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

/// Takes down when commands start and how they end. Best effort: what it does, panics included, touches no command.
pub trait Recorder: Send + Sync {
    /// A command runs.
    fn started(&self, id: &CommandId);
    /// It has ended.
    fn ended(&self, id: &CommandId, outturn: Outturn);
}

/// Hears notices.
pub type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;
/// Hears events.
pub type Observer = Arc<dyn Fn(&Observed) + Send + Sync>;

enum Item {
    Notice(SessionId, Notice),
    Observed(Observed),
    Started(CommandId),
    Ended(CommandId, Outturn),
}

/// What is said of a silent command to a consumer, in its next note.
#[derive(Clone, Debug)]
pub(crate) struct Silent {
    pub(crate) session: SessionId,
    pub(crate) consumer: String,
    pub(crate) id: CommandId,
    pub(crate) text: String,
}

/// The one place from which all of them are told, in order, by a thread of its own that lives while there is something
/// to tell.
#[derive(Clone, Default)]
pub(crate) struct Hub(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    listeners: HashMap<SessionId, Listener>,
    observers: Vec<Observer>,
    recorder: Option<Arc<dyn Recorder>>,
    queue: VecDeque<Item>,
    paused: bool,
    telling: bool,
    number: u64,
    failures: Option<Failures>,
    /// Commands that have not ended, and whether their life in the background is attended to.
    open: HashMap<CommandId, bool>,
    /// The last that have: a caller that joined one of them may hear of it later than another.
    over: VecDeque<CommandId>,
    silent: HashMap<CommandId, Silent>,
}

impl Hub {
    /// Whether anybody listens: else nothing is kept, and nobody waits for ends on their behalf.
    pub(crate) fn is_used(&self) -> bool {
        let state = self.state();
        !state.listeners.is_empty()
            || !state.observers.is_empty()
            || state.recorder.is_some()
            || state.failures.is_some()
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

    pub(crate) fn observe(&self, observer: Observer) {
        self.state().observers.push(observer);
    }

    pub(crate) fn record(&self, recorder: Option<Arc<dyn Recorder>>) {
        self.state().recorder = recorder;
    }

    pub(crate) fn pause(&self, paused: bool) {
        self.state().paused = paused;
        self.tell();
    }

    /// A command runs. Whoever joins it says so as well, and is not counted.
    pub(crate) fn started(&self, session: SessionId, id: CommandId) {
        if !self.is_used() || !self.state().opens(id) {
            return;
        }
        self.event(session, Event::Started { id });
        self.add([Item::Started(id), notice(session, id, Level::Info, format!("{id} runs"))]);
    }

    /// A command has ended. Only the first who says so is heard.
    pub(crate) fn ended(&self, exit: &ExitRecord) {
        let never_ran = matches!(exit.end, End::SpawnFailed { .. });
        self.state().silent.remove(&exit.id);
        if !self.is_used() || !self.state().closes(exit.id, never_ran) {
            return;
        }
        let (id, end) = (exit.id, exit.end.clone());
        let kind = end.kind().replace('_', " ");
        let (outturn, told) = match &end {
            // Its session ends: whoever asked for that gets a report.
            End::Abandoned { .. } => (Outturn::Stopped, None),
            End::Stopped { by, .. } => (Outturn::Stopped, Some((Level::Info, format!("{id} was stopped by {by}")))),
            _ if exit.is_ok() => (Outturn::Ended, Some((Level::Info, format!("{id} has ended")))),
            _ => {
                let code = end.exit_code().map(|code| format!(", exit code {code}")).unwrap_or_default();
                let detail = exit.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
                (Outturn::Failed, Some((Level::Warning, format!("{id} has failed: {kind}{code}{detail}"))))
            }
        };
        if outturn == Outturn::Failed
            && let Some(failures) = &mut self.state().failures
        {
            // The number that the command line ends with: 124 is that of a time limit.
            let count = if end.exit_code() == Some(124) { &mut failures.timeouts } else { &mut failures.commands };
            *count += 1;
        }
        self.event(exit.session, Event::Ended { id, end });
        self.add([Item::Ended(id, outturn)]);
        if let Some((level, text)) = told {
            self.add([notice(exit.session, id, level, text)]);
        }
    }

    /// Whether it falls to who asks to attend to a command in the background: only to the first.
    pub(crate) fn attends(&self, id: CommandId) -> bool {
        let mut state = self.state();
        !state.over.contains(&id) && !state.open.insert(id, true).unwrap_or(false)
    }

    pub(crate) fn adopted(&self, session: SessionId) {
        if self.is_used() {
            self.event(session, Event::Adopted);
        }
    }

    /// A command is silent: a warning for who listens, and a line in the next note of its consumer.
    pub(crate) fn silent(&self, silent: Silent) {
        self.add([notice(silent.session, silent.id, Level::Warning, silent.text.clone())]);
        self.state().silent.insert(silent.id, silent);
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

    fn event(&self, session: SessionId, event: Event) {
        let mut state = self.state();
        state.number += 1;
        let number = state.number;
        state.queue.push_back(Item::Observed(Observed { number, session, event }));
        drop(state);
        self.tell();
    }

    fn add(&self, items: impl IntoIterator<Item = Item>) {
        self.state().queue.extend(items);
        self.tell();
    }

    /// Sees to it that what is queued is told.
    fn tell(&self) {
        let mut state = self.state();
        if state.telling || state.paused || state.queue.is_empty() {
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
            let item = if state.paused { None } else { state.queue.pop_front() };
            let Some(item) = item else {
                state.telling = false;
                return;
            };
            let listener = match &item {
                Item::Notice(session, _) => state.listeners.get(session).cloned(),
                Item::Observed(_) | Item::Started(_) | Item::Ended(..) => None,
            };
            let recorder = state.recorder.clone();
            let observers = if matches!(item, Item::Observed(_)) { state.observers.clone() } else { Vec::new() };
            drop(state);
            // A panic is shown by the hook that its program has for panics, and goes no further.
            let told = |what: &dyn Fn()| drop(catch_unwind(AssertUnwindSafe(what)));
            match (&item, listener, recorder) {
                (Item::Notice(_, notice), Some(listener), _) => told(&|| listener(notice)),
                (Item::Observed(observed), _, _) => observers.iter().for_each(|one| told(&|| one(observed))),
                (Item::Started(id), _, Some(recorder)) => told(&|| recorder.started(id)),
                (Item::Ended(id, outturn), _, Some(recorder)) => told(&|| recorder.ended(id, *outturn)),
                (Item::Notice(..) | Item::Started(_) | Item::Ended(..), _, _) => {}
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether this is the first word of a command.
    fn opens(&mut self, id: CommandId) -> bool {
        if self.over.contains(&id) || self.open.contains_key(&id) {
            return false;
        }
        self.open.insert(id, false);
        true
    }

    /// Whether this is the first word of its end.
    fn closes(&mut self, id: CommandId, never_ran: bool) -> bool {
        let first = self.open.remove(&id).is_some() || (never_ran && !self.over.contains(&id));
        if first {
            self.over.push_back(id);
            if self.over.len() > REMEMBERED {
                self.over.pop_front();
            }
        }
        first
    }
}

fn notice(session: SessionId, id: CommandId, level: Level, text: String) -> Item {
    Item::Notice(session, Notice { id, level, text })
}
