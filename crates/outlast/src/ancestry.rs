//! Who started this process: its line of ancestors.

use outlast_host::proc;

use crate::error::{Error, Result};

/// Processes that are looked at on the way up; more than any chain of wrappers has.
const MOST: usize = 64;

/// One process on the way up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Its process id.
    pub pid: u32,
    /// Its name: at most 15 bytes, for a script the name of the script.
    pub name: String,
    /// The file name of its executable, for a script the one of its interpreter; empty where that is not to be known.
    pub executable: String,
    /// Whether it leads the session of a terminal, as the shell does that a person types into.
    pub leads_terminal: bool,
}

/// The ancestors of this process in this pid namespace, its parent first.
pub fn ancestors() -> Result<Vec<Ancestor>> {
    let failed = |error: proc::ProcError| Error::Unreachable(format!("cannot look at an ancestor: {error}"));
    let mut found = Vec::new();
    let mut next = proc::stat(std::process::id()).map_err(failed)?.map_or(0, |own| own.ppid);
    while next > 0 && found.len() < MOST {
        let Some(stat) = proc::stat(next).map_err(failed)? else { break };
        found.push(Ancestor {
            pid: stat.pid,
            executable: proc::executable(stat.pid).unwrap_or_default(),
            leads_terminal: stat.session == stat.pid && stat.terminal != 0,
            name: stat.comm,
        });
        next = stat.ppid;
    }
    Ok(found)
}
