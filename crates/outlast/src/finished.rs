//! What a command that ended in the foreground left: its end and its output.

use std::path::PathBuf;

use outlast_core::record::{ExitRecord, Gap};
use outlast_core::request::Streams;

use crate::error::Result;
use crate::output::{Excerpt, Stored, Stream};

/// A command that ended in the foreground.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Everything about the end.
    pub exit: ExitRecord,
    /// Whether it has records on disk.
    pub materialised: bool,
    /// The last bytes of the output, at most as many as were held; all of it where nothing overflowed.
    pub output: Vec<u8>,
    /// Offset in the output of the first byte of `output`.
    pub shown_from: u64,
    /// Whether `output` is less than all.
    pub truncated: bool,
    /// What the log's cap dropped.
    pub gap: Option<Gap>,
    /// The log, where there are records.
    pub log: Option<PathBuf>,
    /// Why it was not demoted when it should have been: no records could be made.
    pub not_demoted: Option<String>,
    /// Head and tail of each stream, for a reply in text.
    pub excerpts: Vec<Excerpt>,
}

impl Finished {
    /// An end without its output.
    pub(crate) fn of(exit: ExitRecord, materialised: bool) -> Finished {
        Finished {
            materialised,
            output: Vec::new(),
            shown_from: 0,
            truncated: false,
            gap: exit.output.gap,
            log: None,
            not_demoted: None,
            excerpts: Vec::new(),
            exit,
        }
    }

    /// Takes the output that came on the channel: all of it.
    pub(crate) fn take_held(&mut self, held: &[(Stream, Vec<u8>)], streams: Streams) {
        self.output = held.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        let names: &[Stream] = match streams {
            Streams::Merged => &[Stream::Merged],
            Streams::Separate => &[Stream::Stdout, Stream::Stderr],
        };
        self.excerpts = names
            .iter()
            .map(|name| {
                let of_stream = held.iter().filter(|(stream, _)| stream == name);
                let head = of_stream.flat_map(|(_, bytes)| bytes.iter().copied()).collect();
                Excerpt { stream: *name, head, tail: Vec::new(), missing: 0 }
            })
            .collect();
    }

    /// Takes its ends from the log.
    pub(crate) fn take_stored(&mut self, stored: &Stored, hold: u64) -> Result<()> {
        (self.output, self.shown_from) = stored.tail(hold)?;
        self.truncated = self.shown_from > 0;
        self.excerpts = stored.excerpts(hold)?;
        Ok(())
    }
}
