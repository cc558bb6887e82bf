//! What a command says it changed: the stored line, and what a reader makes of what is stored.

use serde::{Deserialize, Serialize};

use crate::id::CommandId;
use crate::record::{SchemaCheck, check_schema, schema};
use crate::request::OsText;

/// The most bytes of paths that one command may publish; what is beyond is refused.
pub const RECEIPT_BYTES: usize = 1 << 20;

/// What one command has published so far, as whoever takes it down keeps it.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// Paths that are in no records, because there are none.
    pub held: Vec<OsText>,
    bytes: usize,
}

impl Published {
    /// Takes these paths, with `store` if there is one and else into `held`; or says why not.
    pub fn take(
        &mut self,
        id: CommandId,
        paths: Vec<OsText>,
        store: Option<impl FnOnce(&ReceiptLine) -> Result<(), String>>,
    ) -> Result<(), String> {
        let bytes = self.bytes + paths.iter().map(|path| path.0.len()).sum::<usize>();
        if bytes > RECEIPT_BYTES {
            return Err(format!("{id} may publish {RECEIPT_BYTES} bytes of paths, and this would be more"));
        }
        match store {
            Some(store) => store(&ReceiptLine::of(paths))?,
            None => self.held.extend(paths),
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// One line of `receipts.jsonl`: paths that were published together. Nothing of what the command was asked or
/// printed stands in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiptLine {
    /// [`schema::RECEIPTS`].
    pub schema: String,
    /// Absolute paths.
    pub paths: Vec<OsText>,
}

impl ReceiptLine {
    /// These paths, as this version writes them.
    pub fn of(paths: Vec<OsText>) -> Self {
        ReceiptLine { schema: schema::RECEIPTS.to_owned(), paths }
    }
}

/// What is known to have been changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// One successful write of these paths, each once, in the order in which they were first published.
    Write {
        /// Absolute paths; never empty.
        paths: Vec<OsText>,
    },
    /// Something was changed, and what is stored of it cannot be understood here.
    Opaque,
}

/// What stored lines say: at most one write of all their paths, and one opaque change for all lines of a version
/// that is not known, or that cannot be read. Unknown keys are skipped.
pub fn recovered(stored: &[u8]) -> Vec<Change> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let mut paths = Vec::new();
    let mut opaque = false;
    for line in stored.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let known = serde_json::from_slice::<Head>(line)
            .is_ok_and(|head| check_schema(&head.schema, schema::RECEIPTS) == SchemaCheck::Known);
        match serde_json::from_slice::<ReceiptLine>(line) {
            Ok(line) if known => paths.extend(line.paths),
            Ok(_) | Err(_) => opaque = true,
        }
    }
    changes(paths, opaque)
}

/// One write of these paths, each once, if there are any.
pub fn written(paths: Vec<OsText>) -> Vec<Change> {
    changes(paths, false)
}

fn changes(mut paths: Vec<OsText>, opaque: bool) -> Vec<Change> {
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    let write = (!paths.is_empty()).then_some(Change::Write { paths });
    write.into_iter().chain(opaque.then_some(Change::Opaque)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(paths: &[&str]) -> Change {
        Change::Write { paths: paths.iter().map(OsText::from).collect() }
    }

    /// Covers: N7
    #[test]
    fn n7_what_is_recovered_of_each_version() {
        let one = r#"{"schema":"outlast.receipts/1","paths":["/a","/b"]}"#;
        let two = r#"{"schema":"outlast.receipts/1","paths":["/b","/c"]}"#;
        let labelled = r#"{"schema":"outlast.receipts/1","risk":"high","paths":["/d"]}"#;
        let empty = r#"{"schema":"outlast.receipts/1"}"#;
        let rows: [(&[&str], Vec<Change>); 9] = [
            (&[], vec![]),
            (&[empty], vec![]),
            (&[one, two, empty], vec![write(&["/a", "/b", "/c"])]),
            (&[labelled], vec![write(&["/d"])]),
            (&[r#"{"schema":"outlast.receipts/0","paths":["/a"]}"#], vec![Change::Opaque]),
            (&[r#"{"schema":"outlast.receipts/2","paths":["/a"]}"#], vec![Change::Opaque]),
            (&[r#"{"paths":["/a"]}"#], vec![Change::Opaque]),
            (&[one, r#"{"schema":"outlast.rec"#], vec![write(&["/a", "/b"]), Change::Opaque]),
            (&[r#"{"schema":"outlast.receipts/9","paths":7}"#, "[]"], vec![Change::Opaque]),
        ];
        for (lines, wanted) in rows {
            assert_eq!(recovered(lines.join("\n").as_bytes()), wanted, "{lines:?}");
        }
    }

    #[test]
    fn paths_are_any_bytes() {
        let line = ReceiptLine::of(vec![OsText(b"/\xff\n".to_vec())]);
        let stored = serde_json::to_vec(&line).expect("plain data");
        assert_eq!(recovered(&stored), [Change::Write { paths: line.paths }]);
    }
}
