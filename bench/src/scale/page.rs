//! The page: what grows with what, in a sentence for each line, made from the data alone.

use std::fmt::Write as _;

use super::charts::GROUPS;
use super::data::{Chart, Data, Line};
use super::fit::{Figures, Growth, growth};
use crate::machine::BUSY;
use crate::samples;

/// What stands above the tables of the page.
const HEAD: &str = "# What grows with what

Written by `bench/scale`; do not edit. The figures are those of `docs/scaling.json`, and the pictures and sentences are
made from that file alone: `bench/scale plots` makes them again without measuring.

Once more: `bench/scale`. Names of groups as arguments (`bench/scale running stream`) measure only these and write nothing.

A figure that was taken more than once is a median; the thin upright line in a picture goes from its tenth to its ninetieth
percentile. A law is told of three sizes and more. *Constant* is what differs by no more than half over all sizes. *Rises* and
*falls* is said where the largest figure is at that end and the ranges of both ends do not overlap, *no clear direction* where
it is neither. Of what rises, *linear* is what a straight line through all figures meets: so much without any, and so much for
each. *Faster than linear* is what costs more for each, the more there are; *slower than linear* is what grows with a power
below one from the first size to the last.
";

/// The page.
pub fn markdown(data: &Data) -> String {
    let mut text = HEAD.to_owned();
    text.push_str("\n## What it ran on\n\n| | |\n| --- | --- |\n");
    for (key, value) in &data.facts {
        push(&mut text, &format!("| {key} | {value} |"));
    }
    if data.busy {
        let most = BUSY * 1e2;
        push(
            &mut text,
            &format!("\n**Others used more than {most:.0} % of the processors: these figures say little.**"),
        );
    }
    missed(&mut text, data);
    for (group, title, about) in GROUPS {
        push(&mut text, &format!("\n## {title}\n\n{about}"));
        for chart in data.charts.iter().filter(|chart| chart.group() == group && !chart.lines.is_empty()) {
            section(&mut text, chart);
        }
        let said: Vec<_> = data.said.iter().filter(|(of, _, _)| of == group).collect();
        if !said.is_empty() {
            text.push_str("\n| looked at | found |\n| --- | --- |\n");
            for (_, what, found) in said {
                push(&mut text, &format!("| {what} | {found} |"));
            }
        }
    }
    if !data.failures.is_empty() {
        text.push_str("\n## Not measured\n\n");
        for (what, why) in &data.failures {
            push(&mut text, &format!("- {what}: {why}"));
        }
    }
    text
}

/// What one group has found, for a terminal.
pub fn table(data: &Data, group: &str) -> String {
    let mut text = String::new();
    for chart in data.charts.iter().filter(|chart| chart.group() == group && !chart.lines.is_empty()) {
        push(&mut text, &format!("{}, {} (by {})", chart.title, chart.unit, chart.x));
        for line in &chart.lines {
            let figures = line.points.iter().map(|point| format!("{}: {}", point.x, number(point.y)));
            push(&mut text, &format!("    {:<60} {}", line.name, figures.collect::<Vec<_>>().join(", ")));
            push(&mut text, &format!("        {}", sentence(chart, line)));
        }
    }
    for (_, what, found) in data.said.iter().filter(|(of, _, _)| of == group) {
        push(&mut text, &format!("{what}: {found}"));
    }
    for (what, why) in data.failures.iter().filter(|(of, _)| of == group) {
        push(&mut text, &format!("{what}: FAILED: {why}"));
    }
    text
}

/// The bounds of docs/benchmarks.md that lines here have, and how far each is held. A time that was taken once shows no more
/// than itself.
fn missed(text: &mut String, data: &Data) {
    text.push_str(
        "\n## Bounds of docs/benchmarks.md at these sizes\n\n| what | bound | measured | |\n| --- | --- | --- | --- |\n",
    );
    for chart in &data.charts {
        for line in &chart.lines {
            let Some(bound) = line.bound else { continue };
            let Some(point) = line.points.iter().rfind(|point| point.x <= bound.at) else { continue };
            let unit = &chart.unit;
            let held = if unit == "ms" && point.taken == 1 {
                "no verdict on one sample".to_owned()
            } else if point.y <= bound.most {
                "held".to_owned()
            } else {
                format!(
                    "**not held: {} {unit} ({:.0} %) above it**",
                    number(point.y - bound.most),
                    (point.y / bound.most - 1.0) * 1e2
                )
            };
            let of = if (point.x - 1.0).abs() < f64::EPSILON { &chart.each } else { &chart.x };
            let what = format!("{}: {}, {} {of}", chart.title, line.name, count(point.x));
            let taken = if point.taken == 1 { "one look".to_owned() } else { format!("median of {}", point.taken) };
            let [most, measured] = [bound.most, point.y].map(number);
            push(text, &format!("| {what} | at most {most} {unit} | {measured} {unit}, {taken} | {held} |"));
        }
    }
}

