//! Area M: records on disk.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::support::*;

#[test]
fn m1_looser_records_are_tightened() {
    let world = world();
    for path in tree(&world.state()) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our file");
    }
    let id = world.bg(&["sleep", "50"]);
    let dirs = [world.state(), world.state().join("sessions"), world.session_dir(&world.session()), world.dir(&id)];
    for dir in dirs {
        assert_eq!(dir.metadata().expect("it is there").permissions().mode() & 0o777, 0o700, "{}", dir.display());
    }
    for path in tree(&world.dir(&id)).iter().filter(|path| !path.is_dir()) {
        let mode = path.symlink_metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}

#[test]
fn m1_linked_state_is_refused() {
    let world = World::bare(BINARY, "state");
    let elsewhere = world.root().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a new directory");
    symlink(&elsewhere, world.state()).expect("a link");
    let refused = world.outlast(&["run", "-b", "--", "true"]).exits(4);
    assert!(refused.err().contains("state"), "the path is not named: {refused:?}");
    assert_eq!(tree(&elsewhere).len(), 1, "something was written through the link");
    fs::remove_file(world.state()).expect("our link");
}

/// Covers: M2, M3
#[test]
fn m2_every_record_names_its_schema() {
    let world = world();
    let id = bg_shell(&world, &["--label", "a label, kept as it is", "--stdin"], "read x; exit 7");
    assert!(!world.dir(&id).join("exit.json").exists(), "complete while it runs");
    world.outlast(&["send", &id, "go"]).ok();
    world.wait(&id);
    world.outlast(&["session", "end", &world.session()]).ok();
    assert_eq!(world.status(&id).str("/label"), "a label, kept as it is");
    let mut names = Vec::new();
    for path in tree(&world.state()).iter().filter(|path| path.extension().is_some_and(|ext| ext == "json")) {
        let stored = Json::parse(&fs::read_to_string(path).expect("a text"));
        let schema = stored.str("/schema").to_owned();
        assert!(schema.starts_with("outlast.") && schema.ends_with("/1"), "{schema}");
        names.push(path.file_name().expect("a name").to_string_lossy().into_owned());
    }
    for name in ["session.json", "closed.json", "request.json", "status.json", "exit.json"] {
        assert!(names.iter().any(|found| found == name), "{name} is not among {names:?}");
    }
}

#[test]
fn m2_records_parse_at_all_times() {
    let world = world();
    let id = bg_shell(&world, &[], "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i; done; sleep .2; exit 7");
    let following = world.spawn(&["wait", &id]);
    let status = world.dir(&id).join("status.json");
    world.wait_until("it has ended", || {
        for _ in 0..100 {
            Json::parse(&fs::read_to_string(&status).expect("it is always there"));
        }
        world.dir(&id).join("exit.json").exists()
    });
    assert_eq!(world.record(&id, "exit.json").int("/end/code"), 7, "there at once and whole");
    following.wait().exits(7);
}

#[test]
fn m4_unusable_state_is_told_once_and_by_doctor() {
    let world = World::bare(BINARY, "state");
    fs::write(world.state(), "a plain file").expect("a file");
    let inline = world.outlast(&["run", "--", "echo", "works"]).ok();
    assert_eq!(inline.text(), "works\n");
    assert_eq!(inline.err().matches(&world.state().display().to_string()).count(), 1, "{inline:?}");
    let doctor = world.outlast(&["doctor"]);
    assert!(doctor.text().contains(&world.state().display().to_string()), "{doctor:?}");
}

#[test]
fn m5_records_stay_where_they_are_and_can_be_copied() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "seq 100; read x; exit 7");
    let log = world.dir(&id).join("output.log");
    let inode = || log.metadata().expect("a log").ino();
    let before = inode();
    world.outlast(&["send", &id, "go"]).ok();
    let told = world.wait(&id);
    world.outlast(&["session", "end", &world.session()]).ok();
    assert_eq!(inode(), before);
    let copy = world.root().join("copy");
    let line = format!("cp -r '{}' '{}'; chmod -R go+rX '{}'", world.state().display(), copy.display(), copy.display());
    world.shell(&line).run().ok();
    let ask = |verb: &[&str]| world.call(verb).env("OUTLAST_STATE_DIR", &copy).run().ok();
    let copied = ask(&["status", &id, "--json"]).json();
    assert_eq!((copied.at("/end"), copied.output()), (told.at("/end"), told.output()));
    assert_eq!(ask(&["logs", &id, "--raw", "--offset", "4"]).text(), &seq(1, 100)[4..]);
}

