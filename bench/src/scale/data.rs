//! What was measured at which size: the charts, their lines, and the file that they are kept in.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::samples::Samples;

/// Everything of one run, as it stands in the data file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Data {
    /// What it ran on: name and value.
    pub facts: Vec<(String, String)>,
    /// Whether others used the machine so much that the figures say little.
    pub busy: bool,
    /// The charts, in the order of the page.
    pub charts: Vec<Chart>,
    /// What is no figure that grows: the group, what was looked at, what was found.
    pub said: Vec<(String, String, String)>,
    /// What could not be measured, and why.
    pub failures: Vec<(String, String)>,
}

/// One picture: what grows with what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chart {
    /// Names the picture's file; its first word is the group.
    pub name: String,
    /// What is shown.
    pub title: String,
    /// What is counted along the bottom, in the plural, with its unit where it has one.
    pub x: String,
    /// One of these.
    pub each: String,
    /// The unit of the figures.
    pub unit: String,
    /// What a reader has to know of how they were taken.
    pub note: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One thing, measured at several sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// The figures, by rising size.
    pub points: Vec<Point>,
    /// What must not be passed, where docs/benchmarks.md says so.
    pub bound: Option<Bound>,
}

/// A figure at a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The size.
    pub x: f64,
    /// The figure, a median where it was taken more than once.
    pub y: f64,
    /// The tenth percentile.
    pub low: f64,
    /// The ninetieth percentile.
    pub high: f64,
    /// How often it was taken.
    pub taken: usize,
}

/// A figure that must not be passed up to a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The size.
    pub at: f64,
    /// The most.
    pub most: f64,
}

impl Data {
    /// Reads what [`Data::text`] has written.
    pub fn read(text: &str) -> Result<Data> {
        Ok(serde_json::from_str(text)?)
    }

    /// It as text for the data file.
    pub fn text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Takes over what another process has measured.
    pub fn take(&mut self, other: Data) {
        for chart in other.charts.into_iter().filter(|chart| !chart.lines.is_empty()) {
            self.charts.retain(|one| one.name != chart.name);
            self.charts.push(chart);
        }
        self.said.extend(other.said);
        self.failures.extend(other.failures);
    }

    /// Adds the median of times in milliseconds to a line of a chart.
    pub fn time(&mut self, chart: &str, line: &str, x: u64, samples: &Samples) {
        let [y, low, high] = [50, 10, 90].map(|percent| samples.percentile(percent));
        self.point(chart, line, Point { x: x as f64, y, low, high, taken: samples.0.len() });
    }

    /// Adds one figure to a line of a chart.
    pub fn value(&mut self, chart: &str, line: &str, x: u64, y: f64) {
        self.point(chart, line, Point { x: x as f64, y, low: y, high: y, taken: 1 });
    }

    /// What a line must not pass up to a size.
    pub fn bound(&mut self, chart: &str, line: &str, at: u64, most: f64) {
        self.line(chart, line).bound = Some(Bound { at: at as f64, most });
    }

    /// Says something that is no figure.
    pub fn say(&mut self, group: &str, what: impl Into<String>, found: impl Into<String>) {
        self.said.push((group.to_owned(), what.into(), found.into()));
    }

    fn point(&mut self, chart: &str, line: &str, point: Point) {
        self.line(chart, line).points.push(point);
    }

    fn line(&mut self, chart: &str, name: &str) -> &mut Line {
        let at = self.charts.iter().position(|one| one.name == chart).expect("the table of charts has its name");
        let lines = &mut self.charts[at].lines;
        let at = lines.iter().position(|line| line.name == name).unwrap_or_else(|| {
            lines.push(Line { name: name.to_owned(), points: Vec::new(), bound: None });
            lines.len() - 1
        });
        &mut lines[at]
    }
}

impl Chart {
    /// The group that measures it.
    pub fn group(&self) -> &str {
        self.name.split('-').next().unwrap_or_default()
    }
}
