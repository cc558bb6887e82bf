//! Sessions that are destroyed: ended, told of no more, and removed.

use std::time::Duration;

use outlast::core::request::Lifetime;
use outlast::core::retention::Limits;
use outlast::{END_BOUND, ErrorKind, RunRequest, SessionOptions};

use crate::world::{World, config, in_world, soon, start};

/// Covers: K7
#[test]
fn k7_a_destroyed_session_leaves_nothing() {
    in_world("k7", async |world: World| {
        for owned_here in [true, false] {
            let session =
                world.runtime.create_session(SessionOptions { context: "c".into(), ..Default::default() }).await;
            let session = session.expect("a session");
            let ended = start(&world, &session, "exit 3").await;
            session.wait(std::slice::from_ref(&ended), Default::default()).await.expect("an end");
            let running = start(&world, &session, "exec sleep 300").await;
            let stopping = start(&world, &session, "trap '' TERM; while :; do sleep .05; done").await;
            let detached = session
                .start(RunRequest { lifetime: Lifetime::Detached { ttl_ms: 60_000 }, ..world.shell("exec sleep 300") })
                .await
                .expect("a start");
            assert!(matches!(detached, outlast::Outcome::Demoted(_)));
            assert_eq!(session.pending("model").await.expect("a look").len(), 1);
            let path = session.path().expect("a directory");

            let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
            let by = if owned_here { session.clone() } else { other.open_session(session.id()).await.expect("it") };
            let destroying = tokio::spawn({
                let by = by.clone();
                async move { by.destroy("model", END_BOUND).await }
            });
            soon("it is given up", async || path.join("given-up").exists() || !path.exists()).await;
            assert!(session.pending("model").await.expect("a look").is_empty());
            assert!(session.lease("human").await.expect("a look").is_empty());
            let destroyed = destroying.await.expect("no panic");
            if !owned_here {
                // Somebody else owns it, so that it is ended, told of no more, and stays until that one is gone.
                assert_eq!(destroyed.expect_err("it is in use").kind(), ErrorKind::Refused);
                assert!(session.pending("model").await.expect("a look").is_empty());
                drop((session, ended, running, stopping, detached, by));
                soon("what is left is removed", async || {
                    world.runtime.retain(&Limits::default(), false).await.expect("a look");
                    !path.exists()
                })
                .await;
                continue;
            }
            assert_eq!(destroyed.expect("a report").commands.len(), 4);
            assert!(!path.exists());
            for command in [&ended, &running, &stopping] {
                assert_eq!(
                    session.command(&command.id().to_string()).await.expect_err("gone").kind(),
                    ErrorKind::Unknown
                );
            }
            let gone = world.runtime.find_command(running.id()).await.expect_err("gone");
            assert_eq!(gone.kind(), ErrorKind::Unknown);
            let contexts = std::fs::read_dir(world.state_dir.join("by-context")).expect("the contexts");
            assert_eq!(contexts.count(), 0);
        }
    });
}

/// Covers: I6
#[test]
fn i6_removing_what_is_gone_is_no_error() {
    in_world("i6", async |world: World| {
        let (first, sibling) = (world.session().await, world.session().await);
        let kept = start(&world, &sibling, "echo kept").await;
        sibling.wait(std::slice::from_ref(&kept), Default::default()).await.expect("an end");
        first.destroy("human", Duration::ZERO).await.expect("a report");
        let again = world.runtime.open_session(first.id()).await.expect_err("gone");
        assert_eq!(again.kind(), ErrorKind::Unknown);
        for _ in 0..2 {
            let retained = world.runtime.retain(&Limits::default(), false).await.expect("a look");
            assert_eq!(retained.removed, [""; 0].map(std::path::PathBuf::from));
        }
        assert_eq!(kept.snapshot().await.expect("a look").output.tail, b"kept\n");
    });
}