#[test]
fn m6_log_does_not_care_about_front_ends() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "while read x; do echo $x; done");
    for round in 0..5 {
        world.outlast(&["send", &id, &round.to_string()]).ok();
        world.outlast(&["ps"]).ok();
    }
    world.outlast(&["send", &id, "--eof"]).ok();
    world.wait(&id);
    assert_eq!(world.raw(&id), b"0\n1\n2\n3\n4\n");
}

#[test]
fn m9_context_is_a_text_and_no_path() {
    let world = world();
    let before = tree(&world.root()).len();
    for context in ["../x", "/etc/passwd", "..", "plain", "", "a b/c"] {
        let session = world.new_session(&["--context", context]);
        assert!(world.session_dir(&session).exists());
    }
    assert!(tree(&world.root()).len() > before && !world.root().join("x").exists());
    let listed = world.outlast(&["session", "list", "--json"]).ok().json();
    let count = |listed: &Json| listed.0.to_string().matches("\"ses_").count();
    let refused = world.outlast(&["session", "start", "--context", "a\u{1}b"]).exits(2);
    printable(&refused.err());
    assert_eq!(count(&world.outlast(&["session", "list", "--json"]).ok().json()), count(&listed));
    world.outlast(&["run", "--", "true"]).ok();
}

#[test]
fn m10_strange_files_are_skipped() {
    let world = world();
    let id = world.bg(&["sleep", "50"]);
    let work = world.session_dir(&world.session()).join("work");
    fs::write(work.join("README"), "not ours").expect("a file");
    fs::create_dir(work.join("other")).expect("a directory");
    let strange = "wrk_00000000000070008000000000000000";
    fs::create_dir(work.join(strange)).expect("a directory");
    fs::write(work.join(strange).join("status.json"), "{ torn").expect("a file");
    let wrong = "wrk_00000000000070008000000000000001";
    fs::create_dir(work.join(wrong)).expect("a directory");
    for name in ["request.json", "status.json"] {
        fs::copy(world.dir(&id).join(name), work.join(wrong).join(name)).expect("a copy");
    }
    assert_eq!(ids(&world.list()), [id.as_str()]);
    world.status(&id).runs();
    let doctor = world.outlast(&["doctor"]);
    assert!(doctor.text().contains(wrong) || doctor.text().contains(strange), "{doctor:?}");
    world.bg(&["true"]);
    for name in ["README", "other", strange, wrong] {
        world.shell(&format!("rm -r '{}'", work.join(name).display())).run().ok();
    }
}

/// Covers: M10
#[test]
fn m10_damaged_record_is_said_and_hides_no_other() {
    let world = world();
    let id = bg_shell(&world, &[], "echo kept; exit 7");
    let other = world.bg(&["sleep", "50"]);
    world.outlast(&["wait", &id, "--consumer", "hook"]).exits(7);
    for name in ["exit.json", "status.json", "request.json"] {
        let path = world.dir(&id).join(name);
        let whole = fs::read(&path).expect("a record");
        fs::write(&path, "{ torn").expect("our file");
        let told = world.outlast(&["status", &id, "--json"]);
        let list = world.list();
        let text = world.outlast(&["status", &id]);
        let log = world.outlast(&["logs", &id, "--raw"]);
        fs::write(&path, &whole).expect("our file");
        assert_eq!(told.json().str("/phase"), "ended", "{name}");
        assert!(list.iter().any(|one| one.str("/id") == other && one.str("/phase") == "running"));
        assert!(list.iter().all(|one| one.str("/id") != id || one.str("/phase") == "ended"), "{name}: {list:#?}");
        if name == "exit.json" {
            assert!((text.text() + &text.err()).contains(name), "the file is not named: {text:?}");
        }
        assert!(log.stdout == b"kept\n" || (log.code != Some(0) && log.err().contains(name)), "{name}: {log:?}");
    }
    world.status(&id).ends("exited", 7);
}

#[test]
fn m10_damaged_session_is_said() {
    let world = world();
    let path = world.session_dir(&world.session()).join("session.json");
    let whole = fs::read(&path).expect("a record");
    fs::write(&path, "{ torn").expect("our file");
    let answers: Vec<Output> = [&["ps"][..], &["run", "-b", "--", "true"], &["inbox"], &["session", "list"]]
        .into_iter()
        .map(|verb| world.outlast(verb))
        .collect();
    fs::write(&path, &whole).expect("our file");
    for answer in answers {
        let said = (answer.text() + &answer.err()).contains("session.json");
        assert!(said, "silent about a damaged record: {answer:?}");
    }
}

