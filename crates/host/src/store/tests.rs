//! Tests of the records of sessions and commands, from the fixtures of every version.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use outlast_core::id::{Alias, CommandId, SessionId};
use outlast_core::receipt::Change;
use outlast_core::record::{ContextRecord, ExitRecord, ProcessMark, SessionRecord, StatusRecord, TraceLine, schema};
use outlast_core::request::OsText;
use serde_json::Value;

use super::anchors;
use super::command::{CommandDir, NewCommand};
use super::ledger::{self, LockedLedger};
use super::session::SessionDir;
use super::state::State;
use super::*;
use crate::dir::tests::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/1")
}

fn fixture(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixtures().join(name)).unwrap()).unwrap()
}

fn session_record() -> SessionRecord {
    serde_json::from_value(fixture(name::SESSION)).unwrap()
}

fn exit_record() -> ExitRecord {
    serde_json::from_value(fixture(name::EXIT)).unwrap()
}

fn status_record() -> StatusRecord {
    serde_json::from_value(fixture(name::STATUS)).unwrap()
}

/// A state directory with one session and one command, whose files are the fixtures.
fn stored(temp: &TempDir) -> (State, SessionDir, CommandDir) {
    let state = State::open(temp.path()).unwrap();
    let session = state.create_session(&session_record()).unwrap();
    for file in [name::CLOSED, name::LEDGER, name::TRACE, name::ALIASES, name::BOUND, name::CONTEXT] {
        std::fs::copy(fixtures().join(file), session.dir().path_of(file)).unwrap();
    }
    let new = session.new_command(exit_record().id).unwrap();
    let files =
        [name::REQUEST, name::STATUS, name::LEASE, name::EXIT, name::VERDICT, name::PRUNED, name::RECEIPTS, name::TEXT];
    for file in files {
        std::fs::copy(
            fixtures().join(file),
            new.command().dir().path().with_file_name(format!("{}{}/{file}", name::NEW, exit_record().id)),
        )
        .unwrap();
    }
    (state, session, new.publish().unwrap())
}

fn empty_session(temp: &TempDir) -> SessionDir {
    State::open(temp.path()).unwrap().create_session(&session_record()).unwrap()
}

/// Covers: M13, M2
#[test]
fn m13_records_of_version_1_load_and_are_written_back_the_same() {
    let temp = TempDir::new();
    let (_state, session, command) = stored(&temp);
    fn same<T: Serialize>(loaded: Loaded<T>, name: &str) {
        assert!(!loaded.newer);
        assert_eq!(serde_json::to_value(&loaded.record).unwrap(), fixture(name), "{name}");
    }
    same(session.record().unwrap(), name::SESSION);
    same(session.closed().unwrap().unwrap(), name::CLOSED);
    same(command.status().unwrap().unwrap(), name::STATUS);
    same(command.exit().unwrap().unwrap(), name::EXIT);
    same(command.verdict().unwrap().unwrap(), name::VERDICT);
    same(session.bound().unwrap().unwrap(), name::BOUND);
    let given: Loaded<ContextRecord> = load(session.dir(), name::CONTEXT, schema::CONTEXT).unwrap().unwrap();
    same(given, name::CONTEXT);
    same(command.pruned().unwrap().unwrap(), name::PRUNED);
    same(command.text().unwrap().unwrap(), name::TEXT);
    let request = command.request().unwrap().unwrap();
    assert_eq!(request.request.label.as_deref(), Some("a label"));
    assert_eq!(request.request.argv[3].0, b"\xff\0");
    assert_eq!(command.lease_mark().unwrap().unwrap().pid, 4241);
    assert_eq!(ledger::read(session.dir()).unwrap().consumers["model"].through, 2);
    let paths = vec![OsText::from("/work/src/main.rs"), OsText(b"/work/\xff".to_vec())];
    assert_eq!(command.receipts().unwrap(), [Change::Write { paths }]);
    assert_eq!(trace::read(session.dir()).unwrap()[0].kind, "demoted");
    assert_eq!(aliases::resolve(session.dir(), Alias(3)).unwrap(), Some(command.id()));
}

