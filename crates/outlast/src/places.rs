//! The places of a session's tasks: how many of a kind may run, and which do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::id::CommandId;

use crate::error::{Error, Result};

/// Why nothing starts while a session changes its owner.
const REPLACED: &str = "owner is being replaced: nothing starts in this session now, what runs goes on; try again";

/// The places of all tasks of one session. The lock is held for a look or a change of the table and for nothing
/// else: not over a start, a wait or a callback.
#[derive(Debug, Default)]
pub(crate) struct Places {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// The kinds of the tasks that have a place.
    taken: BTreeMap<CommandId, String>,
    /// Whether the owner is being replaced.
    sealed: bool,
}

/// No task starts as long as this is held.
#[derive(Debug)]
pub(crate) struct Sealed {
    places: Arc<Places>,
}

/// The place of one task, from before it starts until nothing of it is left. Dropping it frees it.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    id: CommandId,
}

impl Places {
    /// Takes a place for a task of this kind; refused where so many of it have one already. No cap is 0.
    pub(crate) fn take(self: &Arc<Self>, kind: &str, id: CommandId, cap: u32) -> Result<Place> {
        let mut table = self.table();
        if table.sealed {
            return Err(Error::Refused(REPLACED.to_owned()));
        }
        let running: Vec<CommandId> = table.taken.iter().filter(|(_, of)| *of == kind).map(|(id, _)| *id).collect();
        if cap > 0 && running.len() >= cap as usize {
            let count = running.len();
            let reason =
                format!("{count} tasks of kind {kind} run in this session and its cap is {cap}; stop one first");
            return Err(Error::Cap { reason, running });
        }
        table.taken.insert(id, kind.to_owned());
        Ok(Place { places: Arc::clone(self), id })
    }

    /// Lets no task start, for who takes the session over cannot take a task along; refused while one has a place.
    pub(crate) fn seal(self: &Arc<Self>) -> Result<Sealed> {
        let mut table = self.table();
        if table.sealed {
            return Err(Error::Refused(REPLACED.to_owned()));
        }
        if !table.taken.is_empty() {
            let named: Vec<String> = table.taken.keys().map(ToString::to_string).collect();
            let named = named.join(", ");
            return Err(Error::Refused(format!(
                "tasks run in this process and would not survive a change of the owner: {named}; stop them first"
            )));
        }
        table.sealed = true;
        Ok(Sealed { places: Arc::clone(self) })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // A panic while it was held left a table that is whole: each change of it is one call.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.table().taken.remove(&self.id);
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        self.places.table().sealed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> CommandId {
        CommandId::from_parts(number, 0, number)
    }

    /// Covers: S1
    #[test]
    fn s1_a_place_is_counted_by_kind_until_it_is_free_and_freed_once() {
        let places = Arc::new(Places::default());
        let first = places.take("agent", id(1), 2).expect("a place");
        let second = places.take("agent", id(2), 2).expect("a place");
        let other = places.take("index", id(3), 2).expect("another kind has places of its own");
        match places.take("agent", id(4), 2) {
            Err(Error::Cap { running, .. }) => assert_eq!(running, [id(1), id(2)]),
            other => panic!("{other:?}"),
        }
        drop(first);
        let third = places.take("agent", id(4), 2).expect("the place of the first");
        assert!(places.take("agent", id(5), 2).is_err());
        let refused = places.seal().expect_err("tasks have places").to_string();
        assert!([id(2), id(3), id(4)].iter().all(|id| refused.contains(&id.to_string())), "{refused}");
        drop((second, third, other));
        let held: Vec<Place> = (10..300).map(|n| places.take("agent", id(n), 0).expect("no cap")).collect();
        drop(held);
        let sealed = places.seal().expect("nothing has a place");
        assert!(places.take("agent", id(5), 2).is_err() && places.seal().is_err());
        drop(sealed);
        places.take("agent", id(5), 2).expect("the seal is gone");
    }

    /// Covers: S6
    #[test]
    fn s6_a_panic_under_the_lock_poisons_nothing() {
        let places = Arc::new(Places::default());
        let one = places.take("agent", id(1), 1).expect("a place");
        let held = Arc::clone(&places);
        let panicked = std::thread::spawn(move || {
            let _held = held.table.lock().expect("nobody panicked before");
            panic!("under the lock");
        });
        assert!(panicked.join().is_err());
        assert!(places.take("agent", id(2), 1).is_err(), "the cap still counts");
        drop(one);
        places.take("agent", id(2), 1).expect("and the place is free again");
    }
}
