//! Masks secrets in what a command prints, before any of it is held, shown or stored.

use std::sync::Arc;

use outlast_core::policy::redact::{Counts, Redactor, Stream as Chunks, add_up};
use outlast_host::frame::Stream;

/// What masks the output of one command.
pub struct Veil {
    redactor: Arc<Redactor>,
    chunks: [Chunks; 2],
    counts: Counts,
}

impl Veil {
    /// For an output that begins.
    pub fn new(redactor: Arc<Redactor>) -> Veil {
        Veil { redactor, chunks: Default::default(), counts: Counts::new() }
    }

    /// What can be passed on once these bytes came; the rest waits for what follows.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        let (shown, counts) = self.chunks[place(stream)].push(&self.redactor, bytes);
        add_up(&mut self.counts, counts);
        shown
    }

    /// What waited, of a stream that is over.
    pub fn rest(&mut self, stream: Stream) -> Vec<u8> {
        let (shown, counts) = self.chunks[place(stream)].finish(&self.redactor);
        add_up(&mut self.counts, counts);
        shown
    }

    /// How much was masked since this was asked last, by pattern.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}

fn place(stream: Stream) -> usize {
    usize::from(stream == Stream::Err)
}
