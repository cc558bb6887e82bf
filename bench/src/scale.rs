//! What grows with what on one machine: every series at several sizes, kept as data, pictures and sentences.
//!
//! `bench/scale` calls this with `measure` or `plots` and words `key=value`. Each group is measured by a
//! process and in a directory of its own, so that its memory is its own, and nothing may be left behind before the next begins.

mod data;
mod fit;
mod plot;
mod charts;
mod page;
mod tools;
mod stand_in;
mod running;
mod ended;
mod stream;
mod waiters;
mod sessions;
mod day;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::peers::done;
use crate::place::Place;
use crate::settings::Settings;
use crate::{Result, say};
use data::Data;

/// Bytes that the largest series need on disk.
const SPACE: u64 = 4 << 30;

/// Threads of this process that have nothing to do stay, so that their end is not counted as a wake-up.
const KEEP_ALIVE: Duration = Duration::from_secs(3600);

/// Does what the words say.
pub fn act(words: &[&str]) -> Result<ExitCode> {
    match words {
        ["measure", words @ ..] => measure(&Settings::read(words, &charts::GROUPS.map(|(name, _, _)| name))?),
        ["group", group, dir, file, outlast, divisor] => {
            let mut data = Data { charts: charts::empty(), ..Data::default() };
            let place = Place::make(Path::new(dir), Path::new(outlast))?;
            let hidden = place.dir().display().to_string();
            for failed in [measure_in(group, &place, divisor.parse()?, &mut data), place.finish()] {
                if let Err(error) = failed {
                    data.failures.push(((*group).to_owned(), error.to_string().replace(&hidden, "…")));
                }
            }
            std::fs::write(file, data.text()?)?;
            Ok(ExitCode::SUCCESS)
        }
        ["plots", words @ ..] => plots(&Settings::read(words, &[])?),
        stand_in => stand_in::act(stand_in).map(|()| ExitCode::SUCCESS),
    }
}

/// Measures, prints and writes. Success means that everything could be measured and nothing was left behind.
fn measure(settings: &Settings) -> Result<ExitCode> {
    let dir = Path::new(settings.get("dir")?);
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut machine = Machine::look(&parent.canonicalize()?)?;
    let mut data = Data { charts: charts::empty(), ..Data::default() };
    let divisor: u64 = settings.number("divisor")?;
    for (group, _, _) in charts::GROUPS {
        if !settings.wants(group) {
            continue;
        }
        say(&format!("{group} …"));
        let began = Instant::now();
        let file = dir.join(format!("{group}.json"));
        std::fs::create_dir_all(dir)?;
        let mut child = Command::new(std::env::current_exe()?);
        child.args(["scale", "group", group]).args([&dir.join(group), &file]);
        done(child.arg(settings.get("outlast")?).arg(divisor.to_string()))?;
        data.take(Data::read(&std::fs::read_to_string(&file)?)?);
        std::fs::remove_file(file)?;
        say(&format!("{}took {} s", page::table(&data, group), began.elapsed().as_secs()));
    }
    if data.failures.is_empty() {
        std::fs::remove_dir(dir)?;
    }
    machine.look_again()?;
    let known = settings.facts().into_iter();
    data.facts = known.chain(machine.facts().map(|(key, value)| (key.to_owned(), value))).collect();
    data.busy = machine.was_busy();
    if settings.is_whole() && divisor == 1 {
        std::fs::write(Path::new(settings.get("docs")?).join("scaling.json"), data.text()?)?;
        plots(settings)?;
    }
    Ok(if data.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes page and pictures from the data file.
fn plots(settings: &Settings) -> Result<ExitCode> {
    let docs = Path::new(settings.get("docs")?);
    let data = Data::read(&std::fs::read_to_string(docs.join("scaling.json"))?)?;
    let pictures = docs.join("scaling");
    std::fs::create_dir_all(&pictures)?;
    for chart in data.charts.iter().filter(|chart| !chart.lines.is_empty()) {
        std::fs::write(pictures.join(format!("{}.svg", chart.name)), plot::svg(chart))?;
    }
    std::fs::write(docs.join("scaling.md"), page::markdown(&data))?;
    Ok(ExitCode::SUCCESS)
}

fn measure_in(group: &str, place: &Place, divisor: u64, data: &mut Data) -> Result<()> {
    place.check_space(SPACE / divisor, "set SCALE_DIVISOR higher")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_keep_alive(KEEP_ALIVE).build()?;
    let sizes = |all: &[u64]| {
        let mut sizes: Vec<u64> = all.iter().map(|size| size.div_ceil(divisor)).collect();
        sizes.dedup();
        sizes
    };
    let measured = runtime.block_on(async {
        match group {
            "running" => running::measure(place, &sizes(&[1, 10, 100, 300, 1000]), data).await,
            "ended" => ended::measure(place, &sizes(&[1000, 10_000, 100_000]), data).await,
            "stream" => stream::measure(place, &sizes(&[1, 10, 100]), data).await,
            "waiters" => waiters::measure(place, &sizes(&[1, 10, 100, 500]), data).await,
            "sessions" => sessions::measure(place, &sizes(&[1, 10, 50]), data).await,
            "day" => day::measure(place, &sizes(&[1, 10, 100]), data).await,
            _ => Err(format!("there is no group {group}").into()),
        }
    });
    let ended = runtime.block_on(place.end_sessions());
    measured.and(ended)
}
