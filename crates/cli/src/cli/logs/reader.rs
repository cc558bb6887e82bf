//! Turns pieces of output into what is printed of them.

use outlast::{Missing, Piece};
use outlast_core::text::clean::Cleaner;
use outlast_core::text::excerpt::{Grep, whole_characters};
use outlast_core::text::fold::{cut_line, fold};
use outlast_core::text::or_no_output;
use outlast_core::units::format_time;

use super::merged;
use crate::exit::Failure;
use crate::output::Printer;
use crate::words;

/// Text that is gathered before equal lines in it are counted, in bytes; what bounds the memory.
const GATHERED: usize = 256 * 1024;

/// Prints output piece by piece, in bounded memory.
pub struct Reader {
    printer: Printer,
    raw: bool,
    timestamps: bool,
    grep: Option<Grep>,
    fold: bool,
    inside: bool,
    cleaner: Cleaner,
    /// The first bytes of a character whose other bytes have not come yet.
    cut: Vec<u8>,
    gathered: String,
    printed: bool,
    last_time: u64,
}

impl Reader {
    /// A reader at the start of a range.
    pub fn new(printer: Printer, raw: bool, timestamps: bool, grep: Option<Grep>) -> Reader {
        Reader {
            printer,
            raw,
            timestamps,
            grep,
            fold: false,
            inside: false,
            cleaner: Cleaner::new(),
            cut: Vec::new(),
            gathered: String::new(),
            printed: false,
            last_time: 0,
        }
    }

    /// The range may start in the middle of a character; the rest of that is left out.
    pub fn starts_inside(&mut self, inside: bool) {
        self.inside = inside;
    }

    /// Runs of equal lines are counted in place of repeated.
    pub fn counts_equal_lines(&mut self) {
        self.fold = !self.timestamps;
    }

    /// Takes the next piece.
    pub fn take(&mut self, piece: Piece) -> Result<(), Failure> {
        match piece {
            Piece::Gap { .. } if self.raw => Ok(()),
            Piece::Gap { why, offset, bytes } => self.gap(why, offset, bytes),
            Piece::Bytes { bytes, .. } if self.raw => self.printer.print(bytes),
            Piece::Bytes { at_ms: None, .. } if self.timestamps => Err(merged("--timestamps")),
            Piece::Bytes { bytes, at_ms, .. } => {
                self.last_time = at_ms.unwrap_or(self.last_time);
                self.bytes(bytes)
            }
        }
    }

    fn bytes(&mut self, mut bytes: Vec<u8>) -> Result<(), Failure> {
        if std::mem::take(&mut self.inside) {
            // No character has more than three bytes behind its first one.
            let orphans = bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
            bytes.drain(..orphans);
        }
        if !self.cut.is_empty() {
            bytes.splice(..0, std::mem::take(&mut self.cut));
        }
        self.cut = bytes.split_off(whole_characters(&bytes));
        self.cleaner.push(&bytes);
        let lines = self.cleaner.take_lines();
        self.lines(&lines)
    }

    /// Ends the text before the gap and begins anew behind it.
    fn gap(&mut self, why: Missing, offset: u64, bytes: u64) -> Result<(), Failure> {
        let rest = std::mem::take(&mut self.cleaner).finish();
        self.cut.clear();
        self.lines(&rest)?;
        if !rest.is_empty() && !rest.ends_with('\n') && self.grep.is_none() {
            self.gathered.push('\n');
        }
        self.flush()?;
        self.inside = true;
        let next = offset.saturating_add(bytes);
        let mark = words::missing_here(why);
        self.printer
            .print(format!("[{bytes} bytes {mark}, from offset {offset}; the next offset that exists is {next}]\n"))
    }

    fn lines(&mut self, text: &str) -> Result<(), Failure> {
        for line in text.split_inclusive('\n') {
            let bare = line.strip_suffix('\n').unwrap_or(line);
            if self.grep.as_ref().is_some_and(|grep| !grep.matches(bare)) {
                continue;
            }
            if self.timestamps {
                self.gathered.push_str(&format_time(self.last_time));
                self.gathered.push(' ');
            }
            self.gathered.push_str(&if self.fold { bare.into() } else { cut_line(bare) });
            if line.len() > bare.len() || self.grep.is_some() {
                self.gathered.push('\n');
            }
        }
        if self.fold && self.gathered.len() < GATHERED { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        self.printed = true;
        let text = std::mem::take(&mut self.gathered);
        self.printer.print(if self.fold { fold(&text) } else { text })
    }

    /// Prints what is left. `cut_off`: the range was cut, so that half a character at its end is no fault
    /// of the output.
    pub fn finish(&mut self, cut_off: bool) -> Result<(), Failure> {
        if self.raw {
            return Ok(());
        }
        let mut cleaner = std::mem::take(&mut self.cleaner);
        if !cut_off {
            cleaner.push(&self.cut);
        }
        self.lines(&cleaner.finish())?;
        self.flush()?;
        if self.grep.is_some() && !self.printed {
            return self.printer.print(format!("{}\n", or_no_output("")));
        }
        Ok(())
    }
}
