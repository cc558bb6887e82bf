//! What commands left when keeper and supervisor were killed, told from what is watched.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use outlast_host::strays;

/// A shell with the environment of a command; it has printed a line.
fn shell(name: &str, line: &str, session: &str, work: Option<&str>) -> Child {
    let mut command = Command::new("/bin/sh");
    command.arg0(name).args(["-c", line, session]).env("OUTLAST_SESSION", session).env_remove("OUTLAST_WORK_ID");
    command.envs(work.map(|id| ("OUTLAST_WORK_ID", id)));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
    let mut up = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut up).expect("a line");
    child
}

/// Covers: L17
#[test]
fn l17_strays_are_of_the_session_and_have_no_watcher() {
    if !crate::stage::alone() {
        return;
    }
    let session = format!("ses_{:032x}", std::process::id());
    let wait = "echo up; read x";
    let mut stray = shell("sh", wait, &session, Some("wrk_1"));
    let mut others = [
        // No command: somebody who speaks for the session.
        shell("sh", wait, &session, None),
        // Of another session.
        shell("sh", wait, "ses_other", Some("wrk_1")),
        // Below a watcher of the session, which is none itself either.
        shell("outlast-keeper", "sh -c 'echo up; read x'; :", &session, Some("wrk_1")),
        // A watcher of another session, started by a command of this one.
        {
            let mut command = Command::new("/bin/sh");
            command.arg0("outlast-keeper").args(["-c", "read x", "ses_other"]);
            command.env("OUTLAST_SESSION", &session).env("OUTLAST_WORK_ID", "wrk_1").stdin(Stdio::piped());
            command.spawn().expect("a shell")
        },
    ];
    let found = strays::of_session(&session).expect("readable");
    assert_eq!(found.iter().map(|stat| stat.pid).collect::<Vec<_>>(), [stray.id()]);
    for child in others.iter_mut().chain([&mut stray]) {
        drop(child.stdin.take());
        child.wait().expect("our child");
    }
}
