//! Sessions: made, found, opened, adopted.

use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use outlast_core::id::{CommandId, SessionId};
use outlast_core::names;
use outlast_core::record::{LINGER_MS, Ownership, ProcessMark, RUNNING_CAP, SessionRecord, TraceLine, schema};
use outlast_host::store::session::SessionDir;
use outlast_host::store::{anchors, trace, understood};
use outlast_host::{clock, mark};

use crate::error::{Error, Result};
use crate::observe::Event;
use crate::runtime::{Owner, Runtime, SessionInner};
use crate::session::Session;

/// The process whose life bounds a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anchor {
    /// Nothing does: only its end does.
    #[default]
    None,
    /// This process, by its pid; its start time and boot are taken down at once.
    Process(u32),
}

/// How a session is made.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The conversation or project; empty means that there is no predecessor.
    pub context: String,
    /// The session whose agent starts the agent of this one; see [`Session::children`].
    pub parent: Option<SessionId>,
    /// The process whose life bounds it.
    pub anchor: Anchor,
    /// Whether this process stays as its owner.
    pub ownership: Ownership,
    /// How long a new owner is waited for.
    pub linger: Duration,
    /// Commands that may run at once; 0 means no cap.
    pub running_cap: u32,
}

impl Default for SessionOptions {
    /// A session that this process owns: 30 s of linger, 64 running commands, no context, no anchor.
    fn default() -> Self {
        SessionOptions {
            context: String::new(),
            parent: None,
            anchor: Anchor::None,
            ownership: Ownership::Resident,
            linger: Duration::from_millis(LINGER_MS),
            running_cap: RUNNING_CAP,
        }
    }
}

impl Runtime {
    /// Makes a session. With [`Ownership::Resident`] this process is its owner until the last handle
    /// is dropped.
    pub async fn create_session(&self, options: SessionOptions) -> Result<Session> {
        let state = self.state_to_write()?;
        if let Some(parent) = options.parent {
            self.session_dir(parent)?;
        }
        let anchor = anchor_mark(options.anchor)?;
        let record = self.new_record(&options, anchor)?;
        let dir = state.create_session(&record)?;
        self.trace_start(&dir, &record)?;
        if record.ownership == Ownership::OneShot
            && let Some(anchor) = &record.anchor
        {
            anchors::assign(state, anchor, &dir)?;
        }
        let owned = record.ownership == Ownership::Resident;
        self.enter(dir, Some(record), owned)
    }

    /// The session anchored on this process: found, or made (owned by nobody) on first use. Where no
    /// records can be made it is a session that is nowhere on disk.
    pub async fn session_for(&self, anchor_pid: u32) -> Result<Session> {
        if self.records().is_err() {
            return self.session_nowhere();
        }
        let state = self.state()?;
        let anchor = anchor_mark(Anchor::Process(anchor_pid))?;
        let mark = anchor.clone().ok_or_else(|| no_process(anchor_pid))?;
        let options = SessionOptions { ownership: Ownership::OneShot, ..SessionOptions::default() };
        let (dir, made) = anchors::get_or_create::<Error>(state, &mark, || {
            Ok(state.create_session(&self.new_record(&options, anchor)?)?)
        })?;
        let record = dir.record()?.record;
        if made {
            self.trace_start(&dir, &record)?;
        }
        Ok(looked_at(self.enter(dir, Some(record), false)?).await)
    }

    /// The session anchored on an agent host, and whether it was made by this call; owned by this process unless
    /// another owner lives.
    pub(crate) async fn host_session(&self, host_pid: u32, context: &str) -> Result<(Session, bool)> {
        let state = self.state()?;
        let anchor = anchor_mark(Anchor::Process(host_pid))?;
        let mark = anchor.clone().ok_or_else(|| no_process(host_pid))?;
        let options = SessionOptions { context: context.to_owned(), ..SessionOptions::default() };
        let (dir, made) = anchors::get_or_create::<Error>(state, &mark, || {
            Ok(state.create_session(&self.new_record(&options, anchor)?)?)
        })?;
        let record = dir.record()?.record;
        if made {
            self.trace_start(&dir, &record)?;
        }
        let owned = made || self.owns(dir.id());
        let session = self.enter_as_owner_if_free(dir, record).await?;
        if !owned {
            session.taken_over(&Event::Adopted);
        }
        Ok((looked_at(session).await, made))
    }

