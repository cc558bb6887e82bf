//! A command in the foreground: one loop over what it does, what is typed, and who goes away.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use outlast::{Demotion, Finished, RunEvent, RunRequest, Running, Session, Stream};
use outlast_core::ending::End;
use outlast_core::names::display_line;
use tokio::time::{Instant, timeout_at};

use super::input::Input;
use super::terminal::Keys;
use crate::cli::context::Context;
use crate::cli::signals::{self, Signals};
use crate::exit::{self, Answer, Failure};
use crate::output::{Progress, Sink, json_line};
use crate::view::CommandView;
use crate::words;

/// How the foreground is shown.
pub struct How {
    /// One JSON object at the end in place of the output.
    pub json: bool,
    /// What comes in here goes on to the command.
    pub forward_input: bool,
    /// Whether the command has a terminal of its own.
    pub terminal: bool,
    /// Silence after which a line says so.
    pub quiet_after: Option<Duration>,
    /// Whether the command outlives its session.
    pub detached: bool,
}

/// Something that happened; the loop handles one at a time.
enum Event {
    /// The command did something; nothing more comes from it where there is none.
    Command(Option<RunEvent>),
    /// Output was written, or cannot be any more.
    Output(Progress),
    /// A signal came.
    Signal(i32),
    /// It ended while output before the end was not passed on.
    Over,
    /// Bytes came in, or the end of them.
    Input(io::Result<Vec<u8>>),
    /// The time of the quiet notice is there.
    Quiet,
}

/// Runs it, and ends with its code, or with 75.
pub async fn run(session: &Session, request: RunRequest, how: How, context: &Context) -> Answer {
    let mut caught = vec![signals::INT, signals::QUIT, signals::TERM, signals::HUP];
    if context.config.terminal {
        caught.push(signals::TSTP);
    }
    let signals = Signals::catch(&caught)?;
    let failed = |error| Failure::System("cannot watch the standard streams".to_owned(), error);
    let sink = Sink::new().map_err(failed)?;
    let input = if how.forward_input { Input::new().map_err(failed)? } else { Input::none() };
    let keys = (how.terminal && !how.json).then(Keys::pass_on).flatten();
    let running = session.run(request).await?;
    if running.joined() {
        context.printer.say(&words::joined(running.id()));
    }
    let quiet_at = how.quiet_after.map(|time| Instant::now() + time);
    let front = Front {
        running,
        signals,
        sink,
        input,
        quiet_at,
        quiet_told: false,
        missing: 0,
        input_due: false,
        asked: None,
        stays: false,
        failed: false,
        _keys: keys,
        how,
    };
    front.attend().await
}

/// The foreground of one command.
struct Front {
    running: Running,
    signals: Signals,
    sink: Sink,
    input: Input,
    quiet_at: Option<Instant>,
    /// Whether the one notice of silence was given.
    quiet_told: bool,
    /// Bytes of the output that the log's cap dropped before they were passed on.
    missing: u64,
    /// Whether the command has not taken yet what was sent into it.
    input_due: bool,
    /// Why the demotion was asked for, once it was.
    asked: Option<&'static str>,
    /// Whether it cannot be demoted.
    stays: bool,
    /// Whether output could not be written although somebody may still wait for it.
    failed: bool,
    _keys: Option<Keys>,
    how: How,
}