/// Covers: K6
#[test]
fn k6_a_state_directory_goes_as_a_whole_and_stays_whole_under_a_command() {
    let temp = TempDir::new();
    let path = temp.path().join("temporary");
    let state = State::create(&path).unwrap();
    State::create(&path).expect_err("it is there");
    let empty = SessionRecord { id: "ses_0190a0b0c0d07000800000000000000b".parse().unwrap(), ..session_record() };
    state.create_session(&empty).unwrap();
    let session = state.create_session(&session_record()).unwrap();
    let command = session.new_command(exit_record().id).unwrap().publish().unwrap();
    let lease = command.try_lease_unsigned().unwrap().expect("it is free");
    let refused = removal::remove_all(&state).unwrap_err().to_string();
    assert!(refused.contains(session.path().to_str().unwrap()) && refused.contains("no keeper is left"), "{refused}");
    assert_eq!(state.list().unwrap().len(), 2, "a refusal removes nothing");
    drop(lease);

    std::fs::rename(&path, temp.path().join("aside")).unwrap();
    std::fs::create_dir(&path).unwrap();
    let refused = removal::remove_all(&state).unwrap_err().to_string();
    assert!(refused.contains("leads to another directory"), "{refused}");
    assert!(path.exists() && state.list().unwrap().len() == 2, "a refusal removes nothing");
    std::fs::remove_dir(&path).unwrap();
    std::fs::rename(temp.path().join("aside"), &path).unwrap();

    removal::remove_all(&state).unwrap();
    assert!(!path.exists());
}

fn edit(dir: &Dir, name: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(&dir.read(name, 1 << 20).unwrap()).unwrap();
    change(&mut value);
    let bytes = serde_json::to_vec(&value).unwrap();
    std::fs::write(dir.path_of(name), &bytes).unwrap();
    bytes
}

/// Covers: M13
#[test]
fn m13_a_newer_version_is_read_as_far_as_known_and_never_rewritten() {
    let temp = TempDir::new();
    let (_state, session, command) = stored(&temp);
    edit(command.dir(), name::EXIT, |value| {
        value["schema"] = "outlast.exit/2".into();
        value["unheard_of"] = true.into();
    });
    let exit = command.exit().unwrap().unwrap();
    assert!(exit.newer);
    assert_eq!(exit.duration_ms, 20_000);

    edit(command.dir(), name::STATUS, |value| {
        value["schema"] = "outlast.status/2".into();
        value["phase"] = "dreaming".into();
    });
    let error = command.status().unwrap_err().to_string();
    assert!(error.contains("newer outlast") && error.contains("status.json"), "{error}");

    let newer = edit(session.dir(), name::LEDGER, |value| value["schema"] = "outlast.ledger/9".into());
    let ledger = LockedLedger::open(session.dir(), Durability::Process).unwrap();
    assert_eq!(ledger.ledger.consumers["model"].through, 2);
    assert!(ledger.write().unwrap_err().to_string().contains("newer"));
    assert_eq!(session.dir().read(name::LEDGER, 9999).unwrap(), newer);
}

/// Covers: M2, L6
#[test]
fn m2_torn_foreign_and_misplaced_records_are_errors_that_name_the_path() {
    let temp = TempDir::new();
    let (_state, _session, command) = stored(&temp);
    for content in ["", "{\"schema\":\"outlast.exit/1\"", "{}", "[]", "{\"schema\":\"outlast.status/1\"}", "\u{0}"] {
        std::fs::write(command.dir().path_of(name::EXIT), content).unwrap();
        let error = command.exit().unwrap_err().to_string();
        assert!(error.contains("exit.json") && error.contains("damaged"), "{error}");
    }
    edit(command.dir(), name::STATUS, |value| value["id"] = "wrk_0190a0b0c0d070008000000000000099".into());
    assert!(command.status().unwrap_err().to_string().contains("another command"));
}

/// Covers: M2, L10
#[test]
fn m2_a_command_is_found_only_when_it_is_complete_and_its_end_is_written_once() {
    let temp = TempDir::new();
    let session = empty_session(&temp);
    let id = exit_record().id;
    drop(session.new_command(id).unwrap());
    let new = session.new_command(id).unwrap();
    new.command().write_status(&status_record()).unwrap();
    let space = new.command().reserve_exit(command::EXIT_SPACE).unwrap();
    assert!(session.commands().unwrap().is_empty());
    assert!(session.command(id).unwrap().is_none());
    let command = new.publish().unwrap();
    assert_eq!(session.commands().unwrap(), [id]);
    assert_eq!(command.path(), session.path().join("work").join(id.to_string()));
    assert!(command.exit().unwrap().is_none());
    command.write_exit(&exit_record(), Some(space)).unwrap();
    assert_eq!(session.command(id).unwrap().unwrap().exit().unwrap().unwrap().record, exit_record());
    assert!(command.write_exit(&exit_record(), None).unwrap_err().is_taken());
    command.write_status(&status_record()).unwrap();
    let mut names = command.dir().names().unwrap();
    names.sort();
    assert_eq!(names, [name::EXIT, name::STATUS]);
}

