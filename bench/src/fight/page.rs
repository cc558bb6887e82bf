//! The comparison as a page and as data. What stands in it is made from the rows, and nothing is typed.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::fight::ring::Outcome;
use crate::fight::score::{NEAR, Row};
use crate::machine::{BUSY, Machine};
use crate::page::opening;
use crate::peers::{Kind, Peer};
use crate::settings::Settings;

/// What stands above the tables.
const HEAD: &str = "# Comparison

Written by this command; do not edit:

```sh
bench/peers
```

The same commands for outlast, for other tools of its kind and for the shell itself, on one machine in one run. Each cell was
decided by a check on real processes and files in that run; what was checked stands in the last column. **Bold** is what no
other tool did better. The data is in `docs/comparison.json`.

Once more: the command above; names of groups as arguments (`bench/peers stop killed`) measure only these and write nothing.
`PEERS_FEW` and `PEERS_MANY` set the two numbers of commands (default 200 and 2000), `PEERS_MIB` the log that is compared byte
for byte (default 64).
";

/// The outcome with what the script knows beside it.
pub struct Page<'a> {
    /// What was measured.
    pub outcome: &'a Outcome,
    /// Who took part.
    pub peers: &'a [Peer],
    /// What it ran on.
    pub machine: &'a Machine,
    /// What the script says: date, commit, versions.
    pub settings: &'a Settings,
    /// Where it was measured: a path that is of no use to a reader.
    pub dir: &'a str,
}

