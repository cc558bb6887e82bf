//! Which files changed while the command ran: a look before it starts, and one when it has ended.

use std::path::PathBuf;
use std::time::Duration;

use outlast_core::request::{OsText, Request};
use outlast_core::tracking::{Look, Tracked};
use outlast_host::files;

use super::Watch;

/// How many files one look goes through.
const MOST_FILES: usize = 100_000;
/// How long one look may take. Nobody is answered meanwhile.
const LONGEST: Duration = Duration::from_secs(5);

/// The files of a directory before the command started.
pub struct Baseline {
    dir: OsText,
    before: Look,
}

impl Baseline {
    /// Looks at the directory that was asked for, if one was.
    pub fn take(request: &Request) -> Option<Baseline> {
        let dir = request.track_changes.clone()?;
        let before = look(&dir);
        Some(Baseline { dir, before })
    }
}

fn look(dir: &OsText) -> Look {
    files::look(&path(dir), MOST_FILES, LONGEST)
}

fn path(dir: &OsText) -> PathBuf {
    PathBuf::from(dir.to_os())
}

impl Watch<'_> {
    /// What changed since the command started, once.
    pub(super) fn tracked(&mut self) -> Option<Tracked> {
        let Baseline { dir, before } = self.baseline.take()?;
        let root = path(&dir);
        let exists = |file: &[u8]| files::exists(&root.join(OsText(file.to_vec()).to_os()));
        let mut tracked = Tracked::between(&dir, &before, &look(&dir), exists);
        if let Some(redactor) = &self.redactor {
            tracked.paths_mut().for_each(|path| *path = redactor.word(path));
            tracked.problem = tracked.problem.map(|problem| redactor.text(&problem));
        }
        Some(tracked)
    }
}
