//! Cases of the kind "limits, privacy and identity".

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use crate::support::*;

#[test]
fn case_109_spelling_changes_nothing() {
    let world = world();
    let rows: [&[&str]; 5] = [
        &["-c", "sleep 5"],
        &["--", "bash", "-c", "sleep 5; exit \"${PIPESTATUS[0]}\""],
        &["-c", "timeout 9 sleep 5"],
        &["-c", "sleep 5 # test"],
        &["-c", "sleep 5; : cargo test"],
    ];
    for row in rows {
        world.outlast(&[&["run", "--grace", "200ms"], row].concat()).exits(75);
    }
}

#[test]
fn case_111_requested_wait_is_honoured() {
    let world = world();
    let id = world.bg(&["sleep", "300"]);
    let start = Instant::now();
    world.outlast(&["wait", &id, "--timeout", "2s"]).exits(124);
    assert!(start.elapsed() >= Duration::from_secs(2), "shortened to {:?}", start.elapsed());
}

#[test]
fn case_113_memory_limit_hits_only_its_command() {
    let world = world();
    let neighbour = world.bg(&["sleep", "300"]);
    let hog = "x = b'x' * (400 << 20); import time; time.sleep(99)";
    let id = world.bg(&["--memory", "64MiB", "--", "python3", "-c", hog]);
    let told = world.wait(&id);
    assert_eq!((told.str("/end/kind"), told.str("/end/detail")), ("limit", "memory"), "{told:?}");
    assert_eq!(told.str("/status"), "error");
    world.status(&neighbour).runs();
}

#[test]
fn case_115_cap_refuses_the_surplus_and_kills_nobody() {
    let world = world();
    let started: Vec<String> = (0..64).map(|_| world.bg(&["sleep", "60"])).collect();
    let refused = world.outlast(&["run", "-b", "--", "sleep", "60"]).exits(4);
    let named = started.iter().filter(|id| refused.err().contains(id.as_str())).count();
    assert!(named > 0 || refused.err().contains("w64"), "does not name what runs: {refused:?}");
    assert_eq!(world.list().iter().filter(|one| one.str("/phase") == "running").count(), 64);
    world.stop(&started[0]);
    world.bg(&["sleep", "60"]);
    world.outlast(&["stop", "--all", "--grace", "0s"]).ok();
}

#[test]
fn case_115_process_cap_ends_a_storm() {
    let world = world();
    let line = "for i in $(seq 300); do sleep 60 & done; wait";
    let id = bg_shell(&world, &["--pids", "64"], line);
    world.wait(&id).detail("pids");
    world.outlast(&["stop", &id]).ok();
    world.nothing_left_of(&id);
}

#[test]
fn case_117_records_are_private_from_the_first_instant() {
    let world = world();
    let starting = world.shell("umask 000; outlast run -b -c 'echo secret; echo >p; sleep 60'").run().ok();
    assert!(starting.text().contains("wrk_"));
    world.wait_file("p");
    assert_private(&world.state());
    let open = world.work().join("open");
    fs::create_dir(&open).expect("a new directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("our directory");
    let call = world.call(&["run", "--", "true"]).without("OUTLAST_SESSION");
    call.env("OUTLAST_STATE_DIR", &open).run().ok();
    assert_private(&open);
}

fn assert_private(root: &Path) {
    for path in tree(root) {
        let found = path.symlink_metadata().expect("it is there");
        let right = if found.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(found.permissions().mode() & 0o777, right, "{}", path.display());
    }
}

#[test]
fn case_121_recycled_pid_is_not_ours() {
    let world = world();
    let session = world.session();
    let id = bg_shell(&world, &[], "echo $PPID $$ >s; exec sleep 300");
    let (supervisor, leader, keeper) = family(&world, "s");
    for pid in [keeper, supervisor] {
        proc::signal(pid, Signal::KILL);
    }
    world.wait_until("the leader is gone", || !proc::alive(leader));
    let stranger = world.sleeper();
    let pid = stranger.pid().to_string();
    for path in
        tree(&world.session_dir(&session)).iter().filter(|path| path.extension().is_some_and(|ext| ext == "json"))
    {
        let mut text = fs::read_to_string(path).expect("a text");
        for old in [keeper, supervisor, leader] {
            text = text.replace(&format!("\"pid\":{old},"), &format!("\"pid\":{pid},"));
            text = text.replace(&format!("\"pid\": {old},"), &format!("\"pid\": {pid},"));
        }
        fs::write(path, text).expect("our file");
    }
    world.status(&id).ends("lost", None);
    world.outlast(&["stop", &id]).ok();
    world.outlast(&["session", "end", &session]).ok();
    assert!(stranger.lives(), "a stranger was hit");
}

#[test]
fn case_124_default_directory_is_gone() {
    let world = world();
    let gone = "mkdir d; cd d; rmdir ../d; ";
    let first = world.shell(&format!("{gone} exec outlast run --json -- pwd")).run().exits(126);
    let told = first.json();
    told.ends("spawn_failed", 126);
    assert!(told.str("/end/detail").starts_with("cwd"), "{told:?}");
    assert!((first.text() + &first.err()).contains("/work/d"), "does not name the directory: {first:?}");
    assert!(world.list().is_empty());
    let second = world.shell(&format!("{gone} exec outlast run --json --cwd / -- pwd")).run().ok();
    assert_eq!(second.json().output(), "/\n");
}
