//! The benchmark: measures outlast against the bare system calls and other tools, and writes what it found.
//!
//! `bench/run` builds everything and calls this with `measure` and words `key=value`, `bench/scale` with `scale`, `bench/peers`
//! with `fight`. The other verbs are stand-ins for commands and, with `own`, for an agent host, which the measurements start.
//!
//! Modules are listed in reading order; a module uses only those above it.
#![forbid(unsafe_code)]

mod settings;
mod samples;
mod stand_in;
mod machine;
mod place;
mod proc;
mod processes;
mod peers;
mod report;
mod page;
mod rows;
mod scale;
mod fight;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use machine::Machine;
use peers::{Kind, Peer};
use place::Place;
use report::Report;
use settings::Settings;

/// The result of everything here: what went wrong is only ever shown.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["measure", words @ ..] => Settings::read(words, &rows::GROUPS).and_then(|settings| measure(&settings)),
        ["scale", words @ ..] => scale::act(words),
        ["fight", settings @ ..] => fight::run(settings),
        ["own", state, outlast] => peers::own(Path::new(state), Path::new(outlast)).map(|()| ExitCode::SUCCESS),
        stand_in => stand_in::act(stand_in).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        say(&format!("outlast-bench: {error}"));
        ExitCode::FAILURE
    })
}

/// Measures, prints and writes. Success means that every row could be measured and nothing was left
/// behind, not that every bound was held.
fn measure(settings: &Settings) -> Result<ExitCode> {
    let place = Place::make(Path::new(settings.get("dir")?), Path::new(settings.get("outlast")?))?;
    let dir = place.dir().display().to_string();
    let measured = measure_in(settings, &place);
    let mut report = match measured {
        Ok(report) => report,
        Err(error) => {
            // What is left of a broken run is told beside the reason.
            place.finish().unwrap_or_else(|left| say(&format!("outlast-bench: {left}")));
            return Err(error);
        }
    };
    if let Err(left) = place.finish() {
        report.fail("the end", &*left);
    }
    report.machine.look_again()?;
    let page = page::Page { report: &report, keys: &settings.facts(), dir };
    say(&page.table());
    if settings.is_whole() {
        let docs = PathBuf::from(settings.get("docs")?);
        std::fs::write(docs.join("benchmarks.md"), page.markdown())?;
        std::fs::write(docs.join("benchmarks.json"), page.json())?;
    }
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure_in(settings: &Settings, place: &Place) -> Result<Report> {
    let mut report = Report::new(Machine::look(place.dir())?);
    let sizes = rows::Sizes {
        bytes: settings.number("gib")? << 30,
        running: settings.number("running")?,
        ended: settings.number("ended")?,
    };
    place.check_space(sizes.bytes, "set BENCH_GIB lower")?;
    let mut peers = Vec::new();
    for kind in Kind::OTHERS {
        let Some(program) = settings.find(kind.key()) else {
            report.absent.push(kind.name().to_owned());
            continue;
        };
        let version = settings.get(&format!("{}-version", kind.key()))?;
        report.versions.push((kind.name().to_owned(), version.to_owned()));
        peers.push(Peer { kind, program: PathBuf::from(program) });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for group in rows::GROUPS.into_iter().filter(|name| settings.wants(name)) {
        say(&format!("{group} …"));
        let done = runtime.block_on(rows::measure(group, place, &peers, &sizes, &mut report));
        if let Err(error) = done {
            report.fail(group, &*error);
        }
    }
    runtime.block_on(place.end_sessions())?;
    Ok(report)
}

/// The only printer.
#[expect(clippy::print_stdout, reason = "a benchmark tells what it does")]
fn say(text: &str) {
    println!("{text}");
}
