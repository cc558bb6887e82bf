//! Finds the sessions of a context: a file for each context, a line for each of its sessions.

use std::io::Read;
use std::os::unix::fs::FileExt;

use outlast_core::id::SessionId;

use super::name;
use super::state::State;
use crate::dir::{FileError, Result, if_there};
use crate::lock::lock_file;

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
    let file = contexts.create_file(&file_name)?;
    lock_file(&contexts, &file_name, &file)?;
    let failed = |error: std::io::Error| FileError::io("write", contexts.path_of(&file_name), &error);
    let length = file.metadata().map_err(failed)?.len();
    // A writer that died within its line left the rest of one, which a line break makes a line of no session.
    file.write_all_at(format!("\n{session}\n").as_bytes(), length).map_err(failed)
}

/// The sessions that were put into a context, oldest first. Another context of the same hash may be among them:
/// a session's own record says which is its.
pub fn list(state: &State, context: &str) -> Result<Vec<SessionId>> {
    let Some(contexts) = if_there(state.root().sub(name::CONTEXTS))? else { return Ok(Vec::new()) };
    let file_name = file_name(context);
    let Some(mut file) = if_there(contexts.open_file(&file_name))? else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| FileError::io("read", contexts.path_of(&file_name), &error))?;
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut ids: Vec<SessionId> = lines.filter_map(|line| line.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// A context is free text and never part of a path: its hash is (FNV-1a, 64 bits).
fn file_name(context: &str) -> String {
    let hash = context
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}
