//! What commands left when keeper and supervisor were killed, told from what is watched.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use outlast_core::id::{CommandId, SessionId};
use outlast_host::strays;

/// A shell with the environment of a command; it has printed a line.
fn shell(program: &Path, line: &str, session: &str, work: Option<&str>) -> Child {
    let mut command = Command::new(program);
    command.args(["-c", line]).env("OUTLAST_SESSION", session).env_remove("OUTLAST_WORK_ID");
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
    let work = Some(work.as_str());
    let place = std::env::temp_dir().join(format!("outlast-strays-{}", std::process::id()));
    std::fs::create_dir_all(place.join(&session)).expect("a directory");
    // A process is named after its program.
    let (sh, watcher) = (Path::new("/bin/sh"), place.join("outlast-super"));
    std::fs::copy("/bin/sh", &watcher).expect("a copy");
    let wait = "echo up; read x";
    let below = format!("sh -c '{wait}'; :");
    let holding = format!("exec 9<{}; {below}", place.join(&session).display());
    let mut children = [
        shell(sh, wait, &session, work),
        // Below a watcher, of another session.
        shell(&watcher, &below, &session, work),
        // No command: somebody who speaks for the session.
        shell(sh, wait, &session, None),
        // Of another session.
        shell(sh, wait, "ses_other", work),
        // Below a watcher of the session.
        shell(&watcher, &holding, &session, work),
        // A watcher, started by a command.
        shell(&watcher, wait, &session, work),
    ];
    let found = strays::of_session(id).expect("readable");
    let parents: Vec<u32> = found.iter().map(|stray| stray.stat.ppid).collect();
    let mut pids: Vec<u32> = found.iter().map(|stray| stray.stat.pid).collect();
    pids.retain(|pid| *pid == children[0].id());
    assert_eq!((found.len(), pids.len()), (2, 1), "{found:?}");
    assert!(parents.contains(&children[1].id()), "{found:?}");
    assert_eq!(Some(found[0].command.to_string().as_str()), work);
    for child in &mut children {
        drop(child.stdin.take());
        child.wait().expect("our child");
    }
    std::fs::remove_dir_all(place).expect("our directory");
}
