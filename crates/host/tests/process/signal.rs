//! Signals that reach whom they are meant for, and exits that anyone may learn.

use crate::stage::{Stage, await_end};
use outlast_host::sys::{pidfd, prctl, reap};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::Signal;

#[test]
fn f4_group_is_signalled_through_its_reaped_leader() {
    if !crate::stage::alone() {
        return;
    }
    prctl::set_child_subreaper().expect("subreaper");
    let mut stage = Stage::new();
    let tree = stage.shell("sleep 1000 & echo $!; exit 3");
    let member: u32 = stage.line().parse().expect("pid");
    let member_fd = pidfd::open(member).expect("member");
    assert_eq!(tree.wait().code(), Some(3));

    assert_eq!(pidfd::signal(&tree.0.pidfd, Signal::KILL), Err(Errno::SRCH));
    assert_eq!(pidfd::group_is_empty(&tree.0.pidfd), Ok(false));
    pidfd::signal_group(&tree.0.pidfd, Signal::KILL).expect("group");
    await_end(&member_fd, PollFlags::IN);
    // The orphan is ours to reap, and keeps its number until then.
    let (pid, status) = reap::peek_any().expect("look").expect("ended");
    assert_eq!((pid, status.signal()), (member, Some(9)));
    assert_eq!(reap::peek_any().expect("look"), Some((pid, status)));
    assert_eq!(reap::reap(member), Ok(Some(status)));
    assert_eq!(reap::reap(member), Err(Errno::CHILD));
    assert_eq!(reap::peek_any(), Ok(None));
    assert!(!reap::has_children());
    assert_eq!(pidfd::group_is_empty(&tree.0.pidfd), Ok(true));
    assert_eq!(pidfd::signal_group(&tree.0.pidfd, Signal::KILL), Err(Errno::SRCH));
}

#[test]
fn exit_is_known_to_a_stranger_after_the_reap() {
    if !crate::stage::alone() {
        return;
    }
    let mut stage = Stage::new();
    let tree = stage.shell("exec 3<&0; sh -c 'read x; exit 7' <&3 & echo $!; wait; read y");
    let pid = stage.line().parse().expect("pid");
    let stranger = pidfd::open(pid).expect("open");
    assert_eq!(pidfd::exit_status(&stranger), Ok(None));
    assert_eq!(reap::reap(pid), Err(Errno::CHILD));
    stage.say("go");
    await_end(&stranger, PollFlags::HUP);
    match pidfd::exit_status(&stranger).expect("ask") {
        Some(status) => assert_eq!(status.code(), Some(7)),
        None => println!("skipped: this kernel does not keep the exit of the reaped"),
    }
    drop(tree);
}

#[test]
fn p6_stopped_is_not_ended() {
    if !crate::stage::alone() {
        return;
    }
    let mut stage = Stage::new();
    let tree = stage.shell("echo up; read x; exit 5");
    assert_eq!(stage.line(), "up");
    pidfd::signal(&tree.0.pidfd, Signal::STOP).expect("stop");
    assert_eq!(reap::peek_any(), Ok(None));
    assert_eq!(reap::reap(tree.0.pid), Ok(None));
    pidfd::signal(&tree.0.pidfd, Signal::CONT).expect("continue");
    stage.say("go");
    await_end(&tree.0.pidfd, PollFlags::IN);
    assert_eq!(reap::reap(tree.0.pid).expect("reap").and_then(|status| status.code()), Some(5));
}

#[test]
fn core_dump_keeps_its_signal() {
    if !crate::stage::alone() {
        return;
    }
    let stage = Stage::new();
    let status = stage.shell("ulimit -c 0; kill -SEGV $$").wait();
    assert_eq!((status.code(), status.signal(), status.dumped_core()), (None, Some(11), false));
    for (raw, code, signal, core) in [(0x8b, None, Some(11), true), (0x0100, Some(1), None, false)] {
        let status = reap::WaitStatus::from_raw(raw).expect("an end");
        assert_eq!((status.code(), status.signal(), status.dumped_core()), (code, signal, core));
    }
    // Stopped by SIGSTOP, and continued.
    assert_eq!((reap::WaitStatus::from_raw(0x137f), reap::WaitStatus::from_raw(0xffff)), (None, None));
}
