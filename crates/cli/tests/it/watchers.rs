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

/// A cleaner of old files, or a hand that slips, takes no session away from those who need it.
#[test]
fn doors_that_are_taken_away_cut_nobody_off() {
    let world = world();
    let id = world.bg(&["--", "sleep", "300"]);
    let door = world.session_dir(&world.session()).join("keeper.sock");
    for _ in 0..3 {
        std::fs::remove_file(&door).expect("the keeper has a door");
        assert_eq!(world.outlast(&["run", "echo", "on"]).ok().text(), "on\n");
    }
    std::fs::rename(&door, door.with_file_name("elsewhere")).expect("the keeper has a door");
    assert_eq!(world.outlast(&["run", "echo", "on"]).ok().text(), "on\n");
    std::fs::remove_file(door.with_file_name("elsewhere")).expect("the old door");
    std::fs::remove_file(world.dir(&id).join("control.sock")).expect("the command has a door");
    world.stop(&id);
}

/// A command that nobody waits for, and that could have no records on a full disk, has some once there is room.
#[test]
fn a_command_without_a_caller_gets_its_records_when_the_disk_has_room() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: this user may not mount a small file system");
        return;
    };
    let world = World::with_state(BINARY, disk.0.join("state").to_str().expect("a text"));
    world.outlast(&["run", "--", "true"]).ok();
    let front = world.spawn(&["run", "-c", "echo $$ >p; exec sleep 300"]);
    world.wait_pids("p");
    disk.leave(0);
    front.signal(Signal::KILL);
    drop(front.wait_killed());
    disk.make_room();
    world.wait_until("it has records", || world.list().len() == 1);
    let id = world.list()[0].str("/id").to_owned();
    world.status(&id).runs();
    world.stop(&id);
    let session = world.session();
    world.outlast(&["session", "end", &session]).ok();
}
