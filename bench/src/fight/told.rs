//! Ends that nobody waited for: who hears of them, and how often.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Result;
use crate::fight::ring::{Asked, Guest, Ring};
use crate::fight::score::{Better, Cell};
use crate::peers::Told;
use crate::processes::Mark;

/// Commands that end.
const COUNT: i32 = 20;
/// How long the end of one of them may take.
const END_BOUND: Duration = Duration::from_secs(30);

const CHECK: &str = "20 commands that exit with 0 to 6; an end counts if its id and its code are told";

/// One run for what is told how often, one for what a killed manager loses.
pub fn measure(ring: &mut Ring<'_>) -> Result<()> {
    let rows = vec![
        Asked::new("of 20 ends that nobody saw, told to a consumer who asks afterwards", CHECK, Better::More),
        Asked::new("of these, told again when it asks once more", "the same question again", Better::Less),
        Asked::new("of these, told to a second consumer who asks after that", CHECK, Better::More),
        Asked::new(
            "of these, told again to the first after the caller cleared away what it was told",
            "the same, after what the tool has for that: nothing is needed with outlast, `remove`, `-r`, or removed files",
            Better::Less,
        ),
    ];
    ring.ask_rows(rows, 4, often);
    let check = "all processes of the tool, with outlast the owner of the session too, are killed after the last end, and what does not come back by itself is started again";
    let asked =
        Asked::new("of 20 ends, told to who asks after KILL to all of the tool's processes", check, Better::More);
    ring.ask(asked, 4, |guest| {
        let codes = ended(guest)?;
        guest.kill(&guest.managers()?)?;
        guest.open.revive()?;
        Ok(Cell::count(right(&codes, &guest.open.ask("model")?)))
    });
    Ok(())
}

fn often(guest: &Guest<'_>) -> Result<Vec<Cell>> {
    let codes = ended(guest)?;
    let first = guest.open.ask("model")?;
    let again = guest.open.ask("model")?;
    // Before anything is cleared away: what some tools clear is gone for everybody.
    let second = guest.open.ask("hook")?;
    let ids: Vec<String> = first.iter().map(|(id, _)| id.clone()).collect();
    guest.open.clear(&ids)?;
    let cleared = guest.open.ask("model")?;
    Ok([&first, &again, &second, &cleared].map(|told| Cell::count(right(&codes, told))).into())
}

/// Starts the commands and returns the code of each id once all have ended.
fn ended(guest: &Guest<'_>) -> Result<BTreeMap<String, i32>> {
    let mark = Mark::next(guest.place);
    let mut codes = BTreeMap::new();
    for number in 0..COUNT {
        let code = number % 7;
        let line = format!("exit {code}");
        codes.insert(guest.open.add(0, &mark.words(&["sh", "-c", &line]))?, code);
    }
    for id in codes.keys() {
        if !guest.open.wait(id, END_BOUND)? {
            return Err(format!("{id} does not end").into());
        }
    }
    Ok(codes)
}

fn right(codes: &BTreeMap<String, i32>, told: &[(String, Told)]) -> usize {
    told.iter().filter(|(id, told)| codes.get(id).is_some_and(|code| *told == Told::Code(*code))).count()
}
