//! Where a tool keeps its files, and how its programs are started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::place::Place;

/// The variable that every program of a tool has in its environment, and so whatever it leaves in the background.
pub const TOOL: &str = "OUTLAST_BENCH_TOOL";

/// A directory of one tool.
pub struct Home<'a> {
    /// Where the run happens.
    pub place: &'a Place,
    /// Its program.
    pub program: PathBuf,
    /// The directory.
    pub dir: PathBuf,
}

impl Home<'_> {
    /// A path below it.
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(name)
    }

    /// The tool's program, with nothing to read.
    pub fn program(&self) -> Command {
        self.other(&self.program)
    }

    /// Another program of the same tool.
    pub fn other(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.place.program(program);
        command.env(TOOL, format!("{}/", self.dir.display())).env("TMPDIR", &self.dir).stderr(Stdio::null());
        command
    }
}
