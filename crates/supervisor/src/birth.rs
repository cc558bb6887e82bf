//! Starts the leader of a command: pipes, directory, environment, program.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::context::Context;
use outlast_core::request::{OsText, Request, Stdin, Streams};
use outlast_host::inherit;
use outlast_host::proc::{self, ProcError};
use outlast_host::program::{recorded_program, resolve_program};
use outlast_host::sys::spawn::{Leader, LeaderPlan, spawn_leader};
use outlast_host::terminal::Terminal;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::Resource;

/// How much more readily the kernel picks the command than its supervisor when memory runs out.
const OOM_SCORE: i32 = 300;

/// A step that failed before or while the leader was started.
#[derive(Debug)]
pub struct Failed {
    /// Its name: `argv`, `cwd`, `exec`, …
    pub step: &'static str,
    /// Why.
    pub errno: Errno,
    /// The path or name that it failed on.
    pub what: String,
}

/// A leader that runs, and our ends of its pipes.
pub struct Born {
    /// The leader.
    pub leader: Leader,
    /// What it prints; the second only with separate streams.
    pub outputs: Vec<OwnedFd>,
    /// What it reads, where it was asked for.
    pub stdin: Option<OwnedFd>,
    /// The command's end of its terminal, where it has one.
    pub terminal: Option<OwnedFd>,
}

/// A command whose directory and program were found, ready to start.
pub struct Prepared {
    cwd: OwnedFd,
    file: PathBuf,
    /// The program as it is recorded.
    pub program: OsText,
}

/// Finds directory and program, so that what is missing fails before anything is made.
pub fn prepare(request: &Request) -> Result<Prepared, Failed> {
    let Some(name) = request.argv.first().filter(|name| !name.0.is_empty()) else {
        return Err(Failed { step: "argv", errno: Errno::INVAL, what: "the program is empty".into() });
    };
    if let Some(bad) =
        request.argv.iter().chain(request.env.iter().flat_map(|(k, v)| [k, v])).find(|t| t.0.contains(&0))
    {
        let what = format!("an argument or environment entry holds a NUL byte: {:?}", bad.lossy());
        return Err(Failed { step: "argv", errno: Errno::INVAL, what });
    }
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let cwd = rustix::fs::open(request.cwd.to_os(), flags, Mode::empty()).map_err(|errno| Failed {
        step: "cwd",
        errno,
        what: request.cwd.lossy(),
    })?;
    let path = request.env.iter().rev().find(|(key, _)| key.0 == b"PATH").map(|(_, value)| value.to_os());
    let name = OsStr::from_bytes(&name.0);
    let file = resolve_program(name, path.as_deref(), &cwd).map_err(|errno| Failed {
        step: "exec",
        errno,
        what: name.to_string_lossy().into_owned(),
    })?;
    let program = OsText::from(recorded_program(name, Some(&file), &cwd));
    Ok(Prepared { cwd, file, program })
}

impl Prepared {
    /// Starts the leader; its standard input is `/dev/null` unless another is asked for.
    pub fn start(self, request: &Request, context: &Context, cgroup: Option<&impl AsFd>) -> Result<Born, Failed> {
        let ends = Ends::open(request)?;
        let plan = LeaderPlan {
            program: c_string(self.file.into_os_string().into_vec()),
            argv: request.argv.iter().map(|text| c_string(text.0.clone())).collect(),
            env: environment(request),
            cwd: self.cwd.as_fd(),
            stdin: ends.stdin.as_ref().or(ends.terminal()).unwrap_or(&context.null).as_fd(),
            terminal: ends.terminal().is_some(),
            stdout: ends.stdout.as_fd(),
            stderr: ends.stderr.as_ref().unwrap_or(&ends.stdout).as_fd(),
            cgroup: cgroup.map(AsFd::as_fd),
            rlimits: rlimits(request)?,
            inherited: inherit::differing(&request.inherited, &context.limits),
            umask: request.umask.map(Mode::from_raw_mode),
            oom_score_adj: Some(OOM_SCORE),
        };
        let what = plan.program.to_string_lossy().into_owned();
        let leader = spawn_leader(&plan).map_err(|error| Failed { step: error.step, errno: error.errno, what })?;
        let Ends { outputs, input, stdout, is_terminal, .. } = ends;
        Ok(Born { leader, outputs, stdin: input, terminal: is_terminal.then_some(stdout) })
    }
}

