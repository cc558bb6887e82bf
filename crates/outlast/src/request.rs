//! What a caller asks to run, checked and turned into what a supervisor is told.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use outlast_core::id::{CommandId, SessionId};
use outlast_core::names::{NameField, check_label, check_name};
use outlast_core::origin::{Origin, Provenance};
use outlast_core::policy::TraceRule;
use outlast_core::request::{
    Delivery, HOLD_BYTES, Lifetime, Limits, LogCap, OsText, OverCap, Request, STOP_GRACE_MS, Stdin, Streams, Survivors,
};
use outlast_host::inherit;

use crate::error::{Error, Result};
use crate::matching::compiled;
use crate::session::Session;
use crate::settle::WORK_ID;

/// Environment variable that names the session to everything a command starts.
const SESSION: &str = "OUTLAST_SESSION";

/// What to run and how.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The working directory, an absolute path.
    pub cwd: PathBuf,
    /// The whole environment. `OUTLAST_SESSION` and `OUTLAST_WORK_ID` are set on top of it.
    pub env: Vec<(OsString, OsString)>,
    /// The names of those entries of `env` that the call itself asked for: a clean environment keeps them.
    pub asked: Vec<OsString>,
    /// Where standard input comes from. With [`Stdin::Terminal`] all three streams are a terminal; `TERM` in `env` is
    /// what the command takes it for (term(7)).
    pub stdin: Stdin,
    /// Merged or separate capture. What a terminal prints cannot be separated.
    pub streams: Streams,
    /// How long it runs in the foreground; none means no clock.
    pub grace: Option<Duration>,
    /// Bounds that stop it.
    pub limits: Limits,
    /// Rights that it asks for beyond those of a sandbox: a network, paths, devices, in words. As long as there is no sandbox
    /// a start that asks for any is refused.
    pub rights: Vec<String>,
    /// What bounds its life from outside.
    pub lifetime: Lifetime,
    /// What becomes of survivors.
    pub survivors: Survivors,
    /// The log's cap.
    pub cap: LogCap,
    /// What happens at the cap.
    pub over_cap: OverCap,
    /// Output held in memory before there are records, in bytes for each stream.
    pub hold: u64,
    /// How long it may print nothing in the background before a notice says so, once; 0 means no notice, none 15 minutes.
    /// It never stops anything.
    pub quiet_after: Option<Duration>,
    /// Regular expressions. While it runs in the background, lines of its output that match one of them are told to its
    /// consumer ([`Session::heads_ups`]) and to who listens. At most 16. It goes with no `join`, for what is joined has its own.
    pub notify: Vec<String>,
    /// A directory, an absolute path: which files below it were created, modified or deleted while the command ran is told
    /// with its end ([`Snapshot::tracked`](crate::Snapshot::tracked)), whoever did that. It is looked at before the start
    /// and at the end; what git ignores is left out. It goes with no `join`.
    pub track_changes: Option<PathBuf>,
    /// The time between TERM and KILL.
    pub stop_grace: Duration,
    /// A line for people, of at most 200 characters.
    pub label: Option<String>,
    /// The consumer that starts it.
    pub consumer: String,
    /// Who asks; how far that is believed follows from it.
    pub provenance: Provenance,
    /// The form in which its end is told, if it ends in the background.
    pub delivery: Delivery,
    /// The trace event of the turn that asks, where there is one.
    pub turn: Option<String>,
    /// The command on whose behalf it runs, where there is one.
    pub parent_command: Option<CommandId>,
    /// The session of whoever asks, where it is another one.
    pub parent_session: Option<SessionId>,
    /// Whether the caller can be told of a completion later; if not there is no demotion by the grace.
    pub can_be_told: bool,
    /// The soft limit of open files (getrlimit(2)) that the command gets, for a caller that has raised its own; none means
    /// the caller's.
    pub open_files: Option<u64>,
    /// Whether the caller wants the output as it comes, as [`RunEvent::Output`](crate::RunEvent::Output).
    pub follow: bool,
    /// Whether it joins an identical command of the session that runs, or that ended and whose callers were not
    /// all told yet, in place of starting another; and whether others may join it. Only commands that were
    /// started with this are joined. Identical are the same arguments, directory, environment, limits, trust and
    /// whatever else decides what runs and how it may end: not the grace, the label, the consumer and `follow`.
    /// Every caller waits for its own grace. Without records on disk nothing is joined.
    pub join: bool,
}

