//! Process marks: the marked process and no other.

use crate::stage::{Stage, await_end};
use outlast_host::sys::{pidfd, prctl};
use outlast_host::{mark, proc};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::Signal;

#[test]
fn handle_opens_the_same_process_until_it_is_reaped() {
    if !crate::stage::alone() {
        return;
    }
    let stage = Stage::new();
    let tree = stage.shell("exec sleep 1000");
    let Some(handle) = pidfd::handle(&tree.0.pidfd).expect("ask") else {
        println!("skipped: this kernel makes no handles of processes");
        return;
    };
    let again = pidfd::open_handle(&handle).expect("open");
    pidfd::signal(&again, Signal::TERM).expect("signal");
    await_end(&tree.0.pidfd, PollFlags::IN);
    pidfd::open_handle(&handle).expect("a zombie is still that process");
    assert_eq!(tree.wait().signal(), Some(15));
    assert_eq!(pidfd::open_handle(&handle).map(drop), Err(Errno::STALE));
    assert_eq!(pidfd::open_handle(&[1, 2]).map(drop), Err(Errno::INVAL));
    assert_eq!(pidfd::open_handle(&[0; 500]).map(drop), Err(Errno::INVAL));
}

#[test]
fn l16_mark_is_alive_until_its_process_ends() {
    if !crate::stage::alone() {
        return;
    }
    let stage = Stage::new();
    let tree = stage.shell("exec sleep 1000");
    let with_handle = mark::mark_of(tree.0.pid).expect("look").expect("alive");
    let mut without = with_handle.clone();
    without.handle = None;
    for mark in [&with_handle, &without] {
        assert_eq!(mark::is_alive(mark), Ok(true));
    }
    assert_eq!(mark::signal_verified(&without, Signal::TERM), Ok(true));
    await_end(&tree.0.pidfd, PollFlags::IN);
    for mark in [&with_handle, &without] {
        assert_eq!(mark::is_alive(mark), Ok(false));
        assert!(mark::open(mark).expect("look").is_some(), "a zombie can be asked how it ended");
    }
    assert_eq!(mark::mark_of(tree.0.pid), Ok(None));
    let status = proc::zombie_status(tree.0.pid).expect("readable").expect("known");
    assert_eq!(status.signal(), Some(15));
    assert_eq!(tree.wait(), status);
    for mark in [&with_handle, &without] {
        assert!(mark::open(mark).expect("look").is_none());
        assert_eq!(mark::signal_verified(mark, Signal::KILL), Ok(false));
    }
}

#[test]
fn l16_another_process_with_the_number_is_not_meant() {
    if !crate::stage::alone() {
        return;
    }
    let stage = Stage::new();
    let tree = stage.shell("exec sleep 1000");
    let mut reused = mark::mark_of(tree.0.pid).expect("look").expect("alive");
    reused.handle = None;
    reused.start -= 1;
    let mut rebooted = mark::mark_of(tree.0.pid).expect("look").expect("alive");
    rebooted.boot = "11111111-2222-3333-4444-555555555555".to_owned();
    for mark in [&reused, &rebooted] {
        assert_eq!(mark::is_alive(mark), Ok(false));
        assert_eq!(mark::signal_verified(mark, Signal::KILL), Ok(false));
    }
    assert!(proc::stat(tree.0.pid).expect("readable").expect("here").is_live());
    let own = mark::own().expect("own");
    assert_eq!((own.pid, mark::is_alive(&own)), (std::process::id(), Ok(true)));
}

#[test]
fn f4_stored_mark_of_a_reaped_leader_still_reaches_its_group() {
    if !crate::stage::alone() {
        return;
    }
    prctl::set_child_subreaper().expect("subreaper");
    let mut stage = Stage::new();
    let tree = stage.shell("sleep 1000 & echo $!; read x; exit 3");
    let member = pidfd::open(stage.line().parse().expect("pid")).expect("member");
    let mark = mark::mark_of(tree.0.pid).expect("look").expect("alive");
    stage.say("go");
    assert_eq!(tree.wait().code(), Some(3));
    assert_eq!((mark::is_alive(&mark), mark::signal_verified(&mark, Signal::KILL)), (Ok(false), Ok(false)));
    match (&mark.handle, mark::open(&mark).expect("look")) {
        (Some(_), Some(again)) => pidfd::signal_group(&again, Signal::KILL).expect("group"),
        (handle, _) => {
            assert_eq!(handle, &None);
            println!("skipped: this kernel makes no handles of processes");
            pidfd::signal(&member, Signal::KILL).expect("kill");
        }
    }
    assert_eq!(pidfd::wait_exit(&member).expect("ours to reap").signal(), Some(9));
    assert!(mark::open(&mark).expect("look").is_none());
}

#[test]
fn number_of_a_thread_is_no_process() {
    if !crate::stage::alone() {
        return;
    }
    let (tell, told) = std::sync::mpsc::channel::<u32>();
    let (keep, kept) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).expect("tell");
        kept.recv().ok();
    });
    let number = told.recv().expect("number");
    assert_eq!(pidfd::open(number).map(drop), Err(Errno::SRCH));
    assert_eq!(mark::mark_of(number), Ok(None));
    drop(keep);
    thread.join().expect("thread");
}
