//! Appends to and reads `trace.jsonl`: one event a line, whole or not at all.

use std::io::Read;
use std::os::unix::fs::FileExt;

use outlast_core::record::{Durability, TraceLine};

use super::name;
use crate::dir::{Dir, FileError, Result, if_there};
use crate::effect;
use crate::lock::lock_file;

/// Appends one line, under a lock on the file itself.
///
/// A torn last line, left by a process that died, is ended first, so that the new line never continues
/// it. A line that does not fit is taken back whole.
pub fn append(session: &Dir, line: &TraceLine, durability: Durability) -> Result<()> {
    let file = session.create_append(name::TRACE)?;
    lock_file(session, name::TRACE, &file)?;
    let failed = |e: std::io::Error| FileError::io("write", session.path_of(name::TRACE), &e);
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = super::encode(session, name::TRACE, line)?;
    if length > 0 {
        let mut last = [0];
        file.read_exact_at(&mut last, length - 1).map_err(failed)?;
        if last != *b"\n" {
            bytes.insert(0, b'\n');
        }
    }
    if let Err(e) = effect::append(name::TRACE, &file, &bytes) {
        // If not even that works the torn line stays, and the next append ends it.
        let _ = effect::set_len(name::TRACE, &file, length);
        return Err(failed(e));
    }
    match durability {
        Durability::Process => Ok(()),
        Durability::Power => effect::sync(name::TRACE, &file).map_err(|e| failed(e.into())),
    }
}

/// All lines that can be read, oldest first; damaged ones are skipped. Empty if there is no trace.
pub fn read(session: &Dir) -> Result<Vec<TraceLine>> {
    Ok(read_stored(session)?.into_iter().map(|(line, _)| line).collect())
}

/// As [`read`], each with its text as it is stored, without the newline.
pub fn read_stored(session: &Dir) -> Result<Vec<(TraceLine, String)>> {
    let Some(mut file) = if_there(session.open_file(name::TRACE))? else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|e| FileError::io("read", session.path_of(name::TRACE), &e))?;
    Ok(bytes.split(|&byte| byte == b'\n').filter_map(parse).collect())
}

fn parse(line: &[u8]) -> Option<(TraceLine, String)> {
    let text = std::str::from_utf8(line).ok()?;
    let parsed: TraceLine = serde_json::from_str(text).ok()?;
    // Every key of a line may be absent, so `{}` parses; a line without a type says nothing.
    (!parsed.kind.is_empty()).then(|| (parsed, text.to_owned()))
}
