//! The only printer: standard output for answers, standard error for what is said beside them.

mod sink;

use std::io::{self, Write};

use outlast_core::names::display_line;
use serde::Serialize;

use crate::exit::Failure;

pub use sink::{Progress, Sink};

/// Prints answers and remarks.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    /// Whether words may be painted.
    pub colour: bool,
    /// How wide tables are where standard output is no terminal, in columns.
    pub columns: usize,
}

impl Printer {
    /// Prints text of outlast's own, or bytes that the caller asked for.
    pub fn print(&self, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written = out.write_all(bytes.as_ref()).and_then(|()| out.flush());
        written.map_err(|error| Failure::System("cannot write to standard output".to_owned(), error))
    }

    /// Prints one JSON object on a line of its own.
    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.print(json_line(value)?)
    }

    /// Says one line on standard error, whatever it holds. Where that is closed nobody is left to be told.
    pub fn say(&self, line: &str) {
        self.tell(&own_line(line));
    }

    /// Puts text on standard error as it is.
    pub fn tell(&self, text: &str) {
        let mut err = io::stderr().lock();
        // There is no third place in which a failure of standard error could be told.
        let _unheard = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// How wide tables may be, in columns.
    pub fn width(&self) -> usize {
        match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
            _ => self.columns,
        }
    }
}

/// One JSON object on a line of its own.
pub fn json_line(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let failed = |error: serde_json::Error| Failure::System("cannot write JSON".to_owned(), error.into());
    let mut line = serde_json::to_vec(value).map_err(failed)?;
    line.push(b'\n');
    Ok(line)
}

/// A line of outlast's own, whatever it holds.
fn own_line(line: &str) -> String {
    format!("outlast: {}\n", display_line(line))
}
