//! Moves the records of commands beside a transcript, so that every id resolves at each instant.
//!
//! A move within one file system is one rename. Across file systems there are four steps, each of which leaves what
//! the next mover can finish or take back: a copy under a hidden name at the target, the source under a hidden name,
//! the copy under its own name, the source removed. A reader looks for the plain names first, then for hidden
//! sources, then for the plain names again.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use outlast_core::id::CommandId;
use outlast_core::record::{BoundRecord, schema};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::command::CommandDir;
use super::places::hidden_name;
use super::session::SessionDir;
use super::{name, put};
use crate::dir::{Dir, FileError, Result, if_there};
use crate::effect;
use crate::lock::Lock;

/// How much is copied at once.
const STEP: usize = 64 * 1024;

/// What a pass over the records of a session did.
#[derive(Debug, Default)]
pub struct Moves {
    /// Commands whose records are beside the transcript now.
    pub moved: Vec<CommandId>,
    /// Commands that are over and whose records were left where they are, and why.
    pub left: Vec<(CommandId, String)>,
}

/// Binds a session to a directory and moves what is over; the rest follows at its end. A place that is refused, or that
/// cannot be recorded, changes nothing.
pub fn bind(session: &SessionDir, place: &Path, now_ms: u64) -> Result<Moves> {
    let _lock = Lock::acquire(session.dir(), name::BOUND_LOCK)?;
    let (outer, text) = open_new(place)?;
    let mut bound = match session.bound()? {
        Some(bound) if bound.newer => {
            let why = "a newer outlast wrote it; update this one";
            return Err(FileError::refused("replace", session.dir().path_of(name::BOUND), why));
        }
        Some(bound) => bound.record,
        None => BoundRecord { schema: schema::BOUND.to_owned(), id: session.id(), places: Vec::new(), at_ms: now_ms },
    };
    let own = session.id().to_string();
    let was_there = outer.exists(&own)?;
    outer.create_sub(&own)?;
    bound.places.retain(|known| *known != text);
    bound.places.push(text);
    if let Err(error) = write_bound(session, &bound) {
        if !was_there {
            // The first error is the one to tell; an empty directory that stays is used by the next bind.
            let _ = outer.remove_empty(&own);
        }
        return Err(error);
    }
    let moves = pass(session)?;
    forget_empty(session, bound)?;
    Ok(moves)
}

/// Opens a place that a session may be bound to, and its path as it is recorded.
pub fn open_new(place: &Path) -> Result<(Dir, String)> {
    let outer = Dir::open_place(place)?;
    outer.check_nobody_else_writes()?;
    outer.check_writable()?;
    let text = outer.path().to_str().filter(|text| !text.contains(char::is_control)).map(str::to_owned);
    let why = "its path must be UTF-8 without control characters; choose another";
    let text = text.ok_or_else(|| FileError::refused("use", place, why))?;
    Ok((outer, text))
}

/// Moves what is over and not where its session is bound to; nothing where another process does so at this moment.
pub fn follow(session: &SessionDir) -> Result<Moves> {
    if waiting(session)?.is_empty() {
        return Ok(Moves::default());
    }
    match Lock::try_acquire(session.dir(), name::BOUND_LOCK)? {
        Some(_lock) => pass(session),
        None => Ok(Moves::default()),
    }
}

/// Commands that are over and whose records are not, or not wholly, where their session is bound to.
pub fn waiting(session: &SessionDir) -> Result<Vec<CommandId>> {
    let mut waiting = Vec::new();
    if session.bound()?.is_none() {
        return Ok(waiting);
    }
    let places = session.home().places()?;
    for source in places.split_last().map(|(_, sources)| sources).unwrap_or_default() {
        for file in source.names()? {
            if let Some(id) = file.strip_prefix(name::MOVED).and_then(|id| id.parse().ok()) {
                waiting.push(id);
            } else if let Ok(id) = file.parse::<CommandId>()
                && let Some(dir) = if_there(source.sub(&file))?
                && !CommandDir::of(dir, id, session.durability()).lease_is_held()?
            {
                waiting.push(id);
            }
        }
    }
    Ok(waiting)
}

