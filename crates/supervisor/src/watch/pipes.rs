//! The output of a command: read as it comes, and passed on.

use std::time::Duration;

use outlast_core::lifecycle::Event;
use outlast_host::clock;
use outlast_host::frame::Stream;
use rustix::event::Timespec;
use rustix::io::Errno;

use super::{PIPES, Watch};
use crate::capture::Capture;
use crate::poll::{Interest, Ready};

/// A read that brought less than this could have waited for more.
const SMALL: usize = 4 << 10;
/// Small reads that follow each other closer than this are a command that writes line by line, without a pause.
const CLOSE: Duration = Duration::from_millis(1);
/// How many of them in a row until more is let gather.
const MANY: u32 = 32;
/// How long more is let gather: less than a pipe takes to be full (64 KiB, pipe(7)) at several hundred MiB a second.
const GATHER: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000 };

/// Bytes that may wait for a caller where there is no log.
const QUEUED: usize = 1 << 20;
/// How long a command that has printed much waits for a caller that follows its output and does not go on reading.
const PATIENCE: Duration = Duration::from_secs(2);

/// How closely small reads follow each other.
///
/// A command that writes line by line wakes its reader with each line and pays for that. If the reader looks a moment
/// later instead, it finds many lines at once and the command none to wake.
#[derive(Default)]
pub struct Pace {
    in_a_row: u32,
    last: Duration,
}

impl Pace {
    fn note(&mut self, bytes: usize, now: Duration) {
        let close = bytes < SMALL && now.saturating_sub(self.last) < CLOSE;
        self.in_a_row = if close { self.in_a_row.saturating_add(1) } else { 0 };
        self.last = now;
    }

    /// Waits a moment where that pays.
    pub fn let_gather(&self) {
        if self.in_a_row >= MANY {
            // A wait for nothing is a pause; one that is cut short is as good.
            let _ = rustix::event::poll(&mut [], Some(&GATHER));
        }
    }
}

impl Watch<'_> {
    pub(super) fn read_pipes(&mut self, ready: &[Ready]) {
        for one in ready.iter().filter(|one| (PIPES..PIPES + 2).contains(&one.token)) {
            let room = self.room();
            self.read_pipe((one.token - PIPES) as usize, room);
        }
    }

    /// Reads at most so much of one pipe, for a turn; true if more may be there.
    pub(super) fn read_pipe(&mut self, number: usize, room: u64) -> bool {
        let found = self.pass_on(|capture, sink| capture.read(number, room, sink));
        if found.bytes > 0 {
            self.pace.note(found.bytes, clock::monotonic());
            self.step(Event::Output);
        }
        found.bytes > 0 && !found.closed
    }

    /// Captures something, and passes it on to those who follow an output that is not stored.
    pub(super) fn pass_on<T>(&mut self, capture: impl FnOnce(&mut Capture, &mut dyn FnMut(Stream, &[u8])) -> T) -> T {
        let (held, callers, clients) = (self.records.is_none(), &self.callers, &mut self.clients);
        capture(&mut self.capture, &mut |stream, bytes| {
            for caller in callers.iter().filter(|caller| held && caller.follows) {
                clients.send(caller.number, stream, bytes);
            }
        })
    }

    /// How much more may be read from the pipes until a caller that follows would lose something: what the log's cap
    /// would drop before it was read, or, where there is no log, what is queued for it already.
    fn room(&mut self) -> u64 {
        let mut room = u64::MAX;
        if self.exit.is_some() {
            return room;
        }
        let stored = self.records.is_some();
        let unstorable = !stored && (self.capture.forgot() || self.capture.overflows());
        for caller in self.callers.iter().filter(|caller| caller.follows) {
            let Some(client) = self.clients.get(caller.number) else { continue };
            if stored && !client.lags {
                room = room.min(self.capture.room(client.seen));
            } else if unstorable && client.channel.queued() > QUEUED {
                room = 0;
            }
        }
        room
    }

    /// Lets the command wait for callers that follow, each of them only as long as it goes on reading; one that reads
    /// nothing for a while finds what the cap left.
    pub(super) fn attend_pipes(&mut self, now: Duration) {
        if self.held_up_since.is_some() {
            for number in self.awaited() {
                let until = self.patience(number);
                if let Some(client) = self.clients.get(number) {
                    client.lags = now >= until;
                }
            }
        }
        let full = self.room() == 0;
        if full && self.held_up_since.is_none() {
            self.held_up_since = Some(now);
            for (_, pipe) in self.capture.open_pipes() {
                // One that is not watched is not watched.
                let _ = self.post.poll.remove(pipe);
            }
        } else if !full && self.held_up_since.is_some() && self.watch_pipes() {
            self.held_up_since = None;
        }
    }

    /// When the patience with somebody who does not read is over.
    pub(super) fn patience_over(&mut self) -> Option<Duration> {
        self.held_up_since?;
        self.awaited().into_iter().map(|number| self.patience(number)).min()
    }

    /// The callers that the command waits for, as long as they go on reading its log.
    fn awaited(&mut self) -> Vec<u32> {
        let numbers: Vec<u32> =
            self.callers.iter().filter(|caller| caller.follows).map(|caller| caller.number).collect();
        let stored = self.records.is_some();
        numbers.into_iter().filter(|number| stored && self.clients.get(*number).is_some_and(|one| !one.lags)).collect()
    }

    fn patience(&mut self, number: u32) -> Duration {
        let read_at = self.clients.get(number).map_or(Duration::ZERO, |client| client.read_at);
        read_at.max(self.held_up_since.unwrap_or_default()) + PATIENCE
    }

    /// Watches the pipes from now on; false where that was refused.
    pub(super) fn watch_pipes(&self) -> bool {
        self.capture.open_pipes().all(|(number, fd)| {
            let added = self.post.poll.add(fd, PIPES + number as u64, Interest::Read);
            matches!(added, Ok(()) | Err(Errno::EXIST))
        })
    }
}
