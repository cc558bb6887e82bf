//! A command's cgroup: born in it, killed with it, gone after it.

use crate::stage::{Stage, Tree};
use outlast_host::cgroup::{Leaf, parent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

fn leaf(name: &str) -> Option<Leaf> {
    let made = parent()
        .expect("readable")
        .map(|parent| Leaf::create(&parent, &format!("outlast-test-{name}-{}", std::process::id())));
    match made {
        Some(Ok(leaf)) => return Some(leaf),
        Some(Err(error)) => println!("skipped: {error}"),
        None => println!("skipped: no cgroup v2 tree is in sight"),
    }
    None
}

/// Waits for events until `done`; fails after 20 seconds without any.
fn await_events(leaf: &Leaf, mut done: impl FnMut() -> bool) {
    let events = leaf.events().expect("events");
    let mut text = [0u8; 256];
    while !done() {
        let bound = Timespec { tv_sec: 20, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&bound)), Ok(1), "nothing happened");
        // Reading arms the next event.
        rustix::io::pread(&events, &mut text, 0).expect("read");
    }
}

#[test]
fn q1_leaf_is_killed_in_one_stroke() {
    if !crate::stage::alone() {
        return;
    }
    let Some(leaf) = leaf("kill") else { return };
    assert_eq!(leaf.populated(), Ok(false));
    let mut stage = Stage::new();
    let mut plan = stage.plan(
        "/bin/sh",
        &["-c", "setsid sh -c 'setsid sleep 1000 & exec sleep 1000' & grep ^0:: /proc/self/cgroup; exec sleep 1000"],
    );
    plan.cgroup = Some(leaf.fd());
    let tree = Tree::start(&plan).expect("start");
    let place = stage.line();
    assert!(leaf.path().ends_with(place.rsplit('/').next().expect("name")), "{place}");
    assert_eq!((leaf.populated(), leaf.remove()), (Ok(true), Ok(false)));

    leaf.kill().expect("kill");
    assert_eq!(tree.wait().signal(), Some(9));
    await_events(&leaf, || !leaf.populated().expect("readable"));
    // The last zombies of the tree may hold it for some milliseconds more.
    for _ in 0..1000 {
        if leaf.remove().expect("remove") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(!leaf.path().exists());
    assert_eq!(leaf.remove(), Ok(true));
}

#[test]
fn leaf_tells_what_it_has() {
    if !crate::stage::alone() {
        return;
    }
    let Some(leaf) = leaf("facts") else { return };
    let controllers = leaf.controllers().expect("readable");
    for (name, events, set) in [
        ("memory", leaf.memory_events(), leaf.set_memory_max(64 << 20)),
        ("pids", leaf.pids_events(), leaf.set_pids_max(20)),
    ] {
        if controllers.iter().any(|have| have == name) {
            assert_eq!((events, set), (Ok(Some(0)), Ok(())));
        } else {
            assert_eq!((events, set.expect_err("no such file").errno), (Ok(None), Errno::NOENT));
        }
        assert_eq!(leaf.has_controller(name), Ok(controllers.iter().any(|have| have == name)));
    }
    std::fs::create_dir_all(leaf.path().join("made/below")).expect("nested");
    assert_eq!(Leaf::open(leaf.path()).expect("open").remove(), Ok(true));
}
