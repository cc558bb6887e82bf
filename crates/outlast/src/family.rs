//! Sessions of child agents: the parent lists and stops what runs in them, and inherits what they leave untold.

use outlast_core::id::SessionId;
use outlast_core::record::Ownership;

use crate::error::{Error, Result};
use crate::session::{Session, is_alive};

impl Session {
    /// The sessions of child agents, oldest first: those that were made with this one as their
    /// [`parent`](crate::SessionOptions::parent). Their commands are listed and stopped through them like any other.
    ///
    /// A child tells its own ends, as long as it is there. Once its session was ended, its anchor is gone or its owner is
    /// gone, what a consumer was not told there is pending for that consumer here.
    pub async fn children(&self) -> Result<Vec<Session>> {
        if self.dir_if_any()?.is_none() {
            return Ok(Vec::new());
        }
        let mut children = Vec::new();
        for id in self.runtime().state()?.children(*self.id())? {
            let child = match self.runtime().open_session(&id).await {
                Ok(child) => child,
                // Its creator died before it was made.
                Err(Error::UnknownSession { .. }) => continue,
                Err(error) => return Err(error),
            };
            if child.record().is_some_and(|record| record.parent == Some(*self.id())) {
                children.push(child);
            }
        }
        Ok(children)
    }

    /// The sessions whose untold ends are this one's to tell: children that are gone, and the gone children of those.
    pub(crate) async fn inherited(&self) -> Result<Vec<Session>> {
        let mut inherited: Vec<Session> = Vec::new();
        let mut parents = vec![self.clone()];
        while let Some(parent) = parents.pop() {
            for child in parent.children().await? {
                let known = |id: &SessionId| inherited.iter().any(|one| one.id() == id);
                if !known(child.id()) && child.is_gone()? {
                    inherited.push(child.clone());
                    parents.push(child);
                }
            }
        }
        inherited.sort_by_key(|one| *one.id());
        Ok(inherited)
    }

    /// Whether nobody is there any more who is told what happens in it.
    fn is_gone(&self) -> Result<bool> {
        let (Some(dir), Some(record)) = (self.dir_if_any()?, self.record()) else { return Ok(false) };
        if dir.is_closed()? {
            return Ok(true);
        }
        if let Some(anchor) = &record.anchor
            && !is_alive(anchor)?
        {
            return Ok(true);
        }
        Ok(record.ownership == Ownership::Resident && !dir.has_owner()?)
    }
}
