//! Records that are kept beside a transcript: moved at once, at their end, and by whoever comes after a death.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::support::*;

/// A directory on another file system than the worlds of the tests, where there is one.
pub struct Elsewhere(pub PathBuf);

impl Elsewhere {
    pub fn new(world: &World) -> Option<Elsewhere> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let at = Path::new("/dev/shm").join(format!("outlast-bind-{}-{number}", std::process::id()));
        let is_there = fs::create_dir(&at).is_ok();
        let here = is_there.then_some(Elsewhere(at))?;
        fs::set_permissions(&here.0, fs::Permissions::from_mode(0o755)).expect("our directory");
        let device = |path: &Path| path.metadata().expect("it is there").dev();
        (device(&here.0) != device(&world.root())).then_some(here)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("our directory");
    }
}

/// A new directory on the file system of the world.
fn beside(world: &World, name: &str) -> PathBuf {
    let place = world.root().join(name);
    fs::create_dir(&place).expect("a directory");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("our directory");
    place
}

#[track_caller]
pub fn bind(world: &World, place: &Path) -> Json {
    world.outlast(&["session", "bind", &world.session(), &place.display().to_string(), "--json"]).ok().json()
}

/// An ended command with 10 000 lines.
pub fn ended(world: &World) -> String {
    let id = bg_shell(world, &[], "seq 10000; exit 7");
    world.outlast(&["wait", &id, "--consumer", "hook"]).exits(7);
    // Its supervisor holds the records for a moment longer.
    world.wait_until("nobody holds the records", || world.of_command(&id).is_empty());
    let log = world.dir(&id).join("output.log");
    world.wait_until("the log is closed", || {
        fs::read(&log).is_ok_and(|log| log.ends_with(b"Exit code: 7\n"))
            && !world.dir(&id).join("control.sock").exists()
    });
    id
}

/// Where the records of a command are, beneath these directories: exactly once, and nothing of a move is left.
#[track_caller]
pub fn place_of(world: &World, id: &str, others: &[&Path]) -> PathBuf {
    let mut all = tree(&world.session_dir(&world.session()).join("work"));
    all.extend(others.iter().flat_map(|other| tree(other)));
    let named: Vec<&PathBuf> =
        all.iter().filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(id))).collect();
    assert!(named.len() == 1 && named[0].ends_with(id), "{named:?}");
    named[0].clone()
}

/// The command answers with everything that it had.
#[track_caller]
pub fn whole(world: &World, id: &str) {
    world.status(id).ends("exited", 7);
    assert_eq!(world.raw(id), seq(1, 10_000).into_bytes());
}

/// Covers: M14
#[test]
fn m14_records_move_by_rename() {
    let world = world();
    let (place, own) = (beside(&world, "transcripts"), world.session());
    let over = ended(&world);
    let runs = bg_shell(&world, &[], "seq 10000; until [ -e go ]; do sleep .05; done; exit 7");
    let log = world.dir(&over).join("output.log");
    let inode = fs::metadata(&log).expect("a log").ino();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).expect("our file");
    fs::set_permissions(world.dir(&over), fs::Permissions::from_mode(0o755)).expect("our directory");
    let told = bind(&world, &place);
    assert_eq!((told.each("/moved", ""), told.each("/following", "")), (vec![over.clone()], vec![runs.clone()]));
    let there = place.join(&own);
    assert_eq!(told.str("/bound_to"), there.display().to_string());
    assert_eq!(place_of(&world, &over, &[&place]), there.join(&over));
    let moved = fs::metadata(there.join(&over).join("output.log")).expect("the log");
    assert_eq!((moved.ino(), moved.mode() & 0o777), (inode, 0o600));
    assert_eq!(fs::metadata(there.join(&over)).expect("the directory").mode() & 0o777, 0o700);
    whole(&world, &over);
    assert_eq!(world.status(&over).str("/output/log"), there.join(&over).join("output.log").display().to_string());
    world.status(&runs).runs();
    assert_eq!(place_of(&world, &runs, &[&place]), world.dir(&runs));

    fs::write(world.file("go"), "").expect("a file");
    world.outlast(&["wait", &runs, "--consumer", "hook"]).exits(7);
    world.wait_until("it has followed", || there.join(&runs).exists());
    assert_eq!(place_of(&world, &runs, &[&place]), there.join(&runs));
    whole(&world, &runs);
    assert_eq!(ids(&world.list()), [over.clone(), runs.clone()]);
    assert_eq!(world.status("w2").str("/id"), runs);
    assert_eq!(ids(&world.acked("model")), [over.clone(), runs.clone()]);
    assert!(world.outlast(&["stop", &runs]).ok().text().contains("already ended"));

    let late = ended_where(&world, &there);
    assert_eq!(ids(&world.list()), [over, runs, late]);
    assert!(world.outlast(&["doctor"]).ok().text().contains("records can be made"));
}

