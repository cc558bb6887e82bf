//! What all verbs need: the runtime, and who is meant by the ids that were given.

use outlast::{Command, ForkKeeper, Runtime, Session, Told};
use outlast_core::id::{CommandId, IdError, Selector, SessionId};
use outlast_core::names::{NameField, check_name, shorten};

use super::Scope;
use crate::config::Config;
use crate::exit::Failure;
use crate::output::Printer;

/// Characters of a name that cannot be one which are repeated; an id has 36.
const NAME_CHARACTERS: usize = 48;

/// The surroundings of one call.
pub struct Context {
    /// What the surroundings say.
    pub config: Config,
    /// Where answers go.
    pub printer: Printer,
    /// The state directory.
    pub runtime: Runtime,
}

impl Context {
    /// Opens the state directory that the configuration names.
    pub fn new(config: Config, printer: Printer, fork_keeper: ForkKeeper) -> Result<Context, Failure> {
        let mut settings = config.library(config.speaks_to_model());
        settings.fork_keeper = Some(fork_keeper);
        let runtime = Runtime::open(settings)?;
        Ok(Context { config, printer, runtime })
    }

    /// The session that was named, by an option or by the environment.
    async fn named(&self, scope: &Scope) -> Result<Option<SessionId>, Failure> {
        let Some(name) = scope.session.as_ref().or(self.config.session.as_ref()) else { return Ok(None) };
        self.session_id(name).await.map(Some)
    }

    /// Reads the id of a session, or looks for the one session whose id begins like this.
    pub async fn session_id(&self, name: &str) -> Result<SessionId, Failure> {
        let wrong = match name.parse() {
            Ok(id) => return Ok(id),
            Err(error @ IdError { .. }) => Failure::Usage(error.to_string()),
        };
        let digits = name.strip_prefix("ses_").unwrap_or_default();
        if digits.is_empty()
            || digits.len() >= 32
            || !digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(wrong);
        }
        let all = self.runtime.sessions().await?;
        let found: Vec<SessionId> =
            all.iter().map(|one| one.id).filter(|id| id.to_string().starts_with(name)).collect();
        match found.as_slice() {
            [only] => Ok(*only),
            [] => Err(Failure::Unknown(format!("no session whose id begins with {name}"))),
            many => Err(Failure::Usage(format!(
                "{name} fits {} sessions; give more of the id (`outlast session list`)",
                many.len()
            ))),
        }
    }

    /// The session that is meant, made on first use where none was named. Where no records can be made it
    /// is one that is nowhere on disk, because a command still runs in the foreground then.
    pub async fn session_or_new(&self, scope: &Scope) -> Result<Session, Failure> {
        match self.named(scope).await?.filter(|_| self.runtime.records().is_ok()) {
            // What is wrong with its own record is said by the start that fails of it.
            Some(id) => Ok(self.runtime.open_session(&id).await?),
            None => Ok(self.runtime.session_for(self.config.anchor()).await?),
        }
    }

    /// The session that is meant; none where none was named and none was made yet.
    pub async fn session_if_any(&self, scope: &Scope) -> Result<Option<Session>, Failure> {
        match self.named(scope).await? {
            Some(id) => self.open(&id).await.map(Some),
            None => Ok(self.runtime.find_session_for(self.config.anchor()).await?),
        }
    }

    /// Opens a session, and says what is wrong with its own record.
    async fn open(&self, id: &SessionId) -> Result<Session, Failure> {
        let session = self.runtime.open_session(id).await?;
        if session.record().is_none()
            && session.has_records()
            && let Some(problem) = session.summary().await?.problem
        {
            self.printer.say(&problem);
        }
        Ok(session)
    }

    /// The session that is meant; unknown where there is none yet.
    pub async fn session(&self, scope: &Scope) -> Result<Session, Failure> {
        self.session_if_any(scope).await?.ok_or_else(|| self.no_session())
    }

    /// There is no session that an id without one could be of.
    pub fn no_session(&self) -> Failure {
        let pid = self.config.anchor();
        let state = self.config.state_dir.display();
        Failure::Unknown(format!(
            "no session is anchored on process {pid} in {state}; name one with --session (`outlast session list`), or make \
             one that outlives a shell with `outlast session start --anchor PID`"
        ))
    }

    /// The command that a name means: a whole id in any session, anything else in the one that is meant.
    pub async fn command(&self, scope: &Scope, name: &str) -> Result<Command, Failure> {
        let selector: Selector = name.parse().map_err(|error| unknown_name(name, &error))?;
        let session = match selector {
            // A whole id needs no session, so that it answers from anywhere.
            Selector::Full(id) => self.runtime.find_command(&id).await?,
            Selector::Alias(_) | Selector::Prefix(_) => self.session_if_any(scope).await?.ok_or_else(|| {
                let pid = self.config.anchor();
                Failure::Unknown(format!("{name}; no session is anchored on process {pid}: name one with --session (`outlast session list`), or make one \
                     that outlives a shell with `outlast session start --anchor PID`"))
            })?,
        };
        Ok(session.command(name).await?)
    }

    /// What to say of a command of this session where another one was asked; nothing where it is the same.
    pub async fn elsewhere(&self, scope: &Scope, owner: &Session) -> Option<String> {
        // Which session was asked only matters for a command of another one, so that its absence is no error.
        let asked = self.session_if_any(scope).await.ok().flatten().filter(|asked| asked.id() != owner.id())?;
        let context = |session: &Session| session.record().map(|record| record.context.clone());
        let same = context(&asked).filter(|key| !key.is_empty()).is_some_and(|key| context(owner) == Some(key));
        let which = if same && owner.id() < asked.id() { "an earlier session" } else { "another session" };
        Some(format!("it belongs to {which}: {}", owner.id()))
    }

    /// Says so where an end was told here and that could not be recorded.
    pub fn say_unrecorded(&self, id: &CommandId, told: &Told) {
        if let Told::Unrecorded { reason } = told {
            self.printer.say(&format!("the end of {id} will be told again, it is not recorded that it was: {reason}"));
        }
    }

    /// Whoever is spoken for.
    pub fn consumer(&self, given: Option<&str>) -> Result<String, Failure> {
        let name = given.unwrap_or(&self.config.consumer);
        check_name(NameField::Consumer, name).map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(name.to_owned())
    }
}

/// A name that cannot be one is unknown as much as one that nobody has.
fn unknown_name(name: &str, error: &IdError) -> Failure {
    let shown = shorten(name, NAME_CHARACTERS);
    Failure::Unknown(format!("{shown}; it is not {}", error.expected))
}

/// Parses a duration for clap.
pub fn duration(text: &str) -> Result<std::time::Duration, outlast_core::units::UnitError> {
    outlast_core::units::parse_duration(text)
}

/// Parses a size for clap, in bytes.
pub fn size(text: &str) -> Result<u64, outlast_core::units::UnitError> {
    outlast_core::units::parse_size(text)
}

/// Parses a signal for clap.
pub fn signal(text: &str) -> Result<i32, String> {
    outlast_core::ending::signal_number(text)
        .ok_or_else(|| "not a signal (examples: INT, SIGHUP, RTMIN+1, 9)".to_owned())
}
