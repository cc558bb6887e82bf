//! The shell itself, as a careful person uses it: `nohup … &`, a session of its own, files, and `kill`.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Result;
use crate::peers::{Home, Kind, Open, Told, done, rest};
use crate::place::{self, readable_within};
use crate::processes::stop_group;

/// How it is used.
pub const USAGE: &str = "`nohup sh -c 'setsid … > log 2>&1; echo $? > code' &`, so that the command has a session and a group \
    of its own and its code is in a file; whoever waits reads a FIFO that the same line holds open; a call is `sh -c`; it \
    is stopped by TERM to the group, after 2 s by KILL; a consumer asks with the files of codes and clears by removing these";

/// Starts the words behind it in the directory `$0`. `setsid` executes them, because the shell before it leads no group. The
/// log is opened in there, or that shell would print what it thinks of a signal into it.
const LINE: &str = r#"
mkfifo "$0/end"
exec 3<> "$0/end"
nohup sh -c 'setsid sh -c "exec > \"\$0/log\" 2>&1 3>&-; echo \$\$ > \"\$0/pid\"; exec \"\$@\"" "$0" "$@"; echo $? > "$0/code"' "$0" "$@" > /dev/null 2>&1 < /dev/null &
"#;

/// A directory with one for each command.
pub struct Shell<'a> {
    home: Home<'a>,
    next: AtomicU64,
}

impl Shell<'_> {
    /// There is nothing to start.
    pub fn open(home: Home<'_>) -> Shell<'_> {
        Shell { home, next: AtomicU64::new(1) }
    }
}

impl Open for Shell<'_> {
    fn kind(&self) -> Kind {
        Kind::Shell
    }

    fn add(&self, _lane: usize, words: &[&str]) -> Result<String> {
        let id = format!("{:06}", self.next.fetch_add(1, Ordering::Relaxed));
        let dir = self.home.at(&id);
        fs::create_dir(&dir)?;
        done(self.home.program().args(["-c", LINE]).arg(dir).args(words))?;
        Ok(id)
    }

    fn call(&self, words: &[&str]) -> Option<Command> {
        let mut program = self.home.program();
        program.args(["-c", "\"$@\"; exit $?", "sh"]).args(words);
        Some(program)
    }

    fn wait(&self, id: &str, bound: Duration) -> Result<bool> {
        let until = Instant::now() + bound;
        // Its end comes when the line that holds it open is gone, with the code written before (fifo(7)).
        let fifo = place::open_fifo(&self.home.at(id).join("end"))?;
        Ok(self.told(id)? != Told::Running || readable_within(&fifo, rest(until))?)
    }

    fn told(&self, id: &str) -> Result<Told> {
        let Ok(text) = fs::read_to_string(self.home.at(id).join("code")) else { return Ok(Told::Running) };
        // The file is there before its text.
        Ok(text.trim().parse().map_or(Told::Running, Told::Code))
    }

    fn output(&self, id: &str) -> Result<Vec<u8>> {
        Ok(fs::read(self.home.at(id).join("log"))?)
    }

    fn stored(&self, id: &str) -> Result<u64> {
        place::stored(&self.home.at(id).join("log"))
    }

    fn stop(&self, id: &str) -> Result<()> {
        stop_group(fs::read_to_string(self.home.at(id).join("pid"))?.trim().parse()?)
    }

    fn limited(&self, _words: &[&str]) -> Result<Option<String>> {
        Ok(None)
    }

    fn newest(&self) -> Result<Option<String>> {
        let made = self.next.load(Ordering::Relaxed) - 1;
        Ok((made > 0).then(|| format!("{made:06}")))
    }

    fn ask(&self, _consumer: &str) -> Result<Vec<(String, Told)>> {
        let mut told = Vec::new();
        for entry in fs::read_dir(&self.home.dir)? {
            let id = entry?.file_name().to_string_lossy().into_owned();
            let end = self.told(&id)?;
            if end != Told::Running {
                told.push((id, end));
            }
        }
        Ok(told)
    }

    fn clear(&self, ids: &[String]) -> Result<()> {
        ids.iter().try_for_each(|id| Ok(fs::remove_file(self.home.at(id).join("code"))?))
    }

    fn revive(&self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
