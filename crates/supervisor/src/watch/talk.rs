//! What front ends ask of a supervisor, and its answers.

use std::time::Duration;

use outlast_core::lifecycle::{Cause, Event, KILL_BOUND, Stage};
use outlast_core::record::Phase;
use outlast_core::wire::{FromSupervisor, LiveStatus, StopReport, ToOwnKeeper, ToSupervisor};
use outlast_host::clock;
use outlast_host::effect;
use outlast_host::frame::{Body, Stream};
use outlast_host::sys::reap;
use outlast_host::terminal::END_OF_INPUT;
use rustix::io::Errno;
use rustix::process::Signal;

use super::{DOOR, INPUT_BOUND, LINK, STDIN, Stdin, Watch};
use crate::clients::{Input, StopWait, token};
use crate::poll::{Interest, Ready};
use crate::tree;

/// Beyond KILL and its bound, for the answer to say what is still alive.
const ANSWER_SLACK: Duration = Duration::from_millis(200);

impl Watch<'_> {
    pub(super) fn open_door(&mut self) {
        let Some(records) = &self.records else { return };
        // A connection that failed before it was accepted, or one of another user, is nobody's loss.
        while let Ok(Some(channel)) = records.door.accept() {
            self.clients.add(&self.post.poll, channel);
        }
    }

    /// Opens the door again where somebody took it away: without a keeper nobody passes a caller on.
    pub(super) fn open_door_again(&mut self) {
        self.open_door();
        let Some(records) = self.records.as_mut().filter(|records| !records.dir.has_door()) else { return };
        // Where there can be none now, a keeper ends the command by a signal.
        if let Ok(door) = records.dir.bind_door() {
            let _ = self.post.poll.remove(&records.door);
            records.door = door;
            let _ = self.post.poll.add(&records.door, DOOR, Interest::Read);
        }
    }

    pub(super) fn hear_client(&mut self, number: u32, ready: Ready) {
        let Some(client) = self.clients.get(number) else { return };
        let mut gone = ready.writable && client.channel.flush().is_err();
        // One that is not listened to is heard of only when it hangs up: then all that it said counts.
        client.paused = false;
        while !gone {
            let Some(client) = self.clients.get(number) else { return };
            if client.paused {
                break;
            }
            match client.channel.receive() {
                Ok(Some(frame)) => match (&frame.body, frame.json::<ToSupervisor>()) {
                    (Body::Bytes { stream: Stream::In, bytes }, _) => self.input(number, bytes, ready.readable),
                    (Body::Json(_), Ok(message)) => self.answer(number, message),
                    (Body::Bytes { .. } | Body::Json(_), _) => gone = true,
                },
                Ok(None) => {
                    gone = client.channel.is_eof();
                    break;
                }
                Err(_) => gone = true,
            }
        }
        // For a caller the command waits, as the output has no other place to go.
        if gone || !self.is_caller(number) && self.clients.is_stuck(number) {
            self.clients.remove(&self.post.poll, number);
            self.client_gone(number);
        }
    }

    fn answer(&mut self, number: u32, message: ToSupervisor) {
        match message {
            ToSupervisor::Demote => self.demote_for(number),
            ToSupervisor::Told if self.is_caller(number) && self.exit.is_some() => self.caller_told(number),
            ToSupervisor::Told => {}
            ToSupervisor::Stop { by, grace_ms, signal, force } => match self.others(number).filter(|_| !force) {
                Some(others) => self.clients.say(number, &FromSupervisor::NotStopped { others }),
                None => self.stop(number, by, grace_ms, signal),
            },
            // One of several callers has no more right to end the command by it than by a stop.
            ToSupervisor::Signal { signal } => match self.others(number).filter(|_| self.is_caller(number)) {
                Some(others) => self.clients.say(number, &FromSupervisor::NotStopped { others }),
                None => {
                    let refused = self.send_signal(signal);
                    self.clients.say(number, &FromSupervisor::Delivered { refused });
                }
            },
            ToSupervisor::InputDone { close } => self.input_done(number, close),
            ToSupervisor::Receipt { id, paths } => self.take_receipt(number, id, paths),
            ToSupervisor::Status => self.tell_status(number),
            ToSupervisor::Subscribe { growth } => self.subscribe(number, growth),
            ToSupervisor::More { seen } => self.clients.has_read(number, seen, clock::monotonic()),
            ToSupervisor::Keep => self.take_keeper(number),
            ToSupervisor::Start { request } if self.joining.contains(&number) => self.take_in(number, &request),
            ToSupervisor::Start { .. } => {
                let text = format!("{} runs here; a supervisor takes one command at a time", self.request.id);
                self.clients.say(number, &FromSupervisor::Note { text });
            }
        }
    }

    fn subscribe(&mut self, number: u32, growth: bool) {
        let output = self.capture.output();
        if let Some(client) = self.clients.get(number) {
            (client.subscribed, client.credit) = (true, growth);
            client.seen = 0;
        }
        // Who comes late hears at once what the others heard.
        if let Some(exit) = self.exit.clone() {
            let materialised = self.records.is_some();
            self.clients.say(number, &FromSupervisor::Ended { exit: Box::new(exit), materialised });
        }
        if self.life.stage() == Stage::Over {
            self.clients.say(number, &FromSupervisor::CaptureClosed { output });
        }
    }

    fn tell_status(&mut self, number: u32) {
        let now = clock::monotonic();
        let running = self.life.phase() != Phase::Ended;
        let status = LiveStatus {
            id: self.request.id,
            alias: self.records.as_ref().map(|records| records.alias),
            phase: self.life.phase(),
            leader: (!self.reaped).then(|| self.leader.clone()),
            supervisor: self.post.me.clone(),
            elapsed_ms: u64::try_from(self.life.elapsed(now).as_millis()).unwrap_or(u64::MAX),
            output: self.capture.output(),
            survivors: if self.reaped && reap::has_children() { tree::survivors() } else { Vec::new() },
            errors: self.all_errors(),
            stopping_by: match self.life.cause() {
                Some(Cause::Stop { by }) if running => Some(by.clone()),
                _ => None,
            },
            demoted_at_ms: self.demoted_at_ms,
            stdin_open: self.stdin.is_some(),
            exit: self.exit.clone().map(Box::new),
            quiet_ms: u64::try_from(self.life.quiet(now).as_millis()).unwrap_or(u64::MAX),
        };
        self.clients.say(number, &FromSupervisor::Status(Box::new(status)));
        let tail = self.capture.tail().to_vec();
        self.clients.send(number, Stream::Out, &tail);
    }

    fn stop(&mut self, number: u32, by: String, grace_ms: Option<u64>, signal: Option<i32>) {
        let now = clock::monotonic();
        let signal = match signal.map(Signal::from_named_raw) {
            Some(None) => {
                let text = format!("{} is no signal that can be sent", signal.unwrap_or_default());
                self.clients.say(number, &FromSupervisor::Note { text });
                return;
            }
            Some(Some(signal)) => signal,
            None => Signal::TERM,
        };
        let grace = Duration::from_millis(grace_ms.unwrap_or(self.request.stop_grace_ms));
        if let Some(client) = self.clients.get(number) {
            client.stop = Some(StopWait {
                until: now + grace + KILL_BOUND + ANSWER_SLACK,
                signals_before: self.signals_sent,
                already_ended: self.life.is_recorded() || self.reaped,
                survivors: if self.reaped { tree::survivors() } else { Vec::new() },
            });
        }
        if self.life.cause().is_none() {
            self.first_signal = signal;
        }
        self.step(Event::Stop { cause: Cause::Stop { by }, grace: Some(grace) });
    }

    /// When the next answer to a stop is due in any case.
    pub(super) fn stop_deadline(&mut self) -> Option<Duration> {
        let numbers = self.clients.numbers();
        numbers.into_iter().filter_map(|number| self.clients.get(number)?.stop.as_ref().map(|stop| stop.until)).min()
    }

    /// Answers stops that are verified, or whose bound is over.
    pub(super) fn answer_stops(&mut self, now: Duration) {
        let verified = self.life.stage() == Stage::Over;
        for number in self.clients.numbers() {
            let Some(client) = self.clients.get(number) else { continue };
            let Some(stop) = client.stop.take_if(|stop| verified || now >= stop.until) else { continue };
            let report = StopReport {
                signals: self.signals_sent - stop.signals_before,
                already_ended: stop.already_ended,
                verified,
                ended_survivors: if verified { stop.survivors } else { Vec::new() },
                alive: if verified { Vec::new() } else { tree::survivors() },
            };
            self.clients.say(number, &FromSupervisor::Stopped(report));
        }
    }

    /// One signal to the command's group, which is not a stop.
    fn send_signal(&mut self, signal: i32) -> Option<String> {
        let Some(signal) = Signal::from_named_raw(signal) else {
            return Some(format!("{signal} is no signal that can be sent"));
        };
        if self.reaped {
            return Some(format!("{} has ended", self.request.id));
        }
        (!self.tree().signal_group(signal)).then(|| format!("nobody of {} is left to signal", self.request.id))
    }

    fn input(&mut self, number: u32, bytes: &[u8], listening: bool) {
        let Some(client) = self.clients.get(number) else { return };
        match &mut self.stdin {
            Some(stdin) => {
                stdin.take(bytes);
                client.input = Input::Waiting;
                client.paused = listening && stdin.queue.len() > INPUT_BOUND;
            }
            None => client.input = Input::Refused,
        }
        self.write_stdin();
    }

    /// Answers once everything that was sent is written, or cannot be.
    fn input_done(&mut self, number: u32, close: bool) {
        let refusal = self.stdin_refusal();
        let Some(client) = self.clients.get(number) else { return };
        client.input_wait = true;
        match &mut self.stdin {
            Some(stdin) => {
                if close {
                    stdin.end();
                }
                client.input = Input::Waiting;
                self.write_stdin();
            }
            None if client.input == Input::Taken => self.answer_input(number, None),
            None => self.answer_input(number, refusal),
        }
    }

    fn stdin_refusal(&self) -> Option<String> {
        Some(match (self.reaped, self.request.stdin) {
            (true, _) => format!("{} has ended", self.request.id),
            (false, outlast_core::request::Stdin::Null) => {
                format!("{} has no open standard input; start it with --stdin or --pty", self.request.id)
            }
            (false, outlast_core::request::Stdin::Open | outlast_core::request::Stdin::Terminal(_)) => {
                format!("the standard input of {} is closed", self.request.id)
            }
        })
    }

    /// Writes what the command takes now; closes and answers when nothing waits any more.
    pub(super) fn write_stdin(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        let hung_up = stdin.line_begun.is_some() && !self.capture.is_open();
        let closed = loop {
            if hung_up {
                break true;
            }
            let (front, _) = stdin.queue.as_slices();
            if front.is_empty() {
                break stdin.close_when_empty;
            }
            match effect::write("stdin", &stdin.fd, front) {
                Ok(count) => drop(stdin.queue.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => break false,
                // The command closed its end: nothing can be delivered any more.
                Err(_) => break true,
            }
        };
        let (empty, room) = (stdin.queue.is_empty(), stdin.queue.len() <= INPUT_BOUND);
        watch_stdin(&self.post.poll, stdin, !empty && !closed);
        if closed {
            let _ = self.post.poll.remove(&stdin.fd);
            self.stdin = None;
        }
        if empty || closed {
            self.settle_input(if empty { Input::Taken } else { Input::Refused });
        }
        if room || closed {
            self.resume_paused();
        }
    }

    /// Closes a terminal at which nobody is any more. What is typed there would be taken and reach nobody, and the kernel
    /// goes on to tell of its hang-up as long as it is open in any way (epoll(7)).
    pub(super) fn leave_terminal(&mut self) {
        let terminal = self.stdin.as_ref().is_some_and(|stdin| stdin.line_begun.is_some());
        if terminal && !self.capture.is_open() {
            self.write_stdin();
        }
    }

    /// What waited was taken, or never will be: those who wait to hear it are told.
    fn settle_input(&mut self, became: Input) {
        for number in self.clients.numbers() {
            let Some(client) = self.clients.get(number) else { continue };
            if client.input == Input::Waiting {
                client.input = became;
            }
            if client.input_wait {
                let refused = format!("{} closed its standard input", self.request.id);
                self.answer_input(number, (became == Input::Refused).then_some(refused));
            }
        }
    }

    fn answer_input(&mut self, number: u32, refused: Option<String>) {
        if let Some(client) = self.clients.get(number) {
            (client.input, client.input_wait) = (Input::None, false);
        }
        self.clients.say(number, &FromSupervisor::Delivered { refused });
    }

    /// Those who were not listened to are heard again; what they sent may be here already.
    fn resume_paused(&mut self) {
        for number in self.clients.numbers() {
            let paused = self.clients.get(number).is_some_and(|client| std::mem::take(&mut client.paused));
            if paused {
                let ready = Ready { token: token(number), readable: true, writable: false };
                self.hear_client(number, ready);
            }
        }
    }

    /// At the end: who sent input and did not ask yet is told all the same.
    pub(super) fn settle_input_at_end(&mut self) {
        let refusal = self.stdin_refusal();
        for number in self.clients.numbers() {
            let input = self.clients.get(number).map_or(Input::None, |client| client.input);
            match input {
                Input::Taken => self.answer_input(number, None),
                Input::Waiting | Input::Refused => self.answer_input(number, refusal.clone()),
                Input::None => {}
            }
        }
    }

    /// The connection of a new keeper takes the place of the private socket.
    fn take_keeper(&mut self, number: u32) {
        let Some(channel) = self.clients.remove(&self.post.poll, number) else { return };
        if self.post.link.is_some() || self.post.poll.add(&channel, LINK, Interest::Read).is_err() {
            return;
        }
        (self.post.link, self.post.link_waits) = (Some(channel), false);
        self.kept_again();
        self.introduce();
        if let Some(exit) = &self.exit {
            let unwritten = self.records.is_none().then(|| Box::new(exit.clone()));
            self.post.tell_keeper(&ToOwnKeeper::Recorded { exit: unwritten }, None);
            if self.told {
                self.post.tell_keeper(&ToOwnKeeper::Told, None);
            }
        }
        // What it said right behind its first message may be here already.
        self.hear_keeper();
    }
}

impl Stdin {
    fn take(&mut self, bytes: &[u8]) {
        self.queue.extend(bytes);
        if let (Some(begun), Some(last)) = (&mut self.line_begun, bytes.last()) {
            *begun = !last.is_ascii_control();
        }
    }

    /// A pipe is closed behind what waits. At a terminal the end of input is typed: first it ends a line that was
    /// begun, and at the beginning of a line it says that nothing more comes (termios(3), VEOF).
    fn end(&mut self) {
        match &mut self.line_begun {
            None => self.close_when_empty = true,
            Some(begun) => {
                let times = if std::mem::take(begun) { 2 } else { 1 };
                self.queue.extend(std::iter::repeat_n(END_OF_INPUT, times));
            }
        }
    }
}

fn watch_stdin(poll: &crate::poll::Poll, stdin: &mut Stdin, wanted: bool) {
    if wanted == stdin.watched {
        return;
    }
    let changed = if wanted { poll.add(&stdin.fd, STDIN, Interest::Write) } else { poll.remove(&stdin.fd) };
    if changed.is_ok() {
        stdin.watched = wanted;
    }
}