#[test]
fn m10_a_damaged_session_can_be_ended_and_removed() {
    let world = world();
    world.wait(&world.bg(&["true"]));
    let session = world.session();
    world.wait_unkept(&session);
    let dir = world.session_dir(&session);
    fs::write(dir.join("session.json"), "{ torn").expect("our file");
    let refused = world.outlast(&["run", "--", "true"]).exits(70);
    assert_eq!(refused.err().matches("session.json").count(), 1, "said once: {refused:?}");
    assert!(refused.err().contains("session end"), "no way out: {refused:?}");
    world.outlast(&["session", "end", &session]).ok();
    assert_eq!(world.outlast(&["session", "show", &session, "--json"]).ok().json().str("/closed_by"), "model");
    world.outlast(&["run", "--", "true"]).exits(4);
    // A damaged ledger keeps that session alone.
    fs::write(dir.join("inbox.json"), "{ torn").expect("our file");
    let told = world.outlast(&["inbox"]).exits(70);
    assert!(told.err().contains("move that file away"), "no way out: {told:?}");
    assert!(world.outlast(&["doctor"]).text().contains("inbox.json"));
    let kept = world.outlast(&["gc", "--keep-age", "1ms"]).ok();
    assert!(kept.err().contains("inbox.json") && dir.exists(), "{kept:?}");
    fs::remove_file(dir.join("inbox.json")).expect("our file");
    world.outlast(&["gc", "--keep-age", "1ms", "--untold"]).ok();
    assert!(!dir.exists(), "it stays");
}

/// Covers: M1, M4
#[test]
fn m4_foreign_state_is_refused_and_commands_still_run() {
    let world = world();
    let owner = |uid| std::os::unix::fs::chown(world.state(), Some(uid), None);
    let own = world.state().metadata().expect("it is there").uid();
    if owner(12_345).is_err() {
        println!("skipped: this user may not give a directory away");
        return;
    }
    let inline = world.outlast(&["run", "--", "echo", "works"]);
    let background = world.outlast(&["run", "-b", "--", "true"]);
    owner(own).expect("it was ours");
    let inline = inline.ok();
    assert_eq!(inline.text(), "works\n");
    let path = world.state().display().to_string();
    assert_eq!(inline.err().matches(&path).count(), 1, "the reason is told once: {inline:?}");
    assert!(background.exits(4).err().contains("another user"));
}

#[test]
fn m11_planted_links_are_refused() {
    let world = world();
    let outside = world.root().join("outside");
    fs::create_dir(&outside).expect("a directory");
    let work = world.session_dir(&world.session()).join("work");
    if work.exists() {
        fs::remove_dir(&work).expect("it is empty");
    }
    symlink(&outside, &work).expect("a link");
    let refused = world.outlast(&["run", "-b", "-c", "echo >ran"]);
    assert!(matches!(refused.code, Some(4 | 70)), "{refused:?}");
    assert!(refused.err().contains("work"), "the path is not named: {refused:?}");
    assert_eq!(tree(&outside).len(), 1, "something was written through the link");
    fs::remove_file(&work).expect("our link");
    assert!(!world.file("ran").exists());
}

#[test]
fn m12_nothing_is_put_into_the_working_directory() {
    let world = world();
    let before = tree(&world.work());
    world.outlast(&["run", "--", "true"]).ok();
    let id = world.bg(&["sleep", "50"]);
    world.outlast(&["ps", "-a"]).ok();
    world.stop(&id);
    assert_eq!(tree(&world.work()), before);
    assert_eq!(tree(&world.home()).len(), 1);
}

#[test]
fn m13_newer_records_are_not_rewritten() {
    let world = world();
    let id = bg_shell(&world, &[], "echo kept; exit 7");
    world.wait(&id);
    let path = world.dir(&id).join("exit.json");
    let newer = fs::read_to_string(&path).expect("a record").replace("outlast.exit/1", "outlast.exit/2");
    fs::write(&path, &newer).expect("our file");
    let told = world.outlast(&["status", &id]);
    let doctor = world.outlast(&["doctor"]);
    let said = [&told, &doctor].iter().any(|one| (one.text() + &one.err()).contains("newer"));
    assert!(said, "nobody says that the record is newer: {told:?} {doctor:?}");
    assert_eq!(fs::read_to_string(&path).expect("a record"), newer);
    assert_eq!(world.raw(&id), b"kept\n");
}

/// A path of more than 108 bytes does not fit into a socket address; sockets are reached all the same.
#[test]
fn m11_long_state_paths_work() {
    let long = ["d".repeat(60), "e".repeat(60), "f".repeat(60)].join("/");
    let world = World::with_state(BINARY, &long);
    let id = bg_shell(&world, &["--stdin"], "read x; echo got $x");
    world.outlast(&["send", &id, "it"]).ok();
    assert_eq!(world.wait(&id).output(), "got it\n");
}
