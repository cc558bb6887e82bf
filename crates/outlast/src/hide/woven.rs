//! Masks an output in which two streams take turns: what is secret in one of them, and what is in both as they stand.

use std::ops::Range;

use outlast_core::policy::redact::{CONTEXT, Counts, Edges, Redactor, add_up};
use outlast_host::frame;
use outlast_host::store::index::Entry;

use super::Mask;
use crate::error::Result;
use crate::output::{STEP, Stored, Stream};

/// Masks bytes in which streams take turns; `parts` says where each of them has its bytes. What is counted is what touches
/// `part`.
pub(crate) fn cover<S: Copy + PartialEq>(
    redactor: &Redactor,
    bytes: &mut [u8],
    part: &Range<usize>,
    parts: &[(Range<usize>, S)],
    edges: Edges,
) -> Counts {
    let mut together = bytes.to_vec();
    let of_all = redactor.mask_part(&mut together, part.clone(), edges);
    let mut counts = Counts::new();
    let mut streams: Vec<S> = Vec::new();
    for (_, stream) in parts {
        if !streams.contains(stream) {
            streams.push(*stream);
        }
    }
    for stream in streams {
        let places = || parts.iter().filter(|(_, other)| *other == stream).map(|(place, _)| place);
        let mut own: Vec<u8> = places().flat_map(|place| bytes[place.clone()].iter().copied()).collect();
        let before = |end: usize| places().map(|place| place.end.min(end).saturating_sub(place.start)).sum();
        add_up(&mut counts, redactor.mask_part(&mut own, before(part.start)..before(part.end), edges));
        let mut masked = own.into_iter();
        for place in places() {
            bytes[place.clone()].iter_mut().zip(&mut masked).for_each(|(byte, masked)| *byte = masked);
        }
    }
    // What both find is one.
    for (name, count) in of_all {
        counts.entry(name).or_insert(count);
    }
    for (byte, other) in bytes.iter_mut().zip(together).filter(|(_, other)| *other == b'*') {
        *byte = other;
    }
    counts
}

/// A part of a stored output, and which of its bytes are masked.
#[derive(Debug)]
pub(crate) struct Window {
    from: u64,
    masked: Vec<bool>,
    /// What is masked in it, until it was counted.
    counts: Counts,
}

