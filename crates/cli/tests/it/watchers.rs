//! Keeper and supervisor seen from outside: what they do with long command lines, and at an end on a full disk.

use crate::support::*;

/// A command line that does not fit into the socket between supervisor and keeper at once.
#[test]
fn a_long_command_line_leaves_no_watcher_behind() {
    let world = world();
    let long: Vec<String> =
        ["run", "--", "true"].map(String::from).into_iter().chain(vec!["z".repeat(99); 8_000]).collect();
    world.outlast(&long).ok();
    let session = world.session();
    world.outlast(&["session", "end", &session]).ok();
    world.wait_until("no watcher is left", || world.processes().is_empty());
}

/// An end that cannot be recorded has not happened, is told as that, and can be asked for again.
#[test]
fn a_session_ends_on_a_full_disk_only_when_that_is_recorded() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: this user may not mount a small file system");
        return;
    };
    let world = World::with_state(BINARY, disk.0.join("state").to_str().expect("a text"));
    world.outlast(&["run", "--", "true"]).ok();
    let session = world.session();
    disk.leave(0);
    let refused = world.outlast(&["session", "end", &session]);
    assert_eq!(refused.code, Some(70), "{refused:?}");
    assert!(refused.err().contains("closed.json"), "{refused:?}");
    disk.make_room();
    world.outlast(&["session", "end", &session]).ok();
    let listed = world.outlast(&["session", "show", &session, "--json"]).ok();
    assert!(listed.text().contains("\"ended\"") || listed.text().contains("closed"), "{listed:?}");
}
