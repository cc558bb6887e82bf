//! Sessions of child agents.

use std::time::Duration;

use outlast::core::ending::End;
use outlast::core::record::Phase;
use outlast::{SessionOptions, StopOptions, Told, Via};

use crate::world::{SOON, World, in_world, start};

/// Covers: J7, J5, S9
#[test]
fn j7_a_parent_lists_and_stops_a_childs_commands_and_inherits_their_ends() {
    in_world("j7", async |world: World| {
        let parent = world.session().await;
        let options = SessionOptions { parent: Some(*parent.id()), ..SessionOptions::default() };
        let child = world.runtime.create_session(options.clone()).await.expect("a child");
        assert_eq!(child.record().and_then(|record| record.parent), Some(*parent.id()));
        let stranger = world.session().await;
        let left = start(&world, &child, "exec sleep 300").await;
        let stopped = start(&world, &child, "exec sleep 300").await;
        let told = start(&world, &child, "exec sleep 300").await;

        let children = parent.children().await.expect("children");
        assert_eq!(children.iter().map(|one| *one.id()).collect::<Vec<_>>(), [*child.id()]);
        assert!(stranger.children().await.expect("children").is_empty());
        let listed = children[0].list(false).await.expect("a list");
        assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [*left.id(), *stopped.id(), *told.id()]);
        for command in [&stopped, &told] {
            let command = children[0].get(command.id()).await.expect("a look").expect("it is there");
            assert!(command.stop(StopOptions::by("model")).await.expect("a stop").verified);
        }
        assert_eq!(child.commit("model", told.id(), Via::Read).await.expect("a commit"), Told::Now);
        // As long as the child is there it tells its own ends.
        assert!(parent.pending("model").await.expect("pending").is_empty());
        assert_eq!(
            parent.commit("model", stopped.id(), Via::Read).await.expect_err("not yet").kind(),
            outlast::ErrorKind::Unknown
        );

        let waiting = {
            let parent = parent.clone();
            tokio::spawn(async move { parent.completions("model").await })
        };
        child.end("model", Duration::from_secs(10), false).await.expect("an end");
        let guards = tokio::time::timeout(SOON, waiting).await.expect("in time").expect("a call").expect("completions");
        let ids: Vec<_> = guards.iter().map(|one| one.completion().snapshot.id).collect();
        assert!(ids.contains(stopped.id()) && !ids.contains(told.id()), "{ids:?}");
        drop(guards);
        let guards = parent.lease("model").await.expect("a lease");
        let ends: Vec<_> = guards.iter().map(|one| one.completion().snapshot.clone()).collect();
        assert_eq!(ends.iter().map(|one| one.id).collect::<Vec<_>>(), [*left.id(), *stopped.id()]);
        assert!(matches!(ends[0].end, Some(End::Abandoned { .. })) && ends[0].phase == Phase::Ended, "{ends:?}");
        for guard in guards {
            guard.commit(Via::Inbox).await.expect("a commit");
        }
        assert!(parent.pending("model").await.expect("pending").is_empty(), "told once");
        assert!(child.pending("model").await.expect("pending").is_empty());
        assert!(stranger.pending("model").await.expect("pending").is_empty());
        let again = parent.commit("model", left.id(), Via::Read).await.expect("a commit");
        assert!(matches!(again, Told::Before { .. }), "{again:?}");

        let unknown = SessionOptions { parent: Some(outlast::core::id::SessionId::from_parts(1, 0, 1)), ..options };
        assert_eq!(
            world.runtime.create_session(unknown).await.expect_err("no such parent").kind(),
            outlast::ErrorKind::Unknown
        );
    });
}

/// Covers: J7
#[test]
fn j7_the_children_of_a_gone_child_are_inherited_too() {
    in_world("j7-deep", async |world: World| {
        let parent = world.session().await;
        let below =
            |parent: &outlast::Session| SessionOptions { parent: Some(*parent.id()), ..SessionOptions::default() };
        let child = world.runtime.create_session(below(&parent)).await.expect("a child");
        let grandchild = world.runtime.create_session(below(&child)).await.expect("a grandchild");
        let command = start(&world, &grandchild, "exit 3").await;
        let id = *command.id();
        crate::world::soon("it has ended", async || command.brief().await.expect("a look").phase == Phase::Ended).await;
        drop((grandchild, command));
        assert!(parent.pending("model").await.expect("pending").is_empty(), "it is the child's to tell");
        assert_eq!(child.pending("model").await.expect("pending").len(), 1);
        drop(child);
        crate::world::soon("the parent inherits it", async || {
            let pending = parent.pending("model").await.expect("pending");
            pending.iter().map(|one| one.snapshot.id).collect::<Vec<_>>() == [id]
        })
        .await;
    });
}
