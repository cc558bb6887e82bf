//! Named places at which a test can kill this process: nothing at all without the feature `crash-points`.
//!
//! With the feature, `OUTLAST_CRASH_AT=name` kills the process with SIGKILL the first time that it comes
//! by `name`; `name#3` the third time. Where `OUTLAST_CRASH_MARK` names a file, only the process that
//! creates it dies: the place kills once, however many processes come by, and leaves proof that it did.

/// A place of this name was reached.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// A place of this name was reached.
#[cfg(feature = "crash-points")]
#[allow(clippy::disallowed_methods)]
pub fn point(name: &'static str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static SEEN: AtomicU32 = AtomicU32::new(0);
    let Ok(wanted) = std::env::var("OUTLAST_CRASH_AT") else { return };
    let (wanted, times) = wanted.split_once('#').unwrap_or((&wanted, "1"));
    if wanted != name || SEEN.fetch_add(1, Ordering::Relaxed) + 1 != times.parse().unwrap_or(1) {
        return;
    }
    if std::env::var_os("OUTLAST_CRASH_MARK").is_none_or(|mark| std::fs::File::create_new(mark).is_ok()) {
        // A process can always kill itself.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Every name, in the order of one command's life: what a test walks through.
pub const POINTS: &[&str] = &[
    "keeper.born",
    "keeper.locked",
    "keeper.listening",
    "keeper.assigning",
    "keeper.forked",
    "keeper.joining",
    "supervisor.joining",
    "supervisor.accepting",
    "supervisor.accepted",
    "supervisor.begun",
    "supervisor.spawned",
    "supervisor.started",
    "supervisor.built",
    "supervisor.logged",
    "supervisor.published",
    "supervisor.traced",
    "supervisor.demoted",
    "supervisor.signalling",
    "supervisor.reaped",
    "supervisor.drained",
    "supervisor.exit-writing",
    "supervisor.exit-written",
    "supervisor.telling",
    "supervisor.told",
    "supervisor.closing",
    "supervisor.closed",
    "keeper.bereft",
    "keeper.finishing",
    "keeper.finished",
    "keeper.closing",
    "keeper.closed",
    "keeper.leaving",
    "move.begun",
    "move.copying",
    "move.copied",
    "move.hidden",
    "move.named",
    "retain.recorded",
    "retain.hidden",
];
