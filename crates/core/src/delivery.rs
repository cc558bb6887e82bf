//! Who has been told of which end: the rules of leases and commits.
//!
//! A command that was demoted and has ended is pending for a consumer until that consumer's part of the
//! ledger commits it. Nothing has to be written to make it pending, so it cannot be lost.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::{Alias, CommandId};

/// What the ledger of a session holds, for all its consumers; stored as `inbox.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The form of the file.
    pub schema: String,
    /// What each consumer was told.
    #[serde(default)]
    pub consumers: BTreeMap<String, Told>,
}

/// What one consumer was told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Every command with an alias up to this one needs no telling any more, and has no commit below.
    /// This keeps the ledger small. It counts aliases and not ids, because aliases are given in the
    /// order of materialisation: no later command can get one that lies below.
    #[serde(default)]
    pub through: u32,
    /// What is being told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leases: BTreeMap<CommandId, Lease>,
    /// What was told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commits: BTreeMap<CommandId, Commit>,
    /// Commands whose receipts this consumer has taken for good.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub receipts: BTreeSet<CommandId>,
    /// How far this consumer has heard of lines that match, of commands that run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub heard: BTreeMap<CommandId, Heard>,
}

/// How far a consumer has heard of the output of a command that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// The lines before this offset are told, or do not match.
    pub through: u64,
    /// When it was last told of some, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
}

/// The least time between two heads-ups on one command that nobody asked for, in milliseconds.
pub const HEADS_UP_EVERY_MS: u64 = 10_000;

impl Heard {
    /// Whether it may be told of more by now, without having asked.
    #[must_use]
    pub fn is_due(self, now_ms: u64) -> bool {
        // A clock that was set back makes it due: nothing is held for longer than it says.
        self.at_ms.is_none_or(|at_ms| now_ms < at_ms || now_ms - at_ms >= HEADS_UP_EVERY_MS)
    }
}

/// Somebody is telling a consumer of an end, or died doing so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// A text that names one claim of one process exactly; absent after a release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// When it was taken, in milliseconds since 1970.
    pub at_ms: u64,
    /// An earlier holder died before it committed, so the end may have been shown before.
    #[serde(default)]
    pub redelivered: bool,
}

/// A consumer was told of an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The way it was told.
    pub via: Via,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The `completed` line is in the trace.
    #[serde(default)]
    pub traced: bool,
}

/// A way to tell an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// The reply of a read.
    Read,
    /// The reply of a wait.
    Wait,
    /// The reply of a stop.
    Stop,
    /// A task that was pushed to the host.
    Task,
    /// A note that was folded into the next turn.
    Note,
    /// A hook of the host.
    Hook,
    /// The inbox.
    Inbox,
}

/// A command, as far as the ledger needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its id.
    pub id: CommandId,
    /// Its alias; `None` where the records are damaged.
    pub alias: Option<Alias>,
}

/// What came of asking for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// The caller holds the lease now and may show the end.
    Taken {
        /// It may have been shown before.
        redelivered: bool,
    },
    /// Somebody who is alive is telling it.
    HeldBy(String),
    /// It needs no telling.
    AlreadyTold {
        /// The way it was told, where the ledger still has it.
        via: Option<Via>,
    },
}

/// What came of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The caller is the one who told it.
    Committed,
    /// Somebody who is alive is telling it, and the caller is not.
    HeldBy(String),
    /// It was told before.
    AlreadyTold {
        /// The way it was told, where the ledger still has it.
        via: Option<Via>,
    },
}

/// A commit whose trace line may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untraced<'a> {
    /// Who was told.
    pub consumer: &'a str,
    /// Of which command.
    pub id: CommandId,
    /// How and when.
    pub commit: &'a Commit,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { schema: Self::SCHEMA.to_owned(), consumers: BTreeMap::new() }
    }
}

impl Ledger {
    /// The form this version writes.
    pub const SCHEMA: &'static str = "outlast.ledger/1";

    /// Which of the commands that were demoted and have ended a consumer was not told of, in the order
    /// of their ids. One that is being told counts as not told.
    #[must_use]
    pub fn pending(&self, consumer: &str, ended: &[Subject]) -> Vec<CommandId> {
        let told = self.consumers.get(consumer);
        let mut pending: Vec<CommandId> = ended
            .iter()
            .filter(|subject| !told.is_some_and(|told| told.was_told(**subject)))
            .map(|subject| subject.id)
            .collect();
        pending.sort_unstable();
        pending
    }

    /// Whether a consumer was told of this end.
    #[must_use]
    pub fn is_told(&self, consumer: &str, subject: Subject) -> bool {
        self.consumers.get(consumer).is_some_and(|told| told.was_told(subject))
    }

    /// Claims the telling of an end. `holder` names this claim and no other, also none of the same
    /// process; a claim of a holder that is not alive is taken over.
    pub fn lease(
        &mut self,
        consumer: &str,
        subject: Subject,
        holder: &str,
        now_ms: u64,
        holder_alive: impl Fn(&str) -> bool,
    ) -> LeaseOutcome {
        let told = self.told_mut(consumer);
        if told.was_told(subject) {
            return LeaseOutcome::AlreadyTold { via: told.via(subject.id) };
        }
        let redelivered = match told.leases.get(&subject.id) {
            None => false,
            Some(Lease { holder: None, redelivered, .. }) => *redelivered,
            Some(Lease { holder: Some(other), .. }) if holder_alive(other) => {
                return LeaseOutcome::HeldBy(other.clone());
            }
            Some(_) => true,
        };
        let lease = Lease { holder: Some(holder.to_owned()), at_ms: now_ms, redelivered };
        told.leases.insert(subject.id, lease);
        LeaseOutcome::Taken { redelivered }
    }

