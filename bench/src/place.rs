//! Where a run happens: a directory of its own, and proof at its end that nothing is left.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlast::{Config, RunRequest, Runtime, Session, SessionOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Result;

/// Where programs are looked for by everything that is started here.
const SEARCH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How long the last processes are given to go away by themselves.
const LEAVE_BOUND: Duration = Duration::from_secs(30);
/// How long the end of a session may take; a thousand commands take their time.
pub const END_BOUND: Duration = Duration::from_secs(120);

/// Threads that remove what is left on disk.
const REMOVERS: usize = 16;

/// A directory with copies of both binaries and a state directory.
pub struct Place {
    dir: PathBuf,
}

impl Place {
    /// Makes it. The copies make every process of this run known by the path of its executable.
    pub fn make(dir: &Path, outlast: &Path) -> Result<Place> {
        std::fs::create_dir_all(dir.join("bin"))?;
        let place = Place { dir: dir.canonicalize()? };
        std::fs::copy(outlast, place.outlast())?;
        std::fs::copy(std::env::current_exe()?, place.stand_in())?;
        Ok(place)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The binary that is measured.
    pub fn outlast(&self) -> PathBuf {
        self.dir.join("bin/outlast")
    }

    /// The binary that stands in for commands.
    pub fn stand_in(&self) -> PathBuf {
        self.dir.join("bin/outlast-bench")
    }

    /// Refuses a run that would fill the disk: logs of both sides, and as much again to breathe. The remedy is told then.
    pub fn check_space(&self, bytes: u64, remedy: &str) -> Result<()> {
        let free = rustix::fs::statvfs(&self.dir)?;
        let free = free.f_bavail.saturating_mul(free.f_frsize);
        if free < bytes * 3 {
            return Err(
                format!("{} MiB are free and {} MiB are needed: {remedy}", free >> 20, (bytes * 3) >> 20).into()
            );
        }
        Ok(())
    }

    /// The environment of everything that is started here.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let pairs = [
            ("PATH", OsString::from(SEARCH)),
            ("HOME", self.dir.clone().into()),
            ("OUTLAST_STATE_DIR", self.state().into()),
        ];
        pairs.map(|(key, value)| (key.into(), value)).into()
    }

    /// A program with that environment, and nothing to read or to print to.
    pub fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().envs(self.environment()).current_dir(&self.dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A request of the library for the same.
    pub fn request(&self, argv: &[&str]) -> RunRequest {
        RunRequest::new(argv, &self.dir, self.environment())
    }

    /// A request for a stand-in.
    pub fn stand_in_request(&self, argv: &[&str]) -> RunRequest {
        let words = std::iter::once(self.stand_in().into_os_string()).chain(argv.iter().map(OsString::from));
        RunRequest::new(words, &self.dir, self.environment())
    }

    /// A runtime that nothing is remembered in.
    pub fn runtime(&self) -> Result<Runtime> {
        let mut config = Config::new(self.state());
        config.executable = Some(self.outlast());
        Ok(Runtime::open(config)?)
    }

    /// A session that this process owns, without a cap, whose commands go with this process.
    pub async fn session(&self) -> Result<Session> {
        let options = SessionOptions { running_cap: 0, linger: Duration::ZERO, ..SessionOptions::default() };
        Ok(self.runtime()?.create_session(options).await?)
    }

    /// Ends every session that is still open.
    pub async fn end_sessions(&self) -> Result<()> {
        let Ok(found) = std::fs::read_dir(self.state().join("sessions")) else { return Ok(()) };
        let runtime = self.runtime()?;
        for entry in found {
            let name = entry?.file_name();
            let Ok(id) = name.to_string_lossy().parse() else { continue };
            end(&runtime.open_session(&id).await?).await?;
        }
        Ok(())
    }

    /// Removes everything; an error if a process of this run lives on.
    pub fn finish(self) -> Result<()> {
        self.until_alone()?;
        self.remove_commands()?;
        std::fs::remove_dir_all(&self.dir)?;
        Ok(())
    }

    /// Removes the records of commands, many at a time: a file system that is mounted with `discard` (ext4(5)) waits for
    /// the disk at each file, and there can be half a million of them.
    fn remove_commands(&self) -> Result<()> {
        let mut records = Vec::new();
        for session in entries(&self.state().join("sessions"))? {
            records.extend(entries(&session.join("work"))?);
        }
        let share = records.len().div_ceil(REMOVERS).max(1);
        std::thread::scope(|scope| {
            let shares: Vec<_> = records
                .chunks(share)
                .map(|share| scope.spawn(|| share.iter().try_for_each(std::fs::remove_dir_all)))
                .collect();
            shares.into_iter().try_for_each(|share| share.join().map_err(|_| "a thread panicked")?.map_err(Into::into))
        })
    }

    /// Waits until no other process of this run lives; an error at the bound.
    pub fn until_alone(&self) -> Result<()> {
        let until = Instant::now() + LEAVE_BOUND;
        loop {
            let left = self.processes()?;
            let Some((pid, name)) = left.first() else { return Ok(()) };
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() || !ends_within(*pid, rest)? {
                return Err(format!("{} processes are left, the first is {pid} ({name})", left.len()).into());
            }
        }
    }

    /// Living processes of this run but this one: by their executable, or by their environment.
    fn processes(&self) -> Result<Vec<(u32, String)>> {
        let needle = self.dir.as_os_str().as_encoded_bytes();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let entry = entry?;
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            // A process that goes away while it is looked at is not left.
            let Ok(exe) = std::fs::read_link(entry.path().join("exe")) else { continue };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let ours = exe.starts_with(&self.dir) || environment.windows(needle.len()).any(|part| part == needle);
            if ours && pid != std::process::id() {
                found.push((pid, exe.display().to_string()));
            }
        }
        Ok(found)
    }

    fn state(&self) -> PathBuf {
        self.dir.join("state")
    }
}

/// What is in a directory; nothing where it is not there.
fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let Ok(found) = std::fs::read_dir(dir) else { return Ok(Vec::new()) };
    found.map(|entry| Ok(entry?.path())).collect()
}

/// Ends a session and whatever runs in it.
pub async fn end(session: &Session) -> Result<()> {
    session.end("benchmark", END_BOUND, true).await?;
    Ok(())
}

/// Waits until a process has ended; false at the bound.
fn ends_within(pid: u32, bound: Duration) -> Result<bool> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(true) };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(true) };
    readable_within(&pidfd, bound)
}

/// Makes a FIFO and opens it for reading, so that whoever writes into it does not wait.
pub fn make_fifo(path: &Path) -> Result<OwnedFd> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    open_fifo(path)
}

/// Opens a FIFO for reading, whether somebody writes or not.
pub fn open_fifo(path: &Path) -> Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?)
}

/// Bytes of a file on disk.
pub fn stored(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path)?.blocks() * 512)
}

/// Waits until there is something to read; false at the bound.
pub fn readable_within(fd: &OwnedFd, bound: Duration) -> Result<bool> {
    let bound = Timespec::try_from(bound)?;
    Ok(poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&bound))? > 0)
}
