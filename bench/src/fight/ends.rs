//! What a tool says of how a command ended.

use std::time::Duration;

use crate::Result;
use crate::fight::ring::{Asked, Guest, Ring};
use crate::fight::score::{Better, Cell};
use crate::fight::stop::{most_alive, names};
use crate::peers::Told;
use crate::processes::{Mark, ended_within};

/// How long a command and its limit may take.
const END_BOUND: Duration = Duration::from_secs(10);
/// How long what was killed may take to be gone.
const GOING_BOUND: Duration = Duration::from_secs(1);
/// What the shell has for a limit: TERM after a second, KILL after another one, to a group of its own (timeout(1)).
const TIMEOUT: [&str; 3] = ["timeout", "--kill-after=1", "1"];

/// Codes and signals, a stop, and limits.
pub fn measure(ring: &mut Ring<'_>) -> Result<()> {
    let asked = Asked::new("`exit 7`", "the code that is told", Better::More);
    ring.ask(asked, 4, |guest| {
        let told = end(guest, "exit 7")?;
        Ok(Cell::right(told == Told::Code(7), told.text()))
    });
    let check = "both are run; what is told must differ";
    ring.ask(Asked::new("an end by KILL is told apart from `exit 137`", check, Better::More), 4, |guest| {
        let (signal, code) = (end(guest, "kill -KILL $$")?, end(guest, "exit 137")?);
        Ok(Cell::right(signal != code && code == Told::Code(137), format!("{}; {}", signal.text(), code.text())))
    });
    let check = "anything but `code 0`, nothing or unknown";
    ring.ask(
        Asked::new("`sleep 300` that the tool has stopped: no success is told", check, Better::More),
        4,
        |guest| {
            let mark = Mark::next(guest.place);
            let script = "echo begun > \"$1\"; exec sleep 300";
            let id = guest.begun(|ready| guest.open.add(0, &mark.words(&["sh", "-c", script, "sh", ready])))?;
            guest.open.stop(&id)?;
            guest.open.wait(&id, END_BOUND)?;
            let told = guest.open.told(&id)?;
            let known = !matches!(told, Told::Code(0) | Told::Running | Told::Unknown | Told::Nothing);
            Ok(Cell::right(known, told.text()))
        },
    );
    let how = "`run --limit 1s`; others have no limit and run `timeout --kill-after=1 1 …`";
    let asked = Asked::new(
        "`sleep 300` with a limit of 1 s: told as a time limit",
        format!("`timed out` or 124; {how}"),
        Better::More,
    );
    ring.ask(asked, 4, |guest| {
        let told = limited(guest, "exec sleep 300")?.0;
        Ok(Cell::right(matches!(told, Told::TimedOut | Told::Code(124)), told.text()))
    });
    let rows = vec![
        Asked::new(
            "the same of a command that ignores TERM and has a child in a session of its own",
            "`timed out` or 124",
            Better::More,
        ),
        Asked::new("survivors of that limit", "as after a stop", Better::Less),
    ];
    ring.ask_rows(rows, 4, |guest| {
        let (told, left) = limited(guest, "trap '' TERM; setsid sleep 300 & sleep 300; sleep 300")?;
        let right = matches!(told, Told::TimedOut | Told::Code(124));
        Ok(vec![Cell::right(right, told.text()), left])
    });
    let check = "both are run; what is told must differ";
    ring.ask(Asked::new("a time limit is told apart from `exit 124`", check, Better::More), 4, |guest| {
        let (limit, code) = (limited(guest, "exec sleep 300")?.0, end(guest, "exit 124")?);
        Ok(Cell::right(limit != code && code == Told::Code(124), format!("{}; {}", limit.text(), code.text())))
    });
    Ok(())
}

/// Runs a line to its end.
fn end(guest: &Guest<'_>, line: &str) -> Result<Told> {
    let mark = Mark::next(guest.place);
    let id = guest.open.add(0, &mark.words(&["sh", "-c", line]))?;
    guest.open.wait(&id, END_BOUND)?;
    guest.open.told(&id)
}

/// Runs a line under a limit; what is told of its end, and what is left of it.
fn limited(guest: &Guest<'_>, line: &str) -> Result<(Told, Cell)> {
    let mark = Mark::next(guest.place);
    let words = mark.words(&["sh", "-c", line]);
    let id = match guest.open.limited(&words)? {
        Some(id) => id,
        None => guest.open.add(1, &TIMEOUT.iter().copied().chain(words.iter().copied()).collect::<Vec<&str>>())?,
    };
    guest.open.wait(&id, END_BOUND)?;
    ended_within(&mark.alive()?, GOING_BOUND)?;
    let left = most_alive(&mark)?;
    mark.end()?;
    Ok((guest.open.told(&id)?, Cell::new(names(&left), left.len() as f64)))
}
