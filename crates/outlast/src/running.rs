//! A command in the foreground, as a stream of events.

mod log;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use outlast_core::delivery::Via;
use outlast_core::id::{Alias, CommandId};
use outlast_core::names::{display_line, shorten};
use outlast_core::receipt;
use outlast_core::record::{ExitRecord, PROCESS, ProcessMark};
use outlast_core::request::{Request, Streams};
use outlast_core::wire::{DemotedBy, FromSupervisor, ToKeeper, ToSupervisor};
use outlast_host::frame::{self, Body, Frame};
use outlast_host::store::command::CommandDir;
use outlast_host::store::understood;

use crate::command::Command;
use crate::error::{Error, Result};
use crate::event::{Demotion, LABEL_CHARACTERS, Progress, RunEvent};
use crate::finished::{Finished, Held};
use crate::hide::Flow;
use crate::keeper::{self, ANSWER_BOUND};
use crate::launch::{self, Launched};
use crate::link;
use crate::output::Stream;
use crate::quiet::Quiet;
use crate::session::Session;
use crate::stopping::StopOptions;
use crate::vanished;
use log::Records;

/// A command in the foreground. Dropping it is a caller that goes away: the channel closes, and by that
/// the supervisor knows that the command is demoted, unless other callers joined it and still wait.
pub struct Running {
    session: Session,
    request: Request,
    launched: Launched,
    started: Instant,
    leader: Option<ProcessMark>,
    pidfd: Option<OwnedFd>,
    /// What came on the channel: all of the output as long as there are no records.
    held: Held,
    /// What the policies made of its start.
    remarks: Vec<String>,
    /// What masks secrets in what is passed on.
    flow: Option<Flow>,
    /// Whether no output is passed on before the end.
    withheld: bool,
    records: Option<Records>,
    events: VecDeque<RunEvent>,
    /// What ends the stream, once the output before it was passed on.
    last: Option<RunEvent>,
    not_demoted: Option<String>,
    /// What the command said it has changed, where there are no records of it.
    changes: Vec<receipt::Change>,
    over: bool,
    quiet_after: Option<Duration>,
    /// Whether nobody has to hear that the end was shown, because it is told from the records: its supervisor
    /// went away without a word, or it was in the background although this caller waited.
    unheard: bool,
}

impl Running {
    pub(crate) fn new(
        session: Session,
        mut request: Request,
        launched: Launched,
        quiet_after: Option<Duration>,
        remarks: Vec<String>,
    ) -> Running {
        request.id = launched.joined.unwrap_or(request.id);
        let flow = session.redactor().map(|redactor| Flow::after(redactor, Vec::new()));
        let withheld = session.withholds();
        Running {
            flow,
            remarks,
            withheld,
            session,
            request,
            launched,
            started: Instant::now(),
            leader: None,
            pidfd: None,
            held: Held::default(),
            records: None,
            events: VecDeque::new(),
            last: None,
            not_demoted: None,
            changes: Vec::new(),
            over: false,
            quiet_after,
            unheard: false,
        }
    }

    /// The command's id; that of the command that was joined, where one was.
    pub fn id(&self) -> &CommandId {
        &self.request.id
    }

    /// What can be seen of it after it has printed nothing for so long.
    pub fn quiet(&self, silent: Duration) -> Quiet {
        Quiet::of(self.request.id, silent, self.leader.as_ref().map(|leader| leader.pid))
    }

    /// How far it is, for who shows that.
    pub fn progress(&self) -> Progress {
        let line = self.request.line();
        let line = self.session.redactor().map_or_else(|| line.clone(), |redactor| redactor.text(&line));
        let line = display_line(&line);
        Progress {
            elapsed: self.started.elapsed(),
            total: self.request.grace_ms.map(Duration::from_millis),
            label: shorten(&line, LABEL_CHARACTERS),
        }
    }

    /// Whether an identical command was there already and was joined.
    pub fn joined(&self) -> bool {
        self.launched.joined.is_some()
    }

    /// How many commands the keeper has started of identical requests, this one included, so it counts from 1.
    /// None where joining was not asked for.
    pub fn generation(&self) -> Option<u32> {
        self.launched.generation
    }

