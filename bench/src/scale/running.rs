//! Many commands at once in one session.

use std::collections::BTreeSet;

use outlast::{Command, StopOptions};

use super::data::Data;
use super::tools::{self, SLEEP};
use crate::Result;
use crate::place::{self, Place};
use crate::proc::{descriptors, private, pss};
use crate::samples::Samples;

/// Starts of one more at each size.
const MORE: usize = 20;
const LOOKS: usize = 10;
/// Stops of all; each needs as many starts.
const STOPS: usize = 3;
/// What a running command may cost beyond its own, in KiB, and what a look may take, in ms: see docs/benchmarks.md.
const MOST_MEMORY: f64 = 150.0;

/// A session of its own for each size.
pub async fn measure(place: &Place, sizes: &[u64], data: &mut Data) -> Result<()> {
    for size in sizes {
        one(place, *size, data).await?;
    }
    data.bound("running-memory", "watching one command, the keeper's share included", 1000, MOST_MEMORY);
    Ok(())
}

async fn one(place: &Place, size: u64, data: &mut Data) -> Result<()> {
    let session = place.session().await?;
    let mut commands = Vec::new();
    for _ in 0..size {
        commands.push(tools::start(&session, place.request(&SLEEP)).await?);
    }
    let first = commands.first().ok_or("nothing was started")?;
    more(place, &session, size, data).await?;
    memory(first, size, data).await?;
    let id = first.id().to_string();
    for (name, words) in [("`ps`", &["ps"] as &[&str]), ("`status` of one", &["status", &id])] {
        data.time("running-look", name, size, &tools::calls(place, &session, LOOKS, words)?);
    }
    let mut list = Samples::default();
    for _ in 0..LOOKS {
        let listed = list.time_async(session.list(false)).await?.len() as u64;
        if listed != size {
            return Err(format!("{listed} of {size} running commands are listed").into());
        }
    }
    data.time("running-look", "list, library", size, &list);
    let mut stop = Samples::default();
    for round in 0..STOPS {
        // The first round stops those that are there.
        for _ in 0..if round > 0 { size } else { 0 } {
            tools::start(&session, place.request(&SLEEP)).await?;
        }
        stop.time(|| tools::call(place, &session, &["stop", "--all"]))?;
    }
    data.time("running-stop", "`stop --all`", size, &stop);
    if !session.list(false).await?.is_empty() {
        return Err("something runs after all were stopped".into());
    }
    place::end(&session).await
}

/// Starts one more and stops it, so that there are as many as before.
async fn more(place: &Place, session: &outlast::Session, size: u64, data: &mut Data) -> Result<()> {
    let (mut library, mut line) = (Samples::default(), Samples::default());
    for _ in 0..MORE {
        let command = library.time_async(tools::start(session, place.request(&SLEEP))).await?;
        command.stop(StopOptions::by("benchmark")).await?;
        let started = line.time(|| tools::call(place, session, &["run", "-b", "--", SLEEP[0], SLEEP[1]]))?;
        let id = started.split_whitespace().nth(1).ok_or("`run -b` told no id")?;
        session.command(id).await?.stop(StopOptions::by("benchmark")).await?;
    }
    data.time("running-start", "library", size, &library);
    data.time("running-start", "command line, `run -b`", size, &line);
    Ok(())
}

async fn memory(first: &Command, size: u64, data: &mut Data) -> Result<()> {
    let (keeper, all) = tools::watchers(tools::supervisor(first).await?)?;
    // A stopped one may still be about to become the spare, or to leave.
    let watching: BTreeSet<u32> = all.into_iter().collect();
    let (mut shared, mut own) = (0, 0);
    for pid in &watching {
        shared += pss(*pid)?;
        own += private(*pid)?;
    }
    let kept = pss(keeper)?;
    let count = watching.len() as f64;
    if (watching.len() as u64) < size {
        return Err(format!("{size} commands have {count} supervisors").into());
    }
    let whole = (shared + kept) as f64 / size as f64;
    data.value("running-memory", "watching one command, the keeper's share included", size, whole);
    data.value("running-memory", "all of them together", size, (shared + kept) as f64);
    data.value("running-memory", "a supervisor, private", size, own as f64 / count);
    data.value("running-memory", "the keeper", size, kept as f64);
    data.value("running-descriptors", "the keeper", size, descriptors(keeper)? as f64);
    Ok(())
}
