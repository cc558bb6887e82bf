//! A command in the foreground: one loop over what it does, what is typed, and who goes away.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use outlast::{RunEvent, RunRequest, Running, Session};
use outlast_core::names::display_line;
use outlast_core::units::format_elapsed;
use tokio::time::{Instant, timeout_at};

use super::{demoted, ended, input::Input};
use crate::cli::context::Context;
use crate::cli::signals::{self, Signals};
use crate::exit::{self, Answer, Failure};
use crate::output::{Progress, Sink};

/// Most notices of silence about one command.
const QUIET_NOTICES: u32 = 3;

/// How the foreground is shown.
pub struct How {
    /// One JSON object at the end in place of the output.
    pub json: bool,
    /// What comes in here goes on to the command.
    pub forward_input: bool,
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
    let running = session.run(request).await?;
    let quiet_at = how.quiet_after.map(|time| Instant::now() + time);
    let front = Front {
        running,
        signals,
        sink,
        input,
        quiet_at,
        quiet_notices: 0,
        input_due: false,
        asked: None,
        failed: false,
        how,
        context,
    };
    front.attend().await
}

/// The foreground of one command.
struct Front<'a> {
    running: Running,
    signals: Signals,
    sink: Sink,
    input: Input,
    quiet_at: Option<Instant>,
    quiet_notices: u32,
    /// Whether the command has not taken yet what was sent into it.
    input_due: bool,
    /// Why the demotion was asked for, once it was.
    asked: Option<&'static str>,
    /// Whether output could not be written although somebody may still wait for it.
    failed: bool,
    how: How,
    context: &'a Context,
}

impl Front<'_> {
    async fn attend(mut self) -> Answer {
        loop {
            match self.next().await? {
                Event::Command(Some(RunEvent::Ended(finished))) => {
                    let code = ended(&finished, self.how.json, self.context)?;
                    // Only what was shown counts as told: a reader that went away before hears it later.
                    if self.sink.is_open() {
                        self.running.told().await?;
                    }
                    return Ok(if self.failed { exit::INTERNAL } else { code });
                }
                Event::Command(Some(RunEvent::Demoted(demotion))) => {
                    return demoted(&demotion, &self.how, self.asked, self.context).await;
                }
                Event::Command(Some(event)) => self.show(event),
                Event::Command(None) => {
                    return Err(Failure::Refused("the command went away without a word about its end".to_owned()));
                }
                Event::Output(Progress::Wrote) => {}
                Event::Output(Progress::Closed(error)) => {
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        self.context.printer.say(&format!("cannot write the output: {error}"));
                        self.failed = true;
                    }
                    self.leave("nobody reads its output here any more").await?;
                }
                Event::Signal(signals::INT) => self.running.signal(signals::INT).await?,
                Event::Signal(signals::QUIT) => self.running.signal(signals::QUIT).await?,
                Event::Signal(signals::TSTP) => self.leave("it was moved there by hand").await?,
                Event::Signal(_) => self.leave("its caller went away").await?,
                Event::Input(bytes) => self.pass_in(bytes).await?,
                Event::Quiet => self.say_quiet(),
            }
        }
    }

    /// The caller goes away, or wants the terminal back.
    async fn leave(&mut self, why: &'static str) -> Result<(), Failure> {
        if self.asked.replace(why).is_none() {
            self.running.demote().await?;
        }
        Ok(())
    }

    /// What happens first. The command is only heard while its output is written, so that a slow reader
    /// fills nothing here.
    async fn next(&mut self) -> Result<Event, Failure> {
        let written = self.sink.is_empty();
        let (quiet_at, input_due) = (self.quiet_at, self.input_due);
        let mut command = pin!(self.running.next());
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
            if written && let Poll::Ready(event) = command.as_mut().poll(task) {
                return Poll::Ready(event.map(Event::Command).map_err(Failure::from));
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
                self.quiet_at = self.how.quiet_after.map(|time| Instant::now() + time);
                if !self.how.json {
                    self.sink.push(stream, bytes);
                }
            }
            // The end and every later look say what the cap dropped.
            RunEvent::OutputGap { .. } => {}
            RunEvent::InputTaken { refused } => {
                self.input_due = false;
                // A command that is over, or closed its input, needs no more of it.
                if refused.is_some() {
                    self.input = Input::none();
                }
            }
            RunEvent::NotDemoted { reason } => {
                let reason = display_line(&reason);
                self.context.printer.say(&format!("it stays in the foreground, it cannot be moved: {reason}"));
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
                self.context.printer.say(&format!("cannot read standard input: {error}"));
                self.input = Input::none();
                self.running.close_input().await?;
            }
        }
        Ok(())
    }

    fn say_quiet(&mut self) {
        self.quiet_notices += 1;
        let Some(time) = self.how.quiet_after else { return };
        let silent = format_elapsed(time * self.quiet_notices);
        self.context.printer.say(&format!("no output for {silent}; {} still runs", self.running.id()));
        let more = self.quiet_notices < QUIET_NOTICES;
        self.quiet_at = more.then(|| Instant::now() + time);
    }
}
