//! A command that ends while its child holds its output open.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::Result;
use crate::fight::ring::{Asked, Guest, Ring};
use crate::fight::score::{Better, Cell};
use crate::peers::{Told, read_to_end};
use crate::processes::Mark;
use crate::samples::ms;

/// How long the end may take to be known.
const BOUND: Duration = Duration::from_secs(5);
const WORDS: [&str; 3] = ["sh", "-c", "sleep 300 & echo done"];

/// In the background, and in a call.
pub fn measure(ring: &mut Ring<'_>) -> Result<()> {
    let check = "the tool's wait returned within 5 s, and code 0 is told";
    let asked = Asked::new("`sleep 300 & echo done` in the background: its end is known", check, Better::More);
    ring.ask(asked, 4, |guest| {
        let mark = Mark::next(guest.place);
        let began = Instant::now();
        let id = guest.open.add(0, &mark.words(&WORDS))?;
        let over = guest.open.wait(&id, BOUND)?;
        let took = began.elapsed();
        let told = guest.open.told(&id)?;
        let text = match (over, told) {
            (true, Told::Code(0)) => format!("after {}", milliseconds(took)),
            (true, told) => format!("after {}, told: {}", milliseconds(took), told.text()),
            (false, told) => format!("the wait does not return in 5 s; told: {}", told.text()),
        };
        Ok(Cell::right(over && told == Told::Code(0), text))
    });
    let check = "`done` was read, and the end of the output came within 5 s";
    let asked = Asked::new("the same in a call whose output is read to its end", check, Better::More);
    ring.ask(asked, 4, called);
    Ok(())
}

fn called(guest: &Guest<'_>) -> Result<Cell> {
    let mark = Mark::next(guest.place);
    let Some(mut call) = guest.open.call(&mark.words(&WORDS)) else { return Ok(Cell::none("has no such call")) };
    let began = Instant::now();
    let mut child = call.stdout(Stdio::piped()).spawn()?;
    let printed = read_to_end(&mut child, began + BOUND)?;
    let took = began.elapsed();
    if printed.is_none() {
        guest.hurt();
    }
    child.kill()?;
    child.wait()?;
    Ok(match printed {
        Some(text) if text == b"done\n" => Cell::right(true, format!("after {}", milliseconds(took))),
        Some(text) => Cell::right(false, format!("{} bytes were read", text.len())),
        None => Cell::right(false, "the call does not return in 5 s"),
    })
}

fn milliseconds(took: Duration) -> String {
    ms(took.as_secs_f64() * 1e3)
}