/// Covers: M2, C4
#[test]
fn m2_an_end_is_written_into_the_space_of_a_dead_supervisor_or_without_any() {
    for reserve in [true, false] {
        let temp = TempDir::new();
        let command = empty_session(&temp).new_command(exit_record().id).unwrap().publish().unwrap();
        if reserve {
            drop(command.reserve_exit(1000).unwrap());
        }
        command.write_exit(&exit_record(), None).unwrap();
        assert_eq!(command.exit().unwrap().unwrap().record, exit_record());
        assert_eq!(command.dir().names().unwrap(), [name::EXIT]);
    }
}

/// Covers: L16
#[test]
fn l16_the_lease_tells_who_lives() {
    let temp = TempDir::new();
    let command = empty_session(&temp).new_command(exit_record().id).unwrap().publish().unwrap();
    assert!(!command.lease_is_held().unwrap());
    assert!(command.lease_mark().unwrap().is_none());
    let mark = status_record().supervisor;
    let lease = command.try_lease(&mark).unwrap().unwrap();
    assert!(command.lease_is_held().unwrap());
    assert!(command.try_lease_unsigned().unwrap().is_none());
    assert_eq!(command.lease_mark().unwrap().unwrap(), mark);
    drop(lease);
    assert!(!command.lease_is_held().unwrap());
    assert!(command.try_lease_unsigned().unwrap().is_some());
    assert_eq!(command.lease_mark().unwrap().unwrap(), mark, "the dead holder is still known");
}

/// Covers: M10
#[test]
fn m10_unknown_names_are_left_out_and_many_are_listed_in_order() {
    let temp = TempDir::new();
    let session = empty_session(&temp);
    let work = session.dir().sub(name::WORK).unwrap();
    let ids: Vec<CommandId> = (0..1000).map(|n| CommandId::from_parts(1_718_000_000_000 + n, 0, n)).collect();
    for id in ids.iter().rev() {
        work.create_new_sub(&id.to_string()).unwrap();
    }
    for odd in ["notes", ".new-wrk_1", "wrk_short", "WRK_0190a0b0c0d07000800000000000000b", " wrk_x"] {
        work.create_new_sub(odd).unwrap();
    }
    assert_eq!(session.commands().unwrap(), ids);
}

/// Covers: M1, M9
#[test]
fn m9_sessions_are_made_listed_and_found_and_a_context_is_no_path() {
    let temp = TempDir::new();
    let state = State::open(&temp.path().join("s")).unwrap();
    let session = state.create_session(&session_record()).unwrap();
    assert_eq!(state.list().unwrap(), [session.id()]);
    assert!(state.create_session(&session_record()).is_err());
    let again = State::find(&temp.path().join("s")).unwrap().unwrap().session(session.id()).unwrap().unwrap();
    assert_eq!(again.record().unwrap().context, "../project");
    assert!(state.session(SessionId::from_parts(1, 1, 1)).unwrap().is_none());
    assert!(!again.has_owner().unwrap());
    let _owner = session.try_owner_lock().unwrap().unwrap();
    assert!(again.has_owner().unwrap());
    assert!(!again.has_keeper().unwrap());
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
}

fn line(kind: &str) -> TraceLine {
    TraceLine { kind: kind.to_owned(), event: "evt".to_owned(), session: "ses".to_owned(), ..TraceLine::default() }
}

/// Covers: L7, T1
#[test]
fn l7_damaged_lines_hide_nothing_and_are_never_continued() {
    let temp = TempDir::new();
    let dir = temp.dir();
    trace::append(&dir, &line("first"), Durability::Process).unwrap();
    for damage in [&b"{\"type\":\"torn"[..], b"\xff\xfe\n", b"{}\n", b"[1]\n\n", b"no newline"] {
        let path = dir.path_of(name::TRACE);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(damage);
        std::fs::write(&path, text).unwrap();
        trace::append(&dir, &line("next"), Durability::Power).unwrap();
    }
    let kinds: Vec<String> = trace::read(&dir).unwrap().into_iter().map(|line| line.kind).collect();
    assert_eq!(kinds, ["first", "next", "next", "next", "next", "next"]);
    let (_, text) = trace::read_stored(&dir).unwrap().remove(0);
    assert!(!text.contains("null"), "keys with nothing to say are left out: {text}");
}

