//! How long a command takes a caller, and how many commands a second go through.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Result;
use crate::fight::ring::{Asked, Guest, Ring};
use crate::fight::score::{Better, Cell};
use crate::peers::{Kind, Open, within};
use crate::samples::{Samples, number};

/// Blocks of rounds of one command; the first rounds of a block are for nothing.
const BLOCKS: usize = 5;
const ROUNDS: usize = 20;
const WARM: usize = 2;
/// Rounds with a daemon that looks for ends every 300 ms.
const PATIENT_ROUNDS: usize = 3;
/// How long one command may take.
const END_BOUND: Duration = Duration::from_secs(30);
/// Callers that work at once, and commands that run at once.
const CALLERS: usize = 8;
/// After this no command is added any more, and those that went through are counted.
const MANY_BOUND: Duration = Duration::from_secs(40);

/// One at a time, then many.
pub fn measure(ring: &mut Ring<'_>) -> Result<()> {
    let check = "median of 100 rounds of `true` (15 with pueue) in five turns, with the tenth and ninetieth percentile, from \
        the call to the known end";
    let asked = Asked::new("`true` by the quickest way to its end, ms", check, Better::Lower);
    let names = "quickest way";
    one(ring, asked, names, |guest| match guest.open.call(&["true"]) {
        Some(mut call) => Ok(within(&mut call, END_BOUND)?.ok_or("the call does not return")?.success()),
        None => added(guest, 0),
    });
    let asked = Asked::new("`true` put into the background, then waited for by its id, ms", check, Better::Lower);
    one(ring, asked, "background", |guest| added(guest, 0));
    for count in [ring.sizes.few, ring.sizes.many] {
        let check = "8 callers, 8 commands at once, until the last end is known; at most 40 s. A tool with a queue is given \
            all and waited for, with others each caller waits for its command before the next one";
        let what = format!("{count} times `true` in the background, every end known and kept, commands a second");
        ring.ask(Asked::new(what, check, Better::Higher), CALLERS, |guest| many(guest, count, false));
        let check = "8 callers, each waiting for one call after the other";
        let what = format!("{count} times `true` in calls, commands a second");
        ring.ask(Asked::new(what, check, Better::Higher), CALLERS, |guest| many(guest, count, true));
    }
    Ok(())
}

/// Rounds of one thing, the tools in turns, block by block, so that what else the machine does meets all of them.
fn one(ring: &mut Ring<'_>, asked: Asked, name: &str, act: impl Fn(&Guest<'_>) -> Result<bool>) {
    let mut taken: BTreeMap<Kind, Samples> = BTreeMap::new();
    let mut failed = BTreeMap::new();
    for _ in 0..BLOCKS {
        for peer in ring.peers {
            let rounds = if peer.kind == Kind::Pueue { PATIENT_ROUNDS } else { ROUNDS };
            let samples = taken.entry(peer.kind).or_default();
            let block = ring.with(peer, 1, name, |guest| {
                for round in 0..WARM + rounds {
                    let began = Instant::now();
                    if !act(guest)? {
                        return Err("`true` did not end with 0".into());
                    }
                    if round >= WARM {
                        samples.push(began.elapsed());
                    }
                }
                Ok(())
            });
            if let Err(error) = block {
                failed.insert(peer.kind, error.to_string());
            }
        }
    }
    let mut cells = BTreeMap::new();
    for (kind, samples) in taken {
        if let Some(why) = failed.get(&kind) {
            ring.fail(&format!("{}: {name}", kind.name()), why);
            cells.insert(kind, Cell::none("failed"));
        } else {
            cells.insert(kind, Cell::new(samples.text(), samples.median()));
            ring.keep(format!("{}: {name}", kind.name()), samples);
        }
    }
    ring.row(asked, cells);
}

/// Adds `true` and waits for it.
fn added(guest: &Guest<'_>, lane: usize) -> Result<bool> {
    let id = guest.open.add(lane, &["true"])?;
    guest.open.wait(&id, END_BOUND)
}

/// Many callers at once; how many commands a second.
fn many(guest: &Guest<'_>, count: usize, calls: bool) -> Result<Cell> {
    if calls && guest.open.call(&["true"]).is_none() {
        return Ok(Cell::none("has no such call"));
    }
    let began = Instant::now();
    let next = AtomicUsize::new(0);
    let open = &*guest.open;
    let went_through = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|lane| {
                let next = &next;
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    while next.fetch_add(1, Ordering::Relaxed) < count && began.elapsed() < MANY_BOUND {
                        ids.push(through(open, lane, calls)?);
                    }
                    Result::Ok(ids)
                })
            })
            .collect();
        let mut ids = Vec::new();
        for caller in callers {
            ids.extend(caller.join().map_err(|_| "a caller panicked")??);
        }
        Result::Ok(ids)
    })?;
    let ended = if calls || !queues(open.kind()) { went_through.len() } else { drained(open, &went_through, began)? };
    let took = began.elapsed();
    let rate = ended as f64 / took.as_secs_f64();
    let mut text = number(rate);
    if ended < count {
        text.push_str(&format!(" ({ended} in {} s)", number(took.as_secs_f64())));
    }
    Ok(Cell::new(text, rate))
}

/// Whether a tool bounds by itself how many commands run at once.
fn queues(kind: Kind) -> bool {
    matches!(kind, Kind::Pueue | Kind::TaskSpooler | Kind::Nq)
}

/// One command of one caller.
fn through(open: &dyn Open, lane: usize, calls: bool) -> Result<String> {
    if calls {
        let mut call = open.call(&["true"]).ok_or("the tool has no call")?;
        let status = within(&mut call, END_BOUND)?.ok_or("a call does not return")?;
        return if status.success() { Ok(String::new()) } else { Err(format!("a call ended as {status}").into()) };
    }
    let id = open.add(lane, &["true"])?;
    if !queues(open.kind()) && !open.wait(&id, END_BOUND)? {
        return Err(format!("{id} does not end").into());
    }
    Ok(id)
}

/// Waits until all have ended, or the time is up; how many have. The queue starts them in order, so few of them have to be
/// waited for by themselves.
fn drained(open: &dyn Open, ids: &[String], began: Instant) -> Result<usize> {
    let mut waited = ids.last();
    loop {
        let rest = MANY_BOUND.saturating_sub(began.elapsed());
        if let Some(id) = waited {
            open.wait(id, rest)?;
        }
        let ended: BTreeSet<String> = open.ask("benchmark")?.into_iter().map(|(id, _)| id).collect();
        waited = ids.iter().find(|id| !ended.contains(*id));
        if waited.is_none() || began.elapsed() > MANY_BOUND {
            return Ok(ended.len());
        }
    }
}
