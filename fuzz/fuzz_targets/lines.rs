//! Files of lines (the trace, receipts, aliases) that are torn or garbled: every line that is whole is read, nothing
//! else is, and what is appended to such a file is found in it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use outlast_core::id::Alias;
use outlast_core::receipt::{Change, ReceiptLine};
use outlast_core::record::{Durability, TraceLine};
use outlast_core::request::OsText;
use outlast_fuzz::{Stored, put, stored, take};
use outlast_host::store::{aliases, name, trace};

static STORED: LazyLock<Stored> = LazyLock::new(stored);

fuzz_target!(|data: &[u8]| {
    let mut bytes = data;
    let how = take(&mut bytes, 2);
    let [kind, cut] = *how else { return };
    // Where a writer died: so many bytes before the end.
    let torn = &bytes[..bytes.len().saturating_sub(usize::from(cut))];
    match kind {
        b't' => trace_of(bytes, torn),
        b'r' => receipts_of(bytes, torn),
        b'a' => aliases_of(bytes, torn),
        _ => {}
    }
});

fn trace_of(whole: &[u8], torn: &[u8]) {
    let dir = STORED.session.dir();
    let path = dir.path_of(name::TRACE);
    let read = || trace::read_stored(dir).expect("it can be read");
    put(path.clone(), whole);
    let all = read();
    for (line, text) in &all {
        assert!(
            !line.kind.is_empty() && whole.split(|byte| *byte == b'\n').any(|line| line == text.as_bytes()),
            "{text}"
        );
    }
    put(path.clone(), torn);
    let before = read();
    // A cut line may be one too where it was cut within white space; all before it are what they were.
    let ended = torn.iter().filter(|byte| **byte == b'\n').count();
    let same = before.iter().zip(&all).take_while(|(left, right)| left == right).count();
    assert!(same >= before.len().saturating_sub(1) && before.len() <= ended + 1, "{before:?} of {all:?}");
    let line = TraceLine { kind: "lost".to_owned(), detail: Some("a\nb".to_owned()), ..TraceLine::default() };
    trace::append(dir, &line, Durability::Process).expect("it is written");
    let after = read();
    assert_eq!(after.last().map(|(line, _)| line), Some(&line), "what was appended is not there");
    assert_eq!(after[..after.len() - 1], before, "what was there is not what it was");
    std::fs::remove_file(path).expect("it is there");
}

fn receipts_of(whole: &[u8], torn: &[u8]) {
    let command = &STORED.command;
    let path = command.dir().path_of(name::RECEIPTS);
    let read = || command.receipts().expect("it can be read");
    put(path.clone(), whole);
    checked(&read());
    put(path.clone(), torn);
    let before = read();
    checked(&before);
    let ends_well = torn.is_empty() || torn.ends_with(b"\n");
    let new = OsText(b"/new\xff".to_vec());
    command.append_receipt(&ReceiptLine::of(vec![new.clone()])).expect("it is written");
    let after = read();
    checked(&after);
    // Behind half a line the new one cannot be read; that something was changed is known all the same.
    let is_opaque = after.contains(&Change::Opaque);
    assert!(paths(&after).contains(&new) || (!ends_well && is_opaque), "what was appended is lost: {after:?}");
    let kept = paths(&before).iter().all(|path| paths(&after).contains(path));
    assert!(kept || is_opaque, "what was there is lost: {before:?}, {after:?}");
    std::fs::remove_file(path).expect("it is there");
}

fn paths(changes: &[Change]) -> Vec<OsText> {
    let of = |change: &Change| match change {
        Change::Write { paths } => paths.clone(),
        Change::Opaque => Vec::new(),
    };
    changes.iter().flat_map(of).collect()
}

/// At most one write, of paths each of which is there once, and one change that is not understood.
fn checked(changes: &[Change]) {
    let writes = changes.iter().filter(|change| matches!(change, Change::Write { .. })).count();
    let mut all = paths(changes);
    assert!(writes <= 1 && changes.len() - writes <= 1 && (writes == 0) == all.is_empty(), "{changes:?}");
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "a path twice");
}

fn aliases_of(whole: &[u8], torn: &[u8]) {
    let dir = STORED.session.dir();
    let path = dir.path_of(name::ALIASES);
    for bytes in [whole, torn] {
        put(path.clone(), bytes);
        let before = aliases::all(dir).expect("it can be read");
        for (alias, id) in &before {
            assert_eq!(aliases::resolve(dir, *alias).expect("it can be read"), Some(*id), "{alias}");
        }
        let id = STORED.command.id();
        let new = aliases::append(dir, id).expect("it is written");
        assert!(before.iter().all(|(alias, _)| *alias < new), "{new} was given before");
        assert_eq!(aliases::resolve(dir, new).expect("it can be read"), Some(id));
        assert_eq!(aliases::resolve(dir, Alias(new.0 + 1)).expect("it can be read"), None);
        let after = aliases::all(dir).expect("it can be read");
        assert_eq!(after.last(), Some(&(new, id)));
        assert_eq!(after[..after.len() - 1], before, "what was there is not what it was");
    }
    std::fs::remove_file(path).expect("it is there");
}
