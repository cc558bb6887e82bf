//! The benchmark: measures outlast against the bare system calls and other tools, and writes what it found.
//!
//! `bench/run` builds everything and calls this with `measure` and words `key=value`, `bench/scale` with `scale`. The other
//! verbs are stand-ins for commands, which the measurements start.
//!
//! Modules are listed in reading order; a module uses only those above it.
#![forbid(unsafe_code)]

mod samples;
mod stand_in;
mod machine;
mod place;
mod proc;
mod peers;
mod report;
mod page;
mod rows;
mod scale;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use machine::Machine;
use peers::{Kind, Peer};
use place::Place;
use report::Report;

/// The result of everything here: what went wrong is only ever shown.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["measure", settings @ ..] => Settings::read(settings).and_then(|settings| settings.measure()),
        ["scale", words @ ..] => scale::act(words),
        stand_in => stand_in::act(stand_in).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        say(&format!("outlast-bench: {error}"));
        ExitCode::FAILURE
    })
}

/// What the script says.
struct Settings {
    keys: BTreeMap<String, String>,
    /// The groups of rows to measure; none means all, and that the page is written.
    groups: Vec<String>,
}

impl Settings {
    fn read(words: &[&str]) -> Result<Settings> {
        let mut settings = Settings { keys: BTreeMap::new(), groups: Vec::new() };
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => {
                    settings.keys.insert(key.to_owned(), value.to_owned());
                }
                None if rows::GROUPS.contains(word) => settings.groups.push((*word).to_owned()),
                None => return Err(format!("no group {word}; there are {}", rows::GROUPS.join(", ")).into()),
            }
        }
        Ok(settings)
    }

    fn get(&self, key: &str) -> Result<&str> {
        self.keys.get(key).map(String::as_str).ok_or_else(|| format!("{key}=… is missing").into())
    }

    fn number(&self, key: &str) -> Result<u64> {
        let text = self.get(key)?;
        text.parse().map_err(|_| format!("{key}={text} is not a number").into())
    }

    /// Measures, prints and writes. Success means that every row could be measured and nothing was left
    /// behind, not that every bound was held.
    fn measure(&self) -> Result<ExitCode> {
        let place = Place::make(Path::new(self.get("dir")?), Path::new(self.get("outlast")?))?;
        let dir = place.dir().display().to_string();
        let measured = self.measure_in(&place);
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
        let keys = ["date", "rustc", "commit"].map(|key| (key.to_owned(), self.keys.get(key).cloned()));
        let page = page::Page { report: &report, keys: &keys, dir };
        say(&page.table());
        if self.groups.is_empty() {
            let docs = PathBuf::from(self.get("docs")?);
            std::fs::write(docs.join("benchmarks.md"), page.markdown())?;
            std::fs::write(docs.join("benchmarks.json"), page.json())?;
        }
        Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn measure_in(&self, place: &Place) -> Result<Report> {
        let mut report = Report::new(Machine::look(place.dir())?);
        let sizes = rows::Sizes {
            bytes: self.number("gib")? << 30,
            running: self.number("running")?,
            ended: self.number("ended")?,
        };
        place.check_space(sizes.bytes)?;
        let mut peers = Vec::new();
        for kind in Kind::ALL {
            let Some(program) = self.keys.get(kind.key()).filter(|path| !path.is_empty()) else {
                report.absent.push(kind.name().to_owned());
                continue;
            };
            let version = self.get(&format!("{}-version", kind.key()))?;
            report.versions.push((kind.name().to_owned(), version.to_owned()));
            peers.push(Peer { kind, program: PathBuf::from(program), home: place.dir().join(kind.key()) });
        }
        let groups =
            rows::GROUPS.into_iter().filter(|name| self.groups.is_empty() || self.groups.iter().any(|one| one == name));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        for group in groups {
            say(&format!("{group} …"));
            let done = runtime.block_on(rows::measure(group, place, &peers, &sizes, &mut report));
            if let Err(error) = done {
                report.fail(group, &*error);
            }
        }
        runtime.block_on(place.end_sessions())?;
        Ok(report)
    }
}

/// The only printer.
#[expect(clippy::print_stdout, reason = "a benchmark tells what it does")]
fn say(text: &str) {
    println!("{text}");
}