/// Covers: L7
#[test]
fn l7_lines_of_many_writers_stay_whole() {
    let temp = TempDir::new();
    let dir = temp.dir();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| trace::append(&dir, &line("x"), Durability::Process).unwrap()));
        }
    });
    assert_eq!(trace::read(&dir).unwrap().len(), 400);
}

/// One whose maker died is made in the same place, under the same alias. Of one that was given up the alias may have been
/// passed by the watermark of a consumer.
///
/// Covers: J2, G1
#[test]
fn j2_a_command_that_is_made_again_has_the_alias_of_who_died_over_it() {
    let temp = TempDir::new();
    let session = empty_session(&temp);
    let id = CommandId::from_parts(7, 0, 0);
    let give = |new: &NewCommand| new.give_alias(session.dir()).unwrap();
    let place = || std::fs::metadata(session.path().join(format!("work/.new-{id}"))).unwrap().ino();
    let died = session.new_command(id).unwrap();
    assert_eq!(give(&died), Alias(1));
    std::fs::write(session.path().join(format!("work/.new-{id}/lease")), "left").unwrap();
    let (before, again) = (place(), session.new_command(id).unwrap());
    assert_eq!((place(), give(&again)), (before, Alias(1)));
    assert!(!again.command().dir().exists("lease").unwrap());
    again.discard().unwrap();
    assert!(!session.is_being_made(id).unwrap());
    assert_eq!(give(&session.new_command(id).unwrap()), Alias(2));
}

/// Covers: J2
#[test]
fn j2_aliases_count_up_and_a_torn_line_is_not_used_again() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let ids: Vec<CommandId> = (0..4).map(|n| CommandId::from_parts(n, 0, 0)).collect();
    assert!(aliases::all(&dir).unwrap().is_empty());
    assert_eq!(aliases::append(&dir, ids[0]).unwrap(), Alias(1));
    assert_eq!(aliases::append(&dir, ids[1]).unwrap(), Alias(2));
    let path = dir.path_of(name::ALIASES);
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"wrk_0190");
    std::fs::write(&path, text).unwrap();
    assert_eq!(aliases::append(&dir, ids[2]).unwrap(), Alias(4));
    assert_eq!(aliases::append(&dir, ids[3]).unwrap(), Alias(5));
    let all = [(Alias(1), ids[0]), (Alias(2), ids[1]), (Alias(4), ids[2]), (Alias(5), ids[3])];
    assert_eq!(aliases::all(&dir).unwrap(), all);
    for (last, above) in
        [(0, &all[..]), (1, &all[1..]), (2, &all[2..]), (3, &all[2..]), (4, &all[3..]), (5, &[]), (9, &[])]
    {
        assert_eq!(aliases::above(&dir, Alias(last)).unwrap(), above, "above w{last}");
    }
    assert_eq!(aliases::resolve(&dir, Alias(5)).unwrap(), Some(ids[3]));
    for unknown in [0, 3, 6, u32::MAX] {
        assert_eq!(aliases::resolve(&dir, Alias(unknown)).unwrap(), None, "w{unknown}");
    }
}

/// Covers: J2
#[test]
fn j2_many_at_once_get_an_alias_each() {
    let temp = TempDir::new();
    let dir = temp.dir();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let dir = &dir;
            scope.spawn(move || {
                for n in 0..25 {
                    let id = CommandId::from_parts(thread, n, 0);
                    let alias = aliases::append(dir, id).unwrap();
                    assert_eq!(aliases::resolve(dir, alias).unwrap(), Some(id));
                }
            });
        }
    });
    assert_eq!(aliases::all(&dir).unwrap().len(), 200);
}

fn session_for(state: &State, anchor: &ProcessMark, n: u64) -> crate::dir::Result<SessionDir> {
    let id = SessionId::from_parts(n, 0, n);
    state.create_session(&SessionRecord { id, anchor: Some(anchor.clone()), ..session_record() })
}

