//! What is kept and what goes: which sessions, and whose output, as functions of what is there and of bounds.
//!
//! Nothing is looked up here. Who acts on a plan looks once more, under the locks of what goes.

use std::num::NonZeroU64;

use crate::id::{CommandId, SessionId};

/// The bytes of output that all sessions together keep by default.
pub const LOG_BYTES: NonZeroU64 = NonZeroU64::new(2 << 30).expect("it is not zero");

/// Bounds on what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bounds on sessions; none keeps all of them.
    pub sessions: Option<SessionBounds>,
    /// Bytes on disk of the output of all sessions together.
    pub log_bytes: NonZeroU64,
    /// Whether also that goes which somebody was not told of, in sessions that are over.
    pub untold: bool,
}

impl Default for Limits {
    /// Every session is kept, and 2 GiB of output.
    fn default() -> Self {
        Limits { sessions: None, log_bytes: LOG_BYTES, untold: false }
    }
}

/// How many sessions are kept, and how old they may be: one that breaks either bound goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionBounds {
    count: Option<NonZeroU64>,
    age_ms: Option<NonZeroU64>,
}

/// Bounds that are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// Neither of them was given.
    #[error("neither a number of sessions nor an age was given")]
    Empty,
    /// To keep nothing is no bound.
    #[error("a bound of 0 would keep nothing")]
    Zero,
}

impl SessionBounds {
    /// Bounds on the number of sessions and on their age in milliseconds; at least one of them, and none of them 0.
    pub fn new(count: Option<u64>, age_ms: Option<u64>) -> Result<SessionBounds, BoundsError> {
        if count.is_none() && age_ms.is_none() {
            return Err(BoundsError::Empty);
        }
        let above_0 =
            |bound: Option<u64>| bound.map(|bound| NonZeroU64::new(bound).ok_or(BoundsError::Zero)).transpose();
        Ok(SessionBounds { count: above_0(count)?, age_ms: above_0(age_ms)? })
    }
}

/// How a session is used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A command of it runs, or a survivor of one.
    Running,
    /// Nothing runs, and somebody holds it or may come back to it.
    Open,
    /// It was ended, or what bounded it is gone.
    Over,
    /// It cannot be told: its own record is damaged, or a newer outlast wrote it.
    Unknown,
}

/// Why a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There are that many newer ones.
    Count,
    /// It is that old.
    Age,
}

impl Why {
    /// The word for it in the trace.
    pub fn word(self) -> &'static str {
        match self {
            Why::Count => "count",
            Why::Age => "age",
        }
    }
}

/// The sessions that break a bound and are over, oldest first. Never one that runs, nor any that is newer than one
/// that runs. Age is taken from the time in the id.
#[must_use]
pub fn sessions_beyond(sessions: &[(SessionId, Use)], bounds: SessionBounds, now_ms: u64) -> Vec<(SessionId, Why)> {
    let mut sorted = sessions.to_vec();
    sorted.sort_unstable_by_key(|(id, _)| *id);
    let all = sorted.len() as u64;
    let breaks = |newer: u64, id: SessionId| {
        let old = bounds.age_ms.is_some_and(|most| now_ms.saturating_sub(id.unix_ms()) > most.get());
        let many = bounds.count.is_some_and(|most| newer >= most.get());
        if old { Some(Why::Age) } else { many.then_some(Why::Count) }
    };
    let before_what_runs = sorted.iter().zip(0..).take_while(|((_, used), _)| *used != Use::Running);
    before_what_runs
        .filter(|((_, used), _)| *used == Use::Over)
        .filter_map(|((id, _), rank)| Some((*id, breaks(all - 1 - rank, *id)?)))
        .collect()
}

/// The output of one command on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// Its session.
    pub session: SessionId,
    /// The command.
    pub id: CommandId,
    /// Bytes on disk.
    pub bytes: u64,
    /// When the command ended, in milliseconds since 1970; none where it may still grow, or somebody has to be told
    /// of its end: such output is counted and never goes.
    pub ended_at_ms: Option<u64>,
}

/// Whose output goes, so that all of it together stays within the bound: the oldest ends first, and no more than
/// needed.
#[must_use]
pub fn logs_beyond(logs: &[Log], most: NonZeroU64) -> Vec<Log> {
    let mut total: u64 = logs.iter().map(|log| log.bytes).sum();
    let mut may_go: Vec<&Log> = logs.iter().filter(|log| log.ended_at_ms.is_some() && log.bytes > 0).collect();
    may_go.sort_unstable_by_key(|log| (log.ended_at_ms, log.id));
    let mut beyond = Vec::new();
    for log in may_go {
        if total <= most.get() {
            break;
        }
        total -= log.bytes;
        beyond.push(*log);
    }
    beyond
}

