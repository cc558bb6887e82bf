//! From the exit of a command's leader to the return of whoever waits for it.

use std::time::Duration;

use outlast::{Outcome, Session, WaitOptions};

use crate::Result;
use crate::place::{self, Place};
use crate::report::{Bound, Report};
use crate::samples::Samples;
use crate::stand_in::monotonic;

const WARM: usize = 10;
const ROUNDS: usize = 200;

/// Once as a look only, once with the end told to a consumer, in turns.
pub async fn measure(place: &Place, report: &mut Report) -> Result<()> {
    let session = place.session().await?;
    let (mut look, mut told) = (Samples::default(), Samples::default());
    for round in 0..WARM + ROUNDS {
        let plain = once(place, &session, None).await?;
        let committed = once(place, &session, Some("model".to_owned())).await?;
        if round >= WARM {
            look.push(plain);
            told.push(committed);
        }
    }
    place::end(&session).await?;
    report.time("leader's exit to the waiter's return, median", &look, Some(Bound::AtMost(1.0)));
    report.time("the same with the end committed for a consumer", &told, None);
    report.keep("leader's exit to the waiter's return", look);
    report.keep("leader's exit to the waiter's return, committed", told);
    Ok(())
}

async fn once(place: &Place, session: &Session, consumer: Option<String>) -> Result<Duration> {
    let Outcome::Demoted(demotion) = session.start(place.stand_in_request(&["stamp"])).await? else {
        return Err("the stand-in could not be started".into());
    };
    let report = session.wait(&[demotion.command], WaitOptions { consumer, ..WaitOptions::default() }).await?;
    let returned = monotonic();
    let waited = report.commands.first().ok_or("nothing was waited for")?;
    let printed = String::from_utf8_lossy(&waited.snapshot.output.tail).trim().parse()?;
    Ok(returned.saturating_sub(Duration::from_nanos(printed)))
}
