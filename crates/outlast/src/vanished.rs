//! What became of a foreground command whose supervisor went away without a word.

use std::os::fd::OwnedFd;
use std::time::Duration;

use outlast_core::ending::End;
use outlast_core::lifecycle::end_without_supervisor;
use outlast_core::record::{ExitRecord, ProcessMark};
use outlast_core::request::Request;
use outlast_core::wire::FromKeeper;

use crate::error::Result;
use crate::keeper::ANSWER_BOUND;
use crate::launch;
use crate::link::Link;
use crate::ready;
use crate::request::millis;
use crate::session::Session;
use crate::settle::{self, Report, Standing};

/// What its caller still has of it.
pub(crate) struct Vanished<'a> {
    pub(crate) session: &'a Session,
    pub(crate) request: &'a Request,
    pub(crate) leader: Option<ProcessMark>,
    pub(crate) pidfd: Option<OwnedFd>,
    pub(crate) keeper: Option<&'a mut Link>,
    pub(crate) ran: Duration,
}

impl Vanished<'_> {
    /// Its end: as the keeper knows it, else as it is recorded, else as the kernel tells whoever holds
    /// a descriptor of the leader, else nobody knows.
    pub(crate) async fn find_out(mut self) -> Result<ExitRecord> {
        if let Some(exit) = self.ask_keeper().await? {
            return Ok(exit);
        }
        let dir = match self.session.dir_if_any()? {
            Some(session) => session.command(self.request.id)?,
            None => None,
        };
        if let Some(dir) = &dir
            && let Some(exit) = dir.exit()?
        {
            return Ok(exit.record);
        }
        if let Some(mut exit) = self.ask_kernel().await? {
            settle::end_leftovers(self.request.id).await?;
            if let Some(dir) = &dir
                && let (Some(asked), Some(status)) = (dir.request()?, dir.status()?)
            {
                exit = settle::with_records(dir, exit, asked.record, status.record)?;
            }
            if let Some(dir) = &dir
                && let Some(_lease) = dir.try_lease_unsigned()?
                && !dir.has_exit()?
                && dir.verdict()?.is_none()
            {
                dir.write_exit(&exit, None)?;
            }
            return Ok(exit);
        }
        if let Some(dir) = &dir
            && let (Standing::Ended(exit), _) = settle::settle(self.session, dir, Report::default()).await?
        {
            return Ok(*exit);
        }
        // Who calls it lost ends what it left; of one without records nobody else knows.
        settle::end_leftovers(self.request.id).await?;
        Ok(self.record(End::Lost))
    }

    async fn ask_keeper(&mut self) -> Result<Option<ExitRecord>> {
        let fate = launch::fate(self.session, self.keeper.as_deref_mut(), self.request.id).await?;
        match fate {
            Some(FromKeeper::Fate { exit, .. }) => Ok(exit.map(|exit| *exit)),
            Some(_) | None => Ok(None),
        }
    }

    async fn ask_kernel(&mut self) -> Result<Option<ExitRecord>> {
        let Some(pidfd) = self.pidfd.take() else { return Ok(None) };
        let Ok(status) = tokio::time::timeout(ANSWER_BOUND, ready::process_end(pidfd)).await else { return Ok(None) };
        let fact = status?.and_then(settle::fact_of);
        Ok(fact.map(|fact| self.record(end_without_supervisor(Some(fact)))))
    }

    fn record(&self, end: End) -> ExitRecord {
        let known = settle::lost_watchers(self.request, end);
        ExitRecord {
            started_at_ms: known.ended_at_ms.saturating_sub(millis(self.ran)),
            duration_ms: millis(self.ran),
            errors: vec!["its supervisor vanished; output that was not passed on yet is lost".to_owned()],
            leader: self.leader.clone(),
            ..known
        }
    }
}
