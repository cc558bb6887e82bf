//! Stored records, whatever has become of the file: each is read or refused by its path, reads the same twice, and what
//! was read is written back as the same.
#![no_main]

use std::fmt::Debug;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use outlast_core::delivery::{Ledger, Subject, Via};
use outlast_core::id::{Alias, CommandId};
use outlast_core::notice::end_words;
use outlast_core::record::Durability;
use outlast_fuzz::{Stored, put, stored};
use outlast_host::dir::{Dir, Result};
use outlast_host::store::{Loaded, contexts, ledger, name};

static STORED: LazyLock<Stored> = LazyLock::new(stored);

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    let (session, command) = (&STORED.session, &STORED.command);
    let (here, there) = (session.dir(), command.dir());
    match kind {
        b'r' => {
            let write = |record: &_| command.write_request(record);
            if let Some(request) = both(there, name::REQUEST, bytes, || command.request(), write) {
                let _any = (request.is_task(), request.request.line(), request.request.ttl_ms());
            }
        }
        b's' => drop(both(there, name::STATUS, bytes, || command.status(), |record| command.write_status(record))),
        b'e' => {
            if let Some(exit) = both(there, name::EXIT, bytes, || command.exit(), |record| command.amend_exit(record)) {
                assert!(!exit.is_ok() || exit.end.exit_code() == Some(0), "{exit:?}");
                let _any = (exit.kept_tail(), end_words(&exit.end));
            }
        }
        b'v' => drop(both(there, name::VERDICT, bytes, || command.verdict(), |record| command.write_verdict(record))),
        b't' => drop(both(there, name::TEXT, bytes, || command.text(), |record| command.write_text(record))),
        b'p' => drop(both(there, name::PRUNED, bytes, || command.pruned(), |record| command.prune(record))),
        b'c' => drop(both(here, name::CLOSED, bytes, || session.closed(), |record| session.write_closed(record))),
        b'b' => drop(once(here, name::BOUND, bytes, || session.bound())),
        b'l' => drop(once(there, name::LEASE, bytes, || command.lease_mark())),
        b'S' => session_record(bytes),
        b'i' => inbox(bytes),
        b'C' => contexts_of(bytes),
        _ => {}
    }
});

/// Reads a record from these bytes twice, which is the same.
fn once<T: PartialEq + Debug>(dir: &Dir, file: &str, bytes: &[u8], read: impl Fn() -> Result<Option<T>>) -> Option<T> {
    put(dir.path_of(file), bytes);
    let first = read();
    refused_well(&first, dir, file);
    let first = first.ok().flatten();
    assert_eq!(read().ok().flatten(), first, "two readings of one file");
    std::fs::remove_file(dir.path_of(file)).expect("it is there");
    first
}

/// As [`once`], and what was read is written back.
fn both<T: PartialEq + Debug + Clone>(
    dir: &Dir,
    file: &str,
    bytes: &[u8],
    read: impl Fn() -> Result<Option<Loaded<T>>>,
    write: impl Fn(&T) -> Result<()>,
) -> Option<T> {
    let loaded = once(dir, file, bytes, &read)?;
    if !loaded.newer {
        write(&loaded.record).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read().expect("it was written").as_ref(), Some(&loaded), "what was read is not what is written");
        std::fs::remove_file(dir.path_of(file)).expect("it is there");
    }
    Some(loaded.record)
}

/// A refusal names the file, and is no sign of a machine that cannot read.
fn refused_well<T: Debug>(read: &Result<T>, dir: &Dir, file: &str) {
    let Err(error) = read else { return };
    let (path, text) = (dir.path_of(file), error.to_string());
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert!(!error.is_unknown(), "{text}");
}

fn session_record(bytes: &[u8]) {
    let session = &STORED.session;
    let path = session.dir().path_of(name::SESSION);
    let whole = std::fs::read(&path).expect("it is there");
    put(path.clone(), bytes);
    let read = session.reread();
    refused_well(&read, session.dir(), name::SESSION);
    // Whatever stands there, the session is found, with all that is in it.
    let opened = STORED.state.session(session.id()).expect("it opens").expect("it is there");
    assert_eq!(opened.record().ok(), read.as_ref().ok().cloned());
    assert_eq!(opened.commands().expect("they are there").len(), 1);
    if let Ok(read) = read {
        let text = serde_json::to_vec(&read.record).expect("plain data");
        put(path.clone(), &text);
        assert_eq!(session.reread().expect("as written").record, read.record);
    }
    put(path, &whole);
}

/// A ledger that was read goes on: what is committed in it is told, and stays told.
fn inbox(bytes: &[u8]) {
    let dir = STORED.session.dir();
    let path = dir.path_of(name::LEDGER);
    put(path.clone(), bytes);
    let read = ledger::read(dir);
    refused_well(&read, dir, name::LEDGER);
    match (ledger::LockedLedger::open(dir, Durability::Process), read) {
        (Ok(mut held), Ok(read)) => {
            assert_eq!(held.ledger, read, "two readings of one file");
            let told = told(&mut held.ledger);
            if held.write().is_ok() {
                let again = ledger::read(dir).expect("as written");
                assert!(again.is_told("model", told), "it was committed");
                assert_eq!(again.pending("model", &[told]), []);
            }
        }
        (held, read) => assert!(held.is_err() && read.is_err(), "one reading of two"),
    }
    std::fs::remove_file(path).expect("it is there");
}

fn told(ledger: &mut Ledger) -> Subject {
    let id = |number| CommandId::from_parts(1_700_000_000_000, number, 0);
    let subject = Subject { id: STORED.command.id(), alias: Some(Alias(3)) };
    let lease = ledger.lease("model", subject, "me", 1, |_| false);
    let commit = ledger.commit("model", subject, Via::Wait, 1, Some("me"), |_| false);
    assert!(ledger.is_told("model", subject), "{lease:?} {commit:?}");
    ledger.mark_traced("model", subject.id);
    ledger.compact("model", &[(Alias(1), id(1), false), (Alias(2), id(2), false), (Alias(3), subject.id, true)]);
    assert!(ledger.is_told("model", subject), "compacting forgets");
    subject
}

/// The sessions of a context, in a file that is appended to.
fn contexts_of(bytes: &[u8]) {
    let (state, id) = (&STORED.state, STORED.session.id());
    contexts::append(state, "project", id).expect("it is written");
    let place = state.path().join(name::CONTEXTS);
    let file = std::fs::read_dir(&place).expect("it is there").filter_map(|entry| entry.ok());
    let file = file.map(|entry| entry.path()).find(|path| !path.to_string_lossy().ends_with(".lock"));
    let file = file.expect("there is a file of the context");
    put(file.clone(), bytes);
    if let Ok(before) = contexts::list(state, "project") {
        contexts::append(state, "project", id).expect("it is written");
        let after = contexts::list(state, "project").expect("it was there");
        assert!(after.contains(&id), "what was appended is lost");
        assert!(before.iter().all(|session| after.contains(session)), "what was there is lost");
    }
    std::fs::remove_file(file).expect("it is there");
}
