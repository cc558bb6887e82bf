//! The clocks: of the day, of timers, and of the machine's boot.

use crate::proc::ProcError;
use outlast_core::record::ProcessMark;
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::OnceLock;
use std::time::Duration;

/// Milliseconds since 1970, UTC; the only clock that is shown or compared between machines. It may jump.
pub fn unix_ms() -> u64 {
    millis(clock_gettime(ClockId::Realtime))
}

/// The time for graces, limits and quiet: `CLOCK_MONOTONIC`, which stands still while the machine sleeps.
///
/// epoll and poll count by it too, and a command that could not run has not used its time.
pub fn monotonic() -> Duration {
    duration(clock_gettime(ClockId::Monotonic))
}

/// The time since boot, sleep included: `CLOCK_BOOTTIME`, by which the kernel dates the start of processes.
pub fn since_boot() -> Duration {
    duration(clock_gettime(ClockId::Boottime))
}

/// The id that the kernel drew at this boot (`random(4)`).
///
/// An error where it cannot be read now: without it no mark can be compared, and nothing can be said to be gone.
pub fn boot_id() -> Result<&'static str, ProcError> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    static ID: OnceLock<String> = OnceLock::new();
    if let Some(id) = ID.get() {
        return Ok(id);
    }
    let failed = |errno| ProcError { path: PATH.to_owned(), errno };
    let text =
        std::fs::read_to_string(PATH).map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    let id = text.trim();
    if id.is_empty() {
        return Err(failed(Errno::ILSEQ));
    }
    Ok(ID.get_or_init(|| id.to_owned()))
}

/// How many of the ticks in `/proc/PID/stat` are a second.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// When the process of `mark` started, in milliseconds since 1970 by today's clock, exact to one tick.
///
/// It means something for marks of this boot only.
pub fn start_unix_ms(mark: &ProcessMark) -> u64 {
    unix_ms().saturating_sub(age_ms(mark))
}

/// How many milliseconds ago the process of `mark` started, sleep of the machine included, exact to one tick.
///
/// It means something for marks of this boot only, and is right whatever the clock of day was set to.
pub fn age_ms(mark: &ProcessMark) -> u64 {
    let start = mark.start.saturating_mul(1000) / ticks_per_second().max(1);
    millis(clock_gettime(ClockId::Boottime)).saturating_sub(start)
}

fn millis(time: Timespec) -> u64 {
    u64::try_from(duration(time).as_millis()).unwrap_or(u64::MAX)
}

fn duration(time: Timespec) -> Duration {
    // A clock before its own beginning is one that was set wrong: it counts as the beginning.
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_of_this_process_is_a_moment_ago() {
        let own = crate::mark::own().expect("own mark");
        let age = unix_ms().abs_diff(start_unix_ms(&own));
        assert!(age < 60_000, "{age} ms old");
    }

    #[test]
    fn boot_id_is_a_uuid() {
        assert_eq!(boot_id().expect("readable").len(), 36);
        let awake = monotonic();
        assert!(since_boot() >= awake);
    }
}
