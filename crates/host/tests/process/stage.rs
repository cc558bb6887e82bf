//! What the tests share: a stage on which a leader is started, and roles played in a process of their own.

use outlast_host::sys::pidfd;
use outlast_host::sys::spawn::{Leader, LeaderPlan, SpawnError, spawn_leader};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use std::ffi::CString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Stderr, Write};
use std::process::Command;

/// True in a process that runs this one test; elsewhere such a process is made, and must pass.
///
/// Tests that reap every child of theirs cannot share a process. nextest gives each its own.
pub fn alone() -> bool {
    const ALONE: &str = "OUTLAST_TEST_ALONE";
    let thread = std::thread::current();
    let shared = thread.name().filter(|name| *name != "main");
    let Some(name) = shared.filter(|_| ["NEXTEST", ALONE].iter().all(|key| std::env::var_os(key).is_none())) else {
        return true;
    };
    let own = std::env::current_exe().expect("own path");
    let test = Command::new(own).args([name, "--exact", "--nocapture"]).env(ALONE, "1").output().expect("start");
    let told = String::from_utf8_lossy(&test.stdout).into_owned() + &String::from_utf8_lossy(&test.stderr);
    assert!(test.status.success(), "{told}");
    print!("{told}");
    false
}

/// The descriptors that a leader needs, with pipes at its stdin and its stdout.
pub struct Stage {
    cwd: OwnedFd,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: Stderr,
    input: File,
    output: BufReader<File>,
}

impl Stage {
    pub fn new() -> Self {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("pipe");
        let cwd = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("root");
        let ((stdin, input), (output, stdout)) = (pipe(), pipe());
        Self {
            cwd,
            stdin,
            stdout,
            stderr: std::io::stderr(),
            input: input.into(),
            output: BufReader::new(output.into()),
        }
    }

    pub fn plan(&self, program: &str, arguments: &[&str]) -> LeaderPlan<'_> {
        let text = |text: &str| CString::new(text).expect("no NUL");
        LeaderPlan {
            program: text(program),
            argv: [program].iter().chain(arguments).map(|argument| text(argument)).collect(),
            env: vec![text("PATH=/usr/bin:/bin"), text("LC_ALL=C")],
            cwd: self.cwd.as_fd(),
            stdin: self.stdin.as_fd(),
            terminal: false,
            stdout: self.stdout.as_fd(),
            stderr: self.stderr.as_fd(),
            cgroup: None,
            rlimits: vec![],
            inherited: vec![],
            umask: None,
            oom_score_adj: None,
        }
    }

    pub fn shell(&self, script: &str) -> Tree {
        Tree::start(&self.plan("/bin/sh", &["-c", script])).expect("start")
    }

    /// Writes a line to the leader's stdin.
    pub fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("write");
    }

    /// Waits for the next line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("read");
        line.trim_end().to_owned()
    }

    /// Everything that is written until nobody can write any more.
    pub fn rest(self) -> String {
        let Self { stdin, stdout, input, mut output, .. } = self;
        drop((stdin, stdout, input));
        let mut text = String::new();
        output.read_to_string(&mut text).expect("read");
        text
    }
}

/// A leader whose group is killed at the end of the test.
pub struct Tree(pub Leader);

impl Tree {
    pub fn start(plan: &LeaderPlan<'_>) -> Result<Self, SpawnError> {
        spawn_leader(plan).map(Self)
    }

    pub fn wait(&self) -> outlast_host::sys::reap::WaitStatus {
        pidfd::wait_exit(&self.0.pidfd).expect("our child")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Whatever is gone already needs no end.
        let _ = pidfd::signal_group(&self.0.pidfd, Signal::KILL);
        let _ = pidfd::wait_exit(&self.0.pidfd);
    }
}

/// Waits until the process has ended, or with `HUP` until it was reaped too. Fails after 20 seconds.
pub fn await_end(pidfd: &OwnedFd, what: PollFlags) {
    let bound = Timespec { tv_sec: 20, tv_nsec: 0 };
    let count = poll(&mut [PollFd::new(pidfd, what)], Some(&bound)).expect("poll");
    assert_eq!(count, 1, "the process did not end");
}

const ROLE: &str = "OUTLAST_HOST_TEST_ROLE";

/// Whether this process was started by [`role`] for the part of a test that needs a process of its own.
pub fn is_role() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// Runs test `name` again in another process, where [`is_role`] is true.
pub fn role(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args([name, "--exact", "--test-threads=1", "--nocapture"]).env(ROLE, name);
    command
}
