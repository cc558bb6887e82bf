//! A session in which very many commands ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use outlast::{Outcome, Predecessor, RunRequest, Session, SessionOptions, WaitOptions};

use crate::Result;
use crate::peers::done;
use crate::place::{self, Place};
use crate::report::{Bound, Report};
use crate::samples::Samples;

/// Commands that run at once while they are made.
const AT_ONCE: usize = 16;
const ROUNDS: usize = 20;
/// Every resume makes a session, which is slow work.
const RESUMES: usize = 3;

/// Runs them all for real, then opens and lists.
pub async fn measure(place: &Place, count: u64, report: &mut Report) -> Result<()> {
    let session = place.session().await?;
    let began = Instant::now();
    run_all(place, &session, count).await?;
    let mut making = Samples::default();
    making.push(began.elapsed());
    let (mut open, mut list, mut ps) = (Samples::default(), Samples::default(), Samples::default());
    let id = session.id().to_string();
    for _ in 0..ROUNDS {
        let opened = open.time_async(opened(place, &session)).await?;
        let listed = list.time_async(opened.list(true)).await?;
        if listed.len() as u64 != count {
            return Err(format!("{} of {count} commands are listed", listed.len()).into());
        }
        ps.time(|| done(place.program(place.outlast()).args(["ps", "-a", "--session", &id])))?;
    }
    let mut resume = Samples::default();
    for _ in 0..RESUMES {
        let predecessor = Predecessor::Session(*session.id());
        let runtime = place.runtime()?;
        let resumed = runtime.resume(&predecessor, SessionOptions::default(), "model");
        let (next, told) = resume.time_async(resumed).await?;
        if told.ended.len() as u64 != count {
            return Err(format!("{} of {count} ends are told by a resume", told.ended.len()).into());
        }
        place::end(&next).await?;
    }
    place::end(&session).await?;
    let bound = Some(Bound::AtMost(100.0));
    report.time(format!("opening a session in which {count} commands ended"), &open, bound);
    report.time("`ps -a` on it, command line", &ps, bound);
    report.time("the list of it, library", &list, None);
    report.time("resuming it in a new session, every end of it reported", &resume, None);
    let what = format!("running its {count} commands in the background, {AT_ONCE} at a time, each waited for");
    report.time(what, &making, None);
    report.keep("opening a session", open);
    report.keep("ps -a", ps);
    report.keep("the list", list);
    report.keep("resume", resume);
    Ok(())
}

/// The session as a process finds it that has just begun.
async fn opened(place: &Place, session: &Session) -> Result<Session> {
    Ok(place.runtime()?.open_session(session.id()).await?)
}

async fn run_all(place: &Place, session: &Session, count: u64) -> Result<()> {
    let begun = Arc::new(AtomicU64::new(0));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (session, begun) = (session.clone(), Arc::clone(&begun));
        let request = place.request(&["/bin/true"]);
        workers.spawn(async move {
            while begun.fetch_add(1, Ordering::Relaxed) < count {
                run_one(&session, request.clone()).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(())
}

async fn run_one(session: &Session, request: RunRequest) -> Result<()> {
    match session.start(request).await? {
        Outcome::Demoted(demotion) => {
            session.wait(&[demotion.command], WaitOptions::default()).await?;
            Ok(())
        }
        Outcome::Finished(finished) => Err(format!("it could not be started: {:?}", finished.exit.end).into()),
    }
}
