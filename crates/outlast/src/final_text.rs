//! The final text of a task that ended under a text policy: held, replaced and scrubbed.

use outlast_core::record::{TextRecord, TraceLine};
use outlast_host::clock;
use outlast_host::store::trace;

use crate::command::Command;
use crate::error::{Error, Result};
use crate::runtime::Runtime;
use crate::session::Session;
use crate::text_policy::TextPolicy;

/// A final text exactly as it was kept: without its notice, and with its secrets, whatever is masked where it is shown. Whoever holds it can replace and scrub it, as long as it is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalText {
    /// How often it was replaced before.
    pub revision: u64,
    /// The text.
    pub text: String,
}

impl Runtime {
    /// Sets what of final texts is kept from now on, or takes that away. Gives the epoch of this policy. What runs goes on;
    /// texts that were kept stay as they are, for whoever holds them to replace or scrub.
    pub fn set_text_policy(&self, policy: Option<TextPolicy>) -> u64 {
        self.inner.text_rule.set(policy)
    }

    /// The epoch of the present text policy: 0 before any was set.
    pub fn text_epoch(&self) -> u64 {
        self.inner.text_rule.epoch()
    }
}

impl Command {
    /// Its final text; none where it ended under no text policy, or the text is withheld.
    pub async fn final_text(&self) -> Result<Option<FinalText>> {
        let record = self.dir()?.text()?.map(|text| text.record);
        Ok(record.and_then(|record| Some(FinalText { revision: record.revision, text: record.text? })))
    }

    /// Puts another text in the place of this one, under the present text policy, whose epoch it names. Refused where the
    /// policy has changed since, and where the text is not this one any more.
    pub async fn replace_text(&self, held: &FinalText, text: impl Into<String>, epoch: u64) -> Result<FinalText> {
        let text = text.into();
        let revision = self.exchange(held, Some(text.clone()), Some(epoch)).await?;
        Ok(FinalText { revision, text })
    }

    /// Takes this text away for good; its notice stays. Refused where the text is not this one any more; no policy and no
    /// epoch is in its way.
    pub async fn scrub_text(&self, held: &FinalText) -> Result<()> {
        self.exchange(held, None, None).await.map(drop)
    }

    async fn exchange(&self, held: &FinalText, text: Option<String>, epoch: Option<u64>) -> Result<u64> {
        let (command, held) = (self.clone(), held.clone());
        // Another holder may have the lock.
        let exchanged = tokio::task::spawn_blocking(move || command.exchange_now(&held, text, epoch)).await;
        exchanged.map_err(|error| Error::Unreachable(format!("the exchange of a text failed: {error}")))?
    }

    fn exchange_now(&self, held: &FinalText, text: Option<String>, epoch: Option<u64>) -> Result<u64> {
        let dir = self.dir()?;
        let _lock = dir.lock_text()?;
        let refused = |why: String| Err(Error::Refused(format!("the final text of {} stays: {why}", self.id)));
        let Some(stored) = dir.text()? else { return refused("it ended under no text policy".to_owned()) };
        if stored.newer {
            return refused("a newer outlast wrote it".to_owned());
        }
        let stored = stored.record;
        if stored.revision != held.revision || stored.text.as_ref() != Some(&held.text) {
            return refused(format!("it is not the one that is held: it is of revision {}", stored.revision));
        }
        let why = if text.is_some() { "replaced" } else { "scrubbed" };
        let revision = stored.revision + 1;
        let write = || dir.write_text(&TextRecord { revision, text, ..stored });
        let rule = &self.session.runtime().inner.text_rule;
        match epoch {
            None => write()?,
            // Asked with the lock held: the policy may have changed while it was waited for.
            Some(epoch) => match rule.within(epoch, write) {
                Some(written) => written?,
                None => return refused(format!("the text policy is not that of epoch {epoch} any more")),
            },
        }
        self.session.trace_text(self, why)?;
        Ok(revision)
    }
}

impl Session {
    /// Says in the trace what became of a final text; the line has nothing of it.
    pub(crate) fn trace_text(&self, command: &Command, why: &str) -> Result<()> {
        let dir = self.dir()?;
        let line = TraceLine {
            kind: "text".to_owned(),
            event: self.runtime().new_event_id()?.to_string(),
            parent: self.record().map(|record| record.start_event.clone()),
            session: self.id().to_string(),
            at_ms: clock::unix_ms(),
            id: Some(command.id),
            detail: Some(why.to_owned()),
            ..TraceLine::default()
        };
        Ok(trace::append(dir.dir(), &line, dir.durability())?)
    }
}
