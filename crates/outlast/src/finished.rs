//! What a command that ended in the foreground left: its end and its output.

use std::collections::VecDeque;
use std::path::PathBuf;

use outlast_core::receipt::Change;
use outlast_core::record::{ExitRecord, Gap, Unwritten};
use outlast_core::request::Streams;

use crate::error::Result;
use crate::hide::{Mask, mask_exit, paths};
use crate::output::{Excerpt, Stored, Stream, unwritten_in};

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
    /// What could not be written to the log.
    pub unwritten: Option<Unwritten>,
    /// The log, where there are records.
    pub log: Option<PathBuf>,
    /// Whether its caller joined it when it was there already.
    pub joined: bool,
    /// What the command said it has changed. It is told with this end and is pending for nobody.
    pub changes: Vec<Change>,
    /// Why it was not demoted when it should have been: no records could be made.
    pub not_demoted: Option<String>,
    /// What the policies made of its start, one line each.
    pub remarks: Vec<String>,
    /// Head and tail of each stream, for a reply in text.
    pub excerpts: Vec<Excerpt>,
}

impl Finished {
    /// An end without its output.
    pub(crate) fn of(exit: ExitRecord, materialised: bool) -> Finished {
        let mut finished = Finished {
            materialised,
            output: Vec::new(),
            shown_from: 0,
            truncated: false,
            gap: exit.output.gap,
            unwritten: None,
            log: None,
            joined: false,
            changes: Vec::new(),
            not_demoted: None,
            remarks: Vec::new(),
            excerpts: Vec::new(),
            exit,
        };
        finished.take_kept();
        finished
    }

    /// Takes what was kept of the end of an output whose log failed.
    fn take_kept(&mut self) {
        let Some(tail) = self.exit.kept_tail() else { return };
        self.shown_from = self.exit.output.bytes.saturating_sub(tail.len() as u64);
        self.truncated = self.shown_from > 0;
        // Which stream it came from is not kept.
        let head = match self.excerpts.as_mut_slice() {
            [Excerpt { stream: Stream::Merged, head, .. }] => std::mem::take(head),
            _ => Vec::new(),
        };
        let from = usize::try_from(self.shown_from).unwrap_or(usize::MAX);
        let head = head[..head.len().min(from)].to_vec();
        let missing = self.shown_from - head.len() as u64;
        self.excerpts = vec![if missing == 0 {
            Excerpt { stream: Stream::Merged, head: [head, tail.clone()].concat(), tail: Vec::new(), missing }
        } else {
            Excerpt { stream: Stream::Merged, head, tail: tail.clone(), missing }
        }];
        self.output = tail;
    }

    /// Takes the output that came on the channel.
    pub(crate) fn take_held(&mut self, held: &Held, streams: Streams, mask: Option<&mut Mask>) {
        self.output = held.shown(mask);
        self.shown_from = held.received - held.kept;
        self.truncated = self.shown_from > 0;
        let names: &[Stream] = match streams {
            Streams::Merged => &[Stream::Merged],
            Streams::Separate => &[Stream::Stdout, Stream::Stderr],
        };
        let excerpt = |name: &Stream| {
            let missing = held.dropped.iter().filter(|(stream, _)| stream == name).map(|(_, count)| count).sum();
            let bytes = held.bytes(|stream| stream == *name);
            let (head, tail) = if missing == 0 { (bytes, Vec::new()) } else { (Vec::new(), bytes) };
            Excerpt { stream: *name, head, tail, missing }
        };
        self.excerpts = names.iter().map(excerpt).collect();
    }

    /// Takes its ends from the log.
    pub(crate) fn take_stored(&mut self, stored: &Stored, hold: u64, mask: Option<&mut Mask>) -> Result<()> {
        (self.output, self.shown_from) = stored.tail(hold)?;
        self.truncated = self.shown_from > 0;
        let mut excerpts = stored.excerpts(hold)?;
        if let Some(mask) = mask {
            stored.mask(mask, self.shown_from, Stream::Merged, &mut self.output)?;
            for (excerpt, tail_from) in &mut excerpts {
                stored.mask(mask, 0, excerpt.stream, &mut excerpt.head)?;
                stored.mask(mask, *tail_from, excerpt.stream, &mut excerpt.tail)?;
            }
        }
        self.excerpts = excerpts.into_iter().map(|(excerpt, _)| excerpt).collect();
        let kept = self.exit.kept_tail().map_or(0, |tail| tail.len() as u64);
        self.unwritten = unwritten_in(&stored.log, &self.exit.output, kept)?;
        self.take_kept();
        Ok(())
    }

