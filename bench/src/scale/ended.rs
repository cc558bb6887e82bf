//! Very many commands that ended, in one session.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use outlast::{Session, WaitOptions};

use super::data::Data;
use super::tools;
use crate::Result;
use crate::place::{self, Place};
use crate::proc::pss;
use crate::samples::Samples;

/// Commands that run at once while they are made.
const AT_ONCE: usize = 16;
const MORE: usize = 20;
const LOOKS: usize = 5;
/// Calls that take seconds at the largest size.
const FEW: usize = 3;
/// Who is told every end, and who is told none.
const TOLD: &str = "model";
const UNTOLD: &str = "nobody";
/// What opening and listing a session of 10,000 may take, in ms: see docs/benchmarks.md.
const MOST_LOOK: f64 = 100.0;

/// One session that grows from size to size, and one beside it in which nothing happens but the one more.
pub async fn measure(place: &Place, sizes: &[u64], data: &mut Data) -> Result<()> {
    let (session, beside) = (place.session().await?, place.session().await?);
    // A first command each, so that the keepers are there.
    for one in [&session, &beside] {
        run_one(place, one).await?;
    }
    let mut made = 1;
    let before = pss(std::process::id())?;
    for size in sizes {
        let began = Instant::now();
        run_all(place, &session, size - made).await?;
        let rate = (size - made) as f64 / began.elapsed().as_secs_f64();
        made = *size;
        data.value("ended-rate", "sixteen at a time, library", *size, rate);
        let own = pss(std::process::id())? as f64 / 1024.0;
        data.value("ended-owner", "a program with the library", *size, own);
        look(place, &session, *size, data).await?;
        for (name, session) in [("library", &session), ("library, in a session beside it", &beside)] {
            let mut more = Samples::default();
            for _ in 0..MORE {
                more.time_async(run_one(place, session)).await?;
            }
            data.time("ended-more", name, *size, &more);
        }
        let mut more = Samples::default();
        for _ in 0..MORE {
            more.time(|| by_line(place, &session))?;
        }
        data.time("ended-more", "command line", *size, &more);
        made += 2 * MORE as u64;
    }
    data.say("ended", "memory of the owner before the first of them", format!("{:.1} MiB", before as f64 / 1024.0));
    data.bound("ended-look", "`ps -a`", 10_000, MOST_LOOK);
    data.bound("ended-open", "opening it", 10_000, MOST_LOOK);
    let mut ending = Samples::default();
    ending.time_async(place::end(&session)).await?;
    data.say("ended", format!("ending the session of {made}"), ending.text());
    place::end(&beside).await
}

async fn look(place: &Place, session: &Session, size: u64, data: &mut Data) -> Result<()> {
    let listed = session.list(true).await?;
    if listed.len() as u64 != size {
        return Err(format!("{} of {size} commands are listed", listed.len()).into());
    }
    let middle = listed.get(listed.len() / 2).ok_or("nothing is listed")?.id.to_string();
    drop(listed);
    for (chart, name, words) in [
        ("ended-look", "`ps -a`", &["ps", "-a"] as &[&str]),
        ("ended-look", "`ps`", &["ps"]),
        ("ended-look", "`status` of one", &["status", &middle]),
        ("ended-look", "`logs` of one", &["logs", &middle]),
        ("ended-look", "`stats`", &["stats"]),
        ("ended-inbox", "`inbox`, told", &["inbox", "--consumer", TOLD]),
        ("ended-inbox", "`inbox`, untold", &["inbox", "--consumer", UNTOLD]),
        ("ended-keep", "`gc --dry-run`", &["gc", "--dry-run"]),
        ("ended-keep", "`session list`", &["session", "list"]),
        ("ended-keep", "`doctor`", &["doctor"]),
    ] {
        data.time(chart, name, size, &tools::calls(place, session, if size > 50_000 { FEW } else { LOOKS }, words)?);
    }
    if size > 50_000 {
        let kept = tools::call(place, session, &["gc", "--dry-run"])?;
        data.say("ended", format!("what `gc --dry-run` would remove of {size}"), kept.trim().replace('\n', "; "));
    }
    open(place, session, size, data).await?;
    let (bytes, files) = on_disk(&session.path().ok_or("the session has no directory")?)?;
    data.value("ended-disk", "the session", size, bytes as f64 / f64::from(1 << 20));
    data.say("ended", format!("files and directories of {size} commands"), files.to_string());
    Ok(())
}

/// As a process that has just begun finds it.
async fn open(place: &Place, session: &Session, size: u64, data: &mut Data) -> Result<()> {
    let (mut opening, mut told, mut untold) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..FEW {
        let runtime = place.runtime()?;
        let id = *session.id();
        opening.time_async(runtime.open_session(&id)).await?;
        told.time_async(runtime.reconcile(&id, None, TOLD)).await?;
        let report = untold.time_async(runtime.reconcile(&id, None, UNTOLD)).await?;
        if report.ended.len() as u64 != size {
            return Err(format!("{} of {size} ends are told by a reconciliation", report.ended.len()).into());
        }
    }
    data.time("ended-open", "opening it", size, &opening);
    data.time("ended-open", "reconciling it, told", size, &told);
    data.time("ended-open", "reconciling it, untold", size, &untold);
    Ok(())
}

async fn run_all(place: &Place, session: &Session, count: u64) -> Result<()> {
    let begun = Arc::new(AtomicU64::new(0));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (session, begun, request) = (session.clone(), Arc::clone(&begun), place.request(&["/bin/true"]));
        workers.spawn(async move {
            while begun.fetch_add(1, Ordering::Relaxed) < count {
                until_told(&session, request.clone()).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(())
}

async fn run_one(place: &Place, session: &Session) -> Result<()> {
    until_told(session, place.request(&["/bin/true"])).await
}

async fn until_told(session: &Session, request: outlast::RunRequest) -> Result<()> {
    let command = tools::start(session, request).await?;
    session.wait(&[command], WaitOptions { consumer: Some(TOLD.to_owned()), ..WaitOptions::default() }).await?;
    Ok(())
}

fn by_line(place: &Place, session: &Session) -> Result<()> {
    let started = tools::call(place, session, &["run", "-b", "--", "/bin/true"])?;
    let id = started.split_whitespace().nth(1).ok_or("`run -b` told no id")?;
    tools::call(place, session, &["wait", id, "--consumer", TOLD]).map(drop)
}

/// Bytes of blocks in use below a directory, and how many files and directories there are.
fn on_disk(dir: &Path) -> Result<(u64, u64)> {
    let mut all = (fs::symlink_metadata(dir)?.blocks() * 512, 1);
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        // A socket or a record may go away while it is looked at.
        let Ok(facts) = fs::symlink_metadata(&path) else { continue };
        let (bytes, files) = if facts.is_dir() { on_disk(&path)? } else { (facts.blocks() * 512, 1) };
        all = (all.0 + bytes, all.1 + files);
    }
    Ok(all)
}
