//! The files of the state directory: what is where, who writes it, and how it is read.
//!
//! Modules are listed in reading order.

use std::ops::Deref;

use outlast_core::record::{Durability, SchemaCheck, check_schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::dir::{Dir, FileCause, FileError, Result};

pub mod reader;
pub mod index;
pub mod log;
pub mod receipts;
mod places;
pub mod command;
pub mod session;
pub mod moving;
pub mod state;
pub mod trace;
pub mod ledger;
pub mod aliases;
pub mod records;
pub mod anchors;
pub mod contexts;
pub mod token;
pub mod removal;
pub mod crumbs;

/// Names of the stored files.
pub mod name {
    /// Directory of sessions in the state directory.
    pub const SESSIONS: &str = "sessions";
    /// Directory of anchors in the state directory.
    pub const ANCHORS: &str = "by-anchor";
    /// Lock of the directory of anchors.
    pub const ANCHORS_LOCK: &str = ".lock";
    /// Directory of contexts in the state directory.
    pub const CONTEXTS: &str = "by-context";
    /// Lock of the directory of contexts.
    pub const CONTEXTS_LOCK: &str = ".given.lock";
    /// Lock of retention, with the time of its last look inside.
    pub const RETAIN_LOCK: &str = "retain.lock";
    /// What a session's directory is called in front of its id while it is removed.
    pub const OLD: &str = ".old-";
    /// The bearer token of the MCP server over HTTP.
    pub const TOKEN: &str = "http-token";
    /// Lock of the token.
    pub const TOKEN_LOCK: &str = "http-token.lock";
    /// Who the session is; written once by its creator.
    pub const SESSION: &str = "session.json";
    /// Lock of the session's keeper.
    pub const KEEPER_LOCK: &str = "keeper.lock";
    /// Door of the session's keeper.
    pub const KEEPER_DOOR: &str = "keeper.sock";
    /// Lock of the session's owner.
    pub const OWNER_LOCK: &str = "owner.lock";
    /// Events of the session, a line each.
    pub const TRACE: &str = "trace.jsonl";
    /// Lock of the ledger.
    pub const LEDGER_LOCK: &str = "inbox.lock";
    /// What each consumer was told.
    pub const LEDGER: &str = "inbox.json";
    /// The end of the session; written once.
    pub const CLOSED: &str = "closed.json";
    /// The context that was given later; written once.
    pub const CONTEXT: &str = "context.json";
    /// Where records were moved to.
    pub const BOUND: &str = "bound.json";
    /// Lock held while records are moved.
    pub const BOUND_LOCK: &str = "bound.lock";
    /// What a directory whose copy is whole is called in front of its id, until it is removed.
    pub const MOVED: &str = ".moved-";
    /// That the session is to go with all that is in it; there once that was asked for.
    pub const GIVEN_UP: &str = "given-up";
    /// Aliases, a line of fixed length each.
    pub const ALIASES: &str = "aliases";
    /// Directory of commands in a session.
    pub const WORK: &str = "work";
    /// The home of commands whose environment is clean.
    pub const HOME: &str = "home";
    /// What a directory that is not complete yet is called in front of its id.
    pub const NEW: &str = ".new-";
    /// What was asked; written once.
    pub const REQUEST: &str = "request.json";
    /// Lock held by the supervisor for its whole life, its process mark inside.
    pub const LEASE: &str = "lease";
    /// Where the command is now.
    pub const STATUS: &str = "status.json";
    /// Header, output, trailer.
    pub const LOG: &str = "output.log";
    /// Which stream each part of the output came from, and when.
    pub const INDEX: &str = "output.idx";
    /// The space set aside for the end.
    pub const EXIT_SPACE: &str = "exit.tmp";
    /// How it ended; written once.
    pub const EXIT: &str = "exit.json";
    /// What a reconciler found; written once.
    pub const VERDICT: &str = "verdict.json";
    /// What the command says it changed, a line each time.
    pub const RECEIPTS: &str = "receipts.jsonl";
    /// That retention removed the output, and when; written once.
    pub const PRUNED: &str = "pruned.json";
    /// The final text of a task under a text policy.
    pub const TEXT: &str = "text.json";
    /// Lock held while that text is replaced.
    pub const TEXT_LOCK: &str = "text.lock";
    /// Door of the supervisor.
    pub const CONTROL_DOOR: &str = "control.sock";
}

#[cfg(test)]
mod tests;

/// The longest JSON record that is read, in bytes.
const MAX_RECORD: u64 = 16 << 20;

/// A record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded<T> {
    /// What this version understands of it.
    pub record: T,
    /// True if a newer version wrote it: show what is known, never rewrite it.
    pub newer: bool,
}

