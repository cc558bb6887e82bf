//! What a run has found, as one line and as a page.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use crate::faults;
use crate::standing::Sample;
use crate::tally::Tally;

/// The figures of a run without a fault.
pub struct Report<'a> {
    /// What it was drawn from.
    pub seed: u64,
    /// How long it was to go on, as an option.
    pub asked: String,
    /// Whether the clock was moved.
    pub moved_clock: bool,
    /// How long it took.
    pub took: Duration,
    /// The counts.
    pub tally: &'a Tally,
    /// The watchers of the session that stood through all of it, once they were warm and at the end.
    pub span: Option<(Sample, Sample)>,
}

/// What the page begins with.
const HEAD: &str = "
# Reliability

Written by the commands below; do not edit.

A storm of kills, stops and faults over the real binary (debug build), round after round, each in a sealed world of its own. At
the end of each round a model that shares no code with outlast says what must be true: every command has its true end, or is
lost and both of its watchers were killed; every end was told exactly once to each consumer; what the log has is what the
command wrote, or the gap is named; every record was whole at every instant; and no process, no socket and no half file outlives
its session. The first fault ends a run with its seed. The seed decides what is done and when; what it meets is up to the
machine, so the counts of two runs differ a little. What needs privileges is drawn for all and done by those who may, and some
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
        let mut parts = vec![format!(
            "no fault in {} rounds, {} s, --seed {}: {} commands from {} front ends, {} stops",
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
        // Root first, who can do more.
        parts.sort_by_key(|part| !part.starts_with(&format!("{PART}{ROOT}")));
        fs::write(path, format!("{}{}", HEAD.trim_start(), parts.concat()))
    }

    fn title(&self) -> String {
        let clock = if self.moved_clock { ", with a clock that jumps" } else { "" };
        format!("{}{clock}", user())
    }

    fn part(&self) -> String {
        let mut page = self.head();
        page += "\n### What was done\n\n| | number |\n| --- | ---: |\n";
        for name in ["rounds", "commands", "front ends", "stops", "stops of all"] {
            row(&mut page, name, self.of(name));
        }
        for (beginning, name) in [("killed: ", "killed with KILL"), ("paused: ", "paused with STOP, for a while")] {
            self.tally
                .group(beginning)
                .iter()
                .for_each(|(what, count)| row(&mut page, &format!("{what} {name}"), *count));
        }
        self.tally.group("fault: ").iter().for_each(|(what, count)| row(&mut page, what, *count));
        page +=
            "\n### What was found\n\nNo fault. So many commands ended this way:\n\n| end | number |\n| --- | ---: |\n";
        self.tally.group("end: ").iter().for_each(|(what, count)| row(&mut page, what, *count));
        row(&mut page, "told by the `run` that started it, in the foreground", self.of("ends told by run"));
        let _infallible = write!(
            page,
            "\nOf the {} lost ones both watchers, keeper and supervisor, had been killed. All records were read {} times \
             while that went on. {} sessions were ended by a call, {} with their anchor; somebody was behind a door in {} of \
             them before, in none after.\n",
            self.of("end: lost"),
            self.of("looks at all records"),
            self.of("sessions ended by call"),
            self.of("sessions ended with their anchor"),
            self.of("rounds with an open door before the end"),
        );
        page += &self.memory();
        page += "\n### What was drawn and not done\n\n| | number | because |\n| --- | ---: | --- |\n";
        for (what, count, why) in self.tally.skipped() {
            let _infallible = writeln!(page, "| {what} | {count} | {why} |");
        }
        page
    }

    fn head(&self) -> String {
        let cpu = field("/proc/cpuinfo", "model name");
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        format!(
            "\n```sh\ncargo run -p outlast-torture -- --seed {} {}{} --report docs/reliability.md\n```\n\n\
             ### What it ran on\n\n| | |\n| --- | --- |\n| seed | {} |\n| duration | {} s |\n| processor | {cpu} |\n\
             | cores | {cores} |\n| kernel | {} |\n| memory | {} |\n",
            self.seed,
            self.asked,
            if self.moved_clock { " --move-clock" } else { "" },
            self.seed,
            self.took.as_secs(),
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
