//! The entry to everything: one state directory and the sessions in it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use outlast_core::id::{CommandId, EventId, ReportId, SessionId};
use outlast_core::record::{ProcessMark, SessionRecord};
use outlast_host::lock::Lock;
use outlast_host::store::session::SessionDir;
use outlast_host::store::state::State;
use outlast_host::store::{name, token};
use outlast_host::{clock, mark};

use crate::config::{Birth, Config};
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::link::WatchedLink;
use crate::memory::Texts;
use crate::places::Places;
use crate::redaction::Redaction;
use crate::temporary::{Removal, Temporary};
use crate::text_policy::TextRule;

/// The runtime of one state directory. Cheap to clone; every clone is the same runtime.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<RuntimeInner>,
}

pub(crate) struct RuntimeInner {
    pub(crate) config: Config,
    /// What masks secrets in what is shown.
    pub(crate) redaction: Arc<Redaction>,
    /// What of final texts is kept.
    pub(crate) text_rule: TextRule,
    state: Result<State>,
    /// Why no records can be made in a state directory that can be read.
    unwritable: Option<Error>,
    /// Sessions that have a handle in this process, so that every handle is the same session.
    pub(crate) sessions: Mutex<HashMap<SessionId, Weak<SessionInner>>>,
    ids: Mutex<IdSource>,
    /// Who hears of what happens.
    pub(crate) hub: Hub,
    /// What ended tasks have in memory.
    pub(crate) texts: Texts,
    /// Dropped with the last handle, where the state directory is a temporary one.
    _removal: Option<Removal>,
}

/// What the handles of one session share.
pub(crate) struct SessionInner {
    pub(crate) runtime: Runtime,
    pub(crate) id: SessionId,
    /// None for a session that is nowhere on disk.
    pub(crate) dir: Option<SessionDir>,
    pub(crate) record: Option<SessionRecord>,
    /// The same with the context that it was given through a handle of this process.
    pub(crate) given: OnceLock<SessionRecord>,
    pub(crate) owner: Option<Owner>,
}

/// What the owner of a session holds.
pub(crate) struct Owner {
    /// Freed with the last handle.
    _lock: Lock,
    pub(crate) mark: ProcessMark,
    /// The connection that shows the keeper that the owner lives; made when it is first needed.
    pub(crate) link: tokio::sync::Mutex<Option<WatchedLink>>,
    /// The places of the tasks of this process.
    pub(crate) tasks: Arc<Places>,
    /// Leaders of commands that this process started and that were demoted: whoever holds a descriptor of
    /// a process can read how it ended, also when keeper and supervisor are gone.
    pub(crate) leaders: Mutex<HashMap<CommandId, OwnedFd>>,
}

impl Runtime {
    /// Opens the state directory, which is made if it is not there. One that cannot be used is
    /// remembered, not an error: commands still run in the foreground then, without records.
    pub fn open(config: Config) -> Result<Runtime> {
        if config.state_dir.as_os_str().is_empty() {
            return Err(Error::Usage("the state directory must not be empty".to_owned()));
        }
        let state = if config.state_dir.is_absolute() {
            State::open(&config.state_dir).map_err(Error::from)
        } else {
            Err(not_absolute(&config))
        };
        Ok(Runtime::of(config, state, None))
    }

    /// Makes a state directory for this runtime alone, which is removed with everything of it, also what lies beside
    /// transcripts, when the last handle of the runtime is gone, and of its sessions and tasks: never under a task that
    /// still unwinds, and not before every keeper has left, which stays as long as a command does. That happens on a
    /// thread; [`Temporary::removed`] waits for it, and who ends the process before that leaves the directory behind.
    /// Refused where there is something of that name, or where it cannot be made.
    pub fn open_temporary(config: Config) -> Result<(Runtime, Temporary)> {
        if !config.state_dir.is_absolute() {
            return Err(not_absolute(&config));
        }
        let state = State::create(&config.state_dir)?;
        let (removal, temporary) = Removal::of(state.clone());
        Ok((Runtime::of(config, Ok(state), Some(removal)), temporary))
    }

    /// Opens the state directory if it is there, and makes nothing: for whoever only looks.
    pub fn find(config: Config) -> Result<Option<Runtime>> {
        if !config.state_dir.is_absolute() {
            return Err(not_absolute(&config));
        }
        let Some(state) = State::find(&config.state_dir)? else { return Ok(None) };
        Ok(Some(Runtime::of(config, Ok(state), None)))
    }

    fn of(config: Config, state: Result<State>, removal: Option<Removal>) -> Runtime {
        let written = state.as_ref().map(|state| state.sessions().check_writable());
        let unwritable = written.ok().and_then(Result::err).map(Error::from);
        let redaction = Arc::new(Redaction::of(&config.policy));
        let inner = RuntimeInner {
            redaction: redaction.clone(),
            text_rule: TextRule::default(),
            config,
            state,
            unwritable,
            sessions: Mutex::default(),
            ids: Mutex::new(IdSource::default()),
            hub: Hub::new(redaction),
            texts: Texts::default(),
            _removal: removal,
        };
        Runtime { inner: Arc::new(inner) }
    }

