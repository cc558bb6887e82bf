//! What is said where something is wanting: descriptors, room on the disk, a log, a place that can be written.

use std::path::Path;

use outlast::core::ending::End;
use outlast::{Command, Missing, Piece, ReadOptions, Runtime, Session, WaitOptions};
use serde_json::Value;

use crate::world::{World, config, executable, in_world, nothing_left, start};

fn edit(dir: &Path, name: &str, change: impl FnOnce(&mut Value)) {
    let path = dir.join(name);
    let mut value = serde_json::from_slice(&std::fs::read(&path).expect(name)).expect(name);
    change(&mut value);
    std::fs::write(path, serde_json::to_vec(&value).expect(name)).expect(name);
}

async fn ended(world: &World, session: &Session, line: &str) -> Command {
    let command = start(world, session, line).await;
    session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
    command
}

fn dir_of(command: &Command) -> std::path::PathBuf {
    command.session().path().expect("a path").join(format!("work/{}", command.id()))
}

async fn pieces(command: &Command, options: ReadOptions) -> (Vec<Piece>, Option<String>) {
    let mut reading = command.read(options).await.expect("a read");
    let mut pieces = Vec::new();
    while let Some(piece) = reading.next().await.expect("a piece") {
        pieces.push(piece);
    }
    (pieces, reading.problem().map(str::to_owned))
}

fn bytes(offset: u64, bytes: &[u8]) -> Piece {
    Piece::Bytes { offset, stream: outlast::Stream::Merged, at_ms: None, bytes: bytes.to_vec() }
}

fn gap(why: Missing, offset: u64, bytes: u64) -> Piece {
    Piece::Gap { why, offset, bytes }
}

/// Covers: B11, C4
#[test]
fn b11_the_kept_tail_stands_in_for_a_log_that_failed() {
    in_world("kept", async |world: World| {
        let session = world.session().await;
        let command = ended(&world, &session, "printf 'one\\ntwo\\nthree\\nfour\\n'").await;
        let dir = dir_of(&command);
        let hex: String = b"ee\nfour\n".iter().map(|byte| format!("{byte:02x}")).collect();
        let mut start = 0;
        edit(&dir, "exit.json", |exit| {
            start = exit["output"]["start"].as_u64().expect("a start");
            exit["tail"] = hex.into();
            exit["output"]["whole"] = false.into();
            exit["errors"] = serde_json::json!(["the log failed"]);
        });
        edit(&dir, "status.json", |status| status["output"]["whole"] = false.into());
        let log = std::fs::OpenOptions::new().write(true).open(dir.join("output.log")).expect("a log");
        log.set_len(start + 5).expect("cut");
        let lost = command.snapshot().await.expect("a look").output.unwritten.expect("part of it is nowhere");
        assert_eq!((lost.offset, lost.bytes), (5, 6));
        let (all, problem) = pieces(&command, ReadOptions::default()).await;
        let tail = bytes(11, b"ee\nfour\n");
        assert_eq!(all, [bytes(0, b"one\nt"), gap(Missing::Unwritten, 5, 6), tail.clone()]);
        assert_eq!(problem.as_deref(), Some("the log failed"));
        let last = ReadOptions { tail_lines: Some(1), ..ReadOptions::default() };
        assert_eq!(pieces(&command, last).await.0, [bytes(14, b"four\n")]);
        let inside = ReadOptions { offset: 12, bytes: Some(3), ..ReadOptions::default() };
        assert_eq!(pieces(&command, inside).await.0, [bytes(12, b"e\nf")]);
        let mut follower = command.follow(6).await.expect("a follower");
        assert_eq!(follower.next().await.expect("a piece"), Some(gap(Missing::Unwritten, 6, 5)));
        assert_eq!(follower.next().await.expect("a piece"), Some(tail));
        assert_eq!(follower.next().await.expect("the end"), None);

        std::fs::remove_file(dir.join("output.log")).expect("no log");
        let (all, problem) = pieces(&command, ReadOptions::default()).await;
        assert_eq!(all, [gap(Missing::Gone, 0, 11), bytes(11, b"ee\nfour\n")]);
        assert!(problem.as_ref().is_some_and(|problem| problem.contains("no log")), "{problem:?}");
    });
}

#[test]
fn a_command_of_which_only_the_end_is_recorded_has_no_log() {
    in_world("nolog", async |world: World| {
        let session = world.session().await;
        let command = ended(&world, &session, "echo gone").await;
        let dir = dir_of(&command);
        edit(&dir, "exit.json", |exit| {
            exit["output"] = serde_json::json!({"start": 0, "bytes": 0, "gap": null, "whole": true});
        });
        for name in ["request.json", "status.json", "output.log"] {
            std::fs::remove_file(dir.join(name)).expect(name);
        }
        let snapshot = command.snapshot().await.expect("a look");
        assert_eq!((snapshot.output.log.as_ref(), snapshot.exit_code), (None, Some(0)), "{snapshot:?}");
        assert_eq!(session.list(true).await.expect("a list")[0].output.log, None);
        let (all, problem) = pieces(&command, ReadOptions::default()).await;
        assert_eq!((all, problem.as_deref()), (vec![], Some("it has no log; no output of it is kept")));
        let mut follower = command.follow(0).await.expect("a follower");
        assert_eq!(follower.next().await.expect("the end"), None);
        assert_eq!(follower.problem(), Some("it has no log; no output of it is kept"));
    });
}