#[test]
fn an_anchor_has_one_session_however_many_ask() {
    let temp = TempDir::new();
    let state = State::open(temp.path()).unwrap();
    let anchor = status_record().supervisor;
    assert!(anchors::find(&state, &anchor).unwrap().is_none());
    let ids: Vec<SessionId> = std::thread::scope(|scope| {
        let ask = |n| {
            let (state, anchor) = (&state, &anchor);
            scope.spawn(move || anchors::get_or_create(state, anchor, || session_for(state, anchor, n)).unwrap().0.id())
        };
        let threads: Vec<_> = (1..=8).map(ask).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(state.list().unwrap().len(), 1);

    let reborn = ProcessMark { boot: "another boot".to_owned(), ..anchor.clone() };
    assert!(anchors::find(&state, &reborn).unwrap().is_none());
    std::fs::write(state.session(ids[0]).unwrap().unwrap().dir().path_of(name::CLOSED), "x").unwrap();
    let (next, made) = anchors::get_or_create(&state, &anchor, || session_for(&state, &anchor, 99)).unwrap();
    assert!(made, "a closed session is not found again");
    anchors::forget(&state, &anchor, ids[0]).unwrap();
    assert_eq!(anchors::find(&state, &anchor).unwrap().unwrap().id(), next.id());
    anchors::forget(&state, &anchor, next.id()).unwrap();
    assert!(anchors::find(&state, &anchor).unwrap().is_none());
}

/// Covers: J2
#[test]
fn j2_a_torn_alias_that_was_unknown_stays_unknown() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let id = |n| CommandId::from_parts(1_700_000_000_000, n, 0);
    for torn in 1..=36 {
        std::fs::write(dir.path_of(name::ALIASES), &format!("{}\n{}\n", id(1), id(2))[..37 + torn]).unwrap();
        assert_eq!(aliases::resolve(&dir, Alias(2)).unwrap(), None, "{torn} bytes");
        assert_eq!(aliases::append(&dir, id(3)).unwrap(), Alias(3));
        assert_eq!(aliases::resolve(&dir, Alias(2)).unwrap(), None, "{torn} bytes");
        assert_eq!(aliases::all(&dir).unwrap(), [(Alias(1), id(1)), (Alias(3), id(3))]);
    }
}

/// Covers: M2, G1
#[test]
fn g1_changes_of_the_ledger_by_many_are_all_kept() {
    let temp = TempDir::new();
    let dir = temp.dir();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let dir = &dir;
            scope.spawn(move || {
                for n in 0..20 {
                    let mut held = LockedLedger::open(dir, Durability::Process).unwrap();
                    held.ledger.consumers.entry(format!("c{thread}-{n}")).or_default();
                    held.write().unwrap();
                }
            });
        }
    });
    assert_eq!(ledger::read(&dir).unwrap().consumers.len(), 160);
}

/// Covers: M13
#[test]
fn m13_a_record_is_read_the_same_wherever_its_schema_stands() {
    let temp = TempDir::new();
    let (_state, _session, command) = stored(&temp);
    let plain = command.exit().unwrap().unwrap();
    let mut value = fixture(name::EXIT);
    let schema = value.as_object_mut().unwrap().remove("schema").unwrap();
    let rest = serde_json::to_string(&value).unwrap();
    let rest = rest.trim_start_matches('{').trim_end_matches('}');
    for text in [format!("{{\"schema\":{schema},{rest}}}"), format!("{{ {rest}, \"schema\": {schema} }}")] {
        std::fs::write(command.dir().path_of(name::EXIT), text).unwrap();
        assert_eq!(command.exit().unwrap().unwrap(), plain);
    }
    let longer = format!("{{\"schema\":\"outlast.exit/12\",{rest}}}");
    std::fs::write(command.dir().path_of(name::EXIT), longer).unwrap();
    assert!(command.exit().unwrap().unwrap().newer, "version 12 is not version 1");
    let twice = format!("{{\"schema\":{schema},{rest},\"schema\":\"outlast.exit/9\"}}");
    std::fs::write(command.dir().path_of(name::EXIT), twice).unwrap();
    assert!(command.exit().is_err());
}

/// Covers: M4
#[test]
fn m4_trying_to_record_leaves_nothing() {
    let temp = TempDir::new();
    let state = State::open(temp.path()).unwrap();
    state.try_record().unwrap();
    state.try_record().unwrap();
    assert_eq!(state.root().names().unwrap(), [name::SESSIONS]);
    state.sessions().check_writable().unwrap();
}
