//! Programs that people run: builds, servers, clones, daemons.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::support::*;

#[test]
fn parallel_make_is_demoted_waited_for_and_told() {
    let world = world();
    let rules: String =
        (0..12).map(|n| format!("t{n}:\n\t@sleep 0.1; echo built {n} >t{n}; echo line {n}\n")).collect();
    let targets: String = (0..12).map(|n| format!(" t{n}")).collect();
    fs::write(world.file("Makefile"), format!("all:{targets}\n\t@echo all done\n{rules}")).expect("a file");
    let front = world.outlast(&["run", "--json", "--grace", "150ms", "--", "make", "-j4"]).exits(75).json();
    let id = front.str("/id");
    let told = world.wait(id);
    told.ends("exited", 0);
    assert!(told.output().ends_with("all done\n"), "{told:?}");
    assert!((0..12).all(|n| world.file(&format!("t{n}")).exists()));
    assert_eq!(ids(&world.acked("human")), [id]);
}

#[test]
fn stopped_make_leaves_no_compiler() {
    let world = world();
    fs::write(world.file("Makefile"), "all: a b\na b:\n\t@sh -c 'trap \"\" TERM; echo >$@; sleep 300; :'\n")
        .expect("a file");
    let id = world.bg(&["--", "make", "-j2"]);
    world.wait_file("a");
    world.wait_file("b");
    world.outlast(&["stop", &id, "--grace", "300ms"]).ok();
    world.nothing_left_of(&id);
}

#[test]
fn dev_server_serves_until_it_is_stopped() {
    let world = world();
    fs::write(world.file("page"), "served").expect("a file");
    let id = world.bg(&["-e", "PYTHONUNBUFFERED=1", "--", "python3", "-m", "http.server", "0", "--bind", "127.0.0.1"]);
    world.outlast(&["wait", &id, "--until", "output:Serving HTTP", "--timeout", "30s"]).ok();
    let text = world.outlast(&["logs", &id]).ok().text();
    let port: u16 =
        text.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a port").parse().expect("a port");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it answers");
    assert!(reply.ends_with("served"), "{reply}");
    world.wait_until("the request is in its log", || world.outlast(&["logs", &id]).ok().text().contains("GET /page"));
    world.stop(&id);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "it still listens");
}

#[test]
fn clone_prints_what_it_prints_without_outlast() {
    let world = world();
    let make = "git init -q source && cd source && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one";
    world.shell(make).run().ok();
    let direct = Command::new("git")
        .args(["clone", "--progress", "source", "copy"])
        .current_dir(world.work())
        .env("HOME", world.home())
        .env("LANG", "C.UTF-8")
        .output()
        .expect("git runs");
    fs::remove_dir_all(world.file("copy")).expect("a clone");
    let id = world.bg(&["--", "git", "clone", "--progress", "source", "copy"]);
    world.wait(&id).ends("exited", 0);
    assert!(world.file("copy/.git").exists());
    let printed = [direct.stdout, direct.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&world.raw(&id)), String::from_utf8_lossy(&printed));
}

#[test]
fn daemon_is_named_and_ended() {
    let world = world();
    let daemon = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n\
                  n = os.open('/dev/null', os.O_RDWR)\nfor fd in (0, 1, 2): os.dup2(n, fd)\n\
                  open('d', 'w').write('%d\\n' % os.getpid()); time.sleep(300)";
    fs::write(world.file("daemon.py"), daemon).expect("a file");
    let told = shell_json(&world, &[], "python3 daemon.py; while [ ! -s d ]; do sleep .02; done; echo started");
    let pid = world.wait_pids("d")[0];
    told.ends("exited", 0);
    assert_eq!(told.int("/survivors/0/pid"), i64::from(pid));
    world.stop(told.str("/id"));
    assert!(!proc::alive(pid));
}
