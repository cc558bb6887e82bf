//! What watching costs while many commands run.

use std::time::Instant;

use outlast::Outcome;

use crate::Result;
use crate::place::{self, Place};
use crate::proc::{children, parent, pss};
use crate::report::{Bound, Report, Unit};
use crate::samples::Samples;

/// Starts so many that sleep, and adds up keeper and supervisors.
pub async fn measure(place: &Place, count: u64, report: &mut Report) -> Result<()> {
    let session = place.session().await?;
    let mut starts = Samples::default();
    let mut first = None;
    for _ in 0..count {
        let request = place.request(&["/bin/sleep", "86400"]);
        let Outcome::Demoted(demotion) = starts.time_async(session.start(request)).await? else {
            return Err("sleep could not be started".into());
        };
        first.get_or_insert(demotion.command);
    }
    let leader = first.ok_or("nothing was started")?.brief().await?.pid.ok_or("the first command is not running")?;
    let keeper = parent(parent(leader)?)?;
    let mut watchers = children(keeper)?;
    watchers.push(keeper);
    let mut total = 0;
    for pid in &watchers {
        total += pss(*pid)?;
    }
    let (own, watching) = (pss(keeper)?, watchers.len() - 1);
    let mut ending = Samples::default();
    let began = Instant::now();
    place::end(&session).await?;
    ending.push(began.elapsed());
    if (watching as u64) < count {
        return Err(format!("{count} commands had {watching} supervisors").into());
    }
    let figures = format!("{total} KiB in {watching} supervisors and their keeper, {own} KiB of it the keeper's");
    let what = format!("memory per running command beyond its own, {count} running");
    report.row(what, total as f64 / count as f64, Unit::Kibibytes, Some(Bound::AtMost(150.0)), figures);
    let late = Samples(starts.0.iter().rev().take(100).copied().collect());
    report.time(format!("start of one of {count} commands in the background, records and all"), &starts, None);
    report.time("the same, the last hundred of them", &late, None);
    report.time(format!("end of a session with {count} running commands, each verified"), &ending, None);
    report.keep(format!("start of one of {count} commands in the background"), starts);
    Ok(())
}
