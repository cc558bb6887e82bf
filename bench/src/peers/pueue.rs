//! pueue and its daemon.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use serde_json::Value;

use crate::Result;
use crate::peers::{Home, Kind, Open, Told, done, printed, rest};
use crate::place::{self, readable_within};

/// How it is used.
pub const USAGE: &str = "`add --escape -- exec …`, so that no shell stands between, a daemon of its own on a Unix socket, `parallel` as the row says; its `wait` looks \
    every two seconds, so its callback tells the end through a FIFO; a consumer asks with `status --json` and clears with \
    `remove`; a call is `add --immediate --follow`, which prints the output and ends with 0 whatever the code of the command: \
    that must be asked for";

/// How long the daemon may take to begin or to go.
const DAEMON_BOUND: Duration = Duration::from_secs(10);

/// A daemon, and what it has told by its callback.
pub struct Pueue<'a> {
    home: Home<'a>,
    daemon: Mutex<Child>,
    ended: Mutex<Ended>,
}

struct Ended {
    callbacks: File,
    line: Vec<u8>,
    ids: BTreeSet<String>,
}

impl Pueue<'_> {
    /// Writes its settings and starts the daemon.
    pub fn open(home: Home<'_>, slots: usize) -> Result<Pueue<'_>> {
        let fifo = home.at("ended");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // For reading and writing, so that it never ends between two callbacks (fifo(7)).
        let callbacks = File::from(rustix::fs::open(&fifo, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty())?);
        let dir = home.dir.display();
        let settings = format!(
            "shared:\n  pueue_directory: {dir}/data\n  runtime_directory: {dir}\n  use_unix_socket: true\n  \
             unix_socket_path: {dir}/socket\ndaemon:\n  callback: \"echo {{{{id}}}} > {dir}/ended\"\n"
        );
        std::fs::write(home.at("pueue.yml"), settings)?;
        let daemon = Mutex::new(start(&home)?);
        let ended = Mutex::new(Ended { callbacks, line: Vec::new(), ids: BTreeSet::new() });
        let pueue = Pueue { home, daemon, ended };
        done(pueue.program().args(["parallel", &slots.to_string()]))?;
        Ok(pueue)
    }

    fn program(&self) -> Command {
        client(&self.home)
    }

    fn tasks(&self) -> Result<Value> {
        let mut status: Value = serde_json::from_str(&printed(self.program().args(["status", "--json"]))?)?;
        Ok(status["tasks"].take())
    }
}

impl Open for Pueue<'_> {
    fn kind(&self) -> Kind {
        Kind::Pueue
    }

    fn add(&self, _lane: usize, words: &[&str]) -> Result<String> {
        // It runs a line with a shell, which `exec` replaces.
        let told = printed(self.program().args(["add", "--print-task-id", "--escape", "--", "exec"]).args(words))?;
        Ok(told.trim().to_owned())
    }

    fn call(&self, words: &[&str]) -> Option<Command> {
        let mut program = self.program();
        program.args(["add", "--immediate", "--follow", "--escape", "--", "exec"]).args(words);
        Some(program)
    }

    fn wait(&self, id: &str, bound: Duration) -> Result<bool> {
        let until = Instant::now() + bound;
        let mut ended = self.ended.lock().map_err(|_| "a thread panicked")?;
        loop {
            ended.take();
            if ended.ids.contains(id) {
                return Ok(true);
            }
            let fd = OwnedFd::from(ended.callbacks.try_clone()?);
            if !readable_within(&fd, rest(until))? {
                return Ok(false);
            }
        }
    }

    fn told(&self, id: &str) -> Result<Told> {
        Ok(end(&self.tasks()?[id]))
    }

    fn output(&self, id: &str) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.home.at(format!("data/task_logs/{id}.log")))?)
    }

    fn stored(&self, id: &str) -> Result<u64> {
        place::stored(&self.home.at(format!("data/task_logs/{id}.log")))
    }

    fn stop(&self, id: &str) -> Result<()> {
        done(self.program().args(["kill", id]))
    }

    fn limited(&self, _words: &[&str]) -> Result<Option<String>> {
        Ok(None)
    }

    fn newest(&self) -> Result<Option<String>> {
        let tasks = self.tasks()?;
        let ids = tasks.as_object().into_iter().flatten().filter_map(|(id, _)| id.parse::<u64>().ok());
        Ok(ids.max().map(|id| id.to_string()))
    }

    fn ask(&self, _consumer: &str) -> Result<Vec<(String, Told)>> {
        let tasks = self.tasks()?;
        let all = tasks.as_object().into_iter().flatten().map(|(id, task)| (id.clone(), end(task)));
        Ok(all.filter(|(_, told)| *told != Told::Running).collect())
    }

    fn clear(&self, ids: &[String]) -> Result<()> {
        done(self.program().arg("remove").args(ids))
    }

    fn revive(&self) -> Result<()> {
        let mut daemon = self.daemon.lock().map_err(|_| "a thread panicked")?;
        if daemon.try_wait()?.is_some() {
            *daemon = start(&self.home)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let mut daemon = self.daemon.into_inner().map_err(|_| "a thread panicked")?;
        if daemon.try_wait()?.is_none() && done(client(&self.home).arg("shutdown")).is_err() {
            daemon.kill()?;
        }
        daemon.wait()?;
        Ok(())
    }
}

impl Ended {
    /// Takes what the callback has told.
    fn take(&mut self) {
        let mut buffer = [0; 4096];
        // An error is an empty FIFO.
        while let Ok(count @ 1..) = self.callbacks.read(&mut buffer) {
            self.line.extend_from_slice(&buffer[..count]);
        }
        while let Some(at) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=at).collect();
            self.ids.insert(String::from_utf8_lossy(&line).trim().to_owned());
        }
    }
}

fn client(home: &Home<'_>) -> Command {
    let mut program = home.program();
    program.arg("--config").arg(home.at("pueue.yml"));
    program
}

/// Starts the daemon. It tells nobody when it takes calls, so it is asked until it answers.
fn start(home: &Home<'_>) -> Result<Child> {
    let mut daemon = home.other(home.program.with_file_name("pueued"));
    let mut daemon = daemon.arg("--config").arg(home.at("pueue.yml")).spawn()?;
    let until = Instant::now() + DAEMON_BOUND;
    while done(client(home).arg("status")).is_err() {
        if Instant::now() > until || daemon.try_wait()?.is_some() {
            daemon.kill()?;
            daemon.wait()?;
            return Err("pueued does not answer".into());
        }
    }
    Ok(daemon)
}

/// What a task of `status --json` says.
fn end(task: &Value) -> Told {
    if task.is_null() {
        return Told::Nothing;
    }
    let result = &task["status"]["Done"]["result"];
    if let Some(code) = result["Failed"].as_i64() {
        return Told::Code(i32::try_from(code).unwrap_or(-1));
    }
    match result.as_str() {
        Some("Success") => Told::Code(0),
        Some("Killed") => Told::Killed,
        Some(_) => Told::Unknown,
        None if result.is_null() => Told::Running,
        None => Told::Unknown,
    }
}
