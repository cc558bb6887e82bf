//! The end of a session, and its trace.

use std::time::Duration;

use outlast_core::record::{ClosedRecord, TraceLine, schema};
use outlast_core::wire::{FromKeeper, ToKeeper};
use outlast_host::clock;
use outlast_host::store::removal::Vacated;
use outlast_host::store::trace;

use crate::deliver::check_consumer;
use crate::error::{Error, Result};
use crate::hide::mask_discarded;
use crate::keeper::Keepers;
use crate::link::Link;
use crate::request::millis;
use crate::session::Session;

/// The time that an end waits for verified ends by default.
pub const END_BOUND: Duration = Duration::from_secs(15);
/// What a keeper needs to answer beyond the bound it was given.
const END_SLACK: Duration = Duration::from_secs(5);

/// Keepers that are asked for an end, one after the other, should they be killed over it.
const END_ATTEMPTS: usize = 3;

impl Session {
    /// Ends the session: stops everything but detached commands (those too if asked), waits up to the
    /// bound (zero does not wait) and writes the report. A session that was ended before answers its
    /// first report. Dropping the future does not take the end back.
    pub async fn end(&self, by: &str, bound: Duration, detached: bool) -> Result<ClosedRecord> {
        check_consumer(by)?;
        if !detached && let Some(closed) = self.closed().await? {
            return Ok(closed);
        }
        if let Some(closed) = self.end_unreadable(by)? {
            return Ok(closed);
        }
        for _ in 0..END_ATTEMPTS {
            if let Some(report) = self.ask_to_end(by, bound, detached).await? {
                return Ok(report);
            }
        }
        Err(Error::Unreachable(format!("the keepers of {} went away before the session was ended", self.id())))
    }

    /// Ends a session whose own record is damaged, for which no keeper can be started, where nobody lives in it; none
    /// where a keeper has to do that.
    fn end_unreadable(&self, by: &str) -> Result<Option<ClosedRecord>> {
        let dir = self.dir()?;
        match dir.record() {
            Err(error) if !error.is_unknown() && !error.is_newer() => {}
            Ok(_) | Err(_) => return Ok(None),
        }
        let Some(_vacated) = Vacated::take(dir.clone())? else { return Ok(None) };
        let report = ClosedRecord {
            schema: schema::CLOSED.to_owned(),
            session: *self.id(),
            by: by.to_owned(),
            at_ms: clock::unix_ms(),
            commands: Vec::new(),
        };
        match dir.write_closed(&report) {
            Err(error) if error.is_taken() => Ok(dir.closed()?.map(|closed| self.masked(closed.record))),
            written => written.map(|()| Some(report)).map_err(Error::from),
        }
    }

    /// Asks a keeper for the end; none if it was killed over it.
    async fn ask_to_end(&self, by: &str, bound: Duration, detached: bool) -> Result<Option<ClosedRecord>> {
        // The keeper is the one who ends a session, so one is started where none lives.
        let mut link = self.answering_keeper().await?;
        let pid = link.peer_pid();
        let question = ToKeeper::End { by: by.to_owned(), bound_ms: millis(bound), detached };
        let answer = async {
            link.send(&question).await?;
            link.message::<FromKeeper>().await
        };
        let bound = bound.saturating_add(END_SLACK);
        match tokio::time::timeout(bound, answer).await {
            Ok(answer) => match answer? {
                Some(FromKeeper::Closed { report }) => Ok(Some(self.masked(*report))),
                Some(FromKeeper::Failed { reason }) => Err(Error::Unreachable(reason)),
                Some(other) => Err(Error::Protocol(format!("the keeper answered End with {other:?}"))),
                None => self.closed().await,
            },
            Err(_) => Err(Error::Silent { what: format!("the keeper of {}", self.id()), pid, bound_ms: millis(bound) }),
        }
    }

    fn masked(&self, mut report: ClosedRecord) -> ClosedRecord {
        if let Some(mut mask) = self.mask(false) {
            report.commands.iter_mut().for_each(|one| mask_discarded(one, &mut mask));
        }
        report
    }

    /// A connection to a keeper that answers, started if none lives.
    async fn answering_keeper(&self) -> Result<Link> {
        let mut keepers = Keepers::of(self.runtime().birth()?, self.dir()?.dir());
        loop {
            let mut link = keepers.connect().await?;
            let ping = async {
                link.send(&ToKeeper::Ping).await?;
                link.message::<FromKeeper>().await
            };
            match keepers.within(ping).await? {
                Some(FromKeeper::Pong { .. }) => return Ok(link),
                Some(FromKeeper::Failed { reason }) => return Err(Error::Unreachable(reason)),
                Some(FromKeeper::Busy) | None => {}
                Some(other) => return Err(Error::Protocol(format!("the keeper answered Ping with {other:?}"))),
            }
        }
    }

    /// The report of its end, if it was ended.
    pub async fn closed(&self) -> Result<Option<ClosedRecord>> {
        Ok(self.dir()?.closed()?.map(|closed| self.masked(closed.record)))
    }

    /// The lines of its trace, oldest first; lines that cannot be parsed are skipped.
    pub async fn trace(&self) -> Result<Vec<TraceLine>> {
        let mut lines = trace::read(self.dir()?.dir())?;
        if let Some(redactor) = self.redactor() {
            let texts = lines.iter_mut().flat_map(|line| [&mut line.program, &mut line.command, &mut line.detail]);
            texts.flatten().for_each(|text| *text = redactor.text(text));
        }
        Ok(lines)
    }

    /// The trace as it is stored, without lines that cannot be parsed and, where that is the policy, without secrets.
    pub async fn raw_trace(&self) -> Result<Vec<u8>> {
        let lines = trace::read_stored(self.dir()?.dir())?.into_iter().map(|(_, text)| text + "\n");
        Ok(match self.redactor() {
            Some(redactor) => lines.flat_map(|line| redactor.text(&line).into_bytes()).collect(),
            None => lines.flat_map(String::into_bytes).collect(),
        })
    }
}
