//! How a session is used, and which of its ends somebody still has to be told of.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::delivery::{Ledger, Subject};
use outlast_core::id::{Alias, CommandId};
use outlast_core::record::Ownership;
use outlast_core::retention::{Use, must_know};
use outlast_host::mark;
use outlast_host::store::command::CommandDir;
use outlast_host::store::session::SessionDir;
use outlast_host::store::{aliases, ledger, understood};

use crate::deliver::reported_at_the_end;
use crate::error::Result;

/// How a session is used now. What cannot be looked at now is an error, what cannot be understood is unknown.
pub(crate) fn use_of(session: &SessionDir, now_ms: u64) -> Result<Use> {
    for id in session.commands()? {
        if let Some(command) = session.command(id)?
            && command.lease_is_held()?
        {
            return Ok(Use::Running);
        }
    }
    if session.has_keeper()? || session.has_owner()? {
        return Ok(Use::Open);
    }
    let record = match session.record() {
        Ok(record) if record.newer => return Ok(Use::Unknown),
        Ok(record) => record.record,
        Err(error) if error.is_unknown() => return Err(error.into()),
        // Nobody lives in it, and what would say how long it lasts cannot be read: somebody has to end it.
        Err(error) if !error.is_newer() && (session.is_closed()? || session.is_given_up()?) => return Ok(Use::Over),
        Err(_) => return Ok(Use::Unknown),
    };
    if session.is_closed()? || session.is_given_up()? {
        return Ok(Use::Over);
    }
    Ok(match (&record.anchor, record.ownership) {
        (Some(anchor), _) => match mark::is_alive(anchor) {
            Ok(true) => Use::Open,
            Ok(false) => Use::Over,
            Err(_) => Use::Unknown,
        },
        // Nothing but its end bounds it.
        (None, Ownership::OneShot) => Use::Open,
        (None, Ownership::Resident) if record.created_at_ms.saturating_add(record.linger_ms) > now_ms => Use::Open,
        (None, Ownership::Resident) => Use::Over,
    })
}

/// Who was told of what in one session.
pub(crate) struct Owed {
    ledger: Ledger,
    reported: BTreeSet<CommandId>,
    names: BTreeMap<CommandId, Alias>,
    can_be_followed: bool,
}

impl Owed {
    /// Reads it.
    pub(crate) fn of(session: &SessionDir, used: Use) -> Result<Owed> {
        let record = understood(session.record().map(Some))?;
        let has_context = record.is_none_or(|record| !record.context.is_empty());
        Ok(Owed {
            ledger: ledger::read(session.dir())?,
            reported: reported_at_the_end(session)?,
            names: aliases::all(session.dir())?.into_iter().map(|(alias, id)| (id, alias)).collect(),
            can_be_followed: used != Use::Over || has_context,
        })
    }

    /// Whether an end in this session is not known, somebody was not told of one, or a consumer that takes receipts
    /// has not taken some.
    pub(crate) fn is_anything_owed(&self, session: &SessionDir) -> Result<bool> {
        for id in session.commands()? {
            let Some(command) = session.command(id)? else { continue };
            if self.ended_and_told(session, id, false)?.is_none() || self.are_receipts_owed(&command)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn are_receipts_owed(&self, command: &CommandDir) -> Result<bool> {
        let mut missing = self.ledger.receipt_takers().filter(|one| !self.ledger.has_receipts(one, command.id()));
        // Where nobody follows nobody can take them any more; those of an end in the foreground were told with it.
        Ok(self.can_be_followed
            && missing.next().is_some()
            && command.has_receipts()?
            && end_of(command)?.is_some_and(|(_, _, is_news)| is_news))
    }

    /// When a command ended, in milliseconds since 1970, if that is known and everybody who must know was told; with
    /// `anyway` whoever was told.
    pub(crate) fn ended_and_told(&self, session: &SessionDir, id: CommandId, anyway: bool) -> Result<Option<u64>> {
        let Some(command) = session.command(id)? else { return Ok(None) };
        let Some((ended_at_ms, consumer, is_news)) = end_of(&command)? else { return Ok(None) };
        let subject = Subject { id, alias: self.names.get(&id).copied() };
        let is_told = |consumer: &&str| self.ledger.is_told(consumer, subject);
        let known = self.ledger.consumers.keys().map(String::as_str);
        let all_told = !is_news
            || self.reported.contains(&id)
            || must_know(known, &consumer, self.can_be_followed).iter().all(is_told);
        Ok((anyway || all_told).then_some(ended_at_ms))
    }
}

/// When a command ended, who had started it, and whether its end is news for anybody. None where its end is not
/// known, or its records cannot be understood, or somebody still holds them.
fn end_of(command: &CommandDir) -> Result<Option<(u64, String, bool)>> {
    if command.lease_is_held()? {
        return Ok(None);
    }
    if let Some(exit) = understood(command.exit())? {
        let is_news = exit.is_news();
        return Ok(Some((exit.ended_at_ms, exit.consumer, is_news)));
    }
    let consumer = understood(command.request())?.map(|record| record.request.consumer).unwrap_or_default();
    Ok(understood(command.verdict())?.map(|verdict| (verdict.at_ms, consumer, true)))
}
