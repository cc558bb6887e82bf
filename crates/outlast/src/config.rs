//! What a runtime is told of the world: nothing is looked up behind its caller's back.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outlast_core::policy::Policy;
use outlast_core::record::Durability;

use crate::error::{Error, Result};

/// The name of the executable that holds keeper and supervisor.
const EXECUTABLE: &str = "outlast";

/// The settings of a [`Runtime`](crate::Runtime).
#[derive(Clone, Debug)]
pub struct Config {
    /// Where sessions and their records live. Made if it is not there.
    pub state_dir: PathBuf,
    /// The `outlast` executable that becomes the keeper. None means: the running executable if that is
    /// named `outlast`, else one beside it, else the first one in `search`.
    pub executable: Option<PathBuf>,
    /// Directories to look for the executable in, separated by colons, as in PATH.
    pub search: Option<OsString>,
    /// What records must survive.
    pub durability: Durability,
    /// What may not be run or shown; nothing is forbidden or hidden by default.
    pub policy: Policy,
    /// The environment of a keeper that is started; none means this process's own. A keeper needs none of it, and a command
    /// can read its parent's.
    pub keeper_environment: Option<Vec<(OsString, OsString)>>,
    /// A way to fork the keeper off this process, tried before the executable is started. Only for a small
    /// program of one thread that has the keeper in itself: the command line.
    pub fork_keeper: Option<ForkKeeper>,
}

/// Forks a keeper for the session directory, or for none (`-`), whose first connection is the socket.
pub type ForkKeeper = fn(first: BorrowedFd<'_>, session: &Path) -> std::io::Result<()>;

/// How a keeper comes to be.
#[derive(Clone, Debug)]
pub(crate) struct Birth {
    pub(crate) executable: PathBuf,
    pub(crate) fork: Option<ForkKeeper>,
    pub(crate) environment: Option<Vec<(OsString, OsString)>>,
}

impl Config {
    /// Records in this directory, everything else at its default.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Config {
            state_dir: state_dir.into(),
            executable: None,
            search: None,
            durability: Durability::default(),
            policy: Policy::default(),
            keeper_environment: None,
            fork_keeper: None,
        }
    }

    /// How a keeper comes to be under these settings.
    pub(crate) fn birth(&self) -> Result<Birth> {
        Ok(Birth {
            executable: self.find_executable()?,
            fork: self.fork_keeper,
            environment: self.keeper_environment.clone(),
        })
    }

    /// The executable that these settings lead to.
    pub fn find_executable(&self) -> Result<PathBuf> {
        if let Some(path) = &self.executable {
            return Ok(path.clone());
        }
        let beside = std::env::current_exe().ok().and_then(|own| {
            if own.file_name().is_some_and(|name| name == EXECUTABLE) {
                return Some(own);
            }
            own.parent().map(|dir| dir.join(EXECUTABLE)).filter(|path| is_executable(path))
        });
        let found = beside.or_else(|| {
            let search = self.search.as_ref()?;
            std::env::split_paths(search).map(|dir| dir.join(EXECUTABLE)).find(|path| is_executable(path))
        });
        found.ok_or_else(|| {
            Error::Unreachable(
                "no outlast executable: none is set, none lies beside this program and none was found on the \
                 search path; install outlast or set Config::executable"
                    .to_owned(),
            )
        })
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
