//! A command from the library, against the same program spawned and waited for.

use outlast::{Outcome, RunRequest, Session};

use crate::Result;
use crate::peers::done;
use crate::place::{self, Place};
use crate::report::{Bound, Report};
use crate::samples::Samples;

const PROGRAM: &str = "/bin/true";
const WARM: usize = 30;
const ROUNDS: usize = 500;
/// So many in a row, where they are not taken in turns.
const BLOCK: usize = 50;

/// In turns, each side first every other time.
pub async fn measure(place: &Place, report: &mut Report) -> Result<()> {
    let session = place.session().await?;
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for round in 0..WARM + ROUNDS {
        if round == WARM {
            (ours, bare) = (Samples::default(), Samples::default());
        }
        if round % 2 == 0 {
            ours.time_async(to_end(&session, place.request(&[PROGRAM]))).await?;
        }
        bare.time(|| done(&mut place.program(PROGRAM)))?;
        if round % 2 == 1 {
            ours.time_async(to_end(&session, place.request(&[PROGRAM]))).await?;
        }
    }
    let (mut in_a_row, mut bare_in_a_row) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS / BLOCK {
        for _ in 0..BLOCK {
            in_a_row.time_async(to_end(&session, place.request(&[PROGRAM]))).await?;
        }
        for _ in 0..BLOCK {
            bare_in_a_row.time(|| done(&mut place.program(PROGRAM)))?;
        }
    }
    place::end(&session).await?;
    let what = "library: `run(true)` to its result, warm, against posix_spawn and wait";
    report.ratio(what, &ours, &bare, Some(Bound::AtMost(1.5)));
    report.ratio("library: the same with many in a row on each side", &in_a_row, &bare_in_a_row, None);
    report.keep("library: run(true)", ours);
    report.keep("library: run(true), in a row", in_a_row);
    report.keep("posix_spawn and wait of true", bare);
    report.keep("posix_spawn and wait of true, in a row", bare_in_a_row);
    Ok(())
}

/// Runs a command that has to end well in the foreground.
async fn to_end(session: &Session, request: RunRequest) -> Result<()> {
    match session.run_to_end(request).await? {
        Outcome::Finished(finished) if finished.exit.is_ok() => Ok(()),
        Outcome::Finished(finished) => Err(format!("the command ended as {:?}", finished.exit.end).into()),
        Outcome::Demoted(_) => Err("the command was demoted".into()),
    }
}
