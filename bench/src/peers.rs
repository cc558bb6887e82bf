//! Tools that run a command out of sight: outlast, others of its kind, and the shell itself.
//!
//! Each is used as its manual says, with the settings that serve it best. What a tool cannot do is `None`.

mod home;
mod outlast;
mod pueue;
mod task_spooler;
mod nq;
mod shell;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Result;
use crate::place::{Place, readable_within};
pub use home::{Home, TOOL};
pub use outlast::own;

/// How long a call may take that only adds, asks or stops.
const CALL_BOUND: Duration = Duration::from_secs(20);

/// Which tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// This project.
    Outlast,
    /// `pueue` with its daemon `pueued`.
    Pueue,
    /// `tsp` of Debian's task-spooler.
    TaskSpooler,
    /// `nq`.
    Nq,
    /// `sh` with `nohup`, `setsid` and files.
    Shell,
}

impl Kind {
    /// All of them, in the order in which they stand in tables.
    pub const ALL: [Kind; 5] = [Kind::Outlast, Kind::Pueue, Kind::TaskSpooler, Kind::Nq, Kind::Shell];
    /// Those that must be installed to take part.
    pub const OTHERS: [Kind; 3] = [Kind::TaskSpooler, Kind::Nq, Kind::Pueue];

    /// The key under which the script says where it is.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Outlast => "outlast",
            Kind::Pueue => "pueue",
            Kind::TaskSpooler => "tsp",
            Kind::Nq => "nq",
            Kind::Shell => "sh",
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Outlast => "outlast",
            Kind::Pueue => "pueue",
            Kind::TaskSpooler => "task-spooler",
            Kind::Nq => "nq",
            Kind::Shell => "shell",
        }
    }

    /// How it is used here, in a sentence.
    pub fn usage(self) -> &'static str {
        match self {
            Kind::Outlast => outlast::USAGE,
            Kind::Pueue => pueue::USAGE,
            Kind::TaskSpooler => task_spooler::USAGE,
            Kind::Nq => nq::USAGE,
            Kind::Shell => shell::USAGE,
        }
    }
}

/// A tool that is installed here.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Which one.
    pub kind: Kind,
    /// The program.
    pub program: PathBuf,
}

impl Peer {
    /// Starts what it needs, with files of its own below a directory, to run so many commands at once.
    pub fn open<'a>(&self, place: &'a Place, dir: &Path, slots: usize) -> Result<Box<dyn Open + 'a>> {
        std::fs::create_dir_all(dir)?;
        let home = Home { place, program: self.program.clone(), dir: dir.to_owned() };
        Ok(match self.kind {
            Kind::Outlast => Box::new(outlast::Outlast::open(home)?),
            Kind::Pueue => Box::new(pueue::Pueue::open(home, slots)?),
            Kind::TaskSpooler => Box::new(task_spooler::TaskSpooler::open(home, slots)?),
            Kind::Nq => Box::new(nq::Nq::open(home)),
            Kind::Shell => Box::new(shell::Shell::open(home)),
        })
    }
}

/// What a tool says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// No end is told: it runs, or will, as far as the tool knows.
    Running,
    /// It ended with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It was killed or stopped; no number is told.
    Killed,
    /// A time limit ended it, said in so many words.
    TimedOut,
    /// It is over, and nobody knows how.
    Unknown,
    /// Nothing is said of it.
    Nothing,
}

impl Told {
    /// In words.
    pub fn text(self) -> String {
        match self {
            Told::Running => "no end".to_owned(),
            Told::Code(code) => format!("code {code}"),
            Told::Signal(signal) => format!("signal {signal}"),
            Told::Killed => "killed".to_owned(),
            Told::TimedOut => "timed out".to_owned(),
            Told::Unknown => "over, how is not known".to_owned(),
            Told::Nothing => "nothing of it".to_owned(),
        }
    }
}

/// A tool that takes commands, with whatever it needs in the background.
pub trait Open: Sync {
    /// Which tool it is.
    fn kind(&self) -> Kind;

    /// Puts a command into the background, and returns what names it. Only nq has lanes: it runs one command at a
    /// time, so commands that are to run at once need a directory each.
    fn add(&self, lane: usize, words: &[&str]) -> Result<String>;

    /// The one call that runs a command in the foreground, where there is one.
    fn call(&self, words: &[&str]) -> Option<Command>;

    /// Waits for a command that was added; false at the bound.
    fn wait(&self, id: &str, bound: Duration) -> Result<bool>;

    /// What it says of a command now.
    fn told(&self, id: &str) -> Result<Told>;

    /// What a command has printed, byte for byte.
    fn output(&self, id: &str) -> Result<Vec<u8>>;

    /// Bytes on disk of what a command has printed.
    fn stored(&self, id: &str) -> Result<u64>;

    /// Stops a command; it may go on for a moment.
    fn stop(&self, id: &str) -> Result<()>;

    /// Words that run a command under a time limit of a second, where the tool itself has one.
    fn limited(&self, words: &[&str]) -> Result<Option<String>>;

    /// The last command that it knows of.
    fn newest(&self) -> Result<Option<String>>;

    /// The ends that it tells a consumer who asks.
    fn ask(&self, consumer: &str) -> Result<Vec<(String, Told)>>;

    /// Takes commands that ended off its list, where that is a caller's work.
    fn clear(&self, ids: &[String]) -> Result<()>;

    /// Starts what somebody killed, where that does not happen by itself.
    fn revive(&self) -> Result<()>;

    /// Ends what it needed.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Runs a program to its end; an error unless that is 0.
pub fn done(program: &mut Command) -> Result<()> {
    let status = program.status()?;
    if status.success() { Ok(()) } else { Err(format!("{} {status}", program.get_program().display()).into()) }
}

/// Runs a program to its end; none, and its end, at the bound.
pub fn within(program: &mut Command, bound: Duration) -> Result<Option<ExitStatus>> {
    let mut child = program.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("a child has no pid")?;
    // It is not reaped yet, so the pid is its own.
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    if readable_within(&pidfd, bound)? {
        return Ok(Some(child.wait()?));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Runs a program and returns what it printed; an error unless its end was 0, in time.
pub fn printed(program: &mut Command) -> Result<String> {
    let mut child = program.stdout(Stdio::piped()).spawn()?;
    let printed = read_to_end(&mut child, Instant::now() + CALL_BOUND)?;
    if printed.is_none() {
        child.kill()?;
    }
    let status = child.wait()?;
    match printed {
        Some(printed) if status.success() => Ok(String::from_utf8_lossy(&printed).into_owned()),
        Some(_) => Err(format!("{} {status}", program.get_program().display()).into()),
        None => {
            Err(format!("{} does not return in {} s", program.get_program().display(), CALL_BOUND.as_secs()).into())
        }
    }
}

/// What a child prints; none where that does not end in time.
pub fn read_to_end(child: &mut Child, until: Instant) -> Result<Option<Vec<u8>>> {
    let from = OwnedFd::from(child.stdout.take().ok_or("the call has no output")?);
    let mut printed = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while readable_within(&from, rest(until))? {
        let count = rustix::io::read(&from, &mut buffer)?;
        if count == 0 {
            return Ok(Some(printed));
        }
        printed.extend_from_slice(&buffer[..count]);
    }
    Ok(None)
}

/// What is left of a bound.
pub fn rest(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
