//! Finds the session that is anchored on a process, or makes it, once however many ask at a time.

use outlast_core::id::SessionId;
use outlast_core::record::ProcessMark;

use super::name;
use super::session::SessionDir;
use super::state::State;
use crate::atomic;
use crate::dir::{Dir, FileError, Result, if_there};
use crate::lock::Lock;

/// The open session anchored on this process; `None` if there is none.
///
/// A closed session does not count, and neither does one whose anchor is another process that had the
/// same pid and start time in another boot.
pub fn find(state: &State, anchor: &ProcessMark) -> Result<Option<SessionDir>> {
    let Some(anchors) = if_there(state.root().sub(name::ANCHORS))? else { return Ok(None) };
    look_up(state, &anchors, anchor)
}

/// The open session anchored on this process, else the one that `create` makes; true if it made one.
///
/// `create` runs under the lock of all anchors: it makes the session's directory and nothing slower.
pub fn get_or_create<E: From<FileError>>(
    state: &State,
    anchor: &ProcessMark,
    create: impl FnOnce() -> std::result::Result<SessionDir, E>,
) -> std::result::Result<(SessionDir, bool), E> {
    let anchors = state.root().create_sub(name::ANCHORS)?;
    if let Some(session) = look_up(state, &anchors, anchor)? {
        return Ok((session, false));
    }
    let _lock = Lock::acquire(&anchors, name::ANCHORS_LOCK)?;
    if let Some(session) = look_up(state, &anchors, anchor)? {
        return Ok((session, false));
    }
    let session = create()?;
    write(&anchors, anchor, &session)?;
    Ok((session, true))
}

/// Makes this session the one that is found by its anchor, in place of any earlier one.
pub fn assign(state: &State, anchor: &ProcessMark, session: &SessionDir) -> Result<()> {
    let anchors = state.root().create_sub(name::ANCHORS)?;
    let _lock = Lock::acquire(&anchors, name::ANCHORS_LOCK)?;
    write(&anchors, anchor, session)
}

/// Forgets the session that was found by this anchor, if it still is this one.
pub fn forget(state: &State, anchor: &ProcessMark, session: SessionId) -> Result<()> {
    let Some(anchors) = if_there(state.root().sub(name::ANCHORS))? else { return Ok(()) };
    let _lock = Lock::acquire(&anchors, name::ANCHORS_LOCK)?;
    if read(&anchors, anchor)? == Some(session) {
        anchors.remove_if_there(&file_name(anchor))?;
    }
    Ok(())
}

fn look_up(state: &State, anchors: &Dir, anchor: &ProcessMark) -> Result<Option<SessionDir>> {
    let Some(id) = read(anchors, anchor)? else { return Ok(None) };
    let Some(session) = state.session(id)? else { return Ok(None) };
    if session.is_closed()? {
        return Ok(None);
    }
    // A session whose record is damaged cannot be told to be this anchor's; a new one takes over.
    let record = match session.record() {
        Ok(record) => record,
        Err(error) if error.is_unknown() => return Err(error),
        Err(_) => return Ok(None),
    };
    let same = record
        .anchor
        .as_ref()
        .is_some_and(|mark| (mark.pid, mark.start, &mark.boot) == (anchor.pid, anchor.start, &anchor.boot));
    Ok(same.then_some(session))
}

fn write(anchors: &Dir, anchor: &ProcessMark, session: &SessionDir) -> Result<()> {
    let text = format!("{}\n", session.id());
    atomic::replace(anchors, &file_name(anchor), text.as_bytes(), session.durability())
}

fn read(anchors: &Dir, anchor: &ProcessMark) -> Result<Option<SessionId>> {
    let Some(bytes) = anchors.read_if_there(&file_name(anchor), 256)? else { return Ok(None) };
    // A damaged pointer is no pointer: the session is still found by its id.
    Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok()))
}

fn file_name(anchor: &ProcessMark) -> String {
    format!("{}-{}", anchor.pid, anchor.start)
}
