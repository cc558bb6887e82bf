//! Tests that need a process with one thread, which the usual harness never gives: forks, and signals to oneself.
//!
//! This file has a harness of its own, which speaks what `cargo test` and nextest ask of one.
#![allow(clippy::print_stdout, reason = "the list of tests is asked for on stdout")]

use outlast_host::sys::fork::{Forked, detach, exit_now, fork};
use outlast_host::sys::{pidfd, prctl, reap, signals};
use outlast_host::{mark, proc};
use rustix::process::Signal;

const TESTS: [(&str, fn()); 6] = [
    ("fork_gives_a_child", fork_gives_a_child),
    ("l16_out_of_descriptors_a_fork_is_whole", l16_out_of_descriptors_a_fork_is_whole),
    ("detached_process_is_in_nobodys_tree", detached_process_is_in_nobodys_tree),
    ("subreaper_adopts_orphans", subreaper_adopts_orphans),
    ("signals_are_read_from_a_descriptor", signals_are_read_from_a_descriptor),
    ("l16_out_of_descriptors_nobody_is_called_dead", l16_out_of_descriptors_nobody_is_called_dead),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let filters: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| {
        filters.is_empty()
            || filters.iter().any(|filter| if has("--exact") { *filter == name } else { name.contains(*filter) })
    };
    if has("--ignored") {
        return;
    }
    for (name, test) in TESTS {
        match (has("--list"), wanted(name)) {
            (true, _) => println!("{name}: test"),
            (false, true) => test(),
            (false, false) => {}
        }
    }
}

fn fork_gives_a_child() {
    match fork("child").expect("one thread only") {
        Forked::Child => exit_now(6),
        Forked::Parent { pid } => {
            let pidfd = pidfd::open(pid).expect("open");
            assert_eq!(proc::children(std::process::id()), Ok(vec![pid]));
            assert_eq!(pidfd::wait_exit(&pidfd).expect("reap").code(), Some(6));
            assert!(!reap::has_children());
        }
    }
}

/// A child that runs although its parent was told that there is none would begin a command that is refused.
fn l16_out_of_descriptors_a_fork_is_whole() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let (reader, writer) = rustix::pipe::pipe().expect("pipe");
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).expect("lower");
    let forked = fork("child");
    if let Ok(Forked::Child) = forked {
        exit_now(rustix::io::write(&writer, b"y").map_or(1, |_| 0));
    }
    setrlimit(Resource::Nofile, before).expect("raise");
    drop(writer);
    let ran = rustix::io::read(&reader, &mut [0]) == Ok(1);
    let Ok(Forked::Parent { pid }) = forked else { panic!("{forked:?}, and a child ran: {ran}") };
    assert!(ran, "there is a child");
    let pidfd = pidfd::open(pid).expect("open");
    assert_eq!(pidfd::wait_exit(&pidfd).expect("reap").code(), Some(0));
    assert!(!reap::has_children());
}

fn detached_process_is_in_nobodys_tree() {
    let (reader, writer) = rustix::pipe::pipe().expect("pipe");
    match fork("child").expect("one thread only") {
        Forked::Child => {
            let caller = std::process::id();
            if detach("child").is_err() {
                exit_now(1);
            }
            let own = proc::stat(std::process::id()).expect("readable").expect("here");
            let apart = own.session == own.pid && own.pgrp == own.pid && own.pid != caller;
            rustix::io::write(&writer, if apart { b"y" } else { b"n" }).expect("tell");
            exit_now(0)
        }
        Forked::Parent { pid } => {
            let pidfd = pidfd::open(pid).expect("open");
            assert_eq!(pidfd::wait_exit(&pidfd).expect("reap").code(), Some(0));
            let mut told = [0];
            assert_eq!(rustix::io::read(&reader, &mut told), Ok(1));
            assert_eq!(&told, b"y");
            assert!(!reap::has_children());
        }
    }
}

fn subreaper_adopts_orphans() {
    prctl::set_child_subreaper().expect("subreaper");
    let (reader, writer) = rustix::pipe::pipe().expect("pipe");
    let parent = match fork("child").expect("one thread only") {
        Forked::Child => match fork("child").expect("one thread only") {
            Forked::Parent { .. } => exit_now(0),
            Forked::Child => {
                // Until the test closes its end, or ends itself.
                drop(writer);
                let ended = rustix::io::read(&reader, &mut [0]);
                exit_now(if ended == Ok(0) { 9 } else { 1 })
            }
        },
        Forked::Parent { pid } => pidfd::open(pid).expect("open"),
    };
    assert_eq!(pidfd::wait_exit(&parent).expect("reap").code(), Some(0));
    let orphans = proc::descendants(std::process::id()).expect("readable");
    assert_eq!((orphans.len(), orphans[0].ppid), (1, std::process::id()));
    let orphan = pidfd::open(orphans[0].pid).expect("open");
    drop(writer);
    assert_eq!(pidfd::wait_exit(&orphan).expect("ours to reap").code(), Some(9));
}

fn signals_are_read_from_a_descriptor() {
    signals::ignore(Signal::USR1).expect("ignore");
    signals::reset_all().expect("reset");
    let fd = signals::block_and_signalfd(&[Signal::USR1, Signal::USR2]).expect("block");
    assert_eq!(signals::read_signalfd(&fd), Ok(vec![]));
    let own = rustix::process::getpid();
    for signal in [Signal::USR2, Signal::USR1, Signal::USR1] {
        rustix::process::kill_process(own, signal).expect("signal");
    }
    let seen = signals::read_signalfd(&fd).expect("read");
    let expected = [Signal::USR1, Signal::USR2].map(|signal| signal.as_raw().unsigned_abs());
    assert_eq!(seen, expected);
    prctl::set_name("renamed").expect("name");
    let own = proc::stat(std::process::id()).expect("readable").expect("here");
    assert_eq!(own.comm, "renamed");
}

fn l16_out_of_descriptors_nobody_is_called_dead() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let text = std::fs::read_to_string(format!("/proc/{}/stat", std::process::id())).expect("own stat");
    let start = text.rsplit(") ").next().expect("fields").split(' ').nth(19).expect("field 22").parse().expect("ticks");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("boot id").trim().to_owned();
    let own = outlast_core::record::ProcessMark { pid: std::process::id(), start, boot, handle: None };
    let before = getrlimit(Resource::Nofile);
    let used = std::fs::read_dir("/proc/self/fd").expect("descriptors").count() as u64;
    let mut failed = 0;
    // Each call needs more than one descriptor in turn, and must not be fooled by the lack of any of them.
    for left in 0..used + 4 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(left), ..before }).expect("lower");
        match mark::is_alive(&own) {
            Ok(alive) => assert!(alive, "called dead with {left} descriptors"),
            Err(_) => failed += 1,
        }
        match mark::mark_of(own.pid) {
            Ok(found) => assert_eq!(found.map(|found| found.boot), Some(own.boot.clone()), "with {left} descriptors"),
            Err(_) => failed += 1,
        }
    }
    setrlimit(Resource::Nofile, before).expect("raise");
    assert!(failed > 0, "the limit was never felt");
    assert_eq!(mark::is_alive(&own), Ok(true), "a failure is not remembered");
    let nameless = outlast_core::record::ProcessMark { boot: String::new(), ..own };
    assert!(mark::is_alive(&nameless).is_err(), "a mark without a boot says nothing");
}