impl Front {
    async fn attend(mut self) -> Answer {
        loop {
            let event = match self.next().await {
                // Its signal was for a command that others wait for: it leaves, and they have it to themselves.
                Err(Failure::Runtime(outlast::Error::OthersWait { id, others })) => {
                    self.sink.drain();
                    self.sink.say(&format!("{id} goes on; callers that still wait for it: {others}"));
                    return Ok(exit::INTERRUPTED);
                }
                event => event?,
            };
            match event {
                Event::Command(Some(RunEvent::Ended(finished))) => return self.ended(&finished).await,
                Event::Command(Some(RunEvent::Demoted(demotion))) => return self.demoted(&demotion).await,
                Event::Command(Some(event)) => self.show(event),
                Event::Command(None) => {
                    return Err(Failure::Refused("the command went away without a word about its end".to_owned()));
                }
                Event::Output(Progress::Wrote) | Event::Over => {}
                Event::Output(Progress::Closed(error)) => {
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        self.sink.say(&format!("cannot write the output: {error}"));
                        self.failed = true;
                    }
                    self.leave("nobody reads its output here any more").await?;
                }
                Event::Signal(signal) => {
                    if let Some(code) = self.signalled(signal).await? {
                        return Ok(code);
                    }
                }
                Event::Input(bytes) => self.pass_in(bytes).await?,
                Event::Quiet => self.say_quiet(),
            }
            if self.is_leaving() && self.running.has_ended() && !self.sink.is_empty() {
                self.sink.drain();
                return Ok(self.unshown(signals::TERM));
            }
        }
    }

    /// Does what a signal means; the exit code where it ends this call.
    async fn signalled(&mut self, signal: i32) -> Result<Option<u8>, Failure> {
        let typed = matches!(signal, signals::INT | signals::QUIT);
        if self.running.has_ended() {
            return Ok(Some(self.unshown(signal)));
        }
        // Whoever asked once and asks again does not want to wait for the answer.
        if self.is_leaving() || (self.asked.is_some() && !typed) {
            let id = *self.running.id();
            self.sink.drain();
            self.sink
                .say(&format!("{id} is left to itself, and its demotion was not waited for; `outlast ps -a` has it"));
            return Ok(Some(exit::DEMOTED));
        }
        match signal {
            // At a terminal it is a key, and the terminal knows whom it is for (termios(3), VINTR and VQUIT).
            signals::INT if self.how.terminal => self.running.send(b"\x03").await?,
            signals::QUIT if self.how.terminal => self.running.send(b"\x1c").await?,
            signal if typed => self.running.signal(signal).await?,
            signals::TSTP => self.leave("it was moved there by hand").await?,
            _ => self.leave("its caller went away").await?,
        }
        Ok(None)
    }

    /// Whether the demotion was asked for and may still come.
    fn is_leaving(&self) -> bool {
        self.asked.is_some() && !self.stays
    }

    /// The code of a call that ends before it could show the end of the command, which stays to be told.
    fn unshown(&mut self, signal: i32) -> u8 {
        let id = *self.running.id();
        self.sink.drain();
        self.sink
            .say(&format!("{id} has ended, and not all of its output was shown here; `outlast inbox` tells its end"));
        if matches!(signal, signals::INT | signals::QUIT) { exit::INTERRUPTED } else { exit::DEMOTED }
    }

    /// The caller goes away, or wants the terminal back.
    async fn leave(&mut self, why: &'static str) -> Result<(), Failure> {
        if self.asked.replace(why).is_none() {
            self.running.demote().await?;
        }
        Ok(())
    }

    /// Shows an end.
    async fn ended(mut self, finished: &Finished) -> Answer {
        let why = abandoned_because(self.running.session(), finished).await;
        let missing = (!self.how.json).then_some(self.missing);
        let lines = words::ended_inline(finished, why.as_deref(), missing, words::Reader::Shell);
        for line in lines.iter().chain(&finished.remarks) {
            self.sink.say(line);
        }
        if self.how.json {
            self.sink.push(Stream::Merged, json_line(&CommandView::finished(finished))?);
        }
        if let Some(signal) = self.write_out().await? {
            return Ok(self.unshown(signal));
        }
        // Only what was shown counts as told: a reader that went away before hears it later.
        if self.sink.is_open() {
            self.running.told().await?;
        }
        Ok(if self.failed { exit::INTERNAL } else { exit::of_end(&finished.exit.end) })
    }

    /// Shows a demotion. What could not be written yet is in the log.
    async fn demoted(mut self, demotion: &Demotion) -> Answer {
        self.sink.drain();
        for line in super::record_errors(demotion).iter().chain(&demotion.remarks) {
            self.sink.say(line);
        }
        if self.how.json {
            let view = CommandView::demoted(demotion, &demotion.command.snapshot().await?);
            self.sink.push(Stream::Merged, json_line(&view)?);
        } else {
            self.sink.say(&words::moved(demotion, self.how.detached, self.asked));
        }
        if self.is_leaving() {
            self.sink.drain();
        } else {
            self.write_out().await?;
        }
        Ok(exit::DEMOTED)
    }

    /// Writes everything that waits, as long as it takes; the signal that came before it was done.
    async fn write_out(&mut self) -> Result<Option<i32>, Failure> {
        while !self.sink.is_empty() {
            let mut output = pin!(self.sink.progress());
            let mut signal = pin!(self.signals.next());
            let event = poll_fn(|task| match output.as_mut().poll(task) {
                Poll::Ready(progress) => Poll::Ready(Event::Output(progress)),
                Poll::Pending => signal.as_mut().poll(task).map(Event::Signal),
            });
            match event.await {
                Event::Signal(signal) => return Ok(Some(signal)),
                Event::Output(Progress::Closed(error)) => {
                    return Err(Failure::System("cannot write to standard output".to_owned(), error));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// What happens first. More output is only asked for while what came before is written, so that a slow
    /// reader fills nothing here; a demotion and an end are always heard.
    async fn next(&mut self) -> Result<Event, Failure> {
        let over = self.running.has_ended();
        let room = self.sink.is_empty() && (over || !self.is_leaving());
        let (quiet_at, input_due) = (self.quiet_at.filter(|_| !over), self.input_due);
        let running = &mut self.running;
        let mut command = pin!(async {
            let event: Result<Event, outlast::Error> = match (room, over) {
                (true, _) => running.next().await.map(Event::Command),
                (false, false) => {
                    let event = running.next_but_output().await;
                    event.map(|event| event.map_or(Event::Over, |event| Event::Command(Some(event))))
                }
                (false, true) => std::future::pending().await,
            };
            event
        });
        let mut output = pin!(self.sink.progress());
        let mut signal = pin!(self.signals.next());
        let mut input = pin!(self.input.next());
        let mut quiet = pin!(async {
            match quiet_at {
                // A bound on nothing: the time itself is what is waited for.
                Some(at) => drop(timeout_at(at, std::future::pending::<()>()).await),
                None => std::future::pending().await,
            }
        });
        poll_fn(|task| {
            if let Poll::Ready(signal) = signal.as_mut().poll(task) {
                return Poll::Ready(Ok(Event::Signal(signal)));
            }
            if let Poll::Ready(progress) = output.as_mut().poll(task) {
                return Poll::Ready(Ok(Event::Output(progress)));
            }
            if let Poll::Ready(event) = command.as_mut().poll(task) {
                return Poll::Ready(event.map_err(Failure::from));
            }
            if !input_due && let Poll::Ready(bytes) = input.as_mut().poll(task) {
                return Poll::Ready(Ok(Event::Input(bytes)));
            }
            quiet.as_mut().poll(task).map(|()| Ok(Event::Quiet))
        })
        .await
    }

    fn show(&mut self, event: RunEvent) {
        match event {
            RunEvent::Output { stream, bytes } => {
                self.quiet_at = self.how.quiet_after.filter(|_| !self.quiet_told).map(|time| Instant::now() + time);
                if !self.how.json {
                    self.sink.push(stream, bytes);
                }
            }
            // The end and every later look say what the cap dropped.
            RunEvent::OutputGap { bytes } => self.missing += bytes,
            RunEvent::InputTaken { refused } => {
                self.input_due = false;
                // A command that is over, or closed its input, needs no more of it.
                if refused.is_some() {
                    self.input = Input::none();
                }
            }
            RunEvent::NotDemoted { reason } => {
                self.stays = true;
                let reason = display_line(&reason);
                self.sink.say(&format!("it stays in the foreground, it cannot be moved: {reason}"));
            }
            RunEvent::Started { .. } | RunEvent::Demoted(_) | RunEvent::Ended(_) => {}
        }
    }

    async fn pass_in(&mut self, bytes: io::Result<Vec<u8>>) -> Result<(), Failure> {
        match bytes {
            Ok(bytes) if !bytes.is_empty() => {
                self.input_due = true;
                self.running.send(&bytes).await?;
            }
            Ok(_) => self.running.close_input().await?,
            Err(error) => {
                self.sink.say(&format!("cannot read standard input: {error}"));
                self.input = Input::none();
                self.running.close_input().await?;
            }
        }
        Ok(())
    }

    fn say_quiet(&mut self) {
        let Some(time) = self.how.quiet_after else { return };
        (self.quiet_at, self.quiet_told) = (None, true);
        let id = self.running.id().to_string();
        self.sink.say(&self.running.quiet(time).text(&id, false, "`--quiet-after 0s`"));
    }
}

/// Why its session ended it, where it did, as far as that can be known at this moment.
async fn abandoned_because(session: &Session, finished: &Finished) -> Option<String> {
    if !matches!(finished.exit.end, End::Abandoned { .. }) {
        return None;
    }
    let anchor = session.record()?.anchor.as_ref()?.pid;
    // The end itself is told without it where the session cannot be looked at.
    let alive = session.summary().await.ok()?.anchor_alive?;
    (!alive).then(|| format!("process {anchor}, on which its session is anchored, is gone"))
}
