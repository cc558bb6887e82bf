//! Finds the records of a command: in `work`, or where its session was bound to, or on the way between them.

use std::path::Path;

use outlast_core::id::CommandId;
use outlast_core::record::{BoundRecord, schema};

use super::{Loaded, load, name};
use crate::dir::{Dir, Result, if_there};

/// The directory of a session, and the one in which its commands are made.
#[derive(Debug, Clone)]
pub(super) struct Home {
    pub(super) session: Dir,
    pub(super) work: Dir,
}

impl Home {
    /// Where the records of its commands are moved to, if it was bound.
    pub(super) fn bound(&self) -> Result<Option<Loaded<BoundRecord>>> {
        load(&self.session, name::BOUND, schema::BOUND)
    }

    /// The directories that hold records, in the order in which they are moved: `work`, then where it was bound to.
    pub(super) fn places(&self) -> Result<Vec<Dir>> {
        self.open(self.bound()?.as_ref())
    }

    fn open(&self, bound: Option<&Loaded<BoundRecord>>) -> Result<Vec<Dir>> {
        let mut places = vec![self.work.clone()];
        for (place, own) in bound.iter().flat_map(|bound| bound.places.iter().map(|place| (place, bound.id))) {
            // A place that somebody removed holds nothing; one that cannot be opened now is an error.
            let Some(outer) = if_there(Dir::open_place(Path::new(place)))? else { continue };
            places.extend(if_there(outer.sub(&own.to_string()))?);
        }
        Ok(places)
    }

    /// The directory of a command, wherever it is; none if it has no records in this session.
    pub(super) fn find(&self, id: CommandId) -> Result<Option<Dir>> {
        let plain = id.to_string();
        if let Some(found) = if_there(self.work.sub(&plain))? {
            return Ok(Some(found));
        }
        self.look(|places| {
            // What moves stands under one of these names at each instant, and never goes back from the second one.
            for named in [&plain, &hidden_name(id), &plain] {
                for place in places {
                    if let Some(found) = if_there(place.sub(named))? {
                        return Ok(Some(found));
                    }
                }
            }
            Ok(None)
        })
    }

    /// Ids of all commands with records, unsorted; one may be in it twice.
    pub(super) fn commands(&self) -> Result<Vec<CommandId>> {
        let here: Vec<CommandId> = super::ids(&self.work)?;
        let mut found = Vec::new();
        self.look::<()>(|places| {
            // In the order in which records are moved, so that none is missed on its way.
            for place in places {
                found.extend(super::ids::<CommandId>(place)?);
                let hidden = place.names()?.into_iter();
                found.extend(hidden.filter_map(|file| file.strip_prefix(name::MOVED)?.parse::<CommandId>().ok()));
            }
            Ok(None)
        })?;
        found.extend(here);
        Ok(found)
    }

    /// Looks through all places of a session that is bound, again where it was bound to another one meanwhile. What
    /// is not in `work` any more was bound before it left.
    fn look<T>(&self, mut look: impl FnMut(&[Dir]) -> Result<Option<T>>) -> Result<Option<T>> {
        let mut bound = self.bound()?;
        while bound.is_some() {
            if let Some(found) = look(&self.open(bound.as_ref())?)? {
                return Ok(Some(found));
            }
            let now = self.bound()?;
            if now == bound {
                break;
            }
            bound = now;
        }
        Ok(None)
    }
}

/// What the source of a move is called once its copy is whole.
pub(super) fn hidden_name(id: CommandId) -> String {
    format!("{}{id}", name::MOVED)
}
