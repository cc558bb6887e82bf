//! What a tool holds in memory while commands sleep.

use std::time::{Duration, Instant};

use crate::Result;
use crate::fight::ring::{Asked, Guest, Ring};
use crate::fight::score::{Better, Cell};
use crate::peers::Kind;
use crate::proc::pss;
use crate::processes::Mark;

/// How long it may take until all run that may.
const RUN_BOUND: Duration = Duration::from_secs(60);

const CHECK: &str = "proportional set size of all processes of the tool, with outlast the session's owner too, without the commands' own; number of these processes";

/// Commands that all run; then more, of which a tool with a queue keeps most waiting.
pub fn measure(ring: &mut Ring<'_>) -> Result<()> {
    let (few, many) = (ring.sizes.few, ring.sizes.many);
    let asked = Asked::new(format!("memory with {few} commands that sleep, KiB"), CHECK, Better::Lower);
    ring.ask(asked, few, |guest| held(guest, few, few));
    let what = format!(
        "memory with {many} commands, KiB: pueue, task-spooler and nq keep all but {few} of them waiting, with outlast and the \
         shell, which have no queue, all run"
    );
    ring.ask(Asked::new(what, CHECK, Better::Lower), few, |guest| held(guest, many, few));
    Ok(())
}

/// Adds so many, of which so many at most are run at once where there is a queue.
fn held(guest: &Guest<'_>, count: usize, slots: usize) -> Result<Cell> {
    let mark = Mark::next(guest.place);
    let words = mark.words(&["sleep", "86400"]);
    for number in 0..count {
        if let Err(error) = guest.open.add(number % slots, &words) {
            return Ok(Cell::none(format!("took {number} commands: {error}")));
        }
    }
    let run = if matches!(guest.kind(), Kind::Outlast | Kind::Shell) { count } else { count.min(slots) };
    until_running(&mark, run)?;
    let managers = guest.managers()?;
    let mut total = 0;
    for manager in &managers {
        total += pss(manager.pid)?;
    }
    Ok(Cell::new(format!("{total} in {}", managers.len()), total as f64))
}

/// Waits until so many commands run. Nobody tells that of a queue, so it is looked for.
fn until_running(mark: &Mark, count: usize) -> Result<()> {
    let until = Instant::now() + RUN_BOUND;
    loop {
        let alive = mark.alive()?.iter().filter(|process| process.name == "sleep").count();
        if alive >= count {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("{alive} of {count} commands run").into());
        }
    }
}
