//! Whether the wait for an owner is over: its lock says that one lives who has no connection here.

use crate::context::Context;

/// What to do when a linger is over and no owner has said that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// An owner lives, or has gone since the last look, so that its linger begins now.
    Longer,
    /// There is none.
    Over,
}

/// What was seen of an owner that never said that it is there: a front end that is not the owner has started the keeper.
#[derive(Debug, Default)]
pub struct Patience {
    lived: bool,
}

impl Patience {
    /// Looks at the owner's lock. Nobody tells when a lock becomes free, so it is looked at once in a linger.
    pub fn after_linger(&mut self, context: &Context) -> Wait {
        // Not to know is not to know that it is gone.
        let lives = context.dir().is_some_and(|dir| dir.has_owner().unwrap_or(true));
        self.seen(lives)
    }

    fn seen(&mut self, lives: bool) -> Wait {
        let lived = std::mem::replace(&mut self.lived, lives);
        if lives || lived { Wait::Longer } else { Wait::Over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_was_seen_has_its_whole_linger_after_it_is_gone() {
        let mut patience = Patience::default();
        assert_eq!(
            [true, true, false, false].map(|lives| patience.seen(lives)),
            [Wait::Longer, Wait::Longer, Wait::Longer, Wait::Over]
        );
        assert_eq!(Patience::default().seen(false), Wait::Over);
    }
}