fn section(text: &mut String, chart: &Chart) {
    push(text, &format!("\n### {}\n\n![{}](scaling/{}.svg)", chart.title, chart.title.replace('`', ""), chart.name));
    text.push('\n');
    if !chart.note.is_empty() {
        push(text, &chart.note);
        text.push('\n');
    }
    for line in &chart.lines {
        push(text, &format!("- {}: {}", line.name, sentence(chart, line)));
    }
    let mut sizes: Vec<f64> = chart.lines.iter().flat_map(|line| &line.points).map(|point| point.x).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let heads: Vec<String> = sizes.iter().map(|size| count(*size)).collect();
    push(text, &format!("\n| {} ({}) | {} |", chart.x, chart.unit, heads.join(" | ")));
    push(text, &format!("| --- |{}", " ---: |".repeat(sizes.len())));
    for line in &chart.lines {
        let cells = sizes.iter().map(|size| {
            let point = line.points.iter().find(|point| point.x.total_cmp(size).is_eq());
            point.map_or_else(|| "–".to_owned(), |point| number(point.y))
        });
        push(text, &format!("| {} | {} |", line.name, cells.collect::<Vec<_>>().join(" | ")));
    }
}

/// A figure; nothing is 0 and no more digits.
fn number(figure: f64) -> String {
    if figure.abs() < 1e-9 { "0".to_owned() } else { samples::number(figure) }
}

/// What a line does, with its figures.
fn sentence(chart: &Chart, line: &Line) -> String {
    let unit = &chart.unit;
    let figures = if unit.ends_with("/s") { Figures::Rates } else { Figures::Costs };
    match growth(&line.points, figures) {
        Growth::Unknown => "measured at one size only.".to_owned(),
        Growth::Constant { most, .. } if most <= 0.0 => format!("constant: 0 {unit}."),
        Growth::Constant { least, most } => format!("constant, {} to {} {unit}.", number(least), number(most)),
        Growth::Linear { base, each } => {
            format!("linear: {} {unit} and {} for each {}.", number(base), small(each, unit), chart.each)
        }
        Growth::FromNothing { until, most } => {
            format!("0 {unit} at {}, at most {} at another size.", count(until), number(most))
        }
        Growth::FromTo { from, to } => format!("from {} to {} {unit}.", number(from), number(to)),
        Growth::NoDirection { least, most } => {
            format!("no clear direction, {} to {} {unit}.", number(least), number(most))
        }
        Growth::Rises { from, to, power } => {
            format!(
                "rises from {} to {} {unit}, with the power {power:.2} of the number in all.",
                number(from),
                number(to)
            )
        }
        Growth::Slower { power } => format!("grows slower than linear, with the power {power:.2} of the number."),
        Growth::Falls { from, to } => format!("falls from {} to {} {unit}.", number(from), number(to)),
        Growth::Faster { power } => {
            let last = line.points.last().map_or(0.0, |point| point.y / point.x.max(1.0));
            let each = small(last, unit);
            format!(
                "**faster than linear**: with the power {power:.2} at the end, where it is {each} for each {}.",
                chart.each
            )
        }
    }
}

/// A figure in a unit that makes it readable.
fn small(figure: f64, unit: &str) -> String {
    match unit {
        "ms" if figure < 1e-3 => format!("{} ns", number(figure * 1e6)),
        "ms" if figure < 1.0 => format!("{} µs", number(figure * 1e3)),
        "MiB" if figure < 1e-3 => format!("{} bytes", number(figure * f64::from(1 << 20))),
        "MiB" if figure < 1.0 => format!("{} KiB", number(figure * 1024.0)),
        "KiB" if figure < 1.0 => format!("{} bytes", number(figure * 1024.0)),
        _ => format!("{} {unit}", number(figure)),
    }
}

/// A number with its thousands apart.
fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn push(text: &mut String, line: &str) {
    writeln!(text, "{}", line.trim_end()).expect("a string takes everything");
}
