//! What is kept of the output.

use std::time::Duration;

use crate::Result;
use crate::fight::ring::{Asked, Guest, Ring};
use crate::fight::score::{Better, Cell};
use crate::processes::Mark;
use crate::stand_in::Random;

/// How long a command that prints may take.
const END_BOUND: Duration = Duration::from_secs(120);
/// Lines that go to the two streams in turns.
const LINES: u64 = 10_000;
/// Lines of the command that is stopped.
const STOPPED_LINES: u64 = 1000;

const EQUAL: &str = "the bytes are compared with what was printed";

/// Bytes first, then order and ends, then what a flood leaves.
pub fn measure(ring: &mut Ring<'_>) -> Result<()> {
    let bytes = ring.sizes.mib << 20;
    let what = format!("{} MiB of bytes that look random are in the log", ring.sizes.mib);
    ring.ask(Asked::new(what, EQUAL, Better::More), 4, |guest| {
        let id = printed(guest, &["random", &bytes.to_string()])?;
        let all = Random::default().bytes(usize::try_from(bytes)?);
        Ok(same(&guest.open.output(&id)?, &all))
    });
    let asked = Asked::new(
        "10,000 lines to standard output and standard error in turns are in their order",
        EQUAL,
        Better::More,
    );
    ring.ask(asked, 4, |guest| {
        let id = printed(guest, &["both", &LINES.to_string()])?;
        Ok(same(&guest.open.output(&id)?, &numbers(LINES)))
    });
    let asked = Asked::new("last bytes without a newline are told as they are", EQUAL, Better::More);
    ring.ask(asked, 4, |guest| {
        let mark = Mark::next(guest.place);
        let id = guest.open.add(0, &mark.words(&["printf", "one\\ntwo"]))?;
        guest.open.wait(&id, END_BOUND)?;
        Ok(same(&guest.open.output(&id)?, b"one\ntwo"))
    });
    let asked = Asked::new("what a command printed before it was stopped is kept", EQUAL, Better::More);
    ring.ask(asked, 4, |guest| {
        let mark = Mark::next(guest.place);
        let (program, lines) = (guest.place.stand_in(), STOPPED_LINES.to_string());
        let program = program.to_str().ok_or("the directory's name is not text")?;
        let script = "\"$1\" both \"$2\"; echo begun > \"$3\"; exec sleep 300";
        let id =
            guest.begun(|ready| guest.open.add(0, &mark.words(&["sh", "-c", script, "sh", program, &lines, ready])))?;
        guest.open.stop(&id)?;
        guest.open.wait(&id, END_BOUND)?;
        Ok(same(&guest.open.output(&id)?, &numbers(STOPPED_LINES)))
    });
    flood(ring);
    Ok(())
}

/// Twice as much as outlast keeps unless it is told to keep more.
fn flood(ring: &mut Ring<'_>) {
    let mib = ring.sizes.mib * 2;
    let rows = vec![
        Asked::new(
            format!("of {mib} MiB of output, MiB that are kept by default"),
            "length of the output that can be read after the end; outlast keeps 64 MiB of a command unless told, others have no bound",
            Better::More,
        ),
        Asked::new(
            format!("MiB on disk after {mib} MiB of output, by default"),
            "blocks of the log's file; not scored, as less on disk is less of the output kept",
            Better::Less,
        ),
    ];
    ring.ask_rows(rows, 4, |guest| {
        let id = printed(guest, &["flood", &(mib << 20).to_string()])?;
        let (kept, stored) = (guest.open.output(&id)?.len() as u64, guest.open.stored(&id)?);
        let [kept, stored] = [kept, stored].map(|bytes| bytes >> 20);
        Ok(vec![Cell::new(kept.to_string(), kept as f64), Cell::none(stored.to_string())])
    });
}

/// Runs a stand-in to its end in the background.
fn printed(guest: &Guest<'_>, words: &[&str]) -> Result<String> {
    let mark = Mark::next(guest.place);
    let program = guest.place.stand_in();
    let program = program.to_str().ok_or("the directory's name is not text")?;
    let words: Vec<&str> = [program].into_iter().chain(words.iter().copied()).collect();
    let id = guest.open.add(0, &mark.words(&words))?;
    if guest.open.wait(&id, END_BOUND)? { Ok(id) } else { Err("the command does not end".into()) }
}

fn numbers(count: u64) -> Vec<u8> {
    (0..count).map(|number| format!("{number}\n")).collect::<String>().into_bytes()
}

fn same(kept: &[u8], printed: &[u8]) -> Cell {
    if kept == printed {
        return Cell::right(true, "equal");
    }
    let at = kept.iter().zip(printed).position(|(a, b)| a != b).unwrap_or(kept.len().min(printed.len()));
    Cell::right(false, format!("{} of {} bytes, differs at {at}", kept.len(), printed.len()))
}
