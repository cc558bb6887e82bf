//! The torture: a storm of kills, stops and faults over outlast, drawn from a seed, and a model that knows what must be
//! true afterwards.
//!
//! `cargo run -p outlast-torture -- [--seed N] [--seconds S | --rounds N] [--only ROUND] [--move-clock]
//! [--report FILE] [--commit TEXT]`
//!
//! `--report FILE` writes a page, or the part of it that is for this kind of user, also where there is a fault; `--commit TEXT`
//! says of which source, where git cannot be asked.
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
use report::{Report, Source};
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
    commit: Option<String>,
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
            commit: None,
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
            "--commit" => self.commit = Some(value.clone()),
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
        let source = Source::of(&binary, self.commit.as_deref());
        let (began, mut tally) = (Instant::now(), Tally::default());
        let mut standing = Standing::start(&binary);
        let fault = self.play_all(&binary, means, &mut tally, &mut standing).err();
        let (took, span) = (began.elapsed(), standing.span());
        let ended = round::caught(|| standing.end());
        let fault = fault.or_else(|| ended.err().map(|fault| self.fault_of_standing("at its end", &fault)));
        let asked = match (self.only, self.rounds) {
            (Some(only), _) => format!("--only {only}"),
            (None, Some(rounds)) => format!("--rounds {rounds}"),
            (None, None) => format!("--seconds {}", self.seconds.as_secs()),
        };
        let (seed, move_clock, moved_clock) = (self.seed, self.move_clock, means.clock.is_ok());
        let found = fault.is_some();
        let report = Report { seed, asked, move_clock, moved_clock, took, tally: &tally, span, source: &source, fault };
        if !found {
            say(&report.summary());
        }
        if let Some(path) = &self.report
            && let Err(error) = report.write(path)
        {
            say(&format!("cannot write {path}: {error}"));
            return ExitCode::FAILURE;
        }
        if found { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Plays round after round until there have been enough, or to the first fault, which is said here; what a page says
    /// of it.
    fn play_all(&self, binary: &str, means: &Means, tally: &mut Tally, standing: &mut Standing) -> Result<(), String> {
        let began = Instant::now();
        let goes_on = |number: u64| match (self.only, self.rounds) {
            (Some(only), _) => number == only,
            (None, Some(rounds)) => number < rounds,
            (None, None) => began.elapsed() < self.seconds,
        };
        let mut number = self.only.unwrap_or(0);
        while goes_on(number) {
            if let Err(failure) = round::play(binary, self.seed, number, means, tally) {
                let (seed, kept) = (self.seed, failure.kept.display());
                say(&format!("{}\n\nwhat was done:\n{}\n", failure.fault, failure.story));
                say(&format!("FAULT in round {number}: --seed {seed} --only {number}; its world is kept in {kept}"));
                let first = first_line(&failure.fault);
                return Err(format!(
                    "FAULT in round {number}: {first}; replay with --seed {seed} --only {number} --rounds 1"
                ));
            }
            if let Err(fault) = round::caught(|| standing.serve()) {
                return Err(self.fault_of_standing(&format!("after round {number}"), &fault));
            }
            number += 1;
        }
        Ok(())
    }

    /// Says what was wrong with the session that stands; the line of a page for it.
    fn fault_of_standing(&self, when: &str, fault: &str) -> String {
        say(&format!("FAULT in the session that stands, {when}, --seed {}: {fault}", self.seed));
        format!("FAULT in the session that stands, {when}: {}; replay with --seed {}", first_line(fault), self.seed)
    }
}

/// The first line of a fault, as far as a page has room for it.
fn first_line(fault: &str) -> String {
    fault.lines().next().unwrap_or_default().chars().take(200).collect()
}

/// The one place that prints.
#[allow(clippy::print_stdout)]
fn say(text: &str) {
    println!("{text}");
}
