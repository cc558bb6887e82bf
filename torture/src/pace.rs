//! The passing of time: moments that a seed has drawn, and bounded waits for what the outside world does not tell.

use std::time::{Duration, Instant};

/// Lets time pass until a drawn moment has come.
#[expect(clippy::disallowed_methods, reason = "a drawn moment is no event that could be waited for")]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// Waits until a condition holds, at most `bound`; returns whether it does.
pub fn until(bound: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + bound;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        pass(Duration::from_millis(2));
    }
}
