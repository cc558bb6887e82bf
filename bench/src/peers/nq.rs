//! nq, which needs no server.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Result;
use crate::peers::{Home, Kind, Open, Told, done, printed, rest, within};
use crate::place;
use crate::processes::stop_group;

/// How it is used.
pub const USAGE: &str = "`nq`, then `-w`, again where it returns before the log tells an end; a directory (`NQDIR`) for each command that is to run at once, because one runs \
    one at a time; it is stopped by TERM to the process group that its log is named after, after 2 s by KILL; a consumer asks \
    with the last lines of the logs and clears by removing these; it has no call in the foreground";

/// What stands before the words that tell the end.
const EXITED: &str = "[exited with status ";
const KILLED: &str = "[killed by signal ";

/// So often a wait is begun again that returned before there was an end in the log.
const EARLY: usize = 50;

/// Directories of jobs.
pub struct Nq<'a> {
    home: Home<'a>,
}

impl Nq<'_> {
    /// There is nothing to start.
    pub fn open(home: Home<'_>) -> Nq<'_> {
        Nq { home }
    }

    fn program(&self, lane: &str) -> Command {
        let mut program = self.home.program();
        program.env("NQDIR", self.home.at(lane));
        program
    }

    /// The lines between the command and what nq says of its end, and that.
    fn read(&self, id: &str) -> Result<(Vec<u8>, Told)> {
        let mut log = fs::read(self.home.at(id))?;
        // The name is told before this is written.
        let Some(head) = log.windows(2).position(|pair| pair == b"\n\n") else {
            return Ok((Vec::new(), Told::Running));
        };
        log.drain(..head + 2);
        let Some(at) = log
            .windows(EXITED.len())
            .rposition(|part| part == EXITED.as_bytes())
            .or_else(|| log.windows(KILLED.len()).rposition(|part| part == KILLED.as_bytes()))
        else {
            return Ok((log, Told::Running));
        };
        let line = String::from_utf8_lossy(&log[at..]).into_owned();
        let number = line.trim_end().trim_end_matches(".]").rsplit(' ').next().and_then(|word| word.parse().ok());
        // A newline stands before the words.
        log.truncate(at.saturating_sub(1));
        Ok((
            log,
            match number {
                Some(code) if line.starts_with(EXITED) => Told::Code(code),
                Some(signal) => Told::Signal(signal),
                None => Told::Unknown,
            },
        ))
    }

    fn all(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for lane in fs::read_dir(&self.home.dir)? {
            let lane = lane?;
            if !lane.file_type()?.is_dir() {
                continue;
            }
            for job in fs::read_dir(lane.path())? {
                let name = job?.file_name().to_string_lossy().into_owned();
                if name.starts_with(',') {
                    found.push(format!("{}/{name}", lane.file_name().display()));
                }
            }
        }
        Ok(found)
    }
}

impl Open for Nq<'_> {
    fn kind(&self) -> Kind {
        Kind::Nq
    }

    fn add(&self, lane: usize, words: &[&str]) -> Result<String> {
        let lane = format!("lane-{lane}");
        let job = printed(self.program(&lane).args(words))?;
        Ok(format!("{lane}/{}", job.trim()))
    }

    fn call(&self, _words: &[&str]) -> Option<Command> {
        None
    }

    fn wait(&self, id: &str, bound: Duration) -> Result<bool> {
        let (lane, job) = id.split_once('/').ok_or("a job of nq has no lane")?;
        let until = Instant::now() + bound;
        // The name is told before the log is locked, so a wait that comes early returns at once: then it waits again.
        for _ in 0..EARLY {
            if within(self.program(lane).args(["-w", job]), rest(until))?.is_none() {
                return Ok(false);
            }
            if self.read(id)?.1 != Told::Running {
                break;
            }
        }
        Ok(true)
    }

    fn told(&self, id: &str) -> Result<Told> {
        let (_, told) = self.read(id)?;
        let (lane, job) = id.split_once('/').ok_or("a job of nq has no lane")?;
        // It says nothing of an end that it has not seen, but knows that there was one.
        let over = told == Told::Running && done(self.program(lane).args(["-t", job])).is_ok();
        Ok(if over { Told::Unknown } else { told })
    }

    fn output(&self, id: &str) -> Result<Vec<u8>> {
        Ok(self.read(id)?.0)
    }

    fn stored(&self, id: &str) -> Result<u64> {
        place::stored(&self.home.at(id))
    }

    fn stop(&self, id: &str) -> Result<()> {
        stop_group(id.rsplit('.').next().ok_or("a job of nq has no pid")?.parse()?)
    }

    fn limited(&self, _words: &[&str]) -> Result<Option<String>> {
        Ok(None)
    }

    fn newest(&self) -> Result<Option<String>> {
        Ok(self.all()?.into_iter().max())
    }

    fn ask(&self, _consumer: &str) -> Result<Vec<(String, Told)>> {
        let mut told = Vec::new();
        for id in self.all()? {
            let (_, end) = self.read(&id)?;
            if end != Told::Running {
                told.push((id, end));
            }
        }
        Ok(told)
    }

    fn clear(&self, ids: &[String]) -> Result<()> {
        ids.iter().try_for_each(|id| Ok(fs::remove_file(self.home.at(id))?))
    }

    fn revive(&self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