impl RunRequest {
    /// This command line in this directory with this environment, everything else at its default: no
    /// grace, no limits, merged streams, no input, consumer `model`, asked for by nobody who is known (an event, which is
    /// not trusted), not followed, not joined.
    pub fn new(
        argv: impl IntoIterator<Item = impl Into<OsString>>,
        cwd: impl Into<PathBuf>,
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        RunRequest {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: cwd.into(),
            env: env.into_iter().collect(),
            asked: Vec::new(),
            stdin: Stdin::default(),
            streams: Streams::default(),
            grace: None,
            limits: Limits::default(),
            rights: Vec::new(),
            lifetime: Lifetime::default(),
            survivors: Survivors::default(),
            cap: LogCap::default(),
            over_cap: OverCap::default(),
            hold: HOLD_BYTES,
            quiet_after: None,
            notify: Vec::new(),
            track_changes: None,
            stop_grace: Duration::from_millis(STOP_GRACE_MS),
            label: None,
            consumer: "model".to_owned(),
            provenance: Provenance::from(Origin::Event),
            delivery: Delivery::default(),
            turn: None,
            parent_command: None,
            parent_session: None,
            can_be_told: true,
            open_files: None,
            follow: false,
            join: false,
        }
    }

    /// What the supervisor is told; refused where it makes no sense.
    pub(crate) fn for_supervisor(self, session: &Session, id: CommandId, background: bool) -> Result<Request> {
        self.check()?;
        let mut env: Vec<(OsText, OsText)> =
            self.env.iter().map(|(key, value)| (OsText::from(key), OsText::from(value))).collect();
        env.retain(|(key, _)| key.0 != WORK_ID.as_bytes() && key.0 != SESSION.as_bytes());
        env.push((OsText::from(WORK_ID), OsText::from(id.to_string())));
        if session.has_records() {
            env.push((OsText::from(SESSION), OsText::from(session.id().to_string())));
        }
        Ok(Request {
            id,
            session: *session.id(),
            argv: self.argv.iter().map(OsText::from).collect(),
            cwd: OsText::from(&self.cwd),
            env,
            stdin: self.stdin,
            streams: self.streams,
            grace_ms: self.grace.map(millis),
            background,
            can_be_told: self.can_be_told,
            follow: self.follow,
            limits: self.limits,
            stop_grace_ms: millis(self.stop_grace),
            conceal: session.conceals(),
            trace_all: session.runtime().inner.config.policy.trace == TraceRule::All,
            lifetime: self.lifetime,
            survivors: self.survivors,
            cap: self.cap,
            over_cap: self.over_cap,
            hold: self.hold,
            label: self.label,
            consumer: self.consumer,
            trust: self.provenance.trust(),
            delivery: self.delivery,
            notify: self.notify,
            track_changes: self.track_changes.as_ref().map(OsText::from),
            turn: self.turn,
            parent_command: self.parent_command,
            parent_session: self.parent_session,
            umask: inherit::umask(),
            inherited: inherit::limits_with(self.open_files),
        })
    }

    fn check(&self) -> Result<()> {
        let usage = |text: &str| Err(Error::Usage(text.to_owned()));
        let Some(program) = self.argv.first() else { return usage("there is no command to run") };
        if program.as_bytes().iter().all(u8::is_ascii_whitespace) {
            return usage("the program to run is empty");
        }
        let strings = self.argv.iter().chain(self.env.iter().flat_map(|(key, value)| [key, value]));
        if strings.chain([&self.cwd.clone().into_os_string()]).any(|text| text.as_bytes().contains(&0)) {
            return usage("a NUL byte cannot be part of an argument, a path or the environment");
        }
        if self.env.iter().any(|(key, _)| key.is_empty() || key.as_bytes().contains(&b'=')) {
            return usage("the name of an environment variable must not be empty or hold `=`");
        }
        if let Some(name) = self.asked.iter().find(|name| *name == WORK_ID || *name == SESSION) {
            let name = name.display();
            return Err(Error::Usage(format!("{name} says to a command which one it is, and cannot be set for it")));
        }
        if !self.cwd.is_absolute() {
            return Err(Error::Usage(format!("the working directory {} is not an absolute path", self.cwd.display())));
        }
        if matches!(self.stdin, Stdin::Terminal(_)) && self.streams == Streams::Separate {
            return usage("a terminal has one stream of output: separate streams go with no terminal");
        }
        if self.join && !self.notify.is_empty() {
            return usage("what joins another command hears of no lines: `notify` goes with no `join`");
        }
        if let Some(dir) = &self.track_changes {
            if self.join {
                return usage("what joins another command tells no changes: `track_changes` goes with no `join`");
            }
            let what = if !dir.is_absolute() || dir.as_os_str().as_bytes().contains(&0) {
                "no absolute path"
            } else if !dir.is_dir() {
                "no directory"
            } else {
                return self.check_words();
            };
            return Err(Error::Usage(format!("{}, whose changes are to be tracked, is {what}", dir.display())));
        }
        self.check_words()
    }

    fn check_words(&self) -> Result<()> {
        compiled(&self.notify)?;
        let label = self.label.as_deref().map_or(Ok(()), check_label);
        label.map_err(|error| Error::Usage(error.to_string()))?;
        check_name(NameField::Consumer, &self.consumer).map_err(|error| Error::Usage(error.to_string()))
    }
}

/// A duration in milliseconds, as long as the wire can say.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
