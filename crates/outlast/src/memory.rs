//! The text of ended tasks that this process has in memory, held to bounds at each start and each end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use outlast_core::memory::{Bounds, Text, that_go};

/// An ended command that has text in memory.
pub(crate) trait Ended: Send + Sync {
    /// Bytes of text that it has now.
    fn text_bytes(&self) -> usize;
    /// Whether somebody waits for them.
    fn is_awaited(&self) -> bool;
    /// Lets go of them.
    fn forget_text(&self);
}

/// All of them in one runtime, the oldest end first.
#[derive(Default)]
pub(crate) struct Texts {
    bounds: Bounds,
    ended: Mutex<Vec<(Duration, Weak<dyn Ended>)>>,
}

impl Texts {
    /// Adds one that has just ended.
    pub(crate) fn add(&self, ended: Weak<dyn Ended>, now: Duration) {
        self.ended().push((now, ended));
    }

    /// Lets go of what is beyond the bounds at this time of the monotonic clock.
    pub(crate) fn look(&self, now: Duration) {
        // What is dropped here may be its last holder, and that calls code of others: the lock is free by then.
        let found: Vec<(Duration, Arc<dyn Ended>)> =
            self.ended().iter().filter_map(|(at, one)| Some((*at, one.upgrade()?))).collect();
        let (with_text, mut gone): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, one)| one.text_bytes() > 0);
        let text = |(ended, one): &(Duration, Arc<dyn Ended>)| Text {
            ended: *ended,
            bytes: one.text_bytes(),
            awaited: one.is_awaited(),
        };
        let texts: Vec<Text> = with_text.iter().map(text).collect();
        for at in that_go(&texts, self.bounds, now) {
            with_text[at].1.forget_text();
            gone.push(with_text[at].clone());
        }
        let is = |one: &Weak<dyn Ended>| gone.iter().any(|(_, gone)| one.ptr_eq(&Arc::downgrade(gone)));
        self.ended().retain(|(_, one)| one.strong_count() > 0 && !is(one));
    }

    fn ended(&self) -> MutexGuard<'_, Vec<(Duration, Weak<dyn Ended>)>> {
        // Each change of the list is one call, so that a panic leaves it whole.
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    struct Fake(AtomicUsize, AtomicBool);

    impl Ended for Fake {
        fn text_bytes(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }

        fn is_awaited(&self) -> bool {
            self.1.load(Ordering::SeqCst)
        }

        fn forget_text(&self) {
            self.0.store(0, Ordering::SeqCst);
        }
    }

    fn fake(texts: &Texts, bytes: usize, awaited: bool, now: Duration) -> Arc<Fake> {
        let fake = Arc::new(Fake(AtomicUsize::new(bytes), AtomicBool::new(awaited)));
        let weak: Weak<Fake> = Arc::downgrade(&fake);
        texts.add(weak, now);
        fake
    }

    /// Covers: I1
    #[test]
    fn i1_a_look_forgets_what_is_over_its_time_and_lists_only_what_has_text() {
        let at = |seconds| Duration::from_secs(seconds);
        let texts = Texts::default();
        let (old, awaited) = (fake(&texts, 8, false, at(0)), fake(&texts, 8, true, at(0)));
        let empty = fake(&texts, 0, false, at(1));
        drop(fake(&texts, 8, false, at(1)));
        let young = fake(&texts, 8, false, at(200));
        texts.look(at(300));
        assert_eq!([&old, &awaited, &young, &empty].map(|one| one.text_bytes()), [8, 8, 8, 0]);
        assert_eq!(texts.ended().len(), 3, "those without text and without a holder are not listed");
        texts.look(at(301));
        assert_eq!([&old, &awaited, &young].map(|one| one.text_bytes()), [0, 8, 8]);
        let none = Bounds { commands: 0, bytes: 0, ..Bounds::default() };
        let texts = Texts { bounds: none, ..texts };
        texts.look(at(301));
        assert_eq!([&awaited, &young].map(|one| one.text_bytes()), [8, 0], "somebody waits for it");
        awaited.1.store(false, Ordering::SeqCst);
        texts.look(at(301));
        assert_eq!((awaited.text_bytes(), texts.ended().len()), (0, 0));
    }
}
