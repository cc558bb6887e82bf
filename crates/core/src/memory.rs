//! Whose text goes from memory after its end, as a function of what is there and of bounds.

use std::time::Duration;

/// Bounds on the text of ended commands that is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long after its end text stays.
    pub age: Duration,
    /// How many ended commands have text.
    pub commands: usize,
    /// How many bytes of text there are in all; the newest stays whatever its size.
    pub bytes: usize,
}

impl Default for Bounds {
    /// Five minutes, 64 commands, 16 MiB.
    fn default() -> Self {
        Bounds { age: Duration::from_secs(300), commands: 64, bytes: 16 << 20 }
    }
}

/// The text of one ended command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// When the command ended, by a clock that does not jump.
    pub ended: Duration,
    /// Its size.
    pub bytes: usize,
    /// Whether somebody waits for it: then it stays, whatever its age and size.
    pub awaited: bool,
}

/// The places in `texts` of those that go now. The oldest end comes first in `texts`.
#[must_use]
pub fn that_go(texts: &[Text], bounds: Bounds, now: Duration) -> Vec<usize> {
    // What is over its time makes room for the rest.
    let (mut gone, rest): (Vec<usize>, Vec<usize>) =
        (0..texts.len()).partition(|at| !texts[*at].awaited && now.saturating_sub(texts[*at].ended) > bounds.age);
    let mut commands = rest.len();
    let mut bytes: usize = rest.iter().map(|at| texts[*at].bytes).sum();
    let newest = rest.last().copied();
    for at in rest.into_iter().filter(|at| !texts[*at].awaited) {
        if commands > bounds.commands || (bytes > bounds.bytes && Some(at) != newest) {
            gone.push(at);
            (commands, bytes) = (commands - 1, bytes - texts[at].bytes);
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NO_ROOM: Bounds = Bounds { age: Duration::from_secs(300), commands: 0, bytes: 0 };

    /// Texts of so many bytes, of which one ends each second, the first at 1 s.
    fn texts(sizes: &[usize]) -> Vec<Text> {
        let text =
            |(at, bytes): (usize, &usize)| Text { ended: SECOND * (at as u32 + 1), bytes: *bytes, awaited: false };
        sizes.iter().enumerate().map(text).collect()
    }

    /// Covers: I1
    #[test]
    fn i1_text_goes_after_five_minutes_unless_somebody_waits_for_it() {
        let mut held = texts(&[8, 8]);
        assert_eq!(that_go(&held, Bounds::default(), SECOND * 301), [0usize; 0], "five minutes are not over");
        assert_eq!(that_go(&held, Bounds::default(), SECOND * 302), [0]);
        assert_eq!(that_go(&held, Bounds::default(), SECOND * 303), [0, 1], "the newest has a time too");
        held[0].awaited = true;
        assert_eq!(that_go(&held, Bounds::default(), SECOND * 999), [1]);
        assert_eq!(that_go(&held, NO_ROOM, SECOND * 999), [1]);
        assert_eq!(that_go(&held, NO_ROOM, SECOND), [1]);
        assert_eq!(that_go(&[], NO_ROOM, SECOND), [0usize; 0]);
    }

    /// Covers: I2
    #[test]
    fn i2_of_65_ends_the_oldest_has_no_text() {
        let now = SECOND * 70;
        let mut held = texts(&[1; 65]);
        assert_eq!(that_go(&held, Bounds::default(), now), [0]);
        assert_eq!(that_go(&held[1..], Bounds::default(), now), [0usize; 0]);
        held[0].awaited = true;
        assert_eq!(that_go(&held, Bounds::default(), now), [1], "the oldest that nobody waits for");
        held[0].awaited = false;
        assert_eq!(
            that_go(&held, Bounds::default(), SECOND * 301 + SECOND / 2),
            [0],
            "expired, and then there is room"
        );
    }

    /// Covers: I3
    #[test]
    fn i3_the_oldest_text_goes_until_the_rest_fits() {
        let now = SECOND * 70;
        let narrow = Bounds { commands: 10, bytes: 16, ..Bounds::default() };
        assert_eq!(that_go(&texts(&[8, 8, 8]), narrow, now), [0]);
        assert_eq!(that_go(&texts(&[8, 8, 9]), narrow, now), [0, 1]);
        assert_eq!(that_go(&texts(&[20 << 20]), Bounds::default(), now), [0usize; 0], "the newest stays");
        assert_eq!(that_go(&texts(&[1, 20 << 20]), Bounds::default(), now), [0]);
        assert_eq!(that_go(&texts(&[8 << 20, 8 << 20]), Bounds::default(), now), [0usize; 0], "16 MiB are kept");
        let mut held = texts(&[8, 8, 8]);
        held[0].awaited = true;
        assert_eq!(that_go(&held, narrow, now), [1]);
    }
}
