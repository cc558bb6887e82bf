//! outlast by its command line.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outlast::{Config, Runtime, SessionOptions};
use serde_json::Value;

use crate::peers::{Home, Kind, Open, Told, done, printed, within};
use crate::place;
use crate::{Result, say};

/// How it is used.
pub const USAGE: &str = "`run -b` and `wait` by its command line, in a session that an owner (a process of its own, as an \
    agent host is) made with the library and without a cap on running commands; a call is `run`; a consumer asks with \
    `inbox --ack`; output is read by `logs --raw`";

/// A session with an owner of its own, as an agent host is: a process that serves it all the time.
pub struct Outlast<'a> {
    home: Home<'a>,
    session: String,
    owner: Child,
}

impl Outlast<'_> {
    /// Starts the owner, which makes the session and tells its id.
    pub fn open(home: Home<'_>) -> Result<Outlast<'_>> {
        let mut owner = home.other(home.place.stand_in());
        owner.arg("own").arg(home.at("state")).arg(home.place.outlast());
        let mut owner = owner.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut session = String::new();
        BufReader::new(owner.stdout.take().ok_or("the owner has no output")?).read_line(&mut session)?;
        if session.is_empty() {
            return Err(format!("the session has no owner: {}", owner.wait()?).into());
        }
        Ok(Outlast { home, session: session.trim().to_owned(), owner })
    }

    fn program(&self, verb: &str) -> Command {
        let mut program = self.home.program();
        program.env("OUTLAST_STATE_DIR", self.home.at("state")).env("OUTLAST_CONSUMER", "benchmark");
        program.args([verb, "--session", &self.session]);
        program
    }

    fn json(&self, verb: &str, words: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&printed(self.program(verb).args(words).arg("--json"))?)?)
    }

    fn background(&self, options: &[&str], words: &[&str]) -> Result<String> {
        let told =
            printed(self.program("run").args(["-b", "--consumer", "model"]).args(options).arg("--").args(words))?;
        Ok(told.split_whitespace().nth(1).ok_or("run -b told no id")?.to_owned())
    }
}

impl Open for Outlast<'_> {
    fn kind(&self) -> Kind {
        Kind::Outlast
    }

    fn add(&self, _lane: usize, words: &[&str]) -> Result<String> {
        self.background(&[], words)
    }

    fn call(&self, words: &[&str]) -> Option<Command> {
        let mut program = self.program("run");
        program.arg("--").args(words);
        Some(program)
    }

    fn wait(&self, id: &str, bound: Duration) -> Result<bool> {
        Ok(within(self.program("wait").arg(id), bound)?.is_some())
    }

    fn told(&self, id: &str) -> Result<Told> {
        Ok(end(&self.json("status", &[id])?))
    }

    fn output(&self, id: &str) -> Result<Vec<u8>> {
        let told = self.program("logs").args([id, "--raw"]).stdout(Stdio::piped()).output()?;
        Ok(told.stdout)
    }

    fn stored(&self, id: &str) -> Result<u64> {
        let status = self.json("status", &[id])?;
        place::stored(status["output"]["log"].as_str().ok_or("the command has no log")?.as_ref())
    }

    fn stop(&self, id: &str) -> Result<()> {
        done(self.program("stop").arg(id))
    }

    fn limited(&self, words: &[&str]) -> Result<Option<String>> {
        self.background(&["--limit", "1s"], words).map(Some)
    }

    fn newest(&self) -> Result<Option<String>> {
        let list = self.json("ps", &["-a"])?;
        let ids = list["commands"].as_array().into_iter().flatten().filter_map(|one| one["id"].as_str());
        Ok(ids.max().map(str::to_owned))
    }

    fn ask(&self, consumer: &str) -> Result<Vec<(String, Told)>> {
        let inbox = self.json("inbox", &["--ack", "--consumer", consumer])?;
        let told = inbox["completions"].as_array().ok_or("the inbox has no completions")?;
        Ok(told.iter().map(|one| (one["id"].as_str().unwrap_or_default().to_owned(), end(one))).collect())
    }

    fn clear(&self, _ids: &[String]) -> Result<()> {
        Ok(())
    }

    fn revive(&self) -> Result<()> {
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        // The end of its input is the owner's word to end the session.
        drop(self.owner.stdin.take());
        let status = self.owner.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the owner of the session: {status}").into()) }
    }
}

/// Makes a session, tells its id, and owns it until the input ends.
pub fn own(state: &Path, executable: &Path) -> Result<()> {
    let mut config = Config::new(state);
    config.executable = Some(executable.to_owned());
    let options = SessionOptions { running_cap: 0, ..SessionOptions::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let session = Runtime::open(config)?.create_session(options).await?;
        say(&session.id().to_string());
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
        place::end(&session).await
    })
}

/// What an object `outlast.command/1` says.
fn end(command: &Value) -> Told {
    let end = &command["end"];
    let signal = end["signal"].as_str().map(|name| match name {
        "KILL" => 9,
        "TERM" => 15,
        _ => 0,
    });
    let code = end["code"].as_i64().and_then(|code| i32::try_from(code).ok());
    match (end["kind"].as_str(), code, signal) {
        (None, ..) => Told::Running,
        (Some("timed_out"), ..) => Told::TimedOut,
        (_, Some(code), _) => Told::Code(code),
        (_, None, Some(signal)) => Told::Signal(signal),
        (_, None, None) => Told::Unknown,
    }
}
