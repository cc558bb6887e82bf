//! What was done in a round, in order, for whoever reads a failure.

use std::time::Instant;

/// A list of what happened, each with its time.
pub struct Story {
    began: Instant,
    lines: Vec<String>,
}

impl Story {
    /// An empty one that begins now.
    pub fn new() -> Story {
        Story { began: Instant::now(), lines: Vec::new() }
    }

    /// Notes what happened.
    pub fn note(&mut self, what: &str) {
        self.lines.push(format!("{:>6} ms  {what}", self.began.elapsed().as_millis()));
    }

    /// All of it.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}
