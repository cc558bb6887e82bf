//! All that a consumer was not told yet, as one line that is folded into its next turn.

use outlast_core::delivery::Via;
use outlast_core::ending::End;
use outlast_core::id::CommandId;
use outlast_core::notice::{self, NotedEnd};
use outlast_core::push::Reach;
use outlast_core::record::Fate;

use crate::deliver::{Completion, CompletionGuard};
use crate::error::Result;
use crate::heads_up::HeadsUp;
use crate::hub::Hub;
use crate::session::Session;

/// Completions that are about to be told in one line. Dropping it without a commit offers them again, and
/// so does the death of this process.
pub struct Note {
    text: String,
    guards: Vec<CompletionGuard>,
    silent: Vec<CommandId>,
    heads_ups: Vec<HeadsUp>,
    hub: Hub,
}

impl Note {
    /// The line, without a line break.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it tells, by id.
    pub fn completions(&self) -> impl Iterator<Item = &Completion> {
        self.guards.iter().map(CompletionGuard::completion)
    }

    /// Says that the line was shown. After an error some of it may be offered again.
    pub async fn commit(self) -> Result<()> {
        self.silent.iter().for_each(|id| self.hub.told_silent(*id));
        for guard in self.guards {
            guard.commit(Via::Note).await?;
        }
        for one in self.heads_ups {
            one.commit().await?;
        }
        Ok(())
    }
}

impl Session {
    /// Takes all that was not told to this consumer since the last note, of every form of delivery but
    /// [`Delivery::Poll`](crate::Delivery::Poll), and which commands print nothing, or
    /// what was asked for ([`Session::pushed_heads_ups`]); none where there is nothing. It counts as told with
    /// [`Note::commit`].
    pub async fn note(&self, consumer: &str) -> Result<Option<Note>> {
        let reach = Reach { queue: true, wake: false };
        let guards = self.lease_pushed(consumer, reach).await?;
        let heads_ups = self.pushed_heads_ups(consumer, reach).await?;
        let hub = self.runtime().inner.hub.clone();
        let silences = hub.silences(*self.id(), consumer);
        if guards.is_empty() && silences.is_empty() && heads_ups.is_empty() {
            return Ok(None);
        }
        let ends: Vec<NotedEnd<'_>> = guards.iter().map(|guard| noted(guard.completion())).collect();
        let told = (!ends.is_empty()).then(|| notice::note(&ends));
        let lines = heads_ups.iter().map(|one| one.text(&one.snapshot.id.to_string(), true));
        let texts: Vec<String> =
            told.into_iter().chain(silences.iter().map(|one| one.text.clone())).chain(lines).collect();
        let silent = silences.iter().map(|one| one.id).collect();
        Ok(Some(Note { text: texts.join(" "), guards, silent, heads_ups, hub }))
    }
}

fn noted(completion: &Completion) -> NotedEnd<'_> {
    let snapshot = &completion.snapshot;
    NotedEnd {
        id: snapshot.id,
        end: snapshot.end.as_ref().unwrap_or(&End::Lost),
        ok: snapshot.ok == Some(true),
        left: snapshot.survivors_at_end.iter().filter(|one| one.fate != Fate::Killed).count(),
        redelivered: completion.redelivered,
    }
}
