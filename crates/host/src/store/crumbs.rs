//! What a crash left behind in a state directory and nobody needs: found, and removed.

use std::path::PathBuf;

use outlast_core::id::SessionId;

use super::name;
use super::session::SessionDir;
use super::state::State;
use crate::dir::{Dir, Result, if_there};
use crate::lock::{self, Lock};
use crate::mark;

/// Finds directories of commands that were never published, and names of anchors under which no open
/// session of a living process is found. Removes them unless it is a `dry_run`. Their paths, in order.
///
/// No session, no record and no output is touched.
pub fn clear(state: &State, dry_run: bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for id in state.list()? {
        if let Some(session) = state.session(id)? {
            unpublished(&session, dry_run, &mut found)?;
        }
    }
    anchors(state, dry_run, &mut found)?;
    found.sort();
    Ok(found)
}

fn unpublished(session: &SessionDir, dry_run: bool, found: &mut Vec<PathBuf>) -> Result<()> {
    let Some(work) = if_there(session.dir().sub(name::WORK))? else { return Ok(()) };
    for directory in work.names()?.into_iter().filter(|file| file.starts_with(name::NEW)) {
        // Only a supervisor under a living keeper makes one, and it holds the lease in it.
        let Some(inside) = if_there(work.sub(&directory))? else { continue };
        if session.has_keeper()? || lock::is_held(&inside, name::LEASE)? {
            continue;
        }
        found.push(work.path_of(&directory));
        if !dry_run {
            work.remove_tree(&directory)?;
        }
    }
    Ok(())
}

fn anchors(state: &State, dry_run: bool, found: &mut Vec<PathBuf>) -> Result<()> {
    let Some(anchors) = if_there(state.root().sub(name::ANCHORS))? else { return Ok(()) };
    let _lock = Lock::acquire(&anchors, name::ANCHORS_LOCK)?;
    for file in anchors.names()?.into_iter().filter(|file| file != name::ANCHORS_LOCK) {
        if leads_somewhere(state, &anchors, &file)? {
            continue;
        }
        found.push(anchors.path_of(&file));
        if !dry_run {
            anchors.remove_if_there(&file)?;
        }
    }
    Ok(())
}

/// Whether an open session of a living process is found under this name.
fn leads_somewhere(state: &State, anchors: &Dir, file: &str) -> Result<bool> {
    let Some(bytes) = anchors.read_if_there(file, 256)? else { return Ok(true) };
    let id: Option<SessionId> = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
    let Some(id) = id else { return Ok(false) };
    let Some(session) = state.session(id)? else { return Ok(false) };
    if session.is_closed()? {
        return Ok(false);
    }
    // Of a record that cannot be read nothing is known, so that it is left alone.
    let Ok(record) = session.record() else { return Ok(true) };
    let Some(anchor) = &record.anchor else { return Ok(false) };
    // Whoever cannot be looked at may be alive.
    Ok(mark::is_alive(anchor).unwrap_or(true))
}
