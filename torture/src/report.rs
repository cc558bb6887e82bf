//! What a run has found, as one line and as a page.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::faults;
use crate::standing::Sample;
use crate::tally::Tally;

/// The figures of a run.
pub struct Report<'a> {
    /// What it was drawn from.
    pub seed: u64,
    /// How long it was to go on, as an option.
    pub asked: String,
    /// Whether it was asked to move the clock.
    pub move_clock: bool,
    /// Whether the clock could be moved.
    pub moved_clock: bool,
    /// How long it took.
    pub took: Duration,
    /// The counts.
    pub tally: &'a Tally,
    /// The watchers of the session that stood through all of it, once they were warm and at the end.
    pub span: Option<(Sample, Sample)>,
    /// What was run.
    pub source: &'a Source,
    /// The fault that has ended it, with the words that play its round again.
    pub fault: Option<String>,
}

/// What is run, asked for before a run.
pub struct Source {
    commit: String,
    began: String,
    binary: &'static str,
}

impl Source {
    /// Of the binary at this path; `commit` is what the caller says of its source, else git is asked.
    pub fn of(binary: &str, commit: Option<&str>) -> Source {
        let began = said_by("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_else(|| "unknown".to_owned());
        let here = env!("CARGO_MANIFEST_DIR");
        let head = || {
            let head = said_by("git", &["-C", here, "rev-parse", "--short", "HEAD"])?;
            // The page itself changes with each of its parts.
            let but_page = [":(top)", ":(top,exclude)docs/reliability.md"];
            let status = ["-C", here, "status", "--porcelain", "--untracked-files=no", "--", but_page[0], but_page[1]];
            let changes = said_by("git", &status)?;
            Some(if changes.is_empty() { head } else { format!("{head}, with changes") })
        };
        let commit = commit.map(str::to_owned).or_else(head).unwrap_or_else(|| "not known".to_owned());
        let binary = match said_by("grep", &["-l", "-a", "-F", CRASH_POINT, binary]) {
            Some(_) => "debug build, with crash points that are not used",
            None => "without crash points",
        };
        Source { commit, began, binary }
    }
}

/// What stands in a binary that was built with crash points.
const CRASH_POINT: &str = "OUTLAST_CRASH_AT";

/// What a program prints that ends well.
fn said_by(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What the page begins with.
const HEAD: &str = "
# Reliability

Written by the commands below; do not edit.

A storm of kills, stops and faults over the real binary, round after round, each in a sealed world of its own. At
the end of each round a model that shares no code with outlast says what must be true: every command has its true end, or is
lost and both of its watchers were killed; every end, those that come with the session's end included, was told exactly once to
each consumer, or once more, as a repeat, where the call that was telling it was killed or failed; what the log has is what the
command wrote, or the gap is named; every record was whole at every instant; no process and nobody behind a door outlives its
session; and no half record does where no watcher was killed and nothing failed, no half file at all where no call was killed
either (each part says in how many rounds that was so). The first fault ends a run with its seed. The seed decides what is done and when; what it meets is up to
the machine, so the counts of two runs differ a little. What needs privileges is drawn for all and done by those who may, and some
limits bind only those who have none: so there is a run of root and one of another user.
";

/// How a part of the page begins.
const PART: &str = "\n## As ";

const ROOT: &str = "root";

/// As whom this runs; in a namespace of its own another user may look like root.
fn user() -> &'static str {
    if faults::bounds_processes().is_err() { ROOT } else { "a user without privileges" }
}

/// Groups of counts: how their names begin, and what they are called.
const GROUPS: [(&str, &str); 4] =
    [("killed: ", "killed"), ("paused: ", "paused"), ("fault: ", "faults"), ("end: ", "ends")];

impl Report<'_> {
    fn of(&self, name: &str) -> u64 {
        self.tally.of(name)
    }

    /// The counts in one paragraph.
    pub fn summary(&self) -> String {
        let found = if self.fault.is_none() { "no fault" } else { "a fault" };
        let mut parts = vec![format!(
            "{found} in {} rounds, {} s, --seed {}: {} commands from {} front ends, {} stops",
            self.of("rounds"),
            self.took.as_secs(),
            self.seed,
            self.of("commands"),
            self.of("front ends"),
            self.of("stops") + self.of("stops of all"),
        )];
        for (beginning, name) in GROUPS {
            let all: Vec<String> =
                self.tally.group(beginning).iter().map(|(what, count)| format!("{count} {what}")).collect();
            parts.push(format!("{name}: {}", or_none(&all)));
        }
        parts.push(format!("lost: {}, each with its keeper and its supervisor killed", self.of("end: lost")));
        let skipped: Vec<String> =
            self.tally.skipped().iter().map(|(what, count, why)| format!("{count} {what} ({why})")).collect();
        parts.push(format!("skipped: {}", or_none(&skipped)));
        parts.join("; ")
    }

