//! Other tools that run a command out of sight and wait for it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;
use crate::place::Place;

/// How long a daemon may take to begin.
const START_BOUND: Duration = Duration::from_secs(10);

/// Which tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `tsp` of Debian's task-spooler.
    TaskSpooler,
    /// `nq`.
    Nq,
    /// `pueue` with its daemon `pueued`.
    Pueue,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::TaskSpooler, Kind::Nq, Kind::Pueue];

    /// The key under which the script says where it is.
    pub fn key(self) -> &'static str {
        match self {
            Kind::TaskSpooler => "tsp",
            Kind::Nq => "nq",
            Kind::Pueue => "pueue",
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::TaskSpooler => "task-spooler",
            Kind::Nq => "nq",
            Kind::Pueue => "pueue",
        }
    }
}

/// A tool that is installed here.
pub struct Peer {
    /// Which one.
    pub kind: Kind,
    /// The program.
    pub program: PathBuf,
    /// Where it keeps its files.
    pub home: PathBuf,
}

/// A tool that takes commands, with whatever it needs in the background.
pub struct Open<'a> {
    peer: &'a Peer,
    place: &'a Place,
    daemon: Option<Child>,
}

impl Peer {
    /// Starts what it needs.
    pub fn open<'a>(&'a self, place: &'a Place) -> Result<Open<'a>> {
        std::fs::create_dir_all(self.home.join("config/pueue"))?;
        let mut open = Open { peer: self, place, daemon: None };
        match self.kind {
            // The first call of all starts its server.
            Kind::TaskSpooler => done(&mut open.program())?,
            Kind::Nq => {}
            Kind::Pueue => open.start_daemon()?,
        }
        Ok(open)
    }
}

impl Open<'_> {
    /// Which tool it is.
    pub fn kind(&self) -> Kind {
        self.peer.kind
    }

    /// Adds `true` and waits for it: the calls that a caller makes who has to know the end.
    pub fn call(&self) -> Result<()> {
        let id = self.add()?;
        self.wait(&id)
    }

    /// Adds `true`, and returns what names it.
    pub fn add(&self) -> Result<String> {
        let mut program = self.program();
        if self.peer.kind == Kind::Pueue {
            program.args(["add", "--print-task-id"]);
        }
        let told = program.arg("true").stdout(Stdio::piped()).output()?;
        let id = String::from_utf8_lossy(&told.stdout).trim().to_owned();
        if told.status.success() && !id.is_empty() {
            return Ok(id);
        }
        Err(format!("{} did not take a command: {}", self.peer.kind.name(), told.status).into())
    }

    /// Waits for one that was added.
    pub fn wait(&self, id: &str) -> Result<()> {
        let mut program = self.program();
        match self.peer.kind {
            Kind::TaskSpooler | Kind::Nq => program.args(["-w", id]),
            Kind::Pueue => program.args(["wait", "--quiet", id]),
        };
        done(&mut program)
    }

    /// Ends what it needed.
    pub fn close(mut self) -> Result<()> {
        match self.peer.kind {
            Kind::TaskSpooler => done(self.program().arg("-K")),
            Kind::Nq => Ok(()),
            Kind::Pueue => {
                done(self.program().arg("shutdown"))?;
                if let Some(daemon) = &mut self.daemon {
                    daemon.wait()?;
                }
                Ok(())
            }
        }
    }

    fn program(&self) -> Command {
        self.with_home(self.place.program(&self.peer.program))
    }

    fn with_home(&self, mut program: Command) -> Command {
        let home = &self.peer.home;
        program.env("TMPDIR", home).env("TS_SOCKET", home.join("socket")).env("TS_MAXFINISHED", "100000");
        program.env("NQDIR", home);
        program.env("XDG_RUNTIME_DIR", home).env("XDG_DATA_HOME", home).env("XDG_CONFIG_HOME", home.join("config"));
        program
    }

    /// Starts pueue's daemon. It tells nobody when it takes calls, so it is asked until it answers.
    fn start_daemon(&mut self) -> Result<()> {
        let mut daemon = self.with_home(self.place.program(self.peer.program.with_file_name("pueued"))).spawn()?;
        let until = Instant::now() + START_BOUND;
        while done(self.program().arg("status")).is_err() {
            if Instant::now() > until || daemon.try_wait()?.is_some() {
                daemon.kill()?;
                daemon.wait()?;
                return Err("pueued does not answer".into());
            }
        }
        self.daemon = Some(daemon);
        Ok(())
    }
}

/// Runs a program to its end; an error unless that is 0.
pub fn done(program: &mut Command) -> Result<()> {
    let status = program.status()?;
    if status.success() { Ok(()) } else { Err(format!("{} {status}", program.get_program().display()).into()) }
}