    /// Whether records can be made, else why not.
    pub fn records(&self) -> Result<(), &Error> {
        self.inner.state.as_ref()?;
        self.inner.unwritable.as_ref().map_or(Ok(()), Err)
    }

    /// Whether this is the same runtime: a clone.
    pub fn is(&self, other: &Runtime) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether the state directory that was opened is still the one of that path: not if somebody has removed or replaced
    /// it, and then nothing can be found in it any more.
    pub fn is_in_place(&self) -> bool {
        let Ok(state) = &self.inner.state else { return true };
        state.root().is_in_place()
    }

    /// The state directory as it was given.
    pub fn state_dir(&self) -> &Path {
        &self.inner.config.state_dir
    }

    /// The bearer token that a client shows over HTTP, and the private file that holds it; made on first use.
    pub fn http_token(&self) -> Result<(String, PathBuf)> {
        let state = self.state_to_write()?;
        let token = token::get_or_create(state, || {
            let mut bytes = [0; 32];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
            Ok(bytes)
        })?;
        Ok((token, state.root().path_of(name::TOKEN)))
    }

    /// How a keeper comes to be.
    pub(crate) fn birth(&self) -> Result<Birth> {
        self.inner.config.birth()
    }

    /// The executable that becomes the keeper.
    pub fn executable(&self) -> Result<PathBuf> {
        self.inner.config.find_executable()
    }

    /// The open state directory, for calls that look at what is in one. Where nobody can say now whether
    /// anything is, that is the error.
    pub(crate) fn state(&self) -> Result<&State> {
        self.inner.state.as_ref().map_err(|error| match error {
            Error::File(file) if file.is_unknown() => Error::File(file.clone()),
            error => no_records(error),
        })
    }

    /// The open state directory, for calls that make something in it; refused where that cannot be done.
    pub(crate) fn state_to_write(&self) -> Result<&State> {
        self.records().map_err(no_records)?;
        self.state()
    }

    pub(crate) fn new_command_id(&self) -> Result<CommandId> {
        self.next_id().map(|(ms, counter, random)| CommandId::from_parts(ms, counter, random))
    }

    pub(crate) fn new_session_id(&self) -> Result<SessionId> {
        self.next_id().map(|(ms, counter, random)| SessionId::from_parts(ms, counter, random))
    }

    pub(crate) fn new_event_id(&self) -> Result<EventId> {
        self.next_id().map(|(ms, counter, random)| EventId::from_parts(ms, counter, random))
    }

    pub(crate) fn new_report_id(&self) -> Result<ReportId> {
        self.next_id().map(|(ms, counter, random)| ReportId::from_parts(ms, counter, random))
    }

    fn next_id(&self) -> Result<(u64, u16, u64)> {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| Error::system("cannot get random bytes", errno))?;
        let mut ids = self.inner.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let (ms, counter) = ids.next(clock::unix_ms());
        Ok((ms, counter, u64::from_le_bytes(bytes)))
    }
}

fn not_absolute(config: &Config) -> Error {
    Error::Usage(format!("the state directory {} is not an absolute path", config.state_dir.display()))
}

fn no_records(error: &Error) -> Error {
    Error::NoRecords(format!(
        "no records can be made: {error}; until that is mended a command can only run to its end in the foreground"
    ))
}

impl Owner {
    /// Becomes the owner; an error while another one lives.
    pub(crate) fn take(dir: &SessionDir) -> Result<Owner> {
        match dir.try_owner_lock()? {
            Some(lock) => Owner::holding(lock),
            None => Err(Error::Owned { session: dir.id(), holder: "a living process".to_owned() }),
        }
    }

    /// The owner who holds this lock.
    pub(crate) fn holding(lock: Lock) -> Result<Owner> {
        let mark = mark::own().map_err(|error| Error::Unreachable(format!("cannot identify this process: {error}")))?;
        Ok(Owner {
            _lock: lock,
            mark,
            link: tokio::sync::Mutex::new(None),
            tasks: Arc::default(),
            leaders: Mutex::default(),
        })
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Runtime({})", self.state_dir().display())
    }
}

/// Makes ids of one runtime sort by the order in which they were made, whatever the clock does.
#[derive(Default)]
struct IdSource {
    last_ms: u64,
    counter: u16,
}

impl IdSource {
    /// Ids that fit in one millisecond: twelve bits of counter.
    const PER_MS: u16 = 1 << 12;

    fn next(&mut self, now_ms: u64) -> (u64, u16) {
        if now_ms > self.last_ms {
            (self.last_ms, self.counter) = (now_ms, 0);
        } else if self.counter + 1 < Self::PER_MS {
            self.counter += 1;
        } else {
            (self.last_ms, self.counter) = (self.last_ms + 1, 0);
        }
        (self.last_ms, self.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: J1
    #[test]
    fn j1_ids_of_one_runtime_sort_by_the_order_they_were_made_in() {
        let mut source = IdSource::default();
        // The clock stands still, steps back and jumps.
        let clock = std::iter::repeat_n(5_u64, 9_000).chain([4, 3, 9, 9, 8, 20_000]);
        let made: Vec<_> = clock.map(|now| source.next(now)).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.iter().all(|(_, counter)| *counter < IdSource::PER_MS));
    }
}