/// Moves the records of one command, whose lease the caller holds and has written its last into.
pub fn follow_own(session: &SessionDir, id: CommandId) -> Result<()> {
    if session.bound()?.is_none() {
        return Ok(());
    }
    let _lock = Lock::acquire(session.dir(), name::BOUND_LOCK)?;
    let places = session.home().places()?;
    let Some((target, sources)) = places.split_last() else { return Ok(()) };
    match sources.first() {
        Some(work) if work.exists(&id.to_string())? => carry(work, target, id).map(|_taken| ()),
        _ => Ok(()),
    }
}

fn write_bound(session: &SessionDir, bound: &BoundRecord) -> Result<()> {
    put(session.dir(), name::BOUND, bound, session.durability())
}

/// Moves everything that is over to the last place. The caller holds the lock.
fn pass(session: &SessionDir) -> Result<Moves> {
    let places = session.home().places()?;
    let mut moves = Moves::default();
    recover(&places)?;
    let Some((target, sources)) = places.split_last() else { return Ok(moves) };
    for source in sources {
        for id in super::ids::<CommandId>(source)? {
            match leave_for(session, source, target, id) {
                Ok(Left::Moved) => moves.moved.push(id),
                Ok(Left::Running) => {}
                Ok(Left::Taken) => {
                    let taken = format!("{} is there already, and was left", target.path_of(&id.to_string()).display());
                    moves.left.push((id, taken));
                }
                Err(error) => moves.left.push((id, error.to_string())),
            }
        }
    }
    Ok(moves)
}

/// What became of one command in a pass.
enum Left {
    Moved,
    Running,
    Taken,
}

fn leave_for(session: &SessionDir, source: &Dir, target: &Dir, id: CommandId) -> Result<Left> {
    let Some(dir) = if_there(source.sub(&id.to_string()))? else { return Ok(Left::Running) };
    let command = CommandDir::of(dir, id, session.durability());
    // Whoever may still write records holds the lease, or has left neither end nor verdict.
    let Some(_lease) = command.try_lease_unsigned()? else { return Ok(Left::Running) };
    if !command.has_exit()? && command.verdict()?.is_none() {
        return Ok(Left::Running);
    }
    Ok(if carry(source, target, id)? { Left::Moved } else { Left::Taken })
}

/// Moves one directory whose lease is held; false where its name is taken at the target.
fn carry(source: &Dir, target: &Dir, id: CommandId) -> Result<bool> {
    let plain = id.to_string();
    if target.exists(&plain)? {
        return Ok(false);
    }
    let inner = source.sub(&plain)?;
    // Nobody is behind its door any more, and a socket cannot be copied.
    inner.remove_if_there(name::CONTROL_DOOR)?;
    inner.tighten_files()?;
    match source.move_noreplace(&plain, target, &plain) {
        Ok(()) => return Ok(true),
        Err(error) if error.is_taken() => return Ok(false),
        // Another file system, or one that cannot rename like this.
        Err(error) if matches!(error.errno(), Some(Errno::XDEV | Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP)) => {}
        Err(error) => return Err(error),
    }
    let copied = format!("{}{plain}", name::NEW);
    if let Err(error) = copy(&inner, target, &copied) {
        if target.exists(&copied)? {
            target.remove_tree(&copied)?;
        }
        return Err(error);
    }
    let hidden = hidden_name(id);
    source.rename_noreplace(&plain, &hidden)?;
    if let Err(error) = target.rename_noreplace(&copied, &plain) {
        source.rename_noreplace(&hidden, &plain)?;
        target.remove_tree(&copied)?;
        return if error.is_taken() { Ok(false) } else { Err(error) };
    }
    target.sync()?;
    source.remove_tree(&hidden)?;
    Ok(true)
}