impl<T> Deref for Loaded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.record
    }
}

/// Reads a record whose `schema` must be `expected` or a newer version of it; `None` if there is no
/// such file. Torn or foreign content is an error that names the path.
pub(crate) fn load<T: DeserializeOwned>(dir: &Dir, name: &str, expected: &str) -> Result<Option<Loaded<T>>> {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(default)]
        schema: String,
    }
    let Some(bytes) = dir.read_if_there(name, MAX_RECORD)? else { return Ok(None) };
    let damaged = |why: String| FileError::damaged("understand", dir.path_of(name), why + way_out(name));
    if begins_with_schema(&bytes, expected) {
        // Parsed once: a second key of that name would be an error.
        let record = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        return Ok(Some(Loaded { record, newer: false }));
    }
    let head: Head = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
    let newer = match check_schema(&head.schema, expected) {
        SchemaCheck::Known => false,
        SchemaCheck::Newer => true,
        SchemaCheck::Foreign => {
            return Err(damaged(format!("its schema is {:?}, expected {expected:?}", head.schema)));
        }
    };
    match serde_json::from_slice(&bytes) {
        Ok(record) => Ok(Some(Loaded { record, newer })),
        Err(_) if newer => {
            let (action, path) = ("understand", dir.path_of(name));
            Err(FileError { action, path, cause: FileCause::Newer })
        }
        Err(e) => Err(damaged(e.to_string())),
    }
}

/// What to do about a damaged file, where something can be done.
fn way_out(name: &str) -> &'static str {
    match name {
        name::SESSION => "; `outlast session end` closes that session, once nothing in it runs",
        name::LEDGER => "; move that file away, and what it knew as told is told once more",
        _ => "",
    }
}

/// Whether the text begins as this version writes it: with the expected schema as its first key.
fn begins_with_schema(bytes: &[u8], expected: &str) -> bool {
    let rest = bytes.strip_prefix(br#"{"schema":""#).and_then(|rest| rest.strip_prefix(expected.as_bytes()));
    rest.is_some_and(|rest| rest.starts_with(b"\""))
}

/// A record where it can be understood; none where there is none, or it is damaged or foreign. An error only where
/// it could not be looked at now, which must never pass for its absence.
pub fn understood<T>(loaded: Result<Option<Loaded<T>>>) -> Result<Option<T>> {
    match loaded {
        Ok(loaded) => Ok(loaded.map(|loaded| loaded.record)),
        Err(error) if error.is_unknown() => Err(error),
        Err(_) => Ok(None),
    }
}

/// The bytes of a record: one JSON object and a final newline.
pub(crate) fn encode<T: Serialize>(dir: &Dir, name: &str, record: &T) -> Result<Vec<u8>> {
    let mut bytes =
        serde_json::to_vec(record).map_err(|e| FileError::damaged("write", dir.path_of(name), e.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The names in a directory that are ids, written exactly as ids are written.
pub(crate) fn ids<T: std::str::FromStr + ToString>(dir: &Dir) -> Result<Vec<T>> {
    let parse = |name: String| name.parse::<T>().ok().filter(|id| id.to_string() == name);
    Ok(dir.names()?.into_iter().filter_map(parse).collect())
}

pub(crate) fn put_once<T: Serialize>(dir: &Dir, name: &str, record: &T, durability: Durability) -> Result<()> {
    crate::atomic::write_once(dir, name, &encode(dir, name, record)?, durability)
}

pub(crate) fn put<T: Serialize>(dir: &Dir, name: &str, record: &T, durability: Durability) -> Result<()> {
    crate::atomic::replace(dir, name, &encode(dir, name, record)?, durability)
}