    /// Its session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The next event; none after `Demoted` or `Ended`. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<RunEvent>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.over {
                return Ok(None);
            }
            if self.request.follow && (self.has_ended() || !self.withheld) && self.read_log().await? {
                continue;
            }
            if self.has_ended() && self.pass_rest(false) {
                continue;
            }
            if let Some(last) = self.last.take() {
                self.over = true;
                return Ok(Some(last));
            }
            match self.launched.next().await? {
                Some(frame) => self.hear(frame)?,
                None => self.vanished().await?,
            }
        }
    }

    /// The next event that is no output, for a caller that has no room for more of it: a demotion is heard
    /// although output before it was not passed on, and no event follows it. None once the command has
    /// ended: what is left of its output, and then the end, are given by [`Running::next`]. Cancel-safe.
    pub async fn next_but_output(&mut self) -> Result<Option<RunEvent>> {
        let is_output = |event: &RunEvent| matches!(event, RunEvent::Output { .. } | RunEvent::OutputGap { .. });
        loop {
            let at = self.events.iter().position(|event| !is_output(event));
            if let Some(event) = at.and_then(|at| self.events.remove(at)) {
                return Ok(Some(event));
            }
            if self.over || self.has_ended() {
                return Ok(None);
            }
            if let Some(last) = self.last.take() {
                self.over = true;
                self.events.clear();
                return Ok(Some(last));
            }
            match self.launched.next().await? {
                Some(frame) => self.hear(frame)?,
                None => self.vanished().await?,
            }
        }
    }

    /// Passes on no more output, for a caller that has seen enough of it: what follows is how it goes on.
    pub fn skip_output(&mut self) {
        self.request.follow = false;
        self.events.retain(|event| !matches!(event, RunEvent::Output { .. } | RunEvent::OutputGap { .. }));
    }

    /// Whether the command is known to have ended although its end was not given as an event yet.
    pub fn has_ended(&self) -> bool {
        matches!(self.last, Some(RunEvent::Ended(_)))
    }

    /// The last bytes of output that came so far, at most so many. Those of a command that is not followed and
    /// has records come from its log.
    pub fn last_output(&self, most: usize) -> Result<Vec<u8>> {
        if self.withheld && !self.has_ended() {
            return Ok(Vec::new());
        }
        let mask = self.session.mask(true);
        match (self.records.as_ref().and_then(|records| records.reading.stored()), mask) {
            (Some(stored), mask) => {
                let (mut bytes, from) = stored.tail(most as u64)?;
                if let Some(mut mask) = mask {
                    stored.mask(&mut mask, from, Stream::Merged, &mut bytes)?;
                }
                Ok(bytes)
            }
            (None, mask) => Ok(self.held.last(most, mask)),
        }
    }

    /// Asks for the demotion now; `Demoted`, `NotDemoted` or `Ended` follows as an event.
    pub async fn demote(&mut self) -> Result<()> {
        self.launched.channel.send(&ToSupervisor::Demote).await
    }

    /// Sends one signal to the command's group; not a stop. Where other callers wait for it nothing is sent, and
    /// [`Running::next`] fails with [`Error::OthersWait`]; this caller still waits then.
    pub async fn signal(&mut self, signal: i32) -> Result<()> {
        self.launched.channel.send(&ToSupervisor::Signal { signal }).await
    }

    /// Stops the command; `Ended` follows as an event. Where other callers wait for it nothing is done, and
    /// [`Running::next`] fails with [`Error::OthersWait`]; this caller still waits then.
    pub async fn stop(&mut self, by: &str) -> Result<()> {
        self.stop_with(StopOptions::by(by)).await
    }

    /// As [`Running::stop`], with a grace, a signal, or by force: then for all who wait for it.
    pub async fn stop_with(&mut self, options: StopOptions) -> Result<()> {
        self.launched.channel.send(&options.message()).await
    }

    /// Writes bytes into its standard input, where that is open. `InputTaken` follows as an event once the
    /// command has room for more; a caller that sends before it may have to wait for the command to read.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.launched.channel.send_input(bytes).await?;
        self.launched.channel.send(&ToSupervisor::InputDone { close: false }).await
    }

    /// Closes its standard input once what was sent before is written.
    pub async fn close_input(&mut self) -> Result<()> {
        self.launched.channel.send(&ToSupervisor::InputDone { close: true }).await
    }

    /// Says that the end was shown to the caller. Without it the command counts as demoted and its end
    /// stays to be told.
    pub async fn told(mut self) -> Result<()> {
        if !self.unheard {
            if self.is_heard().await? || !self.session.has_records() {
                return Ok(());
            }
            // Its supervisor was killed just now: what its keeper makes of that is waited for.
            let fate = ToKeeper::Fate { id: self.request.id };
            let _ = keeper::ask(self.session.dir()?.dir(), &fate, ANSWER_BOUND).await;
        }
        // Whoever recorded the end in its supervisor's place left it to be told: it was, by this.
        if self.session.has_records() && self.session.get(&self.request.id).await?.is_some() {
            self.session.commit(&self.request.consumer, &self.request.id, Via::Wait).await?;
        }
        Ok(())
    }

    /// Says to the supervisor that the end was shown; false if it is gone before it heard that.
    async fn is_heard(&mut self) -> Result<bool> {
        let channel = &mut self.launched.channel;
        channel.send(&ToSupervisor::Told).await?;
        let heard = async {
            while let Some(frame) = channel.next().await? {
                let message = matches!(frame.body, Body::Json(_)).then(|| frame.json::<FromSupervisor>());
                if let Some(FromSupervisor::Heard) = message.transpose().map_err(link::channel_error)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        // One that is stopped lives, and hears it when it goes on.
        tokio::time::timeout(ANSWER_BOUND, heard).await.unwrap_or(Ok(true))
    }

    fn hear(&mut self, frame: Frame) -> Result<()> {
        if let Body::Bytes { stream, bytes } = frame.body {
            self.take_bytes(stream, bytes);
            return Ok(());
        }
        match frame.json::<FromSupervisor>().map_err(link::channel_error)? {
            FromSupervisor::Started { leader, at_ms } => {
                self.session.hub().runs(&self.request, PROCESS, Some(leader.pid));
                self.leader = Some(leader.clone());
                self.pidfd = frame.fds.into_iter().next();
                self.events.push_back(RunEvent::Started { leader, at_ms });
            }
            FromSupervisor::Refused { refusal, reason, running } => {
                self.over = true;
                self.session.hub().not_started(*self.session.id(), self.request.id);
                return Err(launch::refused(refusal, reason, running));
            }
            FromSupervisor::Materialised { output, .. } => self.open_records(output)?,
            FromSupervisor::Missing { out, err } => {
                let names = match self.request.streams {
                    Streams::Merged => [Stream::Merged, Stream::Stderr],
                    Streams::Separate => [Stream::Stdout, Stream::Stderr],
                };
                names.into_iter().zip([out, err]).for_each(|(stream, bytes)| self.held.skip(stream, bytes));
            }
            FromSupervisor::Grew { output } => {
                if let Some(records) = &mut self.records {
                    records.asked = false;
                    records.grow(output)?;
                }
            }
            FromSupervisor::Demoted { alias, at_ms, by, errors } => self.demoted(alias, at_ms, by, errors),
            FromSupervisor::Changed { paths } => self.changes = receipt::written(paths),
            FromSupervisor::Delivered { refused } => self.events.push_back(RunEvent::InputTaken { refused }),
            FromSupervisor::NotDemoted { reason } => {
                self.not_demoted = Some(reason.clone());
                self.events.push_back(RunEvent::NotDemoted { reason });
            }
            FromSupervisor::Ended { exit, materialised } => {
                self.unheard = exit.demoted;
                self.end(*exit, materialised)?;
            }
            FromSupervisor::NotStopped { others } => return Err(Error::OthersWait { id: self.request.id, others }),
            FromSupervisor::Accepted { .. }
            | FromSupervisor::Heard
            | FromSupervisor::CaptureClosed { .. }
            | FromSupervisor::Status(_)
            | FromSupervisor::Stopped(_)
            | FromSupervisor::Note { .. } => {}
        }
        Ok(())
    }

    fn demoted(&mut self, alias: Alias, at_ms: u64, by: DemotedBy, errors: Vec<String>) {
        let command = Command { session: self.session.clone(), id: self.request.id };
        if let Some(leader) = self.pidfd.take() {
            self.session.keep_leader(self.request.id, leader);
        }
        self.leave();
        let joined = self.joined();
        let remarks = self.remarks.clone();
        self.last = Some(RunEvent::Demoted(Demotion { command, alias, at_ms, by, errors, joined, remarks }));
    }

    /// From now on somebody else hears how it goes on.
    fn leave(&self) {
        self.session.attend(self.request.id, self.request.consumer.clone(), self.quiet_after);
    }

    fn take_bytes(&mut self, stream: frame::Stream, bytes: Vec<u8>) {
        let stream = match (self.request.streams, stream) {
            (Streams::Merged, _) => Stream::Merged,
            (Streams::Separate, frame::Stream::Err) => Stream::Stderr,
            (Streams::Separate, _) => Stream::Stdout,
        };
        let passed_on = self.request.follow && !self.withheld;
        if passed_on {
            self.pass(stream, bytes.clone());
        }
        let most = passed_on.then_some(2 * self.request.hold);
        self.held.push(stream, bytes, most);
    }

    /// Passes output on as an event, as far as it can be shown by now.
    fn pass(&mut self, stream: Stream, bytes: Vec<u8>) {
        let bytes = match &mut self.flow {
            Some(flow) => flow.push(stream, &bytes).0,
            None => bytes,
        };
        if !bytes.is_empty() {
            self.events.push_back(RunEvent::Output { stream, bytes });
        }
    }

    /// Passes on what was held back of an output that is over, or before output that is missing; false where there is
    /// none.
    fn pass_rest(&mut self, missing: bool) -> bool {
        let Some(flow) = self.flow.as_mut().filter(|_| self.request.follow) else { return false };
        let rest = flow.rest(missing);
        let some = !rest.is_empty();
        self.events.extend(rest.into_iter().map(|(stream, bytes)| RunEvent::Output { stream, bytes }));
        some
    }

    fn end(&mut self, exit: ExitRecord, materialised: bool) -> Result<()> {
        if materialised && self.records.is_none() {
            self.open_records(exit.output)?;
        }
        // One that could not be started has no other moment.
        self.session.hub().traces(&self.request, PROCESS, None);
        self.session.hub().ended(&exit);
        let mut finished = Finished::of(exit, materialised);
        finished.not_demoted = self.not_demoted.take();
        finished.joined = self.joined();
        finished.remarks.clone_from(&self.remarks);
        finished.changes = std::mem::take(&mut self.changes);
        let mut mask = self.session.mask(false);
        match &mut self.records {
            Some(records) => {
                records.grow(finished.exit.output)?;
                records.reading.keep(&finished.exit);
                let dir = records.command.dir()?;
                finished.log = Some(dir.log_path());
                // Of an end in the background they are pending, for each consumer.
                if !finished.exit.demoted {
                    finished.changes = dir.receipts()?;
                }
                if let Some(stored) = records.reading.stored() {
                    finished.take_stored(stored, self.request.hold, mask.as_mut())?;
                }
            }
            None => finished.take_held(&self.held, self.request.streams, mask.as_mut()),
        }
        if let Some(mask) = &mut mask {
            finished.mask(mask, self.records.is_some());
            self.session.trace_redacted(self.request.id, &mask.counts)?;
        }
        if self.withheld && self.request.follow {
            let held: Vec<_> = self.held.chunks().map(|(stream, bytes)| (stream, bytes.to_vec())).collect();
            held.into_iter().for_each(|(stream, bytes)| self.pass(stream, bytes));
        }
        self.session.runtime().inner.texts.look(outlast_host::clock::monotonic());
        self.last = Some(RunEvent::Ended(Box::new(finished)));
        Ok(())
    }

    /// The supervisor went away without a word: what became of the command is found out elsewhere.
    async fn vanished(&mut self) -> Result<()> {
        let pidfd = self.pidfd.as_ref().map(OwnedFd::try_clone).transpose();
        let command = vanished::Vanished {
            session: &self.session,
            request: &self.request,
            leader: self.leader.clone(),
            pidfd: pidfd.map_err(|error| Error::system("cannot ask the kernel for the end of the command", error))?,
            keeper: self.launched.keeper.as_mut(),
            ran: self.started.elapsed(),
        };
        let exit = command.find_out().await?;
        let dir = match self.session.dir_if_any()? {
            Some(dir) => dir.command(self.request.id)?,
            None => None,
        };
        // Whoever starts in the background gets an id; the end is told as those of the background are, also when it
        // came before the supervisor could say that it runs.
        if self.request.background
            && let Some(dir) = &dir
            && let Some(alias) = alias_of(&exit, dir)?
        {
            let at_ms = exit.demoted_at_ms.unwrap_or(exit.started_at_ms);
            self.demoted(alias, at_ms, DemotedBy::Background, exit.errors);
            return Ok(());
        }
        self.unheard = true;
        self.end(exit, dir.is_some())
    }
}

/// The alias of a command with records: the end of one of which nobody knows anything does not say it.
fn alias_of(exit: &ExitRecord, dir: &CommandDir) -> Result<Option<Alias>> {
    match exit.alias {
        Some(alias) => Ok(Some(alias)),
        None => Ok(understood(dir.request())?.map(|record| record.alias)),
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Of one that it joined, those hear who wait for it.
        if !self.joined() {
            self.leave();
        }
    }
}
