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

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, wait};

use crate::machine::Machine;
use crate::peers::{Kind, Peer};
use crate::place::Place;
use crate::settings::Settings;
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
    let settings = Settings::read(words, &GROUPS.map(|group| group.name))?;
    let count = |key: &str| Ok::<_, Box<dyn Error + Send + Sync>>(usize::try_from(settings.number(key)?)?);
    let sizes = Sizes { few: count("few")?, many: count("many")?, mib: settings.number("mib")? };
    let place = Place::make(Path::new(settings.get("dir")?), Path::new(settings.get("outlast")?))?;
    place.check_space(sizes.mib << 21, "set PEERS_MIB lower")?;
    let mut machine = Machine::look(place.dir())?;
    let peers = peers(&settings, &place);
    let mut ring = Ring::new(&place, &peers, sizes);
    for group in GROUPS.iter().filter(|group| settings.wants(group.name)) {
        ring.begin(group.name, group.title);
        if let Err(error) = (group.measure)(&mut ring) {
            ring.fail(group.name, &error.to_string());
        }
    }
    let mut outcome = ring.finish();
    let dir = place.dir().display().to_string();
    if let Err(left) = place.finish() {
        outcome.failures.push(("the end of the run".to_owned(), left.to_string()));
    }
    machine.look_again()?;
    let page = page::Page { outcome: &outcome, peers: &peers, machine: &machine, settings: &settings, dir: &dir };
    say(&page.terminal());
    if settings.is_whole() {
        let docs = PathBuf::from(settings.get("docs")?);
        std::fs::write(docs.join("comparison.md"), page.markdown())?;
        std::fs::write(docs.join("comparison.json"), page.json())?;
    }
    Ok(if outcome.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tools that are here.
fn peers(settings: &Settings, place: &Place) -> Vec<Peer> {
    let program = |kind: Kind| match kind {
        Kind::Outlast => Some(place.outlast()),
        Kind::Shell => Some(PathBuf::from("/bin/sh")),
        kind => settings.find(kind.key()).map(PathBuf::from),
    };
    Kind::ALL.into_iter().filter_map(|kind| Some(Peer { kind, program: program(kind)? })).collect()
}