impl Stored {
    /// Masks bytes of a stream that were read from this offset on, or of the output as it stands.
    pub(crate) fn mask_woven(
        &self,
        mask: &mut Mask,
        index: &[Entry],
        (mut at, stream): (u64, Stream),
        bytes: &mut [u8],
    ) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let gap = self.log.gap();
            if let Some(gap) = gap.filter(|gap| (gap.offset..gap.offset + gap.bytes).contains(&at)) {
                at = gap.offset + gap.bytes;
            }
            let mut end = u64::MAX;
            if let Some(wire) = wire(stream) {
                let first = index.partition_point(|entry| entry.offset + u64::from(entry.length) <= at);
                if let Some(entry) = index[first..].iter().find(|entry| entry.stream == wire) {
                    let next = at.max(entry.offset);
                    // It may begin in what was dropped.
                    let is_dropped = gap.is_some_and(|gap| (gap.offset..gap.offset + gap.bytes).contains(&next));
                    (at, end) = (next, entry.offset + u64::from(entry.length));
                    if is_dropped {
                        continue;
                    }
                }
            }
            end = gap.filter(|gap| gap.offset > at).map_or(end, |gap| end.min(gap.offset));
            let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(rest.len());
            let (piece, after) = rest.split_at_mut(length);
            let done = self.mask_piece(mask, index, at, piece)?;
            if done < length {
                mask.cover_alone(&mut piece[done..], at > 0);
            }
            (at, rest) = (at + length as u64, after);
        }
        Ok(())
    }

    /// Masks bytes that stand at this offset, as far as they are stored; says how many that are.
    fn mask_piece(&self, mask: &mut Mask, index: &[Entry], offset: u64, piece: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < piece.len() {
            let at = offset + done as u64;
            let is_in = |window: &Window| (window.from..window.from + window.masked.len() as u64).contains(&at);
            if !mask.window.as_ref().is_some_and(is_in) {
                mask.window = Some(self.window(mask, index, at)?);
            }
            let Some(window) = mask.window.as_mut().filter(|window| is_in(window)) else { break };
            let skipped = usize::try_from(at - window.from).unwrap_or(usize::MAX);
            let masked = &window.masked[skipped..];
            let count = masked.len().min(piece.len() - done);
            for (byte, _) in piece[done..].iter_mut().zip(masked).filter(|(_, masked)| **masked) {
                *byte = b'*';
            }
            if masked[..count].contains(&true) {
                add_up(&mut mask.counts, std::mem::take(&mut window.counts));
            }
            done += count;
        }
        Ok(done)
    }

    fn window(&self, mask: &Mask, index: &[Entry], from: u64) -> Result<Window> {
        let context = self.before(from)?;
        let begin = from - context.len() as u64;
        let step = STEP as u64;
        let mut bytes = [context.clone(), self.range(from, from + step + CONTEXT as u64)?].concat();
        let end = begin + bytes.len() as u64;
        let part = context.len()..bytes.len().min(context.len() + STEP);
        let edges = Edges { cut_before: begin > 0, cut_after: mask.open || end < self.output.bytes };
        let came = bytes.clone();
        let parts = self.parts(index, begin, came.len());
        let counts = cover(&mask.redactor, &mut bytes, &part, &parts, edges);
        let masked = part.map(|at| bytes[at] != came[at]).collect();
        Ok(Window { from, masked, counts })
    }

    /// Where each stream has its bytes in a part of the output of this length.
    fn parts(&self, index: &[Entry], begin: u64, length: usize) -> Vec<(Range<usize>, frame::Stream)> {
        let place = |offset: u64| usize::try_from(offset.saturating_sub(begin)).unwrap_or(length).min(length);
        let first = index.partition_point(|entry| entry.offset + u64::from(entry.length) <= begin);
        let parts = index[first..]
            .iter()
            .map(|entry| (place(entry.offset)..place(entry.offset + u64::from(entry.length)), entry.stream));
        parts.take_while(|(place, _)| !place.is_empty()).collect()
    }

    /// What stands before an offset in each stream, and whether more is missing before that.
    pub(crate) fn contexts(&self, offset: u64) -> Result<Vec<(Stream, Vec<u8>, bool)>> {
        let bytes = self.before(offset)?;
        let begin = offset - bytes.len() as u64;
        let (Some(index), true) = (&self.index, self.separate) else {
            return Ok(vec![(Stream::Merged, bytes, begin > 0)]);
        };
        let parts = self.parts(index, begin, bytes.len());
        let of = |stream: Stream| -> Vec<u8> {
            let places = parts.iter().filter(|(_, other)| Some(*other) == wire(stream));
            places.flat_map(|(place, _)| bytes[place.clone()].iter().copied()).collect()
        };
        Ok([Stream::Stdout, Stream::Stderr].into_iter().map(|stream| (stream, of(stream), begin > 0)).collect())
    }
}

fn wire(stream: Stream) -> Option<frame::Stream> {
    match stream {
        Stream::Merged => None,
        Stream::Stdout => Some(frame::Stream::Out),
        Stream::Stderr => Some(frame::Stream::Err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: R5
    #[test]
    fn r5_a_secret_is_masked_over_what_another_stream_says_in_between() {
        let redactor = Redactor::new([b"zqxwvutsrqponm9".to_vec()]);
        let parts = [(0..8, 1), (8..10, 2), (10..18, 1)];
        let mut bytes = b"zqxwvutsE\nrqponm9\n".to_vec();
        let counts = cover(&redactor, &mut bytes, &(0..18), &parts, Edges::default());
        assert_eq!((bytes.as_slice(), counts), (&b"********E\n*******\n"[..], Counts::from([("environment", 1)])));
        // And one that two streams make together.
        let mut bytes = b"zqxwvutsrqponm9\n".to_vec();
        let counts = cover(&redactor, &mut bytes, &(0..16), &[(0..8, 1), (8..16, 2)], Edges::default());
        assert_eq!((bytes.as_slice(), counts), (&b"***************\n"[..], Counts::from([("environment", 1)])));
    }
}
