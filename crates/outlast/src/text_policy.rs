//! What of the final text of a task is kept: the policy, and its epochs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Decides over final texts: it is given the project, where one is known, and the text, and gives what is kept of it, or
/// none where it is withheld. It is called on a thread of tokio, and returns soon.
type Admit = Arc<dyn Fn(Option<&str>, &str) -> Option<String> + Send + Sync>;

/// What of the final text of a task is kept: of what its body returned, an error or a panic included. What it wrote as it
/// ran is output, which no text policy touches.
#[derive(Clone)]
pub struct TextPolicy {
    needs_project: bool,
    notice: Option<String>,
    admit: Admit,
}

impl TextPolicy {
    /// A policy that keeps of each text what `admit` gives for it and its project; none withholds it.
    pub fn new(admit: impl Fn(Option<&str>, &str) -> Option<String> + Send + Sync + 'static) -> TextPolicy {
        TextPolicy { needs_project: false, notice: None, admit: Arc::new(admit) }
    }

    /// As it is, and what has no project ([`TaskRequest::project`](crate::TaskRequest::project)) is withheld.
    #[must_use]
    pub fn by_project(self) -> TextPolicy {
        TextPolicy { needs_project: true, ..self }
    }

    /// As it is, with a line without content that stands in front of each text, also of one that is withheld.
    #[must_use]
    pub fn with_notice(self, notice: impl Into<String>) -> TextPolicy {
        TextPolicy { notice: Some(notice.into()), ..self }
    }

    fn look(&self, project: Option<&str>, text: &str) -> (Option<String>, Option<&'static str>) {
        if self.needs_project && project.is_none() {
            return (None, Some("no project"));
        }
        // One that panics lets nothing through.
        match catch_unwind(AssertUnwindSafe(|| (self.admit)(project, text))).ok().flatten() {
            None => (None, Some("blocked")),
            Some(kept) if kept == text => (Some(kept), None),
            Some(kept) => (Some(kept), Some("changed")),
        }
    }
}

impl std::fmt::Debug for TextPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextPolicy").field("needs_project", &self.needs_project).finish_non_exhaustive()
    }
}

/// The text policy of a runtime.
#[derive(Debug, Default)]
pub(crate) struct TextRule {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    epoch: u64,
    policy: Option<TextPolicy>,
}

/// What is kept of one text.
#[derive(Debug)]
pub(crate) struct Ruled {
    /// The text; none where it is withheld.
    pub(crate) text: Option<String>,
    pub(crate) notice: Option<String>,
    /// Why it is not the text that came; for the trace.
    pub(crate) why: Option<&'static str>,
    epoch: u64,
}

impl TextRule {
    /// Sets the policy, and gives its epoch.
    pub(crate) fn set(&self, policy: Option<TextPolicy>) -> u64 {
        let mut state = self.lock();
        state.policy = policy;
        state.epoch += 1;
        state.epoch
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    /// Looks at a text; none where there is no policy.
    pub(crate) fn look(&self, project: Option<&str>, text: &str) -> Option<Ruled> {
        let (epoch, policy) = {
            let state = self.lock();
            (state.epoch, state.policy.clone()?)
        };
        // With no lock held: what it does is its own affair.
        let (text, why) = policy.look(project, text);
        Some(Ruled { text, notice: policy.notice, why, epoch })
    }

    /// Stores what was ruled, as long as the policy is the same; where it changed meanwhile the text is withheld. The
    /// policy does not change while it is stored.
    pub(crate) fn keep<T>(&self, mut ruled: Ruled, store: impl FnOnce(Ruled) -> T) -> T {
        let state = self.lock();
        if state.epoch != ruled.epoch {
            (ruled.text, ruled.why) = (None, Some("the policy changed"));
        }
        store(ruled)
    }

    /// Does something as long as this is the epoch; none where it is over.
    pub(crate) fn within<T>(&self, epoch: u64, act: impl FnOnce() -> T) -> Option<T> {
        let state = self.lock();
        (state.epoch == epoch).then(act)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
