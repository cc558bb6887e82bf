//! The torture: a storm of kills, stops and faults over outlast, drawn from a seed, and a model that knows what must be
//! true afterwards.
//!
//! `cargo run -p outlast-torture -- [--seed N] [--seconds S | --rounds N] [--only ROUND] [--move-clock] [--report FILE]`
//!
//! `--report FILE` writes a page, or adds to it what a run as another user has found.
//!
//! Modules are listed in reading order; a module uses only those above it. The first fault ends the run with its seed,
//! its round and what was done, and keeps its world for a look.
#![forbid(unsafe_code)]

mod pace;
mod dice;
mod shapes;
mod plan;
mod story;
mod tally;
mod disk;
mod victims;
mod faults;
mod watch;
mod calls;
mod storm;
mod model;
mod tellings;
mod judge;
mod round;
mod standing;
mod report;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, UNIX_EPOCH};

use faults::Means;
use report::Report;
use standing::Standing;
use tally::Tally;

/// How long a run takes that does not say.
const USUAL: Duration = Duration::from_secs(30);

/// The word behind which a run says that it has file systems of its own already.
const INSIDE: &str = "--inside";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Settings::read(&words) {
        Ok(settings) => settings.run(&words),
        Err(error) => {
            say(&format!("outlast-torture: {error}"));
            ExitCode::from(2)
        }
    }
}

/// What the caller wants.
struct Settings {
    seed: u64,
    seconds: Duration,
    rounds: Option<u64>,
    only: Option<u64>,
    report: Option<String>,
    inside: bool,
    move_clock: bool,
}

impl Settings {
    fn read(words: &[String]) -> Result<Settings, String> {
        let by_chance = UNIX_EPOCH.elapsed().map_or(1, |time| u64::from(time.subsec_nanos()));
        let mut settings = Settings {
            seed: by_chance,
            seconds: USUAL,
            rounds: None,
            only: None,
            report: None,
            inside: false,
            move_clock: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                INSIDE => settings.inside = true,
                "--move-clock" => settings.move_clock = true,
                _ => settings.read_value(word, words.next())?,
            }
        }
        Ok(settings)
    }

    fn read_value(&mut self, word: &str, value: Option<&String>) -> Result<(), String> {
        let value = value.ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word}: {value} is no number"));
        match word {
            "--seed" => self.seed = number()?,
            "--seconds" => self.seconds = Duration::from_secs(number()?),
            "--rounds" => self.rounds = Some(number()?),
            "--only" => self.only = Some(number()?),
            "--report" => self.report = Some(value.clone()),
            _ => return Err(format!("no option {word}; see the first lines of torture/src/main.rs")),
        }
        Ok(())
    }

    /// Plays all rounds, in a namespace in which file systems can be mounted if there may be one.
    fn run(&self, words: &[String]) -> ExitCode {
        let mounts = faults::namespace();
        if let (Ok(call), false, Ok(me)) = (&mounts, self.inside, std::env::current_exe()) {
            // The seed goes along, so that what was drawn by chance is said once.
            let seed = ["--seed".to_owned(), self.seed.to_string()];
            let error = Command::new(call[0]).args(&call[1..]).arg(me).args(words).args(seed).arg(INSIDE).exec();
            say(&format!("cannot execute {}: {error}", call[0]));
        }
        let clock = match self.move_clock {
            true => faults::Jump::by(0).map(drop),
            false => Err("it is everybody's on this machine, and only moved where --move-clock says so".to_owned()),
        };
        self.storm(&Means { mounts: mounts.map(|_call| ()), clock, processes: faults::bounds_processes() })
    }

    fn storm(&self, means: &Means) -> ExitCode {
        let beside = std::env::current_exe().map(|me| me.with_file_name("outlast"));
        let binary = match beside {
            Ok(path) if path.is_file() => path.display().to_string(),
            _ => {
                say("the binary `outlast` is not beside this one: build it with `cargo build -p outlast-cli`");
                return ExitCode::from(2);
            }
        };
        if let Err(why) = &means.mounts {
            say(&format!("no file systems can be mounted, so no disk is full or read-only: {why}"));
        }
        round::keep_panics();
        let (began, mut tally) = (Instant::now(), Tally::default());
        let mut standing = Standing::start(&binary);
        let mut number = self.only.unwrap_or(0);
        let mut open = Vec::new();
        let goes_on = |number: u64| match (self.only, self.rounds) {
            (Some(only), _) => number == only,
            (None, Some(rounds)) => number < rounds,
            (None, None) => began.elapsed() < self.seconds,
        };
        while goes_on(number) {
            if let Err(failure) = round::play(&binary, self.seed, number, means, &mut tally) {
                let (seed, kept) = (self.seed, failure.kept.display());
                say(&format!("{}\n\nwhat was done:\n{}\n", failure.fault, failure.story));
                say(&format!("FAULT in round {number}: --seed {seed} --only {number}; its world is kept in {kept}"));
                let _ended = round::caught(|| standing.end());
                return ExitCode::FAILURE;
            }
            if let Err(fault) = round::caught(|| standing.serve()) {
                say(&format!("FAULT in the session that stands, after round {number}, --seed {}: {fault}", self.seed));
                return ExitCode::FAILURE;
            }
            open.push(round::open_files());
            number += 1;
        }
        let span = standing.span();
        if let Err(fault) = round::caught(|| standing.end()) {
            say(&format!("FAULT in the session that stands, --seed {}: {fault}", self.seed));
            return ExitCode::FAILURE;
        }
        let asked = match self.rounds {
            Some(rounds) => format!("--rounds {rounds}"),
            None => format!("--seconds {}", self.seconds.as_secs()),
        };
        let report =
            Report { seed: self.seed, asked, moved_clock: self.move_clock, took: began.elapsed(), tally: &tally, span };
        say(&report.summary());
        if let Some(path) = &self.report
            && let Err(error) = report.write(path)
        {
            say(&format!("cannot write {path}: {error}"));
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }
}

/// The one place that prints.
#[allow(clippy::print_stdout)]
fn say(text: &str) {
    println!("{text}");
}