    /// Opens an existing session, as its owner where it wants one and no other one lives.
    pub async fn own_if_free(&self, id: &SessionId) -> Result<Session> {
        let dir = self.session_dir(*id)?;
        let record = dir.record()?.record;
        let owned = self.owns(*id);
        let session = self.enter_as_owner_if_free(dir, record).await?;
        session.ensure_open().await?;
        if !owned {
            session.taken_over(&Event::Adopted);
        }
        Ok(looked_at(session).await)
    }

    /// Waits until the owner of a session is gone, and becomes its owner. The wait costs a thread that sleeps in the
    /// kernel; dropping the future leaves it there until that owner is gone.
    pub async fn own_when_free(&self, session: &Session) -> Result<Session> {
        let dir = session.dir()?.clone();
        let (tell, heard) = tokio::sync::oneshot::channel();
        let waiting = dir.clone();
        std::thread::Builder::new()
            .name("owner".to_owned())
            .spawn(move || tell.send(waiting.owner_lock()))
            .map_err(|error| Error::system("cannot start a thread", error))?;
        let lost = || Error::Unreachable("the thread that waited for the owner's lock is gone".to_owned());
        let lock = heard.await.map_err(|_| lost())??;
        let owner = Owner::holding(lock)?;
        let session = self.enter_owned(dir, session, owner);
        session.ensure_open().await?;
        if session.dir()?.has_keeper()? {
            session.owner_link().await?;
        }
        session.taken_over(&Event::Replaced);
        Ok(session)
    }

    /// Becomes the owner of a session if no other one lives; a session of the command line stays without one.
    async fn enter_as_owner_if_free(&self, dir: SessionDir, record: SessionRecord) -> Result<Session> {
        if record.ownership == Ownership::OneShot {
            return self.enter(dir, Some(record), false);
        }
        match self.enter(dir.clone(), Some(record.clone()), true) {
            Ok(session) => {
                // Its keeper waits for an owner, if it has one.
                if session.dir()?.has_keeper()? {
                    session.owner_link().await?;
                }
                Ok(session)
            }
            Err(Error::Owned { .. }) => self.enter(dir, Some(record), false),
            Err(error) => Err(error),
        }
    }

    /// The session anchored on this process, if there is one already.
    pub async fn find_session_for(&self, anchor_pid: u32) -> Result<Option<Session>> {
        let state = self.state()?;
        let Some(anchor) = anchor_mark(Anchor::Process(anchor_pid))? else { return Ok(None) };
        let Some(dir) = anchors::find(state, &anchor)? else { return Ok(None) };
        let record = dir.record()?.record;
        Ok(Some(looked_at(self.enter(dir, Some(record), false)?).await))
    }

    /// Opens an existing session, ended or not, without becoming its owner.
    pub async fn open_session(&self, id: &SessionId) -> Result<Session> {
        let dir = self.session_dir(*id)?;
        // A session whose own record is damaged can still be looked at.
        let record = understood(dir.record().map(Some))?;
        Ok(looked_at(self.enter(dir, record, false)?).await)
    }

    /// Becomes the owner of an open session whose owner is gone; refused while one lives.
    pub async fn adopt_session(&self, id: &SessionId) -> Result<Session> {
        let dir = self.session_dir(*id)?;
        let record = dir.record()?.record;
        let owned = self.owns(*id);
        let session = self.enter(dir, Some(record), true)?;
        session.ensure_open().await?;
        if session.dir()?.has_keeper()? {
            session.owner_link().await?;
        }
        if !owned {
            session.taken_over(&Event::Adopted);
        }
        Ok(session)
    }

    /// The session that a full command id belongs to.
    pub async fn find_command(&self, id: &CommandId) -> Result<Session> {
        let state = self.state()?;
        for session in state.list()?.into_iter().rev() {
            if let Some(dir) = state.session(session)?
                && dir.command(*id)?.is_some()
            {
                return self.open_session(&session).await;
            }
        }
        Err(Error::UnknownAnywhere { given: id.to_string(), state_dir: self.state_dir().to_owned() })
    }

