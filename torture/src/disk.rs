//! What the state directory says, read by code that shares nothing with outlast.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What is recorded of one command.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its id.
    pub id: String,
    /// The label of its start.
    pub label: String,
    /// `status.json`.
    pub status: Value,
    /// `exit.json`, else `verdict.json`.
    pub end: Option<Value>,
}

impl Record {
    /// The kind of its end, if it has one.
    pub fn kind(&self) -> Option<&str> {
        let end = self.end.as_ref()?;
        end["end"]["kind"].as_str().or(end["verdict"].as_str())
    }
}

/// The command directories below a state directory.
pub fn commands(state: &Path) -> Vec<PathBuf> {
    let sessions = entries(&state.join("sessions"));
    let all = sessions.iter().flat_map(|session| entries(&session.join("work")));
    all.filter(|dir| name(dir).starts_with("wrk_")).collect()
}

/// The records of all commands below a state directory.
pub fn records(state: &Path) -> Vec<Record> {
    let read = |dir: &PathBuf| {
        let end = json(&dir.join("exit.json")).or_else(|| json(&dir.join("verdict.json")));
        // Of a command whose supervisor died early there is the end alone.
        let named = json(&dir.join("request.json")).or_else(|| end.clone())?;
        let label = named["label"].as_str().unwrap_or_default().to_owned();
        Some(Record { id: name(dir), label, status: json(&dir.join("status.json")).unwrap_or_default(), end })
    };
    commands(state).iter().filter_map(read).collect()
}

/// A file that holds JSON.
pub fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// What a directory holds.
pub fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(dir) else { return Vec::new() };
    found.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Every file below a directory, sockets included.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in entries(dir) {
        let is_dir = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        if is_dir { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
