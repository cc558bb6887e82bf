//! All that a consumer was not told yet, as one line that is folded into its next turn.

use outlast_core::delivery::Via;
use outlast_core::ending::End;
use outlast_core::notice::{self, NotedEnd};
use outlast_core::push::Reach;
use outlast_core::record::Fate;

use crate::deliver::{Completion, CompletionGuard};
use crate::error::Result;
use crate::session::Session;

/// Completions that are about to be told in one line. Dropping it without a commit offers them again, and
/// so does the death of this process.
pub struct Note {
    text: String,
    guards: Vec<CompletionGuard>,
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
        for guard in self.guards {
            guard.commit(Via::Note).await?;
        }
        Ok(())
    }
}

impl Session {
    /// Takes all that was not told to this consumer since the last note, of every form of delivery but
    /// [`Delivery::Poll`](crate::Delivery::Poll); none where there is nothing. It counts as told with
    /// [`Note::commit`].
    pub async fn note(&self, consumer: &str) -> Result<Option<Note>> {
        let guards = self.lease_pushed(consumer, Reach { queue: true, wake: false }).await?;
        if guards.is_empty() {
            return Ok(None);
        }
        let ends: Vec<NotedEnd<'_>> = guards.iter().map(|guard| noted(guard.completion())).collect();
        Ok(Some(Note { text: notice::note(&ends), guards }))
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