/// Who must have been told of an end before it may go: everybody the ledger of its session knows, who started it,
/// and the model, where somebody can still come for it. A session that is over and has no context is followed by
/// none, so that nobody new comes.
pub fn must_know<'a>(
    known: impl IntoIterator<Item = &'a str>,
    starter: &'a str,
    can_be_followed: bool,
) -> Vec<&'a str> {
    let model = can_be_followed.then_some("model");
    let mut all: Vec<&str> = known.into_iter().chain([starter]).chain(model).filter(|name| !name.is_empty()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::Use::{Open, Over, Running, Unknown};
    use super::*;

    const HOUR: u64 = 3_600_000;
    const NOW: u64 = 1_700_000_000_000;

    /// A session that is this many hours old.
    fn aged(hours: u64) -> SessionId {
        SessionId::from_parts(NOW - hours * HOUR, 0, hours)
    }

    fn bounds(count: Option<u64>, hours: Option<u64>) -> SessionBounds {
        SessionBounds::new(count, hours.map(|hours| hours * HOUR)).expect("bounds")
    }

    /// The ages of the sessions that go.
    fn check(sessions: &[(u64, Use)], count: Option<u64>, hours: Option<u64>) -> Vec<(u64, Why)> {
        let all: Vec<_> = sessions.iter().map(|(age, used)| (aged(*age), *used)).collect();
        let gone = sessions_beyond(&all, bounds(count, hours), NOW);
        gone.into_iter().map(|(id, why)| ((NOW - id.unix_ms()) / HOUR, why)).collect()
    }

    /// Covers: I5
    #[test]
    fn i5_two_bounds_together() {
        let four = [(1, Over), (40, Over), (2, Over), (30, Over)];
        assert_eq!(check(&four, Some(9), Some(99)), []);
        assert_eq!(check(&four, Some(3), None), [(40, Why::Count)]);
        assert_eq!(check(&four, None, Some(29)), [(40, Why::Age), (30, Why::Age)]);
        assert_eq!(check(&four, Some(1), Some(35)), [(40, Why::Age), (30, Why::Count), (2, Why::Count)]);
        assert_eq!(check(&four, None, Some(40)), [], "just as old is not older");
        assert_eq!(check(&[], Some(1), Some(1)), []);
    }

    /// Covers: I5
    #[test]
    fn i5_never_one_that_runs_nor_a_newer_one() {
        assert_eq!(check(&[(9, Over), (8, Running), (7, Over)], Some(1), Some(1)), [(9, Why::Age)]);
        assert_eq!(check(&[(9, Running), (8, Over)], Some(1), Some(1)), []);
        // What is open or cannot be told stays, and keeps no other one.
        assert_eq!(
            check(&[(9, Open), (8, Over), (7, Unknown), (6, Over)], None, Some(1)),
            [(8, Why::Age), (6, Why::Age)]
        );
        assert_eq!(check(&[(9, Open), (8, Over), (7, Over)], Some(2), None), []);
    }

    /// Covers: I5
    #[test]
    fn i5_bounds_of_0_and_no_bounds_are_refused() {
        assert_eq!(SessionBounds::new(None, None), Err(BoundsError::Empty));
        for (count, age) in [(Some(0), None), (None, Some(0)), (Some(0), Some(5)), (Some(5), Some(0))] {
            assert_eq!(SessionBounds::new(count, age), Err(BoundsError::Zero));
        }
    }

    #[test]
    fn the_oldest_ends_go_and_no_more_than_needed() {
        let log = |number: u64, bytes, ended_at_ms| Log {
            session: aged(1),
            id: CommandId::from_parts(NOW, 0, number),
            bytes,
            ended_at_ms,
        };
        let logs = [log(1, 5, Some(30)), log(2, 5, Some(10)), log(3, 5, None), log(4, 5, Some(20)), log(5, 0, Some(1))];
        let check = |most: u64| -> Vec<Option<u64>> {
            let gone = logs_beyond(&logs, NonZeroU64::new(most).expect("a bound"));
            gone.iter().map(|log| log.ended_at_ms).collect()
        };
        assert_eq!(check(20), []);
        assert_eq!(check(19), [Some(10)]);
        assert_eq!(check(10), [Some(10), Some(20)]);
        assert_eq!(check(1), [Some(10), Some(20), Some(30)], "what may not go stays over every bound");
    }

    #[test]
    fn whoever_can_still_be_told_must_know() {
        assert_eq!(must_know(["human", "hook"], "human", true), ["hook", "human", "model"]);
        assert_eq!(must_know(["human"], "human", false), ["human"]);
        assert_eq!(must_know([], "model", false), ["model"]);
        assert_eq!(must_know([], "", false), [""; 0]);
    }
}
