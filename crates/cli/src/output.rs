//! The only printer: standard output for answers, standard error for what is said beside them.

mod sink;

use std::io::{self, Write};

use outlast_core::names::display_line;
use serde::Serialize;

use crate::exit::Failure;
use crate::words::Width;

pub use sink::{Progress, Sink};

/// Prints answers and remarks.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    /// Whether words may be painted.
    pub colour: bool,
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
        let failed = |error: serde_json::Error| Failure::System("cannot write JSON".to_owned(), error.into());
        let mut line = serde_json::to_vec(value).map_err(failed)?;
        line.push(b'\n');
        self.print(line)
    }

    /// Says one line on standard error, whatever it holds. Where that is closed nobody is left to be told.
    pub fn say(&self, line: &str) {
        self.tell(&format!("outlast: {}\n", display_line(line)));
    }

    /// Puts text on standard error as it is.
    pub fn tell(&self, text: &str) {
        let mut err = io::stderr().lock();
        // There is no third place in which a failure of standard error could be told.
        let _unheard = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// How wide tables may be.
    pub fn width(&self) -> Width {
        match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 => Width::Columns(usize::from(size.ws_col)),
            _ => Width::Free,
        }
    }
}
