//! The report as a table for a terminal, as a page, and as raw figures.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::machine::BUSY;
use crate::report::{Bound, Report, Row, Unit};

/// What stands above the tables of the page.
const HEAD: &str = "# Benchmarks

Written by `bench/run`; do not edit. Every ratio is one of medians that were taken in turns within one run, on one
machine. Behind a median stand its tenth and ninetieth percentile. The raw figures are in `docs/benchmarks.json`.

Once more: `bench/run`. `BENCH_GIB` sets the size of the large log in GiB (default 4); names of groups as arguments
(`bench/run start calls`) measure only these and write nothing.
";

/// What stands below them.
const FOOT: &str = "
## How it is measured

- Everything is built for release and runs in a directory of its own below `target/`, on the file system of the project.
  At the end every session is ended, and a process that lives on makes the run fail.
- *Library against spawn*: `Session::run_to_end` of `/bin/true` in a session with a living keeper, and `posix_spawn` with
  `waitpid` of it (by `std::process::Command`), in turns in one process.
- *Command line against task-spooler*: `outlast run true` with no session named, served by the keeper that a call leaves for a
  moment where there is one (a call that finds none stands beside the bounds), and `tsp true` followed by `tsp -w` of its
  id, which need the server that task-spooler leaves for good. Without a shell, output read through a pipe.
- *Leader's exit to waiter's return*: the command prints the monotonic clock as its last act, and whoever waits reads the same
  clock first thing. The tear-down of the process by the kernel is in it.
- *Capture*: the same producer into a background command and into a loop that reads 64 KiB from a pipe and writes it to a
  file on the same file system. Log and file are compared with what was printed, byte for byte, after the clock has stopped.
- *Memory*: proportional set size of the keeper and all its supervisors while their commands sleep; the commands' own is not
  in it.
- *Large and small log*: the same calls on the log of a command that printed much and of one that printed 4 KiB, while both
  run and after both ended; the worse of the two counts.
";

/// A report with what the script knows beside it.
pub struct Page<'a> {
    /// What was measured.
    pub report: &'a Report,
    /// `date`, `rustc`, `commit`.
    pub keys: &'a [(String, String)],
    /// Where it was measured: a path that is of no use to a reader.
    pub dir: String,
}

impl Page<'_> {
    /// Rows for a terminal.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for row in &self.report.rows {
            push(&mut text, &format!("{:<72} {:>10}  {}", row.what, row.measured(), verdict(row)));
            push(&mut text, &format!("    {}", row.figures));
        }
        for line in self.missing().into_iter().chain(self.busy()) {
            push(&mut text, &line);
        }
        text
    }

    /// The page.
    pub fn markdown(&self) -> String {
        let mut text = opening(HEAD, &self.facts(), self.busy());
        let (bound, free): (Vec<&Row>, Vec<&Row>) = self.report.rows.iter().partition(|row| row.bound.is_some());
        text.push_str("\n## Bounds\n\n| what | measured | bound | | figures |\n| --- | --- | --- | --- | --- |\n");
        for row in bound {
            let held = if row.held() == Some(true) { "held" } else { "**not held**" };
            let cells = [&row.what, &row.measured(), &row.bound(), held, &row.figures];
            push(&mut text, &format!("| {} |", cells.join(" | ")));
        }
        text.push_str("\n## Beside the bounds\n\n| what | measured | figures |\n| --- | --- | --- |\n");
        for row in free {
            push(&mut text, &format!("| {} | {} | {} |", row.what, row.measured(), row.figures));
        }
        let missing = self.missing();
        if !missing.is_empty() {
            text.push_str("\n## Not measured\n\n");
            for line in missing {
                push(&mut text, &format!("- {line}"));
            }
        }
        text + FOOT
    }

    /// The raw figures; times of samples in nanoseconds.
    pub fn json(&self) -> String {
        let rows: Vec<Value> = self.report.rows.iter().map(row_json).collect();
        let series: Vec<Value> = self
            .report
            .series
            .iter()
            .map(|(name, samples)| {
                json!({
                    "name": name, "median_ms": samples.median(), "p10_ms": samples.percentile(10),
                    "p90_ms": samples.percentile(90), "samples_ns": samples.0,
                })
            })
            .collect();
        let facts: serde_json::Map<String, Value> =
            self.facts().into_iter().map(|(key, value)| (key, Value::String(value))).collect();
        let whole = json!({ "machine": facts, "rows": rows, "series": series, "missing": self.missing() });
        format!("{whole:#}\n")
    }

    fn facts(&self) -> Vec<(String, String)> {
        let keys = self.keys.iter().cloned();
        let machine = self.report.machine.facts().map(|(key, value)| (key.to_owned(), value));
        keys.chain(machine).chain(self.report.versions.iter().cloned()).collect()
    }

    fn busy(&self) -> Option<String> {
        self.report
            .machine
            .was_busy()
            .then(|| format!("Others used more than {:.0} % of the processors: these figures say little.", BUSY * 1e2))
    }

    fn missing(&self) -> Vec<String> {
        let absent = self.report.absent.iter().map(|name| format!("{name}: not run, it is not installed"));
        let failed = self.report.failures.iter();
        absent.chain(failed.map(|(what, why)| format!("{what}: failed, {}", why.replace(&self.dir, "…")))).collect()
    }
}

/// How a page begins: what it is, what it ran on, and whether others were in the way.
pub fn opening(head: &str, facts: &[(String, String)], busy: Option<String>) -> String {
    let mut text = head.to_owned();
    text.push_str("\n## What it ran on\n\n| | |\n| --- | --- |\n");
    for (key, value) in facts {
        push(&mut text, &format!("| {key} | {value} |"));
    }
    if let Some(line) = busy {
        push(&mut text, &format!("\n**{line}**"));
    }
    text
}

fn row_json(row: &Row) -> Value {
    let unit = match row.unit {
        Unit::Times => "times",
        Unit::Milliseconds => "ms",
        Unit::Kibibytes => "KiB",
    };
    let (most, least) = match row.bound {
        None => (None, None),
        Some(Bound::AtMost(most)) => (Some(most), None),
        Some(Bound::AtLeast(least)) => (None, Some(least)),
    };
    json!({
        "what": row.what, "measured": row.measured, "unit": unit, "at_most": most, "at_least": least,
        "held": row.held(), "figures": row.figures,
    })
}

fn verdict(row: &Row) -> String {
    match row.held() {
        None => String::new(),
        Some(true) => format!("held ({})", row.bound()),
        Some(false) => format!("NOT HELD ({})", row.bound()),
    }
}

fn push(text: &mut String, line: &str) {
    writeln!(text, "{}", line.trim_end()).expect("a string takes everything");
}
