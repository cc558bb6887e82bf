//! The comparison: the same commands for outlast, for other tools and for the shell, on one machine in one run.
//!
//! `bench/peers` calls it. Every cell is decided by a check on real processes and files, never by what is known of a tool.

mod score;
mod ring;
mod stop;
mod killed;
mod held;
mod told;
mod logs;
mod ends;
mod speed;
mod memory;
mod page;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, wait};

use crate::machine::Machine;
use crate::peers::{Kind, Peer};
use crate::place::Place;
use crate::{Result, say};
use ring::Ring;

/// A group of rows.
struct Group {
    /// Its name for the command line.
    name: &'static str,
    /// What stands above its table.
    title: &'static str,
    /// Measures it.
    measure: fn(&mut Ring<'_>) -> Result<()>,
}

/// The groups in the order in which they are measured.
const GROUPS: [Group; 8] = [
    Group { name: "stop", title: "What is left after a stop", measure: stop::measure },
    Group { name: "killed", title: "After KILL to what manages the command", measure: killed::measure },
    Group { name: "held", title: "A pipe that a child holds open", measure: held::measure },
    Group { name: "told", title: "Ends that are told", measure: told::measure },
    Group { name: "logs", title: "Output", measure: logs::measure },
    Group { name: "ends", title: "How a command ended", measure: ends::measure },
    Group { name: "speed", title: "Time", measure: speed::measure },
    Group { name: "memory", title: "Memory", measure: memory::measure },
];

/// How much of everything.
struct Sizes {
    /// Commands of the smaller count.
    few: usize,
    /// Commands of the larger one.
    many: usize,
    /// MiB of the log that is compared byte for byte.
    mib: u64,
}

/// Runs what the script asks for. The work is done in a child of this process, which reaps whatever loses its parent
/// meanwhile, because the first process of a container may not.
pub fn run(words: &[&str]) -> Result<ExitCode> {
    if let ["inside", settings @ ..] = words {
        return inside(settings);
    }
    set_child_subreaper(Some(getpid()))?;
    let child = Command::new(std::env::current_exe()?).args(["fight", "inside"]).args(words).spawn()?;
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("a child has no pid")?;
    loop {
        let Some((pid, status)) = wait(WaitOptions::empty())? else { continue };
        if pid == child {
            return Ok(if status.exit_status() == Some(0) { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
}

fn inside(words: &[&str]) -> Result<ExitCode> {
    let mut keys = BTreeMap::new();
    let mut names = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((key, value)) => drop(keys.insert(key, value)),
            None if GROUPS.iter().any(|group| group.name == *word) => names.push(*word),
            None => {
                let all: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
                return Err(format!("no group {word}; there are {}", all.join(", ")).into());
            }
        }
    }
    let get = |key: &str| keys.get(key).copied().ok_or_else(|| format!("{key}=… is missing"));
    let sizes = Sizes { few: get("few")?.parse()?, many: get("many")?.parse()?, mib: get("mib")?.parse()? };
    let place = Place::make(Path::new(get("dir")?), Path::new(get("outlast")?))?;
    place.check_space(sizes.mib << 21)?;
    let mut machine = Machine::look(place.dir())?;
    let peers = peers(&keys, &place);
    let mut ring = Ring::new(&place, &peers, sizes);
    for group in GROUPS.iter().filter(|group| names.is_empty() || names.contains(&group.name)) {
        ring.begin(group.name, group.title);
        if let Err(error) = (group.measure)(&mut ring) {
            ring.fail(group.name, &error.to_string());
        }
    }
    let outcome = ring.finish();
    let dir = place.dir().display().to_string();
    let left = place.finish().err();
    machine.look_again()?;
    let page = page::Page { outcome: &outcome, peers: &peers, machine: &machine, keys: &keys, dir: &dir };
    say(&page.terminal());
    if names.is_empty() {
        let docs = PathBuf::from(get("docs")?);
        std::fs::write(docs.join("comparison.md"), page.markdown())?;
        std::fs::write(docs.join("comparison.json"), page.json())?;
    }
    if let Some(left) = &left {
        say(&format!("outlast-bench: {left}"));
    }
    Ok(if left.is_none() && outcome.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tools that are here.
fn peers(keys: &BTreeMap<&str, &str>, place: &Place) -> Vec<Peer> {
    let program = |kind: Kind| match kind {
        Kind::Outlast => Some(place.outlast()),
        Kind::Shell => Some(PathBuf::from("/bin/sh")),
        kind => keys.get(kind.key()).map(PathBuf::from),
    };
    Kind::ALL.into_iter().filter_map(|kind| Some(Peer { kind, program: program(kind)? })).collect()
}
