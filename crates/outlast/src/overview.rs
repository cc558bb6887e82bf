//! How sessions stand: one, or all of a state directory.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use outlast_core::id::SessionId;
use outlast_core::record::SessionRecord;
use outlast_core::request::OsText;
use outlast_host::store::understood;

use crate::error::Result;
use crate::hide::{Mask, line, word};
use crate::runtime::Runtime;
use crate::session::{Session, is_alive};

/// One session as a list shows it.
#[derive(Clone, Debug)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// What its creator wrote; none where that cannot be read.
    pub record: Option<SessionRecord>,
    /// Whether its anchor lives; none where it has none.
    pub anchor_alive: Option<bool>,
    /// Who ended it; none while it is open.
    pub closed_by: Option<String>,
    /// Unix time of its end in milliseconds.
    pub closed_at_ms: Option<u64>,
    /// Whether a keeper holds it now.
    pub kept: bool,
    /// Whether an owner holds it now.
    pub owned: bool,
    /// Commands with records whose supervisor lives and whose end is not recorded.
    pub running: usize,
    /// Commands with records in all.
    pub commands: usize,
    /// The directory beside a transcript in which its records are kept, if it was bound to one.
    pub bound_to: Option<PathBuf>,
    /// What was wrong with its files, if something was.
    pub problem: Option<String>,
}

impl Runtime {
    /// All sessions of the state directory, oldest first. What is wrong with one is said in its summary.
    pub async fn sessions(&self) -> Result<Vec<SessionSummary>> {
        let mut summaries = Vec::new();
        for id in self.state()?.list()? {
            match self.open_session(&id).await {
                Ok(session) => summaries.push(session.summary().await?),
                Err(error) if error.is_unknown() => return Err(error),
                Err(error) => summaries.push(SessionSummary { problem: Some(error.to_string()), ..unknown(id) }),
            }
        }
        Ok(summaries)
    }
}

impl Session {
    /// How it stands now.
    pub async fn summary(&self) -> Result<SessionSummary> {
        let mut summary = SessionSummary { record: self.record().cloned(), ..unknown(*self.id()) };
        let Some(dir) = self.dir_if_any()? else { return Ok(summary) };
        match dir.record() {
            Ok(_) => {}
            Err(error) if error.is_unknown() => return Err(error.into()),
            Err(error) => summary.problem = Some(error.to_string()),
        }
        if let Some(anchor) = self.record().and_then(|record| record.anchor.as_ref()) {
            summary.anchor_alive = Some(is_alive(anchor)?);
        }
        match dir.closed() {
            Ok(Some(closed)) => {
                summary.closed_by = Some(closed.record.by);
                summary.closed_at_ms = Some(closed.record.at_ms);
            }
            Ok(None) => {}
            // Whether it was ended must not be guessed.
            Err(error) if error.is_unknown() => return Err(error.into()),
            Err(error) => summary.problem = Some(error.to_string()),
        }
        let place = understood(dir.bound())?.and_then(|bound| bound.places.last().cloned());
        summary.bound_to = place.map(|place| PathBuf::from(place).join(dir.id().to_string()));
        if let Some(mut mask) = self.mask(false) {
            summary.mask(&mut mask);
        }
        summary.kept = dir.has_keeper()?;
        summary.owned = dir.has_owner()?;
        let ids = dir.commands()?;
        summary.commands = ids.len();
        for id in ids {
            if let Some(command) = dir.command(id)?
                && !command.has_exit()?
                && command.lease_is_held()?
            {
                summary.running += 1;
            }
        }
        Ok(summary)
    }
}

impl SessionSummary {
    /// Masks everything in it that came from whoever made or bound the session.
    fn mask(&mut self, mask: &mut Mask) {
        if let Some(record) = &mut self.record {
            line(&mut record.context, mask);
        }
        if let Some(bound_to) = &mut self.bound_to {
            let mut path = OsText(std::mem::take(bound_to).into_os_string().into_vec());
            word(&mut path, mask);
            *bound_to = OsString::from_vec(path.0).into();
        }
        self.problem.iter_mut().for_each(|problem| line(problem, mask));
    }
}

fn unknown(id: SessionId) -> SessionSummary {
    SessionSummary {
        id,
        record: None,
        anchor_alive: None,
        closed_by: None,
        closed_at_ms: None,
        kept: false,
        owned: false,
        running: 0,
        commands: 0,
        bound_to: None,
        problem: None,
    }
}
