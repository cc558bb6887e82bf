//! Finding everything that a leader left behind, and what `/proc` says of it.

use crate::stage::{Stage, await_end};
use outlast_host::proc;
use outlast_host::sys::{pidfd, prctl, reap};
use rustix::event::PollFlags;
use rustix::process::Signal;

#[test]
fn q1_nothing_gets_out_of_a_subreapers_reach() {
    if !crate::stage::alone() {
        return;
    }
    prctl::set_child_subreaper().expect("subreaper");
    let mut stage = Stage::new();
    let up = "sh -c 'echo up; exec sleep 1000'";
    let tree = stage.shell(&format!("{up} & setsid {up} & (setsid {up} &); (setsid sh -c \"setsid sh -c 'echo up; exec sleep 1000' & exit\" &); exit 0"));
    for _ in 0..4 {
        assert_eq!(stage.line(), "up");
    }
    assert_eq!(tree.wait().code(), Some(0));
    let (mut killed, mut empty) = (0, 0);
    while empty < 2 {
        let found = proc::descendants(std::process::id()).expect("readable");
        empty = if found.is_empty() { empty + 1 } else { 0 };
        for process in found {
            let pidfd = pidfd::open(process.pid).expect("ours and unreaped, or our descendant");
            pidfd::signal(&pidfd, Signal::KILL).expect("kill");
            await_end(&pidfd, PollFlags::IN);
            killed += 1;
        }
        while let Some((pid, _)) = reap::peek_any().expect("look") {
            reap::reap(pid).expect("reap");
        }
    }
    assert!(killed >= 4, "{killed}");
    assert!(!reap::has_children());
}

#[test]
fn descendants_come_nearest_first_and_without_zombies() {
    if !crate::stage::alone() {
        return;
    }
    let mut stage = Stage::new();
    let tree =
        stage.shell("sh -c 'echo up; read x; exit' & sh -c 'sleep 1000 & echo $!; exec sleep 1000' & exec sleep 1001");
    let lines = [stage.line(), stage.line()];
    let deep: u32 = lines.iter().find_map(|line| line.parse().ok()).expect("pid");
    let found = proc::descendants(tree.0.pid).expect("readable");
    // The reader of nothing has ended by now or is about to; whoever is listed is live.
    assert!(found.iter().all(proc::Stat::is_live));
    assert_eq!(found.last().map(|stat| stat.pid), Some(deep));
    assert!(proc::children(tree.0.pid).expect("readable").len() >= 2);
    assert!(found.iter().all(|stat| stat.pid != tree.0.pid));
}

#[test]
fn processes_are_described() {
    if !crate::stage::alone() {
        return;
    }
    let mut stage = Stage::new();
    let mut plan = stage.plan("/bin/sh", &["-c", "echo up; read x", "two words", "äöü"]);
    let value = format!("yes-{}", std::process::id());
    plan.env.push(std::ffi::CString::new(format!("OUTLAST_FIND={value}")).expect("no NUL"));
    let tree = crate::stage::Tree::start(&plan).expect("start");
    assert_eq!(stage.line(), "up");
    let pid = tree.0.pid;
    let whole = proc::cmdline(pid, 1000).expect("readable").expect("here");
    assert_eq!(whole, "/bin/sh -c echo up; read x two words äöü");
    assert_eq!(proc::cmdline(pid, whole.len() - 1).expect("readable").as_deref(), whole.strip_suffix('ü'));
    let found = proc::find_by_environ("OUTLAST_FIND", &value).expect("readable");
    assert_eq!(found.iter().map(|stat| stat.pid).collect::<Vec<_>>(), [pid]);
    assert_eq!(proc::environ_has(pid, "OUTLAST_FIND", "yes"), Ok(false));
    let (rss, pss) = (proc::rss(pid).expect("readable"), proc::pss(pid).expect("readable"));
    assert!(rss.expect("here") >= pss.expect("here") && pss > Some(0), "{rss:?} {pss:?}");
    stage.say("end");
    await_end(&tree.0.pidfd, PollFlags::IN);
    assert_eq!(proc::cmdline(pid, 80).expect("readable").as_deref(), Some("[sh]"));
}
