//! One call of the command line (or of a shell in the same world) before it is made.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::front::Front;
use crate::output::Output;
use crate::world::World;

/// How long a call may take unless the test says otherwise. It ends hangs; it claims no speed.
pub const DEFAULT_BOUND: Duration = Duration::from_secs(60);

/// A call that is being put together; [`Call::run`] makes it and waits, [`Call::spawn`] makes it and does not.
pub struct Call {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    input: Option<Vec<u8>>,
    keep_input_open: bool,
    stdout: Option<Stdio>,
    bound: Duration,
}

impl Call {
    pub(crate) fn new(world: &World, program: &Path, args: Vec<OsString>) -> Call {
        Call {
            program: program.to_owned(),
            args,
            env: world.environment(),
            cwd: world.work(),
            input: None,
            keep_input_open: false,
            stdout: None,
            bound: DEFAULT_BOUND,
        }
    }

    /// Sets one environment entry of the call.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl Into<OsString>) -> Call {
        self = self.without(key);
        self.env.push((key.into(), value.into()));
        self
    }

    /// Takes one environment entry away.
    #[must_use]
    pub fn without(mut self, key: &str) -> Call {
        self.env.retain(|(known, _)| known != key);
        self
    }

    /// Speaks for another session.
    #[must_use]
    pub fn session(self, id: &str) -> Call {
        self.env("OUTLAST_SESSION", id)
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Call {
        self.cwd = dir.into();
        self
    }

    /// Gives standard input these bytes and then closes it; without this it is `/dev/null`.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Call {
        self.input = Some(bytes.into());
        self
    }

    /// Leaves standard input open and silent.
    #[must_use]
    pub fn open_input(mut self) -> Call {
        self.keep_input_open = true;
        self
    }

    /// Sends standard output elsewhere; the [`Output`] then has none.
    #[must_use]
    pub fn stdout(mut self, to: impl Into<Stdio>) -> Call {
        self.stdout = Some(to.into());
        self
    }

    /// Bounds the call; past it the test fails with the whole story.
    #[must_use]
    pub fn within(mut self, bound: Duration) -> Call {
        self.bound = bound;
        self
    }

    /// Makes the call and waits for its end.
    ///
    /// # Panics
    /// When it does not end in its bound, or prints JSON against the contract.
    #[track_caller]
    pub fn run(self) -> Output {
        self.spawn().wait()
    }

    /// Makes the call and leaves it running.
    pub fn spawn(self) -> Front {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.env).current_dir(&self.cwd);
        let piped_input = self.input.is_some() || self.keep_input_open;
        command.stdin(if piped_input { Stdio::piped() } else { Stdio::null() });
        command.stdout(self.stdout.unwrap_or_else(Stdio::piped)).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.program));
        let args = self.args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Front::new(child, args, self.input, self.bound)
    }
}
