//! What was measured: rows with a bound, rows without one, and the samples behind them.

use std::error::Error;

use crate::machine::Machine;
use crate::samples::{Samples, number};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A ratio of two figures of this run.
    Times,
    /// Milliseconds.
    Milliseconds,
    /// Kibibytes.
    Kibibytes,
}

/// What a figure must not pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Not above this.
    AtMost(f64),
    /// Not below this.
    AtLeast(f64),
}

/// One row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The figure.
    pub measured: f64,
    /// What it counts.
    pub unit: Unit,
    /// Its bound; none for a row that is only told.
    pub bound: Option<Bound>,
    /// The figures behind it.
    pub figures: String,
}

/// Everything of one run.
pub struct Report {
    /// What it ran on.
    pub machine: Machine,
    /// Name and version of each other tool.
    pub versions: Vec<(String, String)>,
    /// Other tools that are not installed.
    pub absent: Vec<String>,
    /// The rows in the order in which they were measured.
    pub rows: Vec<Row>,
    /// Samples by name.
    pub series: Vec<(String, Samples)>,
    /// What could not be measured, and why.
    pub failures: Vec<(String, String)>,
}

impl Row {
    /// Whether the bound is held; none where there is none.
    pub fn held(&self) -> Option<bool> {
        self.bound.map(|bound| match bound {
            Bound::AtMost(most) => self.measured <= most,
            Bound::AtLeast(least) => self.measured >= least,
        })
    }

    /// The figure with its unit.
    pub fn measured(&self) -> String {
        with_unit(self.measured, self.unit)
    }

    /// The bound in words.
    pub fn bound(&self) -> String {
        match self.bound {
            None => String::new(),
            Some(Bound::AtMost(most)) => format!("at most {}", with_unit(most, self.unit)),
            Some(Bound::AtLeast(least)) => format!("at least {}", with_unit(least, self.unit)),
        }
    }
}

impl Report {
    /// An empty one.
    pub fn new(machine: Machine) -> Report {
        Report {
            machine,
            versions: Vec::new(),
            absent: Vec::new(),
            rows: Vec::new(),
            series: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, what: impl Into<String>, measured: f64, unit: Unit, bound: Option<Bound>, figures: String) {
        self.rows.push(Row { what: what.into(), measured, unit, bound, figures });
    }

    /// Adds the ratio of two medians of this run.
    pub fn ratio(&mut self, what: impl Into<String>, ours: &Samples, theirs: &Samples, bound: Option<Bound>) {
        let figures = format!("{} against {}", ours.text(), theirs.text());
        self.row(what, ours.median() / theirs.median(), Unit::Times, bound, figures);
    }

    /// Adds a median in milliseconds.
    pub fn time(&mut self, what: impl Into<String>, ours: &Samples, bound: Option<Bound>) {
        self.row(what, ours.median(), Unit::Milliseconds, bound, ours.text());
    }

    /// Keeps the samples for the raw figures.
    pub fn keep(&mut self, name: impl Into<String>, samples: Samples) {
        self.series.push((name.into(), samples));
    }

    /// Says that something could not be measured.
    pub fn fail(&mut self, what: &str, error: &dyn Error) {
        self.failures.push((what.to_owned(), error.to_string()));
    }
}

fn with_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Times => format!("{value:.2} ×"),
        Unit::Milliseconds => format!("{} ms", number(value)),
        Unit::Kibibytes => format!("{value:.0} KiB"),
    }
}
