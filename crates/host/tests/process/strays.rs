//! What commands left when keeper and supervisor were killed, told from what is watched.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use outlast_core::id::{CommandId, SessionId};
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
    let id = SessionId::from_parts(1, 0, u64::from(std::process::id()));
    let session = id.to_string();
    let work = CommandId::from_parts(1, 0, 1).to_string();
    let work = work.as_str();
    let wait = "echo up; read x";
    let mut stray = shell("sh", wait, &session, Some(work));
    let mut others = [
        // No command: somebody who speaks for the session.
        shell("sh", wait, &session, None),
        // Of another session.
        shell("sh", wait, "ses_other", Some(work)),
        // Below a watcher of the session, which is none itself either.
        shell("outlast-keeper", "sh -c 'echo up; read x'; :", &session, Some(work)),
        // A watcher of another session, started by a command of this one.
        {
            let mut command = Command::new("/bin/sh");
            command.arg0("outlast-keeper").args(["-c", "read x", "ses_other"]);
            command.env("OUTLAST_SESSION", &session).env("OUTLAST_WORK_ID", work).stdin(Stdio::piped());
            command.spawn().expect("a shell")
        },
    ];
    let found = strays::of_session(id).expect("readable");
    assert_eq!(found.iter().map(|stray| stray.stat.pid).collect::<Vec<_>>(), [stray.id()]);
    assert_eq!(found[0].command.to_string(), work);
    for child in others.iter_mut().chain([&mut stray]) {
        drop(child.stdin.take());
        child.wait().expect("our child");
    }
}
