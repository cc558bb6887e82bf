//! The birth of a leader: what it gets, what it does not get, and how a failure is told.

use crate::stage::{Stage, Tree, await_end, is_role, role};
use outlast_host::proc;
use outlast_host::sys::reap::has_children;
use outlast_host::sys::spawn::LeaderPlan;
use outlast_host::sys::{pidfd, signals};
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use rustix::io::{Errno, FdFlags};
use rustix::process::{Resource, Signal};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

#[test]
fn p6_exit_137_and_kill_are_different_ends() {
    if !crate::stage::alone() {
        return;
    }
    let stage = Stage::new();
    let exited = stage.shell("exit 137").wait();
    assert_eq!((exited.code(), exited.signal()), (Some(137), None));
    let killed = stage.shell("kill -KILL $$").wait();
    assert_eq!((killed.code(), killed.signal()), (None, Some(9)));
}

#[test]
fn q1_leader_leads_its_own_session_and_group() {
    if !crate::stage::alone() {
        return;
    }
    let mut stage = Stage::new();
    let tree = stage.shell("echo up; read x");
    assert_eq!(stage.line(), "up");
    let stat = proc::stat(tree.0.pid).expect("readable").expect("here");
    assert_eq!((stat.session, stat.pgrp, stat.ppid), (tree.0.pid, tree.0.pid, std::process::id()));
}

#[test]
fn failures_name_their_step_and_leave_no_child() {
    if !crate::stage::alone() {
        return;
    }
    let stage = Stage::new();
    let scratch = Scratch::new("failures");
    let plain = scratch.file("plain", "#!/bin/sh\n", 0o644);
    let refused = |plan: &LeaderPlan<'_>| {
        let error = Tree::start(plan).err().expect("it cannot start");
        assert!(!has_children(), "{error}");
        (error.step, error.errno)
    };
    assert_eq!(refused(&stage.plan("/no/such/program", &[])), ("exec", Errno::NOENT));
    assert_eq!(refused(&stage.plan(&plain, &[])), ("exec", Errno::ACCESS));
    assert_eq!(refused(&stage.plan("/", &[])), ("exec", Errno::ACCESS));
    let file = File::open("/dev/null").expect("null");
    let mut plan = stage.plan("/bin/true", &[]);
    plan.cgroup = Some(file.as_fd());
    assert_eq!(refused(&plan).0, "cgroup");
    (plan.cgroup, plan.cwd) = (None, file.as_fd());
    assert_eq!(refused(&plan), ("cwd", Errno::NOTDIR));
}

#[test]
fn a_script_without_interpreter_is_run_by_sh() {
    if !crate::stage::alone() {
        return;
    }
    let scratch = Scratch::new("script");
    let script = scratch.file("script", "echo \"$0|$1|$2|$#\"\n", 0o755);
    let stage = Stage::new();
    let tree = Tree::start(&stage.plan(&script, &["a b", ""])).expect("start");
    assert_eq!(tree.wait().code(), Some(0));
    assert_eq!(stage.rest(), format!("{script}|a b||2\n"));
}

#[test]
fn q9_only_descriptors_0_to_2() {
    if !crate::stage::alone() {
        return;
    }
    let leak = File::open("/dev/null").expect("null");
    rustix::io::fcntl_setfd(&leak, FdFlags::empty()).expect("clear close-on-exec");
    let stage = Stage::new();
    let tree = Tree::start(&stage.plan("/bin/ls", &["/proc/self/fd"])).expect("start");
    assert_eq!(tree.wait().code(), Some(0));
    assert_eq!(stage.rest(), "0\n1\n2\n3\n");
}

#[test]
fn q9_default_signals_whatever_the_parent_does() {
    if !crate::stage::alone() {
        return;
    }
    signals::ignore(Signal::PIPE).expect("ignore");
    signals::ignore(Signal::CHILD).expect("ignore");
    let _blocked = signals::block_and_signalfd(&[Signal::USR1, Signal::TERM]).expect("block");
    let stage = Stage::new();
    let tree = Tree::start(&stage.plan("/bin/cat", &["/proc/self/status"])).expect("start");
    let output = stage.rest();
    drop(tree);
    let masks: Vec<_> = output.lines().filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ")).collect();
    assert_eq!(masks, ["SigPnd", "SigBlk", "SigIgn", "SigCgt"].map(|name| format!("{name}:\t0000000000000000")));
}

#[test]
fn limits_are_hard_and_never_above_the_inherited() {
    if !crate::stage::alone() {
        return;
    }
    let inherited = rustix::process::getrlimit(Resource::Core).maximum;
    let stage = Stage::new();
    let mut plan = stage.plan("/bin/sh", &["-c", "ulimit -Sn; ulimit -Hn; ulimit -Hc; cat /proc/self/oom_score_adj"]);
    plan.rlimits = vec![(Resource::Nofile, 20), (Resource::Core, u64::MAX - 1)];
    plan.oom_score_adj = Some(300);
    let tree = Tree::start(&plan).expect("start");
    assert_eq!(tree.wait().code(), Some(0));
    let output = stage.rest();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!((lines[0], lines[1], lines[3]), ("20", "20", "300"));
    if inherited == Some(0) {
        assert_eq!(lines[2], "0");
    }
}

#[test]
fn a_process_with_threads_is_not_forked() {
    if !crate::stage::alone() {
        return;
    }
    let (keep, kept) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || kept.recv().is_err());
    assert_eq!(outlast_host::sys::fork::fork("child").map(drop), Err(Errno::DEADLK));
    drop(keep);
    assert!(thread.join().expect("thread"));
}

#[test]
fn stdio_may_come_from_each_other() {
    if !crate::stage::alone() {
        return;
    }
    if is_role() {
        let stage = Stage::new();
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let mut plan = stage.plan("/bin/sh", &["-c", "echo to-stdout; echo to-stderr >&2"]);
        (plan.stdout, plan.stderr) = (stderr.as_fd(), stdout.as_fd());
        assert_eq!(Tree::start(&plan).expect("start").wait().code(), Some(0));
        return;
    }
    let output = role("spawn::stdio_may_come_from_each_other").output().expect("role");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("to-stderr"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "to-stdout\n");
}

#[test]
fn leader_dies_with_its_parent() {
    if !crate::stage::alone() {
        return;
    }
    if is_role() {
        let stage = Stage::new();
        let tree = stage.shell("exec sleep 1000");
        println!("\nleader {}", tree.0.pid);
        std::io::stdout().flush().expect("flush");
        tree.wait();
        return;
    }
    let mut parent = role("spawn::leader_dies_with_its_parent").stdout(Stdio::piped()).spawn().expect("role");
    let lines = BufReader::new(parent.stdout.take().expect("piped")).lines();
    let pid = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("leader ")?.parse().ok()).expect("pid");
    let leader = pidfd::open(pid).expect("leader");
    parent.kill().expect("kill");
    parent.wait().expect("reap");
    await_end(&leader, PollFlags::IN);
}

/// A directory that goes away with the test.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("outlast-host-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("scratch");
        Self(path)
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("write");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("mode");
        path.to_str().expect("text").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("clean up");
    }
}
