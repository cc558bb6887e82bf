//! task-spooler, `tsp` on Debian.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::Result;
use crate::peers::{Home, Kind, Open, Told, done, printed, within};
use crate::place;
use crate::processes::stop_group;

/// How it is used.
pub const USAGE: &str = "a server of its own (`TS_SOCKET`), `TS_SLOTS` as the row says, `TS_MAXFINISHED` above every count of \
    this page; the server holds about a thousand jobs at most, which `TS_MAXCONN` can only lower, and an add that finds it full \
    blocks; `-w` waits; a call is `-nf`; it is stopped by TERM to the job's group (`-k`), after 2 s by KILL to the \
    same group; a consumer asks with `-l` and clears with `-r`";

/// How long a server may take to say that it is full.
const FULL_BOUND: Duration = Duration::from_secs(5);

/// A queue with its server.
pub struct TaskSpooler<'a> {
    home: Home<'a>,
    slots: usize,
}

impl TaskSpooler<'_> {
    /// The first call starts the server.
    pub fn open(home: Home<'_>, slots: usize) -> Result<TaskSpooler<'_>> {
        let spooler = TaskSpooler { home, slots };
        done(&mut spooler.program())?;
        Ok(spooler)
    }

    fn program(&self) -> Command {
        let mut program = self.home.program();
        program.env("TS_SOCKET", self.home.at("socket")).env("TS_MAXFINISHED", "100000");
        program.env("TS_SLOTS", self.slots.to_string());
        program
    }

    /// Whether the server has no room for one more job: only then an add with `-B` ends with 2.
    fn is_full(&self) -> bool {
        let asked = within(self.program().args(["-B", "true"]), FULL_BOUND);
        asked.is_ok_and(|status| status.is_some_and(|status| status.code() == Some(2)))
    }

    fn log(&self, id: &str) -> Result<PathBuf> {
        Ok(printed(self.program().args(["-o", id]))?.trim().into())
    }
}

impl Open for TaskSpooler<'_> {
    fn kind(&self) -> Kind {
        Kind::TaskSpooler
    }

    fn add(&self, _lane: usize, words: &[&str]) -> Result<String> {
        let told =
            printed(self.program().args(words)).map_err(|error| if self.is_full() { full(&*error) } else { error })?;
        Ok(told.trim().to_owned())
    }

    fn call(&self, words: &[&str]) -> Option<Command> {
        let mut program = self.program();
        program.arg("-nf").args(words);
        Some(program)
    }

    fn wait(&self, id: &str, bound: Duration) -> Result<bool> {
        Ok(within(self.program().args(["-w", id]), bound)?.is_some())
    }

    fn told(&self, id: &str) -> Result<Told> {
        let Ok(state) = printed(self.program().args(["-s", id])) else { return Ok(Told::Nothing) };
        if state.trim() != "finished" {
            return Ok(Told::Running);
        }
        let info = printed(self.program().args(["-i", id]))?;
        let line = info.lines().find_map(|line| line.strip_prefix("Exit status: ")).unwrap_or_default();
        let number = line.split(' ').next_back().and_then(|word| word.parse().ok());
        Ok(match number {
            Some(signal) if line.starts_with("killed by signal") => Told::Signal(signal),
            // A code is told as a signed byte.
            Some(code) if line.starts_with("died with exit code") => Told::Code(code & 0xff),
            _ => Told::Unknown,
        })
    }

    fn output(&self, id: &str) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.log(id)?)?)
    }

    fn stored(&self, id: &str) -> Result<u64> {
        place::stored(&self.log(id)?)
    }

    fn stop(&self, id: &str) -> Result<()> {
        let leader: u32 = printed(self.program().args(["-p", id]))?.trim().parse()?;
        done(self.program().args(["-k", id]))?;
        stop_group(leader)
    }

    fn limited(&self, _words: &[&str]) -> Result<Option<String>> {
        Ok(None)
    }

    fn newest(&self) -> Result<Option<String>> {
        let list = printed(self.program().arg("-l"))?;
        let ids = list.lines().skip(1).filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(ids.max().map(|id| id.to_string()))
    }

    fn ask(&self, _consumer: &str) -> Result<Vec<(String, Told)>> {
        let list = printed(self.program().arg("-l"))?;
        let mut told = Vec::new();
        for line in list.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [id, "finished", _, level, ..] = words.as_slice() {
                // The table has the code as a signed byte.
                let level: i32 = level.parse()?;
                told.push(((*id).to_owned(), Told::Code(level & 0xff)));
            }
        }
        Ok(told)
    }

    fn clear(&self, ids: &[String]) -> Result<()> {
        ids.iter().try_for_each(|id| done(self.program().args(["-r", id])))
    }

    fn revive(&self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        done(self.program().arg("-K"))
    }
}

/// Why an add does not return, beside what was seen of it.
fn full(error: &(dyn Error + Send + Sync)) -> Box<dyn Error + Send + Sync> {
    format!("{error}: the server holds as many jobs as it can (about a thousand), and an add blocks then").into()
}
