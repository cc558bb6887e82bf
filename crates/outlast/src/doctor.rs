//! What this machine offers, and what does not answer.

use std::path::PathBuf;

use crate::error::Result;
use crate::runtime::Runtime;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What: a constant word such as `pidfd_info_exit`.
    pub name: String,
    /// Whether it is as it should be; a feature that is merely missing is not a problem.
    pub ok: bool,
    /// What was found, and what to do about it.
    pub detail: String,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct DoctorReport {
    /// The state directory.
    pub state_dir: PathBuf,
    /// The executable that becomes the keeper.
    pub executable: Option<PathBuf>,
    /// `cgroup` or `subreaper`.
    pub containment: String,
    /// Everything that was looked at.
    pub findings: Vec<Finding>,
}

impl Runtime {
    /// Looks at the machine, the state directory and every keeper and supervisor in it.
    pub async fn doctor(&self) -> Result<DoctorReport> {
        todo!()
    }
}