/// Covers: L4
#[test]
fn l4_a_verdict_that_is_not_in_the_trace_stands_and_says_so() {
    in_world("untraced", async |world: World| {
        let session = world.session().await;
        let command = ended(&world, &session, "exit 3").await;
        let (id, gone, dir) = (*session.id(), *command.id(), dir_of(&command));
        drop((session, command));
        nothing_left(&world.state_dir).await;
        std::fs::remove_file(dir.join("exit.json")).expect("no end");
        let trace = dir.ancestors().nth(2).expect("a session").join("trace.jsonl");
        std::fs::remove_file(&trace).expect("no trace");
        std::fs::create_dir(&trace).expect("a directory in its place");
        let other = Runtime::open(config(&world.state_dir)).expect("a runtime");
        let seen = other.open_session(&id).await.expect("a session");
        let report = other.reconcile(&id, None, "model").await.expect("a report");
        assert_eq!(report.lost.iter().map(|one| one.id).collect::<Vec<_>>(), [gone], "{report:?}");
        assert!(report.notes.iter().any(|note| note.contains("not in the trace")), "{report:?}");
        let lost = seen.get(&gone).await.expect("a look").expect("a command").snapshot().await.expect("a look");
        assert_eq!(lost.end, Some(End::Lost));
        assert!(dir.join("verdict.json").exists());
    });
}

/// Runs a script in a mount namespace of its own; none where that is not allowed.
fn in_mounts(world: &World, script: &str) -> Option<String> {
    let allowed = std::process::Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|one| one.success());
    if !allowed {
        return None;
    }
    let mut shell = std::process::Command::new("unshare");
    shell.args(["-m", "sh", "-c", script]).env("S", &world.state_dir).env("OUTLAST", executable());
    shell.env("OUTLAST_STATE_DIR", &world.state_dir).current_dir(&world.work_dir);
    let output = shell.output().expect("a shell");
    Some(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// Covers: A4, M4
#[test]
fn m4_a_read_only_state_directory_is_read_and_commands_run_without_records() {
    in_world("readonly", async |world: World| {
        let session = world.session().await;
        let command = ended(&world, &session, "echo hello; exit 3").await;
        let script = format!(
            "mount --bind \"$S\" \"$S\" && mount -o remount,bind,ro \"$S\" || exit 0; echo mounted\n\
             $OUTLAST status {id}; echo status=$?\n$OUTLAST wait {id}; echo wait=$?\n\
             $OUTLAST logs {id}; echo logs=$?\n\
             $OUTLAST run --grace 100ms -c 'sleep 0.4; echo inline; exit 4' 2>run.txt; echo run=$?\n\
             $OUTLAST run -b -c 'touch started'; echo background=$?\n$OUTLAST doctor; true",
            id = command.id()
        );
        let Some(said) = in_mounts(&world, &script).filter(|said| said.contains("mounted")) else { return };
        for part in ["status=0", "wait=3", "logs=0", "inline", "run=4", "background=4", "! state_dir"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let run = std::fs::read_to_string(world.work_dir.join("run.txt")).expect("what it said");
        assert!(run.contains("Read-only file system"), "{run}");
        assert!(!world.work_dir.join("started").exists());
    });
}

/// Covers: G1, M4
#[test]
fn m4_on_a_full_disk_doctor_says_so_and_an_end_is_told_without_being_recorded() {
    in_world("full", async |world: World| {
        let script = "mkdir -p \"$S\"; mount -t tmpfs -o size=1m,mode=700 outlast \"$S\" || exit 0; echo mounted\n\
                      $OUTLAST doctor; $OUTLAST run -b -c 'exit 3'; $OUTLAST wait --consumer other w1; echo first=$?\n\
                      cat /dev/zero >\"$S/filler\" 2>/dev/null; echo full\n\
                      $OUTLAST doctor; $OUTLAST wait w1; echo second=$?; ls -A \"$S\"; rm \"$S/filler\"";
        let Some(said) = in_mounts(&world, script).filter(|said| said.contains("mounted")) else { return };
        let (before, after) = said.split_once("full\n").expect("both reports");
        assert!(before.contains("records can be made") && !before.contains("! state_dir"), "{said}");
        assert!(after.contains("! state_dir") && after.contains("No space left"), "{said}");
        assert!(before.contains("first=3") && after.contains("second=3"), "{said}");
        let left = said.lines().any(|line| line.starts_with(".try-"));
        assert!(!left, "nothing is left behind: {said}");
    });
}
