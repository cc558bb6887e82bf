//! What becomes of a command whose manager is killed, and what is told of its end afterwards.

use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::Result;
use crate::fight::ring::{Asked, Guest, Ring};
use crate::fight::score::{Better, Cell};
use crate::peers::Told;
use crate::processes::{Mark, Process, ended_within, with_executable};

/// The code of the command where it comes to its own end.
const CODE: i32 = 7;
/// How long a command may take to end that is ended because of the kill.
const FATE_BOUND: Duration = Duration::from_secs(3);
/// How long the tool may take until it tells the end.
const TELL_BOUND: Duration = Duration::from_secs(5);

/// Says its number, waits for a word, and ends with the code.
const SCRIPT: &str = "echo begun > \"$1\"; read word < \"$2\"; exit 7";

const CHECK: &str = "KILL by pidfd; the command is then watched for 3 s. If it lives it is let go and exits with 7, which must \
    be told; if not, it must be told that it was killed. A daemon that does not come back by itself is started again \
    before it is asked, within 5 s. Best to worst: it went on and its true end is told; it was ended and that is told; it is \
    told that it is over and that nobody knows how; no end is told; a false end is told. The owner of outlast's session, which \
    stands for an agent host, is a process of its own and is killed in the last row only";

/// Who is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// The call that runs the command in the foreground.
    Call,
    /// The process that started the command.
    Parent,
    /// The other processes of the tool, without the owner of outlast's session.
    Others,
    /// All processes of the tool at once.
    All,
}

/// A row for each.
pub fn measure(ring: &mut Ring<'_>) -> Result<()> {
    let rows = [
        ("the foreground call that runs it", Victim::Call),
        ("the process that started it (supervisor, daemon, runner, wrapper)", Victim::Parent),
        ("what stands behind that one (keeper, server)", Victim::Others),
        ("all of these and the session's owner at once", Victim::All),
    ];
    for (what, victim) in rows {
        let asked = Asked::new(format!("the end of a command after KILL to {what}"), CHECK, Better::More);
        ring.ask(asked, 4, |guest| after(guest, victim));
    }
    Ok(())
}

fn after(guest: &Guest<'_>, victim: Victim) -> Result<Cell> {
    let mark = Mark::next(guest.place);
    let go = guest.at("go")?;
    mknodat(CWD, &go, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let mut called = None;
    let id = guest.begun(|ready| {
        let words = mark.words(&["sh", "-c", SCRIPT, "sh", ready, &go]);
        if victim != Victim::Call {
            return guest.open.add(0, &words).map(Some);
        }
        called = match guest.open.call(&words) {
            Some(mut call) => Some(call.stdout(Stdio::null()).spawn()?),
            // Nothing begins then, so the FIFO is told here.
            None => return Ok(std::fs::write(ready, "none").map(|()| None)?),
        };
        Ok(None)
    })?;
    let command = mark.alive()?;
    if let Some(call) = &mut called {
        guest.hurt();
        call.kill()?;
        call.wait()?;
    } else if victim == Victim::Call {
        return Ok(Cell::none("has no such call"));
    } else {
        let victims = victims(guest, victim, &command)?;
        if victims.is_empty() {
            return Ok(Cell::none("has no such process"));
        }
        guest.kill(&victims)?;
    }
    let ended = ended_within(&command, FATE_BOUND)?;
    if !ended {
        let_go(&go)?;
        if !ended_within(&command, FATE_BOUND)? {
            return Err("the command does not end when it is let go".into());
        }
    }
    guest.open.revive()?;
    let id = match id {
        Some(id) => Some(id),
        None => guest.open.newest()?,
    };
    let told = match id {
        Some(id) => {
            guest.open.wait(&id, TELL_BOUND)?;
            guest.open.told(&id)?
        }
        None => Told::Nothing,
    };
    Ok(judged(ended, told))
}

/// The processes to kill.
fn victims(guest: &Guest<'_>, victim: Victim, command: &[Process]) -> Result<Vec<Process>> {
    let parent = command.first().ok_or("the command is not running")?.parent;
    let (parents, others): (Vec<Process>, Vec<Process>) =
        guest.managers()?.into_iter().partition(|process| process.pid == parent);
    Ok(match victim {
        Victim::Call => Vec::new(),
        Victim::Parent => parents,
        Victim::Others => {
            let owners = with_executable(&guest.place.stand_in())?;
            others.into_iter().filter(|process| !owners.contains(process)).collect()
        }
        Victim::All => others.into_iter().chain(parents).collect(),
    })
}

/// Writes the word that the command waits for.
fn let_go(go: &str) -> Result<()> {
    let fifo = rustix::fs::open(go, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty())?;
    rustix::io::write(&fifo, b"go\n")?;
    Ok(())
}

fn judged(ended: bool, told: Told) -> Cell {
    let fate = if ended { "it is ended" } else { "it goes on" };
    let right = match told {
        Told::Code(code) if ended => code > 128,
        Told::Code(code) => code == CODE,
        Told::Signal(_) | Told::Killed => ended,
        Told::TimedOut | Told::Unknown | Told::Running | Told::Nothing => false,
    };
    let (score, word) = match told {
        Told::Running | Told::Nothing => (1.0, ""),
        Told::Unknown => (2.0, ""),
        _ if !right => (0.0, ", **false**"),
        _ if ended => (3.0, ", true"),
        _ => (4.0, ", true"),
    };
    Cell::new(format!("{fate}; told: {}{word}", told.text()), score)
}