    pub(crate) fn session_dir(&self, id: SessionId) -> Result<SessionDir> {
        self.state()?
            .session(id)?
            .ok_or_else(|| Error::UnknownSession { given: id.to_string(), state_dir: self.state_dir().to_owned() })
    }

    fn new_record(&self, options: &SessionOptions, anchor: Option<ProcessMark>) -> Result<SessionRecord> {
        names::check_context(&options.context).map_err(|error| Error::Usage(error.to_string()))?;
        Ok(SessionRecord {
            schema: schema::SESSION.to_owned(),
            id: self.new_session_id()?,
            context: options.context.clone(),
            parent: options.parent,
            anchor,
            ownership: options.ownership,
            linger_ms: u64::try_from(options.linger.as_millis()).unwrap_or(u64::MAX),
            running_cap: options.running_cap,
            durability: self.inner.config.durability,
            created_at_ms: clock::unix_ms(),
            start_event: self.new_event_id()?.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    fn trace_start(&self, dir: &SessionDir, record: &SessionRecord) -> Result<()> {
        let line = TraceLine {
            kind: "session".to_owned(),
            event: record.start_event.clone(),
            session: record.id.to_string(),
            at_ms: record.created_at_ms,
            ..TraceLine::default()
        };
        Ok(trace::append(dir.dir(), &line, record.durability)?)
    }

    pub(crate) fn session_nowhere(&self) -> Result<Session> {
        let id = self.new_session_id()?;
        let inner =
            SessionInner { runtime: self.clone(), id, dir: None, record: None, given: OnceLock::new(), owner: None };
        Ok(Session { inner: Arc::new(inner) })
    }

    /// The handle of the new owner.
    fn enter_owned(&self, dir: SessionDir, guest: &Session, owner: Owner) -> Session {
        let mut sessions = self.inner.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let id = dir.id();
        let inner = Arc::new(SessionInner {
            runtime: self.clone(),
            id,
            dir: Some(dir),
            record: guest.record().cloned(),
            given: OnceLock::new(),
            owner: Some(owner),
        });
        sessions.insert(id, Arc::downgrade(&inner));
        Session { inner }
    }

    /// Whether this runtime is the owner of a session already.
    fn owns(&self, id: SessionId) -> bool {
        let sessions = self.inner.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&id).and_then(std::sync::Weak::upgrade).is_some_and(|inner| inner.owner.is_some())
    }

    /// The one handle of a session in this runtime; made if there is none yet.
    fn enter(&self, dir: SessionDir, record: Option<SessionRecord>, own: bool) -> Result<Session> {
        let id = dir.id();
        let mut sessions = self.inner.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.get(&id).and_then(std::sync::Weak::upgrade);
        if let Some(inner) = known.filter(|inner| inner.owner.is_some() || !own) {
            return Ok(Session { inner });
        }
        let owner = if own { Some(Owner::take(&dir)?) } else { None };
        let (runtime, given) = (self.clone(), OnceLock::new());
        let inner = Arc::new(SessionInner { runtime, id, dir: Some(dir), record, given, owner });
        sessions.retain(|_, known| known.strong_count() > 0);
        sessions.insert(id, Arc::downgrade(&inner));
        Ok(Session { inner })
    }
}

/// A session that somebody looks at: what the commands of killed watchers left running in it is ended, and records that
/// nobody moved to where it is bound are.
async fn looked_at(session: Session) -> Session {
    // Where /proc cannot be read nothing can be proven, and the look goes on.
    let _ = session.end_strays().await;
    // Records that cannot be moved are found where they are; `doctor` names them.
    let _ = session.follow_binding().await;
    session
}

fn anchor_mark(anchor: Anchor) -> Result<Option<ProcessMark>> {
    match anchor {
        Anchor::None => Ok(None),
        Anchor::Process(pid) => match mark::mark_of(pid) {
            Ok(Some(mark)) => Ok(Some(mark)),
            Ok(None) => Err(no_process(pid)),
            Err(error) => Err(Error::Refused(format!("process {pid} cannot be an anchor: {error}"))),
        },
    }
}

fn no_process(pid: u32) -> Error {
    Error::Refused(format!("there is no process {pid} to anchor a session on"))
}