/// Finishes, or takes back, what movers that died have left. The caller holds the lock.
fn recover(places: &[Dir]) -> Result<()> {
    let exists = |wanted: &str| places.iter().map(|place| place.exists(wanted)).collect::<Result<Vec<bool>>>();
    for source in places {
        for hidden in source.names()?.into_iter().filter(|file| file.starts_with(name::MOVED)) {
            let plain = hidden.trim_start_matches(name::MOVED).to_owned();
            let copied = format!("{}{plain}", name::NEW);
            let has_landed = exists(&plain)?.contains(&true);
            if has_landed && !exists(&copied)?.contains(&true) {
                source.remove_tree(&hidden)?;
            } else {
                source.rename_noreplace(&hidden, &plain)?;
            }
        }
    }
    // Copies whose source stands under its own name again. In `work` such names are commands that are being made.
    for target in places.iter().skip(1) {
        for copied in target.names()?.into_iter().filter(|file| file.starts_with(name::NEW)) {
            target.remove_tree(&copied)?;
        }
    }
    Ok(())
}

/// Takes earlier places that are empty out of the pointer and off the disk.
fn forget_empty(session: &SessionDir, mut bound: BoundRecord) -> Result<()> {
    let own = session.id().to_string();
    let Some(last) = bound.places.pop() else { return Ok(()) };
    let before = bound.places.len();
    let mut kept = Vec::new();
    for place in std::mem::take(&mut bound.places) {
        // A place that is gone holds nothing.
        let emptied = match if_there(Dir::open_place(Path::new(&place)))? {
            Some(outer) => outer.remove_empty(&own)?,
            None => true,
        };
        if !emptied {
            kept.push(place);
        }
    }
    kept.push(last);
    bound.places = kept;
    if bound.places.len() <= before { write_bound(session, &bound) } else { Ok(()) }
}

/// Removes what a session has in the places that it was bound to, the places themselves if nothing else is in them.
pub(super) fn remove_places(session: &SessionDir) -> Result<()> {
    let own = session.id().to_string();
    for place in session.bound()?.map(|bound| bound.record.places).unwrap_or_default() {
        if let Some(outer) = if_there(Dir::open_place(Path::new(&place)))?
            && outer.exists(&own)?
        {
            outer.remove_tree(&own)?;
        }
    }
    Ok(())
}

/// Copies every file of a directory into a new one, and writes all of it to the disk.
fn copy(from: &Dir, target: &Dir, to: &str) -> Result<()> {
    let copied = target.create_new_sub(to)?;
    for file in from.names()? {
        let (source, sink) = (from.open_file(&file)?, copied.create_new(&file)?);
        let failed = |error: std::io::Error| FileError::io("copy to", copied.path_of(&file), &error);
        copy_file(&file, &source, &sink).map_err(failed)?;
        effect::sync(&file, &sink).map_err(|errno| failed(errno.into()))?;
    }
    copied.sync()
}

/// Copies bytes and keeps holes: the log of a command that was capped may be far longer than what it takes.
fn copy_file(name: &str, source: &File, sink: &File) -> std::io::Result<()> {
    let length = source.metadata()?.len();
    effect::set_len(name, sink, length)?;
    let mut buffer = vec![0; STEP];
    let mut at = 0;
    while at < length {
        // ENXIO: nothing but a hole is left (lseek(2)).
        at = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno.into()),
        };
        let hole = rustix::fs::seek(source, SeekFrom::Hole(at))?;
        while at < hole.min(length) {
            let wanted = usize::try_from(hole.min(length) - at).unwrap_or(STEP).min(STEP);
            let count = source.read_at(&mut buffer[..wanted], at)?;
            if count == 0 {
                return Ok(());
            }
            effect::write_at(name, sink, &buffer[..count], at)?;
            at += count as u64;
        }
    }
    Ok(())
}