impl Page<'_> {
    /// What went wrong, for a terminal; the rows were told while they were measured.
    pub fn terminal(&self) -> String {
        let mut text = String::new();
        for (what, why) in &self.outcome.failures {
            push(&mut text, &format!("failed: {what}: {why}"));
        }
        if let Some(line) = self.busy() {
            push(&mut text, &line);
        }
        text
    }

    /// The page.
    pub fn markdown(&self) -> String {
        let head = format!("{HEAD}\n{}\n", self.getting());
        let mut text = opening(&head, &self.facts(), self.busy());
        self.summary(&mut text);
        self.where_a_peer_is_better(&mut text);
        for (name, title) in &self.outcome.groups {
            push(&mut text, &format!("\n## {title}"));
            push(&mut text, "");
            self.table(&mut text, name);
        }
        self.missing(&mut text);
        text.push_str("\n## How each was used\n\n");
        for kind in Kind::ALL {
            push(&mut text, &format!("- **{}**: {}.", kind.name(), kind.usage()));
        }
        self.rules(&mut text);
        text
    }

    /// The data.
    pub fn json(&self) -> String {
        let rows: Vec<Value> = self.outcome.rows.iter().map(row_json).collect();
        let series: Vec<Value> = self
            .outcome
            .series
            .iter()
            .map(|(name, samples)| json!({ "name": name, "median_ms": samples.median(), "samples_ns": samples.0 }))
            .collect();
        let facts: serde_json::Map<String, Value> =
            self.facts().into_iter().map(|(key, value)| (key, Value::String(value))).collect();
        let failures: Vec<Value> = self.failures().map(|(what, why)| json!({ "what": what, "why": why })).collect();
        let absent: Vec<&str> = self.absent().map(Kind::name).collect();
        let left = self.outcome.left.iter();
        let left: Vec<Value> = left
            .map(|(kind, what, count)| json!({ "question": what, "tool": kind.name(), "processes": count }))
            .collect();
        let whole = json!({
            "machine": facts, "rows": rows, "series": series, "not_run": absent, "failures": failures, "left": left,
        });
        format!("{whole:#}\n")
    }

    /// How to get the other tools, in the versions that are known.
    fn getting(&self) -> String {
        let version = self.settings.find(&format!("{}-version", Kind::Pueue.key()));
        let version =
            version.and_then(|told| told.split(' ').next_back()).map_or(String::new(), |one| format!("@{one}"));
        format!(
            "The other tools come by `apt-get install task-spooler nq` and `cargo install --locked pueue{version}`; their versions \
             stand in the table below. One that is not installed has *not run* in its column."
        )
    }

    fn summary(&self, text: &mut String) {
        text.push_str(
            "\n## In how many rows each is best\n\nRows in which a tool has nothing to show count as not best; rows that \
             are only shown do not count.\n\n",
        );
        text.push_str("| | best | alone | of |\n| --- | ---: | ---: | ---: |\n");
        let rows: Vec<&Row> = self.outcome.rows.iter().filter(|row| row.is_scored()).collect();
        for peer in self.peers {
            let best: Vec<&&Row> = rows.iter().filter(|row| row.is_best(peer.kind)).collect();
            let alone = best.iter().filter(|row| Kind::ALL.into_iter().filter(|kind| row.is_best(*kind)).count() == 1);
            push(text, &format!("| {} | {} | {} | {} |", peer.kind.name(), best.len(), alone.count(), rows.len()));
        }
    }

    fn where_a_peer_is_better(&self, text: &mut String) {
        text.push_str("\n## Where a peer is better\n\n");
        let near = format!(
            "Every row in which something else did better than outlast: by anything where it was counted, by more than {:.0} % \
             where it was measured.",
            NEAR * 1e2
        );
        push(text, &near);
        push(text, "");
        let mut lines = Vec::new();
        for row in &self.outcome.rows {
            let better: Vec<String> = row
                .better_than(Kind::Outlast)
                .into_iter()
                .map(|kind| format!("{} {}", kind.name(), cell(row, kind)))
                .collect();
            if !better.is_empty() {
                lines.push(format!("| {} | {} | {} |", row.what, cell(row, Kind::Outlast), better.join("; ")));
            }
        }
        if lines.is_empty() {
            push(text, "None.");
            return;
        }
        text.push_str("| what | outlast | better |\n| --- | --- | --- |\n");
        for line in lines {
            push(text, &line);
        }
    }

    fn table(&self, text: &mut String, group: &str) {
        let names: Vec<&str> = Kind::ALL.into_iter().map(Kind::name).collect();
        push(text, &format!("| what | {} | check |", names.join(" | ")));
        push(text, &format!("| --- |{} --- |", " --- |".repeat(names.len())));
        let mut last = "";
        for row in self.outcome.rows.iter().filter(|row| row.group == group) {
            let cells: Vec<String> = Kind::ALL
                .into_iter()
                .map(|kind| if row.is_best(kind) { bold(&cell(row, kind)) } else { cell(row, kind) })
                .collect();
            let check = if row.check == last { "as above" } else { &row.check };
            push(text, &format!("| {} | {} | {check} |", row.what, cells.join(" | ")));
            last = &row.check;
        }
    }

    fn missing(&self, text: &mut String) {
        let absent = self.absent().map(|kind| format!("- {}: not run, it is not installed", kind.name()));
        let failed = self.failures().map(|(what, why)| format!("- {what}: failed, {why}"));
        let lines: Vec<String> = absent.chain(failed).collect();
        if !lines.is_empty() {
            text.push_str("\n## Not measured\n\n");
        }
        for line in lines {
            push(text, &line);
        }
    }

    fn rules(&self, text: &mut String) {
        text.push_str("\n## How it is measured\n\n");
        let near = format!(
            "- A figure that was counted is best where no other is better. One that was measured (time, memory) is also best within \
             {:.0} % of the best one. That share is chosen; it does not come from the data.",
            NEAR * 1e2
        );
        push(text, &near);
        text.push_str(
            "- Each tool has a directory of its own for every question, with a daemon or server of its own where it needs one.
- A command's processes are known by a variable that `env` puts into the environment of the command and not of the tool, so
  that one that left its group, its session and its parent is still found.
- What survives is counted and then ended: each process through a pidfd, once its variable and its start time were seen
  again. At the end nothing of the run lives, or the run fails.
- After every question the tool is closed as its manual says, and what then lives is counted before it is ended. If outlast has
  left anything after a question that killed nothing of it, the run fails. Others do not say that they end all commands
  when they are closed, so what they leave is only told below.
- Tools are asked one after the other in each row, never at the same time.
",
        );
        self.left(text);
    }

    /// What was left by tools that were closed and of which nothing was killed.
    fn left(&self, text: &mut String) {
        text.push_str("\n## What was left after a close\n\n");
        if self.outcome.left.is_empty() {
            push(text, "Nothing, by any tool.");
            return;
        }
        text.push_str("| question | tool | processes |\n| --- | --- | ---: |\n");
        for (kind, what, count) in &self.outcome.left {
            push(text, &format!("| {what} | {} | {count} |", kind.name()));
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let keys = self.settings.facts().into_iter();
        let machine = self.machine.facts().map(|(key, value)| (key.to_owned(), value));
        let versions = self.peers.iter().filter_map(|peer| {
            let version = self.settings.find(&format!("{}-version", peer.kind.key()))?;
            Some((peer.kind.name().to_owned(), version.to_owned()))
        });
        keys.chain(machine).chain(versions).collect()
    }

    fn absent(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|kind| self.peers.iter().all(|peer| peer.kind != *kind))
    }

    fn failures(&self) -> impl Iterator<Item = (&str, String)> {
        self.outcome.failures.iter().map(|(what, why)| (what.as_str(), why.replace(self.dir, "…")))
    }

    fn busy(&self) -> Option<String> {
        self.machine.was_busy().then(|| {
            format!("Others used more than {:.0} % of the processors: times and rates say little.", BUSY * 1e2)
        })
    }
}

fn cell(row: &Row, kind: Kind) -> String {
    row.cells.get(&kind).map_or("not run".to_owned(), |cell| cell.text.clone())
}

/// A text in bold, also where a part of it is.
fn bold(text: &str) -> String {
    format!("**{}**", text.replace("**", ""))
}

fn row_json(row: &Row) -> Value {
    let cells: serde_json::Map<String, Value> = row
        .cells
        .iter()
        .map(|(kind, cell)| {
            let best = row.is_best(*kind);
            (kind.name().to_owned(), json!({ "text": cell.text, "score": cell.score, "best": best }))
        })
        .collect();
    json!({
        "group": row.group, "what": row.what, "check": row.check, "better": format!("{:?}", row.better).to_lowercase(),
        "cells": cells,
    })
}

fn push(text: &mut String, line: &str) {
    writeln!(text, "{}", line.trim_end()).expect("a string takes everything");
}
