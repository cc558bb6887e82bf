//! What became of a command, decided from what is found of it: one table for every looker.

/// What is found of a command when somebody looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its exit record, where there is one.
    pub exit: Option<ExitFound>,
    /// There is a verdict of an earlier look.
    pub verdict: bool,
    /// Its lease is held: by the supervisor of a process, by the owner of a task.
    pub lease_held: bool,
    /// It is an in-process task and not a process.
    pub task: bool,
    /// Somebody may still write its exit record although its lease is free: the keeper of its session.
    pub keeper_alive: bool,
    /// The looker holds the session's `owner.lock`.
    pub owner_lock: OwnerLock,
    /// It needs not be told: the consumer was told, or the report of the session's end names it.
    pub accounted: bool,
}

/// What an exit record says of the cause of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitFound {
    /// The command ended by itself, by its limits, or because somebody stopped it.
    ByItself,
    /// It was ended because its owner was gone or its session ended.
    WithItsOwner,
}

/// Who holds the `owner.lock` of a command's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerLock {
    /// The one who looks, so that the session has no other owner.
    Ours,
    /// Somebody else, or nobody: the looker may not repair.
    NotOurs,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is running, and somebody will record its end.
    Running,
    /// It has an exit record, and its end is to be told as a completion.
    EndedWhileAway,
    /// It has an exit record, and its end is to be told together with the cause.
    KilledWithOwner,
    /// It is a process and nobody knows how it ended; a verdict is to be written, then told.
    Lost,
    /// It is a task whose owner died; a verdict is to be written, then told.
    Interrupted,
    /// Its end is known and nothing is left to tell.
    Accounted,
    /// It has no end, and this looker must not decide; a later one will.
    Deferred,
}

impl Fate {
    /// Whether nothing will change any more, so that a session with only such commands counts as
    /// reconciled.
    #[must_use]
    pub fn is_settled(self) -> bool {
        !matches!(self, Fate::Running | Fate::Deferred)
    }

    /// Whether a verdict has to be written before this is told.
    #[must_use]
    pub fn needs_verdict(self) -> bool {
        matches!(self, Fate::Lost | Fate::Interrupted)
    }
}

/// Decides what became of a command.
///
/// An exit record counts before everything, because it is written once and before the lease is freed. A
/// stored phase is never asked: nothing runs that nobody holds a lease for.
#[must_use]
pub fn fate(found: Found) -> Fate {
    match found.exit {
        Some(_) if found.accounted => return Fate::Accounted,
        Some(ExitFound::ByItself) => return Fate::EndedWhileAway,
        Some(ExitFound::WithItsOwner) => return Fate::KilledWithOwner,
        None => {}
    }
    if found.verdict {
        Fate::Accounted
    } else if found.lease_held {
        Fate::Running
    } else if found.keeper_alive && !found.task {
        // The keeper reaps what a dead supervisor leaves, and writes the record in its place.
        Fate::Deferred
    } else if found.owner_lock == OwnerLock::NotOurs {
        Fate::Deferred
    } else if found.accounted {
        Fate::Accounted
    } else if found.task {
        Fate::Interrupted
    } else {
        Fate::Lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of facts.
    fn all() -> impl Iterator<Item = Found> {
        let exits = [None, Some(ExitFound::ByItself), Some(ExitFound::WithItsOwner)];
        exits.into_iter().flat_map(|exit| {
            (0..64_u8).map(move |bits| Found {
                exit,
                verdict: bits & 1 != 0,
                lease_held: bits & 2 != 0,
                task: bits & 4 != 0,
                keeper_alive: bits & 8 != 0,
                owner_lock: if bits & 16 != 0 { OwnerLock::Ours } else { OwnerLock::NotOurs },
                accounted: bits & 32 != 0,
            })
        })
    }

    /// A process without an end, looked at by the new owner of its session.
    const OPEN: Found = Found {
        exit: None,
        verdict: false,
        lease_held: false,
        task: false,
        keeper_alive: false,
        owner_lock: OwnerLock::Ours,
        accounted: false,
    };

    /// Covers: L1, L13, L14
    #[test]
    fn l1_each_command_falls_into_exactly_one_group() {
        let by_itself = Some(ExitFound::ByItself);
        let with_owner = Some(ExitFound::WithItsOwner);
        let not_ours = OwnerLock::NotOurs;
        for (found, expected) in [
            (Found { exit: by_itself, ..OPEN }, Fate::EndedWhileAway),
            (Found { exit: with_owner, ..OPEN }, Fate::KilledWithOwner),
            (OPEN, Fate::Lost),
            (Found { task: true, ..OPEN }, Fate::Interrupted),
            (Found { lease_held: true, ..OPEN }, Fate::Running),
            (Found { lease_held: true, task: true, ..OPEN }, Fate::Running),
            (Found { verdict: true, ..OPEN }, Fate::Accounted),
            (Found { exit: by_itself, accounted: true, ..OPEN }, Fate::Accounted),
            (Found { exit: with_owner, accounted: true, ..OPEN }, Fate::Accounted),
            (Found { accounted: true, ..OPEN }, Fate::Accounted),
            (Found { owner_lock: not_ours, ..OPEN }, Fate::Deferred),
            (Found { owner_lock: not_ours, task: true, ..OPEN }, Fate::Deferred),
            (Found { keeper_alive: true, ..OPEN }, Fate::Deferred),
            (Found { keeper_alive: true, task: true, ..OPEN }, Fate::Interrupted),
            // Survivors of an ended command keep its supervisor, and so its lease.
            (Found { exit: by_itself, lease_held: true, ..OPEN }, Fate::EndedWhileAway),
            (Found { exit: by_itself, owner_lock: not_ours, ..OPEN }, Fate::EndedWhileAway),
        ] {
            assert_eq!(fate(found), expected, "{found:?}");
        }
    }

    /// Covers: L1, L13, L16
    #[test]
    fn l13_what_holds_for_every_combination() {
        for found in all() {
            let fate = fate(found);
            let open = found.exit.is_none() && !found.verdict;
            assert_eq!(fate == Fate::Running, open && found.lease_held, "{found:?}");
            if fate.needs_verdict() {
                assert!(open && !found.lease_held && found.owner_lock == OwnerLock::Ours, "{found:?}");
                assert!(!found.accounted, "{found:?}");
                assert_eq!(fate == Fate::Interrupted, found.task, "{found:?}");
            }
            if found.exit.is_some() {
                assert!(fate.is_settled(), "{found:?}");
                assert_eq!(fate == Fate::Accounted, found.accounted, "{found:?}");
            }
            if matches!(fate, Fate::EndedWhileAway | Fate::KilledWithOwner) {
                assert!(found.exit.is_some(), "{found:?}");
            }
        }
    }

    /// Covers: L16
    #[test]
    fn l16_a_live_supervisor_is_running_whoever_owns_the_session() {
        for owner_lock in [OwnerLock::Ours, OwnerLock::NotOurs] {
            for keeper_alive in [true, false] {
                let found = Found { lease_held: true, owner_lock, keeper_alive, ..OPEN };
                assert_eq!(fate(found), Fate::Running);
                let gone = Found { lease_held: false, ..found };
                assert_ne!(fate(gone), Fate::Running);
            }
        }
    }
}
