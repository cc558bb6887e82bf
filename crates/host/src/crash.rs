//! Crash points: one before each effect, at which a test can kill this process. Nothing at all without the feature
//! `crash-points`.
//!
//! An effect is what others still see when this process is dead: a write, a name that comes or goes, a lock, a process
//! that is made or reaped, a signal, a message. A process that dies between two effects leaves the same as one that dies
//! right before the second, so a point before each effect is a point everywhere. Only where others go on with what was done,
//! behind a message and behind the birth of a process, stands one more. [`crate::effect`] and [`crate::sys`] have all effects,
//! and tidy holds the rest of the code to it.
//!
//! A point is named by who comes by it, what is done, and to what: `supervisor rename exit.json`. With the feature,
//! `OUTLAST_CRASH_LOG` names a file to which each process adds the names that it comes by, with its pid in front. And
//! `OUTLAST_CRASH_AT=name` kills the process with SIGKILL the first time that it comes by `name`; `name#3` the third time.
//! Where `OUTLAST_CRASH_MARK` names a file, only the process that creates it dies: the place kills once, however many
//! processes come by, and leaves proof that it did.

/// The role of a process that front ends, and everything that is no keeper and no supervisor, have.
pub const FRONT: &str = "front";

/// From here on this process is in this role.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn become_role(_role: &'static str) {}

/// This effect on this object comes next.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn point(_verb: &'static str, _object: &dyn std::fmt::Display) {}

#[cfg(feature = "crash-points")]
pub use on::{become_role, point};

#[cfg(feature = "crash-points")]
mod on {
    use std::fmt::Display;
    use std::fs::File;
    use std::io::Write;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    static ROLE: Mutex<&str> = Mutex::new(super::FRONT);
    static SEEN: AtomicU32 = AtomicU32::new(0);

    /// From here on this process is in this role.
    pub fn become_role(role: &'static str) {
        *ROLE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = role;
    }

    /// This effect on this object comes next.
    #[allow(clippy::disallowed_methods)]
    pub fn point(verb: &'static str, object: &dyn Display) {
        let (log, wanted) = (std::env::var_os("OUTLAST_CRASH_LOG"), std::env::var("OUTLAST_CRASH_AT").ok());
        if log.is_none() && wanted.is_none() {
            return;
        }
        let role = *ROLE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let name = format!("{role} {verb} {}", kind_of(&object.to_string())).trim_end().to_owned();
        if let Some(log) = log {
            // In one write, as others write there too.
            let line = format!("{} {name}\n", std::process::id());
            let file = File::options().create(true).append(true).open(log);
            let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
        }
        let Some(wanted) = wanted else { return };
        let (wanted, times) = wanted.split_once('#').unwrap_or((&wanted, "1"));
        if wanted != name || SEEN.fetch_add(1, Ordering::Relaxed) + 1 != times.parse().unwrap_or(1) {
            return;
        }
        if std::env::var_os("OUTLAST_CRASH_MARK").is_none_or(|mark| File::create_new(mark).is_ok()) {
            // A process can always kill itself.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }

    /// A name without what differs from one run to the next: ids, hashes and numbers are a star.
    fn kind_of(object: &str) -> String {
        let mut kind = String::new();
        let mut word = String::new();
        for c in object.chars().map(Some).chain([None]) {
            match c {
                Some(c) if c.is_ascii_alphanumeric() => word.push(c),
                c => {
                    let number = word.bytes().all(|b| b.is_ascii_digit()) && !word.is_empty();
                    let hash = word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
                    kind.push_str(if number || hash { "*" } else { &word });
                    word.clear();
                    kind.extend(c);
                }
            }
        }
        kind
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn names_are_the_same_in_every_run() {
            let same = [
                (".request.json.123.0.tmp", ".request.json.*.*.tmp"),
                (".new-wrk_0198a2b3c4d5e6f70123456789abcdef", ".new-wrk_*"),
                ("FromSupervisor.accepted", "FromSupervisor.accepted"),
                ("signal-group TERM", "signal-group TERM"),
            ];
            for (object, kind) in same {
                assert_eq!(super::kind_of(object), kind);
            }
        }
    }
}