/// Both ends of the command's streams: the first three are the command's, the others ours.
struct Ends {
    /// None where `/dev/null` or the terminal takes its place.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    /// None where it is the same as `stdout`.
    stderr: Option<OwnedFd>,
    outputs: Vec<OwnedFd>,
    input: Option<OwnedFd>,
    /// Whether `stdout` is a terminal, which `stdin` is then too.
    is_terminal: bool,
}

impl Ends {
    fn open(request: &Request) -> Result<Ends, Failed> {
        let pipe_failed = |errno| Failed { step: "pipe", errno, what: "a pipe for a stream".into() };
        if let Stdin::Terminal(size) = request.stdin {
            let opened = Terminal::open(size).and_then(|Terminal { ours, theirs }| {
                let input = rustix::io::fcntl_dupfd_cloexec(&ours, 3)?;
                let (outputs, input) = (vec![ours], Some(input));
                Ok(Ends { stdin: None, stdout: theirs, stderr: None, outputs, input, is_terminal: true })
            });
            let what = || "a pseudo-terminal (/dev/ptmx, and devpts at /dev/pts)".to_owned();
            return opened.map_err(|errno| Failed { step: "terminal", errno, what: what() });
        }
        let (out_read, stdout) = capture_pipe().map_err(pipe_failed)?;
        let mut ends =
            Ends { stdin: None, stdout, stderr: None, outputs: vec![out_read], input: None, is_terminal: false };
        if request.streams == Streams::Separate {
            let (read, write) = capture_pipe().map_err(pipe_failed)?;
            ends.outputs.push(read);
            ends.stderr = Some(write);
        }
        if request.stdin == Stdin::Open {
            let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(pipe_failed)?;
            set_nonblocking(&write).map_err(pipe_failed)?;
            (ends.stdin, ends.input) = (Some(read), Some(write));
        }
        Ok(ends)
    }

    fn terminal(&self) -> Option<&OwnedFd> {
        self.is_terminal.then_some(&self.stdout)
    }
}

fn capture_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&read)?;
    Ok((read, write))
}

fn set_nonblocking(fd: &OwnedFd) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)
}

fn c_string(bytes: Vec<u8>) -> CString {
    CString::new(bytes).expect("NUL bytes were refused before")
}

fn environment(request: &Request) -> Vec<CString> {
    let own = [("OUTLAST_SESSION", request.session.to_string()), ("OUTLAST_WORK_ID", request.id.to_string())];
    let given = request.env.iter().filter(|(key, _)| own.iter().all(|(name, _)| key.0 != name.as_bytes()));
    let given = given.map(|(key, value)| c_string([&key.0[..], b"=", &value.0[..]].concat()));
    given.chain(own.iter().map(|(key, value)| c_string(format!("{key}={value}").into_bytes()))).collect()
}

fn rlimits(request: &Request) -> Result<Vec<(Resource, u64)>, Failed> {
    let limits = &request.limits;
    let failed = |error: ProcError| Failed { step: "rlimit", errno: error.errno, what: error.path };
    let present = limits.more_processes.map(|_| proc::threads_of_user()).transpose().map_err(failed)?;
    let processes = limits.more_processes.zip(present).map(|(more, present)| present.saturating_add(more));
    let all = [
        (Resource::Cpu, limits.cpu_s),
        (Resource::Fsize, limits.file_size),
        (Resource::Nofile, limits.files),
        (Resource::As, limits.address_space),
        (Resource::Core, limits.core),
        (Resource::Nproc, processes),
    ];
    Ok(all.into_iter().filter_map(|(resource, limit)| Some((resource, limit?))).collect())
}
