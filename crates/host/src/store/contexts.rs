//! Finds the sessions of a context: a file for each context, a line for each of its sessions.

use std::io::Read;
use std::path::PathBuf;

use outlast_core::id::SessionId;

use super::name;
use super::state::State;
use crate::atomic::{self, Durability};
use crate::dir::{Dir, FileError, Result, if_there};
use crate::effect;
use crate::lock::{Lock, lock_file};

/// Puts a session into its context; an empty context has no sessions.
///
/// It is done before the session is made, so that no session is ever missing here: a line without a session is
/// nothing.
pub fn append(state: &State, context: &str, session: SessionId) -> Result<()> {
    if context.is_empty() {
        return Ok(());
    }
    let contexts = state.root().create_sub(name::CONTEXTS)?;
    let file_name = file_name(context);
    let file = loop {
        let file = contexts.create_file(&file_name)?;
        lock_file(&contexts, &file_name, &file)?;
        // Whoever takes a session out puts another file in its place.
        if contexts.is_named(&file_name, &file)? {
            break file;
        }
    };
    let failed = |error: std::io::Error| FileError::io("write", contexts.path_of(&file_name), &error);
    let length = file.metadata().map_err(failed)?.len();
    // A writer that died within its line left the rest of one, which a line break makes a line of no session.
    effect::write_at(&file_name, &file, format!("\n{session}\n").as_bytes(), length).map_err(failed)
}

/// Held while a session is given a context that no other living one may have.
pub fn lock(state: &State) -> Result<Lock> {
    Lock::acquire(&state.root().create_sub(name::CONTEXTS)?, name::CONTEXTS_LOCK)
}

/// Takes a session that is no more out of its context.
pub fn forget(state: &State, context: &str, session: SessionId) -> Result<()> {
    let Some(contexts) = if_there(state.root().sub(name::CONTEXTS))? else { return Ok(()) };
    take_out(&contexts, &file_name(context), |id| id == session)
}

/// Takes out of every context what `is_gone` says is no session any more. The files that held such.
pub fn clear(state: &State, dry_run: bool, is_gone: impl Fn(SessionId) -> bool) -> Result<Vec<PathBuf>> {
    let Some(contexts) = if_there(state.root().sub(name::CONTEXTS))? else { return Ok(Vec::new()) };
    let mut cleared = Vec::new();
    for file_name in contexts.names()?.into_iter().filter(|file| file != name::CONTEXTS_LOCK) {
        let ids = read(&contexts, &file_name)?.unwrap_or_default();
        if ids.iter().any(|id| is_gone(*id)) {
            cleared.push(contexts.path_of(&file_name));
            if !dry_run {
                take_out(&contexts, &file_name, &is_gone)?;
            }
        }
    }
    Ok(cleared)
}

/// Replaces the file of a context by one without some sessions, and removes it where none is left. Whoever waits for
/// the lock on it meanwhile finds that it is no longer the one, and opens it anew.
fn take_out(contexts: &Dir, file_name: &str, is_gone: impl Fn(SessionId) -> bool) -> Result<()> {
    let Some(file) = if_there(contexts.open_rw(file_name))? else { return Ok(()) };
    lock_file(contexts, file_name, &file)?;
    if !contexts.is_named(file_name, &file)? {
        // Somebody else took sessions out at this moment; a line that stays leads nowhere and harms nobody.
        return Ok(());
    }
    let left = read(contexts, file_name)?.unwrap_or_default();
    let text: String = left.into_iter().filter(|id| !is_gone(*id)).map(|id| format!("{id}\n")).collect();
    if text.is_empty() {
        contexts.remove_file(file_name)
    } else {
        atomic::replace(contexts, file_name, text.as_bytes(), Durability::Process)
    }
}

/// The sessions that were put into a context, oldest first. Another context of the same hash may be among them:
/// a session's own record says which is its.
pub fn list(state: &State, context: &str) -> Result<Vec<SessionId>> {
    let Some(contexts) = if_there(state.root().sub(name::CONTEXTS))? else { return Ok(Vec::new()) };
    Ok(read(&contexts, &file_name(context))?.unwrap_or_default())
}

fn read(contexts: &Dir, file_name: &str) -> Result<Option<Vec<SessionId>>> {
    let Some(mut file) = if_there(contexts.open_file(file_name))? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| FileError::io("read", contexts.path_of(file_name), &error))?;
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut ids: Vec<SessionId> = lines.filter_map(|line| line.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

/// A context is free text and never part of a path: its hash is (FNV-1a, 64 bits).
fn file_name(context: &str) -> String {
    let hash = context
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}
