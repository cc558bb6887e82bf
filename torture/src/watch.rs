//! The reader that looks at every record again and again while the storm is on: each must be whole at every instant,
//! and no end may ever change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::{disk, pace};

/// A reader at work.
pub struct Watch {
    over: Arc<AtomicBool>,
    torn: Arc<AtomicBool>,
    full: Arc<AtomicBool>,
    reader: JoinHandle<Seen>,
}

/// What it saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// What was wrong.
    pub faults: Vec<String>,
    /// How often it has read everything.
    pub looks: u64,
    ends: BTreeMap<PathBuf, [Value; 2]>,
}

impl Watch {
    /// Begins to read what is below a state directory.
    pub fn over(state: PathBuf) -> Watch {
        let [over, torn, full] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let [ends, tears, fills] = [&over, &torn, &full].map(Arc::clone);
        let reader = std::thread::spawn(move || {
            let mut seen = Seen::default();
            while !ends.load(Ordering::SeqCst) && seen.faults.is_empty() {
                seen.look(&state, &tears, &fills);
                pace::pass(Duration::from_millis(4));
            }
            seen.look(&state, &tears, &fills);
            seen
        });
        Watch { over, torn, full, reader }
    }

    /// From now on lines of the trace may be torn, because somebody tears them.
    pub fn allow_torn_lines(&self) {
        self.torn.store(true, Ordering::SeqCst);
    }

    /// From now on what can be done without may be missing, because the disk is full.
    pub fn allow_missing_files(&self) {
        self.full.store(true, Ordering::SeqCst);
    }

    /// Ends the reading, after one more look.
    pub fn end(self) -> Seen {
        self.over.store(true, Ordering::SeqCst);
        self.reader.join().expect("the reader does not panic")
    }
}

impl Seen {
    fn look(&mut self, state: &Path, torn: &AtomicBool, full: &AtomicBool) {
        self.looks += 1;
        for session in disk::entries(&state.join("sessions")) {
            for path in disk::entries(&session) {
                self.check_json(&path);
            }
            let trace = session.join("trace.jsonl");
            let text = fs::read(&trace).unwrap_or_default();
            if !torn.load(Ordering::SeqCst) {
                self.check_lines(&trace, &text);
            }
        }
        for dir in disk::commands(state) {
            self.check_command(&dir, full.load(Ordering::SeqCst));
        }
    }

    fn fault(&mut self, path: &Path, what: &str, bytes: &[u8]) {
        self.faults.push(format!("{}: {what}: {:?}", path.display(), String::from_utf8_lossy(bytes)));
    }

    /// A whole JSON file with a schema, if the path is one.
    fn check_json(&mut self, path: &Path) -> Option<Value> {
        let name = disk::name(path);
        if !name.ends_with(".json") || name.starts_with('.') {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        let value: Option<Value> = serde_json::from_slice(&bytes).ok();
        if value.as_ref().and_then(|value| value["schema"].as_str()).is_none() {
            self.fault(path, "is no whole record", &bytes);
        }
        value
    }

    /// Lines that are whole; only the last one may be in the making.
    fn check_lines(&mut self, path: &Path, text: &[u8]) {
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if serde_json::from_slice::<Value>(line).is_err() {
                self.fault(path, "has a line that is torn", line);
            }
        }
    }

    /// A directory of a command is complete and says one end at most, always the same.
    fn check_command(&mut self, dir: &Path, full: bool) {
        // Of a command whose supervisor died before it had records there is the end alone, written by the keeper.
        let end = disk::json(&dir.join("exit.json")).unwrap_or_default();
        let alone = end["recorded_by"] == "keeper" && !dir.join("lease").exists();
        // Where the disk is full the command runs all the same, and its end says what could not be written.
        let dispensable = if full { 2 } else { 0 };
        for name in ["status.json", "output.log", "request.json", "lease"].iter().skip(dispensable) {
            if !alone && !dir.join(name).exists() {
                self.faults.push(format!("{}: has no {name}", dir.display()));
            }
        }
        for path in disk::entries(dir) {
            let Some(value) = self.check_json(&path) else { continue };
            if !["exit.json", "verdict.json"].contains(&disk::name(&path).as_str()) {
                continue;
            }
            let end = [value["end"].clone(), value["verdict"].clone()];
            let first = self.ends.entry(dir.to_owned()).or_insert_with(|| end.clone());
            if *first != end {
                self.faults.push(format!("{}: ended as {first:?}, and now as {end:?}", dir.display()));
            }
        }
        if dir.join("exit.json").exists() && dir.join("verdict.json").exists() {
            self.faults.push(format!("{}: has an end and a verdict", dir.display()));
        }
    }
}