/// A command that ends after the session was bound there.
fn ended_where(world: &World, there: &Path) -> String {
    let id = bg_shell(world, &[], "seq 10000; exit 7");
    world.outlast(&["wait", &id, "--consumer", "hook"]).exits(7);
    world.wait_until("it has followed", || there.join(&id).exists());
    id
}

/// Covers: M14
#[test]
fn m14_records_move_to_another_file_system() {
    let world = world();
    let Some(elsewhere) = Elsewhere::new(&world) else {
        println!("skipped: /dev/shm is no other file system");
        return;
    };
    let over = ended(&world);
    let capped = bg_shell(&world, &["--max-log", "64KiB"], "seq 1000000; exit 7");
    world.outlast(&["wait", &capped, "--consumer", "hook"]).exits(7);
    world.wait_until("nobody holds the records", || !world.dir(&capped).join("control.sock").exists());
    let before = (world.raw(&capped), world.status(&capped).at("/output/gap").clone());
    bind(&world, &elsewhere.0);
    let there = elsewhere.0.join(world.session());
    for id in [&over, &capped] {
        assert_eq!(place_of(&world, id, &[&elsewhere.0]), there.join(id));
        for path in tree(&there.join(id)) {
            let mode = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o777, mode, "{}", path.display());
        }
    }
    whole(&world, &over);
    assert_eq!((world.raw(&capped), world.status(&capped).at("/output/gap").clone()), before);
    whole(&world, &ended_where(&world, &there));
    world.outlast(&["session", "end", &world.session()]).ok();
    whole(&world, &over);
}

/// Covers: M14
#[test]
fn m14_bound_twice_while_it_runs() {
    let world = world();
    let (first, second) = (beside(&world, "first"), beside(&world, "second"));
    let over = ended(&world);
    let runs = bg_shell(&world, &[], "seq 10000; until [ -e go ]; do sleep .05; done; exit 7");
    bind(&world, &first);
    let there = second.join(world.session());
    assert_eq!(bind(&world, &second).each("/moved", ""), [over.as_str()]);
    assert!(!first.join(world.session()).exists(), "an empty source is removed");
    fs::write(world.file("go"), "").expect("a file");
    world.outlast(&["wait", &runs]).exits(7);
    world.wait_until("it has followed", || there.join(&runs).exists());
    for id in [&over, &runs] {
        assert_eq!(place_of(&world, id, &[&first, &second]), there.join(id));
        whole(&world, id);
    }
    assert!(tree(&first).len() == 1, "nothing is written to the old place");
}

/// Covers: M14
#[test]
fn m14_a_name_that_is_taken_is_left_and_the_rest_goes_on() {
    let world = world();
    let place = beside(&world, "transcripts");
    let (taken, free) = (ended(&world), ended(&world));
    let there = place.join(world.session());
    fs::create_dir_all(there.join(&taken)).expect("a directory");
    fs::write(there.join(&taken).join("mine"), "not outlast's").expect("a file");
    let told = world.outlast(&["session", "bind", &world.session(), &place.display().to_string()]).ok();
    assert!(told.err().contains(&taken) && told.err().contains("already"), "{told:?}");
    assert!(there.join(&free).join("exit.json").exists());
    assert_eq!(fs::read(there.join(&taken).join("mine")).expect("it is untouched"), b"not outlast's");
    for id in [&taken, &free] {
        whole(&world, id);
    }
    assert!(world.outlast(&["doctor"]).text().contains(&taken), "it is named as long as it is not where it belongs");
}

/// Covers: M14
#[test]
fn m14_a_refused_place_changes_nothing() {
    let world = world();
    let good = beside(&world, "good");
    let over = ended(&world);
    let root = world.root();
    fs::write(root.join("file"), "").expect("a file");
    symlink(&good, root.join("link")).expect("a link");
    fs::create_dir(root.join("new\nline")).expect("a directory");
    let open = beside(&world, "open");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("our directory");
    let mut refused = vec!["file", "link", "new\nline", "open", "missing", "state/sessions"];
    let foreign = beside(&world, "foreign");
    match std::os::unix::fs::chown(&foreign, Some(12_345), None) {
        Ok(()) => refused.push("foreign"),
        Err(_) => println!("skipped: this user may not give a directory away"),
    }
    let check = |bound: Option<&str>| {
        for name in &refused {
            let place = root.join(name).display().to_string();
            let told = world.outlast(&["session", "bind", &world.session(), &place]).exits(4);
            assert!(!told.err().is_empty(), "{name}");
            printable(&told.err());
            let shown = world.outlast(&["session", "show", &world.session(), "--json"]).ok().json();
            assert_eq!(shown.at("/bound_to").as_str(), bound, "{name}");
        }
    };
    check(None);
    assert_eq!(place_of(&world, &over, &[&good, &open]), world.dir(&over));
    bind(&world, &good);
    let there = good.join(world.session());
    check(Some(&there.display().to_string()));
    whole(&world, &ended_where(&world, &there));
    whole(&world, &over);
    world.outlast(&["session", "bind", &world.session()]).exits(2);
}

