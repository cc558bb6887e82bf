//! The report of lost work: how far it is believed, and what becomes of it when it cannot be written.

use outlast::core::id::{CommandId, SessionId};
use outlast::{Origin, Outcome, Predecessor, ReconcileReport, Session, SessionOptions, Trust};

use crate::lost::kill_watchers;
use crate::world::{World, config, in_world, nothing_left};

/// Loses commands that these asked for: a session of the context, and their ids.
async fn lose(world: &World, context: &str, origins: &[Origin]) -> (SessionId, Vec<CommandId>) {
    let options = SessionOptions { context: context.into(), ..SessionOptions::default() };
    let session = world.runtime.create_session(options).await.expect("a session");
    let mut ids = Vec::new();
    for origin in origins {
        let request = outlast::RunRequest { provenance: (*origin).into(), ..world.shell("exec sleep 300") };
        let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
        ids.push(*demotion.command.id());
    }
    let id = *session.id();
    // The owner would know how they ended.
    drop(session);
    kill_watchers(world).await;
    (id, ids)
}

/// A resume by another process than the one that owned the session and may still know an end.
async fn resume(world: &World, context: &str) -> (Session, ReconcileReport) {
    let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
    let earlier = Predecessor::Context(context.into());
    other.resume(&earlier, SessionOptions::default(), "model").await.expect("a resume")
}

fn named(report: &ReconcileReport) -> Vec<CommandId> {
    report.lost.iter().map(|one| one.id).collect()
}

/// Covers: L8
#[test]
fn l8_a_report_is_believed_as_far_as_the_least_of_its_work() {
    in_world("l8", async |world: World| {
        let rows: [(&[Origin], bool, Trust); 4] = [
            (&[Origin::User, Origin::System], true, Trust::Trusted),
            (&[Origin::User, Origin::Event], true, Trust::Untrusted),
            (&[Origin::Event, Origin::User], true, Trust::Untrusted),
            (&[Origin::User, Origin::User], false, Trust::Untrusted),
        ];
        for (round, (origins, request_is_there, trust)) in rows.into_iter().enumerate() {
            let context = format!("project {round}");
            let (session, ids) = lose(&world, &context, origins).await;
            let work = world.state_dir.join(format!("sessions/{session}/work"));
            if !request_is_there {
                std::fs::remove_file(work.join(format!("{}/request.json", ids[0]))).expect("a record");
            }
            let (next, report) = resume(&world, &context).await;
            assert_eq!((named(&report), report.trust), (ids, Some(trust)), "{origins:?}");
            drop(next);
        }
        nothing_left(&world.state_dir).await;
    });
}

/// Covers: L4, L14
#[test]
fn l4_what_cannot_be_recorded_is_not_reported() {
    in_world("l4", async |world: World| {
        let (session, ids) = lose(&world, "project", &[Origin::User, Origin::User]).await;
        let work = world.state_dir.join(format!("sessions/{session}/work"));
        let blocked: Vec<_> = ids.iter().map(|id| NoVerdict::of(&work.join(id.to_string()))).collect();
        let (next, report) = resume(&world, "project").await;
        assert!(report.is_empty() && report.report.is_none() && report.trust.is_none(), "{report:?}");
        assert_eq!((report.deferred.len(), report.notes.len()), (2, 2), "{report:?}");
        assert!(report.notes.iter().all(|note| note.contains("verdict.json")), "{:?}", report.notes);
        crate::world::finished(next.run_to_end(world.shell("true")).await.expect("the launch goes on"));
        drop(next);

        // One of the two can be written now: the report has that one and no other.
        let mut blocked = blocked.into_iter();
        blocked.next().expect("the first").lift();
        let (next, report) = resume_session(&world, &session).await;
        assert_eq!((named(&report), report.deferred.len()), (vec![ids[0]], 1), "{report:?}");
        drop(next);
        blocked.next().expect("the second").lift();
        let (next, report) = resume_session(&world, &session).await;
        assert_eq!((named(&report), report.deferred.len()), (vec![ids[1]], 0), "{report:?}");
        drop(next);
        nothing_left(&world.state_dir).await;
    });
}

async fn resume_session(world: &World, session: &SessionId) -> (Session, ReconcileReport) {
    let other = outlast::Runtime::open(config(&world.state_dir)).expect("a runtime");
    let earlier = Predecessor::Session(*session);
    other.resume(&earlier, SessionOptions::default(), "model").await.expect("a resume")
}

/// A command directory that no verdict can be written into. Modes do not keep the superuser out, so
/// the names under which this process would make the file are taken.
struct NoVerdict(Vec<std::path::PathBuf>);

impl NoVerdict {
    fn of(dir: &std::path::Path) -> NoVerdict {
        let names = (0..2048).map(|count| dir.join(format!(".verdict.json.{}.{count}.tmp", std::process::id())));
        let names: Vec<_> = names.collect();
        names.iter().for_each(|name| std::fs::create_dir(name).expect("a directory"));
        NoVerdict(names)
    }

    fn lift(self) {
        self.0.iter().for_each(|name| std::fs::remove_dir(name).expect("our directory"));
    }
}
