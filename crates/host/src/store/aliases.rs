//! The file `aliases`: line N is the command whose alias is wN, and no number is used twice.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use outlast_core::id::{Alias, CommandId};

use super::name;
use crate::dir::{Dir, FileError, Result, if_there};
use crate::effect;
use crate::lock::lock_file;

/// Length of a line: `wrk_`, 32 digits, a newline.
const LINE: u64 = 37;

/// Gives a command the next alias of its session.
pub fn append(session: &Dir, id: CommandId) -> Result<Alias> {
    let file = session.create_file(name::ALIASES)?;
    lock_file(session, name::ALIASES, &file)?;
    let failed = |e: std::io::Error| FileError::io("write", session.path_of(name::ALIASES), &e);
    let length = file.metadata().map_err(failed)?.len();
    let torn = length % LINE;
    if torn > 0 {
        // A writer died within its line. Its number counts as used, and is nobody's: all but the line break may stand there,
        // of which a reader has said already that it is no line.
        let mut nobody = [b'-'; LINE as usize];
        nobody[LINE as usize - 1] = b'\n';
        effect::write_at(name::ALIASES, &file, &nobody, length - torn).map_err(failed)?;
    }
    let start = length.next_multiple_of(LINE);
    let line = format!("{id}\n");
    if let Err(e) = effect::write_at(name::ALIASES, &file, line.as_bytes(), start) {
        // If not even that works the torn line stays, and the next call pads it.
        let _ = effect::set_len(name::ALIASES, &file, start);
        return Err(failed(e));
    }
    alias_at(start / LINE).ok_or_else(|| {
        let why = "it has no number left".to_owned();
        FileError::damaged("extend", session.path_of(name::ALIASES), why)
    })
}

/// The alias of a command whose writer may have died at any instant: the one that it has, else the next.
pub fn of(session: &Dir, id: CommandId) -> Result<Alias> {
    match all(session)?.into_iter().find(|(_, given)| *given == id) {
        Some((alias, _)) => Ok(alias),
        None => append(session, id),
    }
}

/// The command of an alias; `None` if the alias was never given, or its line is damaged.
pub fn resolve(session: &Dir, alias: Alias) -> Result<Option<CommandId>> {
    let (Some(file), Some(index)) = (if_there(session.open_file(name::ALIASES))?, alias.0.checked_sub(1)) else {
        return Ok(None);
    };
    let mut line = [0; LINE as usize];
    match file.read_exact_at(&mut line, u64::from(index) * LINE) {
        Ok(()) => Ok(parse(&line)),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(FileError::io("read", session.path_of(name::ALIASES), &e)),
    }
}

/// Every alias that was given and its command, lowest first. Damaged lines are left out.
pub fn all(session: &Dir) -> Result<Vec<(Alias, CommandId)>> {
    above(session, Alias(0))
}

/// As [`all`], those above `last`. What lies below is not read, however much it is.
pub fn above(session: &Dir, last: Alias) -> Result<Vec<(Alias, CommandId)>> {
    let Some(file) = if_there(session.open_file(name::ALIASES))? else { return Ok(Vec::new()) };
    let bytes = read_from(&file, u64::from(last.0) * LINE)
        .map_err(|e| FileError::io("read", session.path_of(name::ALIASES), &e))?;
    let lines = bytes.chunks_exact(LINE as usize).zip(u64::from(last.0)..);
    Ok(lines.filter_map(|(line, index)| Some((alias_at(index)?, parse(line)?))).collect())
}

fn read_from(mut file: &File, offset: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(line: &[u8]) -> Option<CommandId> {
    std::str::from_utf8(line).ok()?.strip_suffix('\n')?.parse().ok()
}

fn alias_at(index: u64) -> Option<Alias> {
    u32::try_from(index + 1).ok().map(Alias)
}