    /// Masks secrets in its words, and in its output where that did not come from a log.
    pub(crate) fn mask(&mut self, mask: &mut Mask, from_log: bool) {
        if !from_log || self.exit.kept_tail().is_some() {
            mask.cover_alone(&mut self.output, self.shown_from > 0);
            for excerpt in &mut self.excerpts {
                mask.cover_alone(&mut excerpt.head, false);
                mask.cover_alone(&mut excerpt.tail, excerpt.missing > 0);
            }
        }
        mask_exit(&mut self.exit, mask);
        paths(&mut self.changes, mask);
    }
}

/// Output that came on the channel, in order.
#[derive(Debug, Default)]
pub(crate) struct Held {
    chunks: VecDeque<(Stream, Vec<u8>)>,
    kept: u64,
    received: u64,
    dropped: Vec<(Stream, u64)>,
}

impl Held {
    /// The last bytes, at most so many.
    pub(crate) fn last(&self, most: usize, mut mask: Option<Mask>) -> Vec<u8> {
        let mut bytes = self.shown(mask.as_mut());
        bytes.split_off(bytes.len().saturating_sub(most))
    }

    /// Everything that is held, as it is shown.
    fn shown(&self, mask: Option<&mut Mask>) -> Vec<u8> {
        match mask {
            Some(mask) => mask.cover_chunks(self.chunks(), self.received > self.kept),
            None => self.bytes(|_| true),
        }
    }

    /// Everything that is held, chunk by chunk.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (Stream, &[u8])> {
        self.chunks.iter().map(|(stream, bytes)| (*stream, bytes.as_slice()))
    }

    /// Takes a chunk. With `most`, for output that was passed on already, only the last so many bytes are
    /// kept, in whole chunks.
    pub(crate) fn push(&mut self, stream: Stream, bytes: Vec<u8>, most: Option<u64>) {
        self.received += bytes.len() as u64;
        self.kept += bytes.len() as u64;
        self.chunks.push_back((stream, bytes));
        let Some(most) = most else { return };
        while let Some((stream, first)) =
            self.chunks.pop_front_if(|(_, first)| self.kept.saturating_sub(first.len() as u64) >= most)
        {
            self.kept -= first.len() as u64;
            self.dropped.push((stream, first.len() as u64));
        }
        if self.dropped.len() > 64 {
            self.add_up();
        }
    }

    /// Counts what came and was kept by nobody.
    pub(crate) fn skip(&mut self, stream: Stream, bytes: u64) {
        self.received += bytes;
        self.dropped.push((stream, bytes));
    }

    /// How many bytes came.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    fn add_up(&mut self) {
        let mut sums: Vec<(Stream, u64)> = Vec::new();
        for (stream, count) in self.dropped.drain(..) {
            match sums.iter_mut().find(|(known, _)| *known == stream) {
                Some((_, sum)) => *sum += count,
                None => sums.push((stream, count)),
            }
        }
        self.dropped = sums;
    }

    fn bytes(&self, wanted: impl Fn(Stream) -> bool) -> Vec<u8> {
        let chunks = self.chunks.iter().filter(|(stream, _)| wanted(*stream));
        chunks.flat_map(|(_, bytes)| bytes.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_passed_on_is_held_in_bounded_memory() {
        let mut held = Held::default();
        for number in 0..1_000_u32 {
            let stream = if number % 4 == 0 { Stream::Stderr } else { Stream::Stdout };
            held.push(stream, vec![b'x'; 100], Some(1_000));
            assert!(held.kept < 1_100 && held.dropped.len() <= 65);
        }
        held.add_up();
        let dropped: u64 = held.dropped.iter().map(|(_, count)| count).sum();
        assert_eq!((held.received, dropped + held.kept), (100_000, 100_000));
        let mut all = Held::default();
        (0..100).for_each(|_| all.push(Stream::Merged, vec![b'x'; 100], None));
        assert_eq!(all.bytes(|_| true).len(), 10_000);
    }
}
