//! A test that lowers the limits of its own process: it shares it with no other test.

#[allow(dead_code, reason = "the world has words for more tests than this one")]
#[path = "it/world.rs"]
mod world;

use outlast::core::record::Phase;
use outlast::{Command, Runtime, Session, StopOptions, WaitOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::world::{World, config, in_world, start};

async fn ended(world: &World, session: &Session, line: &str) -> Command {
    let command = start(world, session, line).await;
    session.wait(std::slice::from_ref(&command), WaitOptions::default()).await.expect("a wait");
    command
}

fn dir_of(command: &Command) -> std::path::PathBuf {
    command.session().path().expect("a path").join(format!("work/{}", command.id()))
}

/// Covers: L16
#[test]
fn l16_out_of_descriptors_is_an_error_and_never_an_absence() {
    in_world("descriptors", async |world: World| {
        let session = world.session().await;
        let done = ended(&world, &session, "exit 3").await;
        let runs = start(&world, &session, "exec sleep 300").await;
        let both = [*done.id(), *runs.id()];
        let used = std::fs::read_dir("/proc/self/fd").expect("descriptors").count() as u64;
        let before = getrlimit(Resource::Nofile);
        let (mut failed, mut told) = (0, 0);
        for limit in used - 2..used + 24 {
            setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..before }).expect("lower");
            let looked = async {
                let runtime = Runtime::open(config(&world.state_dir))?;
                let sessions = runtime.sessions().await?;
                let seen = runtime.open_session(session.id()).await?;
                let (all, open) = (seen.list(true).await?, seen.list(false).await?);
                let pending = seen.pending("person").await?;
                Ok::<_, outlast::Error>((sessions, all, open, pending))
            };
            let looked = looked.await;
            let unnamed = async {
                let runtime = Runtime::open(config(&world.state_dir))?;
                let session = runtime.session_for(std::process::id()).await?;
                let nowhere = session.path().is_none();
                session.stop_all(StopOptions::by("model"), false).await.map(|stopped| (nowhere, stopped))
            };
            let unnamed = unnamed.await;
            setrlimit(Resource::Nofile, before).expect("raise");
            match looked {
                Ok((sessions, all, open, pending)) => {
                    assert_eq!((sessions.len(), sessions[0].commands), (1, 2), "limit {limit}: {sessions:?}");
                    assert_eq!((sessions[0].running, sessions[0].closed_by.as_ref()), (1, None), "limit {limit}");
                    assert_eq!(all.iter().map(|one| one.id).collect::<Vec<_>>(), both, "limit {limit}");
                    assert_eq!(all[1].phase, Phase::Running, "limit {limit}: {:?}", all[1]);
                    assert_eq!(open.iter().map(|one| one.id).collect::<Vec<_>>(), both[1..], "limit {limit}");
                    assert_eq!(pending.len(), 1, "limit {limit}");
                    told += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), outlast::ErrorKind::Internal, "limit {limit}: {error}");
                    failed += 1;
                }
            }
            if let Ok((nowhere, stopped)) = unnamed {
                assert!(!nowhere && stopped.is_empty(), "limit {limit}: nothing was looked at");
                let state = world.state_dir.join("by-anchor");
                // The session that was made for this process is not part of what is looked at above.
                let made = std::fs::read_dir(&state).expect("anchors").flatten();
                for pointer in made.filter(|entry| entry.file_name() != ".lock") {
                    let id = std::fs::read_to_string(pointer.path()).expect("a pointer");
                    std::fs::remove_dir_all(world.state_dir.join("sessions").join(id.trim())).expect("its session");
                    std::fs::remove_file(pointer.path()).expect("its pointer");
                }
            } else {
                clear_unfinished(&world, &session);
            }
        }
        assert!(failed > 2 && told > 2, "{failed} failed, {told} told all");
        assert!(!dir_of(&runs).join("verdict.json").exists());
        runs.stop(StopOptions::by("model")).await.expect("a stop");
    });
}

/// Removes sessions that calls were making when they failed.
fn clear_unfinished(world: &World, keep: &Session) {
    for place in ["sessions", "by-anchor"] {
        let Ok(entries) = std::fs::read_dir(world.state_dir.join(place)) else { continue };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy() != keep.id().to_string() {
                let removed = std::fs::remove_dir_all(entry.path()).or_else(|_| std::fs::remove_file(entry.path()));
                removed.expect("what was being made can be removed");
            }
        }
    }
}
