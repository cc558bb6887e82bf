//! Which session a call is in. It is opened by the first call that needs it, never by the start of the server:
//! clients start servers only to ask what they can do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use outlast::{Error, Runtime, Session};
use outlast_core::id::SessionId;
use outlast_core::names::{NameField, check_name};
use rmcp::model::RequestMetaObject;
use tokio::sync::Mutex;

use super::settings::Place;
use crate::host::Host;

/// The consumer of every call that no sub-agent makes.
pub const MODEL: &str = "model";

/// The key of a call's `_meta`, and the HTTP header, that name a session.
pub const META_SESSION: &str = "outlast/session";
/// See [`META_SESSION`].
pub const HEADER_SESSION: &str = "outlast-session";

/// What a call says of where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The session that it names.
    session: Option<String>,
    /// The conversation that it names, as a context.
    context: Option<String>,
    /// The sub-agent that makes it.
    scope: Option<String>,
}

impl Origin {
    /// Reads what the call's `_meta` says, and the header. Codex names its conversation and, in a sub-agent, a thread
    /// of another name.
    pub fn of(meta: &RequestMetaObject, header: Option<&str>) -> Origin {
        let text = |key: &str| meta.0.get(key).and_then(serde_json::Value::as_str).filter(|text| !text.is_empty());
        let conversation = text("sessionId").filter(|_| meta.0.contains_key("x-codex-turn-metadata"));
        let thread = conversation.and_then(|own| text("threadId").filter(|thread| *thread != own));
        Origin {
            session: text(META_SESSION).or(header).map(str::to_owned),
            context: conversation.map(|id| Host::Codex.context(id)),
            scope: thread.map(str::to_owned),
        }
    }

    /// Who is spoken for: a sub-agent hears of what it started itself, and the model of everything.
    pub fn consumer(&self) -> String {
        let scoped = self.scope.as_ref().map(|scope| format!("{MODEL}-{scope}"));
        scoped.filter(|name| check_name(NameField::Consumer, name).is_ok()).unwrap_or_else(|| MODEL.to_owned())
    }
}

/// The state directory, opened by the first call that needs it: opening makes it. Clones are the same.
#[derive(Clone)]
pub struct Desk {
    library: outlast::Config,
    open: Arc<StdMutex<Option<Runtime>>>,
}

impl Desk {
    /// Nothing is open yet.
    pub fn new(library: outlast::Config) -> Desk {
        Desk { library, open: Arc::default() }
    }

    /// The open state directory.
    pub fn runtime(&self) -> outlast::Result<Runtime> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // One that could not be used is looked at anew by the next call, and so is one that somebody has removed.
        let found = open.as_ref().filter(|runtime| runtime.records().is_ok() && runtime.is_in_place());
        if let Some(runtime) = found {
            return Ok(runtime.clone());
        }
        let fresh = Runtime::open(self.library.clone())?;
        *open = Some(fresh.clone());
        Ok(fresh)
    }
}

/// The sessions of a server.
#[derive(Clone)]
pub struct Places {
    desk: Desk,
    place: Place,
    /// By the id that was named; the one of the place itself under none.
    open: Arc<Mutex<HashMap<Option<SessionId>, Session>>>,
}

impl Places {
    /// No session is open yet.
    pub fn new(desk: Desk, place: Place) -> Places {
        Places { desk, place, open: Arc::default() }
    }

    /// The session of a call.
    pub async fn session(&self, origin: &Origin) -> outlast::Result<Session> {
        let named = match &self.place {
            Place::Named(id) => Some(*id),
            Place::Host(_) | Place::Own { .. } => origin.session.as_deref().map(parse).transpose()?,
        };
        // Held over the opening, so that two first calls open one session.
        let mut open = self.open.lock().await;
        let runtime = self.desk.runtime()?;
        let kept = open.get(&named).filter(|session| session.runtime().is(&runtime));
        if let Some(session) = kept {
            match session.ensure_open().await {
                Ok(()) => return Ok(session.clone()),
                // Somebody ended it: the next call begins another one, if it named none.
                Err(Error::SessionClosed { .. } | Error::AnchorGone { .. }) if named.is_none() => {}
                Err(error) => return Err(error),
            }
        }
        open.remove(&named);
        let session = self.open(&runtime, named, origin).await?;
        open.insert(named, session.clone());
        drop(open);
        self.take_over_later(named, &session);
        Ok(session)
    }

    async fn open(&self, runtime: &Runtime, named: Option<SessionId>, origin: &Origin) -> outlast::Result<Session> {
        match (named, &self.place) {
            (Some(id), _) => runtime.own_if_free(&id).await,
            (None, Place::Host(around)) => {
                let context = origin.context.as_ref().unwrap_or(&around.context);
                Ok(runtime.attach_session(around.anchor, context, MODEL).await?.0)
            }
            (None, Place::Own { context }) => Ok(runtime.attach_context(context, MODEL).await?.0),
            (None, Place::Named(_)) => Err(Error::Usage("no session was named".to_owned())),
        }
    }

    /// Where another server owns the session, this one becomes its owner once that one is gone: its commands have
    /// an owner as long as one of them lives.
    fn take_over_later(&self, named: Option<SessionId>, session: &Session) {
        if session.is_owned_here() || !session.wants_owner() {
            return;
        }
        let (places, session) = (self.clone(), session.clone());
        tokio::spawn(async move {
            // A session that ended meanwhile has nothing to own, and the next call says so.
            if let Ok(owned) = session.runtime().own_when_free(&session).await {
                places.open.lock().await.insert(named, owned);
            }
        });
    }
}

fn parse(id: &str) -> outlast::Result<SessionId> {
    id.parse().map_err(|error| Error::Usage(format!("{error}, as the session of this call")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn origin(meta: serde_json::Value) -> Origin {
        Origin::of(&serde_json::from_value(meta).expect("an object"), None)
    }

    #[test]
    fn codex_names_its_conversation_and_its_sub_agents() {
        let main = origin(json!({"sessionId": "s1", "threadId": "s1", "x-codex-turn-metadata": {}}));
        assert_eq!((main.context.as_deref(), main.consumer().as_str()), (Some("codex:s1"), "model"));
        let sub = origin(json!({"sessionId": "s1", "threadId": "t2", "x-codex-turn-metadata": {}}));
        assert_eq!((sub.context.as_deref(), sub.consumer().as_str()), (Some("codex:s1"), "model-t2"));
        // Somebody else's words, and a name that cannot be one.
        assert_eq!(origin(json!({"sessionId": "s1", "threadId": "t2"})), Origin::default());
        let odd = origin(json!({"sessionId": "s1", "threadId": "../t", "x-codex-turn-metadata": {}}));
        assert_eq!(odd.consumer(), "model");
        assert_eq!(origin(json!({"outlast/session": "ses_1"})).session.as_deref(), Some("ses_1"));
    }
}