    /// Writes the page, or puts what this run has found into the one that is there: each kind of user has a part of it.
    pub fn write(&self, path: &str) -> std::io::Result<()> {
        let old = fs::read_to_string(path).unwrap_or_default();
        let title = self.title();
        let others = old.split(PART).skip(1).filter(|part| part.lines().next() != Some(title.as_str()));
        let mut parts: Vec<String> = others.map(|part| format!("{PART}{}\n", part.trim_end())).collect();
        parts.push(format!("{PART}{title}\n{}", self.part()));
        // Root first, who can do more; else by title.
        let place = |part: &String| {
            let title = part[PART.len()..].lines().next().unwrap_or_default().to_owned();
            (!title.starts_with(ROOT), title)
        };
        parts.sort_by_key(place);
        fs::write(path, format!("{}{}", HEAD.trim_start(), parts.concat()))
    }

    fn title(&self) -> String {
        let clock = if self.moved_clock { ", with a clock that jumps" } else { "" };
        format!("{}{clock}", user())
    }

    fn part(&self) -> String {
        let mut page = self.head();
        if let Some(fault) = &self.fault {
            let _infallible = write!(page, "\n### What was found\n\n```text\n{fault}\n```\n");
        }
        page += "\n### What was done\n\n| | number |\n| --- | ---: |\n";
        row(&mut page, "rounds", self.of("rounds"));
        row(&mut page, "commands planned", self.of("commands"));
        for name in ["front ends", "stops", "stops of all"] {
            row(&mut page, name, self.of(name));
        }
        for (beginning, name) in [("killed: ", "killed with KILL"), ("paused: ", "paused with STOP, for a while")] {
            self.tally
                .group(beginning)
                .iter()
                .for_each(|(what, count)| row(&mut page, &format!("{what} {name}"), *count));
        }
        self.tally.group("fault: ").iter().for_each(|(what, count)| row(&mut page, what, *count));
        page += match &self.fault {
            Some(_) => "\n### What was found until then\n\n",
            None => "\n### What was found\n\nNo fault. ",
        };
        page += &self.ends();
        let _infallible = write!(
            page,
            "\nOf the {} lost ones both watchers, keeper and supervisor, had been killed. All records were read {} times \
             while that went on. {} sessions were ended by a call, {} with their anchor; somebody was behind a door in {} of \
             them before, in none after. Half records were looked for after {} of them, any half file after {}.\n",
            self.of("end: lost"),
            self.of("looks at all records"),
            self.of("sessions ended by call"),
            self.of("sessions ended with their anchor"),
            self.of("rounds with an open door before the end"),
            self.of("looks for half records"),
            self.of("looks for half files"),
        );
        page += &self.memory();
        page += "\n### What was drawn and not done\n\n| | number | because |\n| --- | ---: | --- |\n";
        for (what, count, why) in self.tally.skipped() {
            let _infallible = writeln!(page, "| {what} | {count} | {why} |");
        }
        page
    }

    /// How the commands have ended, each counted once.
    fn ends(&self) -> String {
        let ends = self.tally.group("end: ");
        let recorded: u64 = ends.iter().map(|(_, count)| count).sum();
        let bare = self.of("ends without records");
        let mut page = format!(
            "{} commands came about, each counted once below: {recorded} by the end on record, and {bare}, which left no \
             records, by what their `run` told. They can be fewer or more than were planned: a start that fails makes none, \
             one whose caller was killed with it in the foreground may leave no trace, and callers that join a command that is over \
             start another.\n\n| end | number |\n| --- | ---: |\n",
            recorded + bare,
        );
        ends.iter().for_each(|(what, count)| row(&mut page, what, *count));
        row(&mut page, "in the foreground, without records", bare);
        page
    }

    fn head(&self) -> String {
        let cpu = field("/proc/cpuinfo", "model name");
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        format!(
            "\n```sh\ncargo build --locked -p outlast-cli && cargo run --locked -p outlast-torture -- \\\n    \
             --seed {} {}{} --report docs/reliability.md\n```\n\n\
             ### What it ran on\n\n| | |\n| --- | --- |\n| seed | {} |\n| began | {} |\n| duration | {} s |\n\
             | commit | {} |\n| binary | {} |\n| processor | {cpu} |\n\
             | cores | {cores} |\n| kernel | {} |\n| memory | {} |\n",
            self.seed,
            self.asked,
            if self.move_clock { " --move-clock" } else { "" },
            self.seed,
            self.source.began,
            self.took.as_secs(),
            self.source.commit,
            self.source.binary,
            kernel.trim(),
            field("/proc/meminfo", "MemTotal"),
        )
    }

    fn memory(&self) -> String {
        let Some((first, last)) = self.span else { return String::new() };
        format!(
            "\nThe watchers of a session that stood through all rounds and served commands in each, in KiB of memory of their \
             own: keeper {} once warm and {} at the end, supervisor {} and {}; descriptors of both {} and {}.\n",
            first.keeper, last.keeper, first.supervisor, last.supervisor, first.files, last.files,
        )
    }
}

fn row(page: &mut String, what: &str, count: u64) {
    let _infallible = writeln!(page, "| {what} | {count} |");
}

fn or_none(all: &[String]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// A field of a file of `/proc`.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split(':').nth(1)).map_or("unknown".to_owned(), |value| value.trim().to_owned())
}
