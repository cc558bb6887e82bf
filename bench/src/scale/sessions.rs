//! Many sessions in one state directory.

use super::data::Data;
use super::tools::{self, SLEEP};
use crate::Result;
use crate::place::{self, Place};
use crate::proc::pss;
use crate::samples::Samples;

/// Commands that run in each.
const IN_EACH: u64 = 4;
const MORE: usize = 10;
const LOOKS: usize = 10;

/// Sessions are added from size to size; at each size the others stand.
pub async fn measure(place: &Place, sizes: &[u64], data: &mut Data) -> Result<()> {
    for size in sizes {
        let (mut sessions, mut watchers) = (Vec::new(), Vec::new());
        for _ in 0..*size {
            let session = place.session().await?;
            let mut first = None;
            for _ in 0..IN_EACH {
                first = Some(tools::start(&session, place.request(&SLEEP)).await?);
            }
            let (keeper, all) = tools::watchers(tools::supervisor(&first.ok_or("nothing runs")?).await?)?;
            watchers.push((keeper, all));
            sessions.push(session);
        }
        let (mut keepers, mut supervisors) = (0, 0);
        for (keeper, all) in &watchers {
            keepers += pss(*keeper)?;
            supervisors += all.iter().map(|pid| pss(*pid)).sum::<Result<u64>>()?;
        }
        for (name, kib) in [("keepers", keepers), ("supervisors", supervisors)] {
            data.value("sessions-memory", name, *size, kib as f64 / 1024.0);
        }
        let last = sessions.last().ok_or("there is no session")?;
        let mut more = Samples::default();
        for _ in 0..MORE {
            let command = more.time_async(tools::start(last, place.request(&SLEEP))).await?;
            command.stop(outlast::StopOptions::by("benchmark")).await?;
        }
        data.time("sessions-start", "library", *size, &more);
        for (name, words) in
            [("`session list`", &["session", "list"] as &[&str]), ("`ps` of one", &["ps"]), ("`doctor`", &["doctor"])]
        {
            data.time("sessions-look", name, *size, &tools::calls(place, last, LOOKS, words)?);
        }
        let mut ending = Samples::default();
        ending
            .time_async(async {
                for session in &sessions {
                    place::end(session).await?;
                }
                Result::Ok(())
            })
            .await?;
        data.time("sessions-end", "library", *size, &ending);
    }
    Ok(())
}