    /// Gives a claim back: the end was not shown. A claim that is not the caller's stays.
    pub fn release(&mut self, consumer: &str, id: CommandId, holder: &str) {
        let Some(told) = self.consumers.get_mut(consumer) else { return };
        let Some(lease) = told.leases.get_mut(&id) else { return };
        if lease.holder.as_deref() != Some(holder) {
            return;
        }
        if lease.redelivered {
            lease.holder = None;
        } else {
            told.leases.remove(&id);
        }
    }

    /// Makes an end told: after a lease by its `holder`, or in one step by a reply that tells it, with no
    /// holder. Only who gets [`CommitOutcome::Committed`] may say that it told the end.
    pub fn commit(
        &mut self,
        consumer: &str,
        subject: Subject,
        via: Via,
        now_ms: u64,
        holder: Option<&str>,
        holder_alive: impl Fn(&str) -> bool,
    ) -> CommitOutcome {
        let told = self.told_mut(consumer);
        if told.was_told(subject) {
            return CommitOutcome::AlreadyTold { via: told.via(subject.id) };
        }
        if let Some(Lease { holder: Some(other), .. }) = told.leases.get(&subject.id)
            && holder != Some(other.as_str())
            && holder_alive(other)
        {
            return CommitOutcome::HeldBy(other.clone());
        }
        told.leases.remove(&subject.id);
        told.commits.insert(subject.id, Commit { via, at_ms: now_ms, traced: false });
        CommitOutcome::Committed
    }

    /// Whether a consumer has taken the receipts of a command for good.
    pub fn has_receipts(&self, consumer: &str, id: CommandId) -> bool {
        self.consumers.get(consumer).is_some_and(|told| told.receipts.contains(&id))
    }

    /// The consumers that take receipts: they have taken some for good.
    pub fn receipt_takers(&self) -> impl Iterator<Item = &str> {
        self.consumers.iter().filter(|(_, told)| !told.receipts.is_empty()).map(|(name, _)| name.as_str())
    }

    /// Takes the receipts of a command for good; false where that was done before. Commands that are not `kept` any
    /// more, because their records are gone, are forgotten.
    pub fn take_receipts(&mut self, consumer: &str, id: CommandId, kept: impl Fn(CommandId) -> bool) -> bool {
        let told = self.told_mut(consumer);
        told.receipts.retain(|one| kept(*one));
        told.receipts.insert(id)
    }

    /// How far a consumer has heard of the output of a command.
    #[must_use]
    pub fn heard(&self, consumer: &str, id: CommandId) -> Heard {
        let told = self.consumers.get(consumer);
        told.and_then(|told| told.heard.get(&id)).copied().unwrap_or_default()
    }

    /// A consumer has heard so far, from this offset on; false where it has heard from there before. Commands that do not
    /// `run` any more are forgotten.
    pub fn hear(
        &mut self,
        consumer: &str,
        id: CommandId,
        from: u64,
        heard: Heard,
        runs: impl Fn(CommandId) -> bool,
    ) -> bool {
        if self.heard(consumer, id).through != from {
            return false;
        }
        let told = self.told_mut(consumer);
        told.heard.retain(|one, _| runs(*one));
        told.heard.insert(id, heard);
        true
    }

    /// The commits whose trace line was not yet confirmed.
    pub fn untraced(&self) -> impl Iterator<Item = Untraced<'_>> {
        self.consumers.iter().flat_map(|(consumer, told)| {
            let open = told.commits.iter().filter(|(_, commit)| !commit.traced);
            open.map(move |(id, commit)| Untraced { consumer, id: *id, commit })
        })
    }

    /// Confirms that the trace has the line of a commit.
    pub fn mark_traced(&mut self, consumer: &str, id: CommandId) {
        let commit = self.consumers.get_mut(consumer).and_then(|told| told.commits.get_mut(&id));
        if let Some(commit) = commit {
            commit.traced = true;
        }
    }

    /// Drops the commits that a higher watermark can stand for. `materialised` has every alias that was
    /// given, in rising order without a gap, each with whether it can still become pending; what cannot
    /// (it ended in the foreground, or its records are gone) needs no commit to be passed over.
    pub fn compact(&mut self, consumer: &str, materialised: &[(Alias, CommandId, bool)]) {
        let told = self.told_mut(consumer);
        let mut passed = Vec::new();
        for (alias, id, tellable) in materialised {
            if alias.0 <= told.through {
                continue;
            }
            let commit = told.commits.get(id);
            let done = commit.map_or(!tellable, |commit| commit.traced);
            if alias.0 != told.through + 1 || !done {
                break;
            }
            told.through = alias.0;
            passed.push(*id);
        }
        for id in passed {
            told.commits.remove(&id);
            told.leases.remove(&id);
        }
    }

    fn told_mut(&mut self, consumer: &str) -> &mut Told {
        self.consumers.entry(consumer.to_owned()).or_default()
    }
}

impl Told {
    fn was_told(&self, subject: Subject) -> bool {
        subject.alias.is_some_and(|alias| alias.0 <= self.through) || self.commits.contains_key(&subject.id)
    }

    fn via(&self, id: CommandId) -> Option<Via> {
        self.commits.get(&id).map(|commit| commit.via)
    }
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
