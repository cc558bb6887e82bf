//! Reading the output as it comes.

use outlast_core::record::OutputState;
use outlast_core::wire::{FromSupervisor, ToSupervisor};
use outlast_host::store::command::CommandDir;

use crate::command::Command;
use crate::error::Result;
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
}

impl Command {
    /// Follows its output from this offset.
    pub async fn follow(&self, from: u64) -> Result<Follower> {
        self.follow_stream(from, None).await
    }

    /// Follows one stream of its output from this offset.
    pub async fn follow_stream(&self, from: u64, stream: Option<Stream>) -> Result<Follower> {
        let (dir, link, mut reading) = loop {
            let dir = self.dir()?;
            let mut link = probe::connect(&dir)?;
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
        let closed = link.is_none();
        Ok(Follower { command: self.clone(), dir, link, reading, closed, may_ask: true })
    }
}

impl Follower {
    /// The next piece; none when nothing more will be captured. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.reading.next().await? {
                return Ok(Some(piece));
            }
            if self.closed {
                return Ok(None);
            }
            self.wait().await?;
        }
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
        Ok(())
    }
}
