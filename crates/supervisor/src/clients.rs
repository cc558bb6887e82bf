//! The front ends that talk to a supervisor: who listens for what, and what each still waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::record::{OutputState, Survivor};
use outlast_core::wire::FromSupervisor;
use outlast_host::frame::{Channel, Stream};

use crate::poll::{Interest, Poll};

/// Bytes that may wait to be sent to one front end; one that does not read is hung up on.
const QUEUE_BOUND: usize = 4 << 20;

/// A stop whose answer is due.
pub struct StopWait {
    /// When it is answered in any case.
    pub until: Duration,
    /// Rounds of signals that were sent before it.
    pub signals_before: u32,
    /// Whether the command had ended before.
    pub already_ended: bool,
    /// Survivors that were alive then.
    pub survivors: Vec<Survivor>,
}

/// What became of input that a front end sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// It sent none, or was told.
    None,
    /// Some of it waits to be read by the command.
    Waiting,
    /// All of it was written into the command's standard input.
    Taken,
    /// The command's standard input was closed before.
    Refused,
}

/// One front end.
pub struct Client {
    /// Its connection.
    pub channel: Channel,
    /// It wants to hear of the end.
    pub subscribed: bool,
    /// It wants to hear of output, and may be told now.
    pub credit: bool,
    /// Bytes of output that it has read.
    pub seen: u64,
    /// When it last said how much it has read.
    pub read_at: Duration,
    /// It follows the output and has not read for so long that nothing waits for it.
    pub lags: bool,
    /// A stop that it asked for.
    pub stop: Option<StopWait>,
    /// What became of the input that it sent.
    pub input: Input,
    /// It waits to hear that.
    pub input_wait: bool,
    /// It sent more input than the command reads, and is not listened to until there is room.
    pub paused: bool,
    interest: Interest,
}

/// All front ends of one command, by number.
#[derive(Default)]
pub struct Clients {
    by_number: BTreeMap<u32, Client>,
    next: u32,
}

/// The token of client `number`.
pub fn token(number: u32) -> u64 {
    CLIENT_TOKENS + u64::from(number)
}

/// Tokens from here on are clients.
pub const CLIENT_TOKENS: u64 = 1 << 32;

impl Clients {
    /// Takes a connection in; none where it cannot be watched.
    pub fn add(&mut self, poll: &Poll, channel: Channel) -> Option<u32> {
        let number = self.next;
        poll.add(&channel, token(number), Interest::Read).ok()?;
        self.next += 1;
        let client = Client {
            channel,
            subscribed: false,
            credit: false,
            seen: 0,
            read_at: Duration::ZERO,
            lags: false,
            stop: None,
            input: Input::None,
            input_wait: false,
            paused: false,
            interest: Interest::Read,
        };
        self.by_number.insert(number, client);
        Some(number)
    }

    /// Client `number`, if it is still there.
    pub fn get(&mut self, number: u32) -> Option<&mut Client> {
        self.by_number.get_mut(&number)
    }

    /// The numbers of all clients.
    pub fn numbers(&self) -> Vec<u32> {
        self.by_number.keys().copied().collect()
    }

    /// Forgets client `number` and gives its connection back.
    pub fn remove(&mut self, poll: &Poll, number: u32) -> Option<Channel> {
        let client = self.by_number.remove(&number)?;
        // A descriptor that was closed meanwhile is watched no longer anyway.
        let _ = poll.remove(&client.channel);
        Some(client.channel)
    }

    /// Says something to client `number`. One that is gone or does not read is dropped at the next turn.
    pub fn say(&mut self, number: u32, what: &FromSupervisor) {
        if let Some(client) = self.by_number.get_mut(&number) {
            // What cannot be sent shows as a hang-up when the client is looked at next.
            let _ = client.channel.send_json(what);
        }
    }

    /// Sends output to client `number`.
    pub fn send(&mut self, number: u32, stream: Stream, bytes: &[u8]) {
        if let Some(client) = self.by_number.get_mut(&number) {
            for piece in bytes.chunks(1 << 20) {
                let _ = client.channel.send_bytes(stream, piece);
            }
        }
    }

    /// Says something to everyone who subscribed.
    pub fn tell(&mut self, what: &FromSupervisor) {
        for number in self.numbers() {
            if self.get(number).is_some_and(|client| client.subscribed) {
                self.say(number, what);
            }
        }
    }

    /// Tells growth to those who read all that they were told of before.
    pub fn tell_growth(&mut self, output: &OutputState) {
        for client in self.by_number.values_mut() {
            if client.credit && output.bytes > client.seen {
                client.credit = false;
                let _ = client.channel.send_json(&FromSupervisor::Grew { output: *output });
            }
        }
    }

    /// Watches for room where something waits to be sent. True if anything still waits.
    pub fn settle(&mut self, poll: &Poll) -> bool {
        let mut waits = false;
        for (number, client) in &mut self.by_number {
            let interest = match (client.channel.want_write(), client.paused) {
                (true, false) => Interest::Both,
                (true, true) => Interest::Write,
                (false, false) => Interest::Read,
                (false, true) => Interest::Neither,
            };
            waits |= client.channel.want_write();
            if interest != client.interest && poll.set(&client.channel, token(*number), interest).is_ok() {
                client.interest = interest;
            }
        }
        waits
    }

    /// Client `number` says how much of the output it has read, and wants to hear of more.
    pub fn has_read(&mut self, number: u32, seen: u64, now: Duration) {
        if let Some(client) = self.by_number.get_mut(&number) {
            (client.seen, client.credit, client.read_at, client.lags) = (seen, true, now, false);
        }
    }

    /// Whether client `number` let too much wait.
    pub fn is_stuck(&self, number: u32) -> bool {
        self.by_number.get(&number).is_some_and(|client| client.channel.queued() > QUEUE_BOUND)
    }
}
