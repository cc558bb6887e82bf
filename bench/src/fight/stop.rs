//! What lives on when a tool has stopped a command and says that it is over.

use std::time::Duration;

use crate::Result;
use crate::fight::ring::{Asked, Guest, Ring};
use crate::fight::score::{Better, Cell};
use crate::processes::{Mark, Process, ended_within};

/// How long a tool may take until it says that the command is over.
const OVER_BOUND: Duration = Duration::from_secs(10);
/// How long what was killed may take to be gone.
const GOING_BOUND: Duration = Duration::from_secs(1);

/// How often is looked for what is left.
const LOOKS: usize = 20;

/// What is asked, and the script; `$1` is the FIFO by which it says that it has begun.
const SHAPES: [(&str, &str); 4] = [
    ("a child in the background", "sleep 300 & echo begun > \"$1\"; wait"),
    (
        "a child in a session of its own (`setsid`)",
        "setsid sh -c 'echo begun > \"$1\"; exec sleep 300' sh \"$1\" & wait",
    ),
    (
        "a daemon (fork, `setsid`, fork)",
        "setsid sh -c '(echo begun > \"$1\"; exec sleep 300) < /dev/null > /dev/null 2>&1 &' sh \"$1\" & wait; exec sleep 300",
    ),
    ("a command and a child that ignore TERM", "trap '' TERM; sleep 300 & echo begun > \"$1\"; wait"),
];

/// The storms: what is asked, and the way in which the stand-in rages.
const STORMS: [(&str, &str); 2] = [
    ("a fork storm in the command's group: eight lineages, a new process in each every 5 ms", "together"),
    ("the same storm, each process in a session of its own", "apart"),
];

const CHECK: &str = "living processes with the command's mark in their environment, in all of `/proc`, the most that one of \
    20 looks finds, after the tool's stop returned, the tool said that the command is over (10 s at most), and one second was \
    given to what was killed";

/// A row for each shape.
pub fn measure(ring: &mut Ring<'_>) -> Result<()> {
    for (what, script) in SHAPES {
        ring.ask(asked(what), 4, |guest| survivors(guest, &["sh", "-c", script, "sh"], &[]));
    }
    for (what, way) in STORMS {
        ring.ask(asked(what), 4, |guest| {
            let (program, halt) = (guest.place.stand_in(), guest.at("halt")?);
            let program = program.to_str().ok_or("the directory's name is not text")?;
            survivors(guest, &[program, "storm", way], &[&halt])
        });
    }
    Ok(())
}

fn asked(what: &str) -> Asked {
    Asked::new(format!("survivors of a stop: {what}"), CHECK, Better::Less)
}

/// Runs words with the FIFO and more words behind them, stops that, and counts.
fn survivors(guest: &Guest<'_>, words: &[&str], more: &[&str]) -> Result<Cell> {
    let mark = Mark::next(guest.place);
    let id = guest.begun(|ready| {
        let words: Vec<&str> = words.iter().copied().chain([ready]).chain(more.iter().copied()).collect();
        guest.open.add(0, &mark.words(&words))
    })?;
    let stopped = guest.open.stop(&id);
    let over = guest.open.wait(&id, OVER_BOUND)?;
    ended_within(&mark.alive()?, GOING_BOUND)?;
    let left = most_alive(&mark)?;
    std::fs::write(guest.halt(), "")?;
    mark.end()?;
    let mut text = names(&left);
    if stopped.is_err() {
        text.push_str("; the stop failed");
    }
    if !over {
        text.push_str("; not said to be over within 10 s");
    }
    Ok(Cell::new(text, left.len() as f64))
}

/// The most that one of many looks finds: a process that is just becoming another program shows no environment.
pub fn most_alive(mark: &Mark) -> Result<Vec<Process>> {
    let mut most = Vec::new();
    for _ in 0..LOOKS {
        let alive = mark.alive()?;
        if alive.len() > most.len() {
            most = alive;
        }
    }
    Ok(most)
}

/// `0`, or `2: sh, sleep`.
pub fn names(left: &[Process]) -> String {
    if left.is_empty() {
        return "0".to_owned();
    }
    let mut names: Vec<&str> = left.iter().map(|process| process.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    format!("{}: {}", left.len(), names.join(", "))
}
