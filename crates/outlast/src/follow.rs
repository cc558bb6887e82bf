//! Reading the output as it comes.

use std::collections::VecDeque;

use outlast_core::record::OutputState;
use outlast_core::wire::{FromSupervisor, ToSupervisor};
use outlast_host::store::command::CommandDir;

use crate::command::Command;
use crate::error::Result;
use crate::hide::Flow;
use crate::link::Link;
use crate::output::{Piece, Stream};
use crate::probe;
use crate::read::Reading;

/// The output as it comes, until capture ends.
pub struct Follower {
    command: Command,
    dir: CommandDir,
    link: Option<Link>,
    reading: Reading,
    closed: bool,
    may_ask: bool,
    /// What masks secrets in it.
    flow: Option<Flow>,
    /// What was masked and not given out yet.
    ready: VecDeque<Piece>,
    /// Whether nothing is shown before capture ends.
    withheld: bool,
}

impl Command {
    /// Follows its output from this offset.
    pub async fn follow(&self, from: u64) -> Result<Follower> {
        self.follow_stream(from, None).await
    }

    /// Follows one stream of its output from this offset.
    pub async fn follow_stream(&self, from: u64, stream: Option<Stream>) -> Result<Follower> {
        let mut follower = self.follow_raw(from, stream).await?;
        follower.withheld = self.session.withholds();
        if let Some(redactor) = self.session.redactor() {
            let from = follower.reading.next;
            let contexts = follower.reading.stored().map(|stored| stored.contexts(from)).transpose()?;
            follower.flow = Some(Flow::after(redactor, contexts.unwrap_or_default()));
        }
        Ok(follower)
    }

    /// The same with everything that comes.
    pub(crate) async fn follow_raw(&self, from: u64, stream: Option<Stream>) -> Result<Follower> {
        let (dir, link, mut reading) = loop {
            let dir = self.dir()?;
            let mut link = probe::connect(&dir).await?;
            if let Some(link) = &mut link {
                link.send(&ToSupervisor::Subscribe { growth: true }).await?;
            }
            let reading = self.open_reading(&dir, None, stream);
            // Of records that went to another file system meanwhile half may have been seen.
            if dir.moved()?.is_none() {
                break (dir, link, reading?);
            }
        };
        reading.next = from.min(reading.end);
        reading.waits = link.is_some();
        let closed = link.is_none();
        Ok(Follower {
            command: self.clone(),
            dir,
            link,
            reading,
            closed,
            may_ask: true,
            flow: None,
            ready: VecDeque::new(),
            withheld: false,
        })
    }
}

impl Follower {
    /// The next piece; none when nothing more will be captured. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if (self.closed || !self.withheld)
                && let Some(piece) = self.reading.next().await?
            {
                if self.flow.is_none() {
                    return Ok(Some(piece));
                }
                self.mask(piece)?;
                continue;
            }
            if self.closed {
                self.give_rest(false)?;
                return Ok(self.ready.pop_front());
            }
            self.wait().await?;
        }
    }

    /// Waits for nothing more: what was captured by now is all.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.closed = true;
        self.reread()
    }

    fn mask(&mut self, piece: Piece) -> Result<()> {
        let Some(flow) = &mut self.flow else { return Ok(()) };
        match piece {
            Piece::Bytes { offset, stream, at_ms, bytes } => {
                let (bytes, held) = flow.push(stream, &bytes);
                if !bytes.is_empty() {
                    let offset = offset.saturating_sub(held as u64);
                    self.ready.push_back(Piece::Bytes { offset, stream, at_ms, bytes });
                }
            }
            Piece::Gap { .. } => {
                self.give_rest(true)?;
                self.ready.push_back(piece);
            }
        }
        self.trace_masked()
    }

    /// Gives out what was held back: before a gap, or at the end.
    fn give_rest(&mut self, missing: bool) -> Result<()> {
        let Some(flow) = &mut self.flow else { return Ok(()) };
        for (stream, bytes) in flow.rest(missing) {
            let offset = self.reading.next.saturating_sub(bytes.len() as u64);
            self.ready.push_back(Piece::Bytes { offset, stream, at_ms: None, bytes });
        }
        self.trace_masked()
    }

    fn trace_masked(&mut self) -> Result<()> {
        let Some(flow) = &mut self.flow else { return Ok(()) };
        let counts = std::mem::take(&mut flow.counts);
        self.command.session.trace_redacted(self.command.id, &counts)
    }

    /// Whatever is wrong with the log, as one line.
    pub fn problem(&self) -> Option<&str> {
        self.reading.problem()
    }

    /// The offset of the next byte.
    pub fn next_offset(&self) -> u64 {
        self.reading.next
    }

    /// Waits until there is more to read, or nothing more will come.
    async fn wait(&mut self) -> Result<()> {
        let Some(link) = &mut self.link else {
            self.closed = true;
            return Ok(());
        };
        if self.may_ask {
            self.may_ask = false;
            // What is known of and could not be read (the log failed) is as good as read.
            link.send(&ToSupervisor::More { seen: self.reading.next.max(self.reading.end) }).await?;
        }
        match link.message::<FromSupervisor>().await? {
            Some(FromSupervisor::Grew { output }) => {
                self.may_ask = true;
                self.take_over(output)
            }
            Some(FromSupervisor::CaptureClosed { output }) => {
                self.closed = true;
                // Where the log failed the rest is in the record of the end.
                if output.whole { self.take_over(output) } else { self.reread() }
            }
            Some(_) => Ok(()),
            None => {
                self.closed = true;
                self.link = None;
                self.reread()
            }
        }
    }

    fn take_over(&mut self, output: OutputState) -> Result<()> {
        if self.reading.stored.is_none() {
            return self.reread();
        }
        self.reading.grow(&self.dir, output)
    }

    /// Takes over what the records say, after the supervisor went away.
    fn reread(&mut self) -> Result<()> {
        let fresh = self.command.open_reading(&self.dir, None, None)?;
        self.reading.take_over(fresh);
        self.reading.waits = !self.closed;
        Ok(())
    }
}
