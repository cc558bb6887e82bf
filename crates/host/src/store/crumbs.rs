//! What a crash left behind in a state directory and nobody needs: found, and removed.

use std::path::PathBuf;

use outlast_core::id::SessionId;

use super::session::SessionDir;
use super::state::State;
use super::{contexts, name};
use crate::dir::{Dir, Result, if_there};
use crate::lock::{self, Lock};
use crate::mark;

/// How long the making of a session can take at most, in milliseconds.
const IN_THE_MAKING_MS: u64 = 3_600_000;

/// Finds directories of commands and sessions that were never published or removed by half, names of anchors under
/// which no open session of a living process is found, and contexts that name sessions which are no more. Removes
/// them unless it is a `dry_run`. Their paths, in order.
///
/// No session, no record and no output is touched.
pub fn clear(state: &State, dry_run: bool, now_ms: u64) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for id in state.list()? {
        if let Some(session) = state.session(id)? {
            unpublished(&session, dry_run, &mut found)?;
        }
    }
    removed_by_half(state, dry_run, now_ms, &mut found)?;
    anchors(state, dry_run, &mut found)?;
    // The line of a session is there before its directory.
    let made = |id: SessionId| now_ms.saturating_sub(id.unix_ms()) > IN_THE_MAKING_MS;
    found.extend(contexts::clear(state, dry_run, |id| made(id) && matches!(state.session(id), Ok(None)))?);
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

fn removed_by_half(state: &State, dry_run: bool, now_ms: u64, found: &mut Vec<PathBuf>) -> Result<()> {
    let hidden = |file: &String| file.starts_with(name::OLD) || file.starts_with(name::NEW);
    for directory in state.sessions().names()?.into_iter().filter(hidden) {
        let id = directory.trim_start_matches(name::OLD).trim_start_matches(name::NEW).parse::<SessionId>();
        // A session that is being made is younger than this.
        let young = |id: SessionId| now_ms.saturating_sub(id.unix_ms()) <= IN_THE_MAKING_MS;
        if directory.starts_with(name::NEW) && id.is_ok_and(young) {
            continue;
        }
        found.push(state.sessions().path_of(&directory));
        if !dry_run {
            state.sessions().remove_tree(&directory)?;
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