/// Covers: M14
#[test]
fn m14_a_copy_that_fails_half_way_leaves_the_source() {
    let world = world();
    let Some(elsewhere) = Elsewhere::new(&world) else {
        println!("skipped: /dev/shm is no other file system");
        return;
    };
    let over = ended(&world);
    let place = elsewhere.0.display().to_string();
    let line = format!("trap '' XFSZ; ulimit -f 40; exec outlast session bind {} {place}", world.session());
    let told = world.shell(&line).run().ok();
    assert!(told.err().contains(&over) && told.err().contains("output.log"), "{told:?}");
    assert_eq!(place_of(&world, &over, &[&elsewhere.0]), world.dir(&over), "no partial copy is left");
    whole(&world, &over);
    bind(&world, &elsewhere.0);
    assert_eq!(place_of(&world, &over, &[&elsewhere.0]), elsewhere.0.join(world.session()).join(&over));
    whole(&world, &over);
}

/// Covers: M14
#[test]
fn m14_an_id_is_never_unknown_while_it_moves() {
    let world = world();
    let Some(elsewhere) = Elsewhere::new(&world) else {
        println!("skipped: /dev/shm is no other file system");
        return;
    };
    let here = beside(&world, "here");
    let over = ended(&world);
    let done = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let readers: Vec<_> = ["status", "logs"]
            .map(|verb| {
                let (world, over, done) = (&world, &over, &done);
                scope.spawn(move || {
                    let mut looks = 0;
                    while !done.load(Ordering::Relaxed) {
                        if verb == "status" {
                            world.status(over).ends("exited", 7);
                        } else {
                            assert_eq!(world.raw(over), seq(1, 10_000).into_bytes());
                        }
                        looks += 1;
                    }
                    looks
                })
            })
            .into();
        for _ in 0..15 {
            bind(&world, &elsewhere.0);
            bind(&world, &here);
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().expect("every look found it whole")).collect::<Vec<u32>>()
    });
    assert!(looks.iter().all(|looks| *looks > 10), "{looks:?}");
    whole(&world, &over);
}

/// Covers: I6, M14
#[test]
fn i6_a_removed_session_leaves_nothing_beside_the_transcript() {
    let world = world();
    let place = beside(&world, "transcripts");
    let session = world.new_session(&[]);
    let id = world.call(&["run", "-b", "--json", "--", "true"]).session(&session).run().ok().json();
    world.call(&["wait", id.str("/id")]).session(&session).run().ok();
    world.outlast(&["session", "end", &session]).ok();
    fs::write(place.join("transcript"), "mine").expect("a file");
    world.outlast(&["session", "bind", &session, &place.display().to_string()]).ok();
    assert!(place.join(&session).join(id.str("/id")).exists());
    world.wait_unkept(&session);
    world.outlast(&["gc", "--keep-age", "1ms"]).ok();
    assert!(!world.session_dir(&session).exists());
    assert_eq!(tree(&place), [place.clone(), place.join("transcript")]);
}

/// Covers: M15
#[test]
fn m15_a_session_is_given_a_context() {
    let world = world();
    let session = world.new_session(&[]);
    let call = |words: &[&str]| world.call(words).session(&session).run();
    for line in ["exit 7", "sleep 300", "sleep 301"] {
        call(&["run", "-b", "-c", line]).ok();
    }
    call(&["wait", "w1", "--consumer", "hook"]).exits(7);
    let list = || call(&["ps", "-a", "--json"]).ok().json();
    let facts = |list: &Json| {
        (list.each("/commands", "/id"), list.each("/commands", "/alias"), list.each("/commands", "/phase"))
    };
    let before = facts(&list());
    let other = world.new_session(&["--context", "project"]);
    let refused = world.outlast(&["session", "bind", &session, "--context", "project"]).exits(4);
    assert!(refused.err().contains(&other), "{refused:?}");
    world.outlast(&["session", "bind", &session, "--context", "a\u{1}b"]).exits(2);
    world.outlast(&["session", "end", &other]).ok();
    for _ in 0..2 {
        let told = world.outlast(&["session", "bind", &session, "--context", "project", "--json"]).ok().json();
        assert_eq!(told.str("/context"), "project");
    }
    world.outlast(&["session", "bind", &session, "--context", "another"]).exits(4);
    assert_eq!(facts(&list()), before);
    let pending = |session: &str| {
        let inbox = world.call(&["inbox", "--json", "--consumer", "model"]).session(session).run().ok().json();
        inbox.each("/completions", "/id")
    };
    assert_eq!(pending(&session), before.0[..1]);
    world.outlast(&["session", "end", &session]).ok();
    // A later session of that context follows it.
    let next = world.new_session(&["--context", "project"]);
    let earlier = world.call(&["status", &before.0[0]]).session(&next).run().ok();
    assert!(earlier.text().contains("earlier session"), "{earlier:?}");
}
