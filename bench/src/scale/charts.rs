//! The table of groups and charts: what is measured, against what, in which unit.

use super::data::Chart;

/// The groups in the order of the page: name, title, what is done.
pub const GROUPS: [(&str, &str, &str); 6] = [
    (
        "running",
        "Commands at once",
        "So many commands run in one session that has no cap, each `sleep 86400`, started in the background. Then, while they \
         run, one more is started and stopped, several times. At the end all are stopped by one call.",
    ),
    (
        "ended",
        "Commands that ended",
        "So many commands (`true`) ran and ended in one session, sixteen at a time, each in the background with its records, each \
         end told to the consumer `model`. Nothing is retained away meanwhile.",
    ),
    (
        "stream",
        "A stream through the cap of its log",
        "One command writes so much as fast as it is taken, into a log with the default cap of 64 MiB. Every MiB begins with its \
         number, so that a byte that is kept in a wrong place shows. Its blocks come from the page cache by splice(2): to \
         write costs the producer next to nothing.",
    ),
    (
        "waiters",
        "Who waits",
        "So many wait for commands that have nothing to do. Then one command prints the monotonic clock as its last act, and \
         each waiter takes the same clock when it was told. For processes `outlast wait` it is their parent who takes it, after it has \
         reaped all of them.",
    ),
    (
        "sessions",
        "Sessions",
        "So many sessions are open in one state directory, each with its keeper and four running commands.",
    ),
    (
        "day",
        "A day",
        "Time is not waited for. What a supervisor is woken for is decided by the state machine of a command, a function of values, \
         which is driven here through the events of up to 24 hours: *simulated*. What real processes use while nothing happens \
         is measured over one minute and not stretched to a day. A supervisor sleeps until something comes or until the next \
         deadline of its command; *by time* is only the latter.",
    ),
];

/// name, title, x, each, unit, note
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

const RUNNING: &str = "commands running in the session";
const ENDED: &str = "commands that ended in the session";
const GIB: &str = "GiB written by the command";

const CHARTS: [Row; 25] = [
    (
        "running-start",
        "Start of one more command",
        RUNNING,
        "running command",
        "ms",
        "In the background, until its records are made.",
    ),
    (
        "running-memory",
        "Memory of who watches",
        RUNNING,
        "running command",
        "KiB",
        "Proportional set size, in which a page that n processes share counts as 1/n to each; *private* is what nobody shares.",
    ),
    ("running-look", "Looking at running commands", RUNNING, "running command", "ms", ""),
    ("running-stop", "Stopping all of them", RUNNING, "running command", "ms", "Until each is verified to be gone."),
    ("running-descriptors", "Open descriptors of the keeper", RUNNING, "running command", "descriptors", ""),
    (
        "ended-more",
        "One more command, from its start to its end told",
        ENDED,
        "ended command",
        "ms",
        "Library: start in the background, wait, commit for `model`. Command line: `run -b` and `wait`.",
    ),
    ("ended-look", "Looking at ended commands, command line", ENDED, "ended command", "ms", ""),
    (
        "ended-inbox",
        "The inbox",
        ENDED,
        "ended command",
        "ms",
        "*Told* is the consumer that heard of each end, *untold* one that heard of none: its inbox lists all.",
    ),
    ("ended-open", "Opening and reconciling the session, library", ENDED, "ended command", "ms", ""),
    ("ended-keep", "Looking after the state directory", ENDED, "ended command", "ms", ""),
    ("ended-disk", "On disk", ENDED, "ended command", "MiB", "Blocks that are in use, directories and all."),
    (
        "ended-owner",
        "Memory of the owner",
        ENDED,
        "ended command",
        "MiB",
        "Proportional set size of the program with the library that started them all, before it looks at them.",
    ),
    (
        "ended-rate",
        "Making them",
        ENDED,
        "ended command",
        "commands/s",
        "Commands in a second, from the size before to this one.",
    ),
    (
        "stream-rate",
        "Throughput",
        GIB,
        "GiB",
        "GiB/s",
        "*Thrown away*: the same producer into a loop that reads 64 KiB and forgets them. Writing to a file costs more than that whoever does it.",
    ),
    ("stream-disk", "The log on disk", GIB, "GiB", "MiB", "Blocks that are in use; looked at ten times a second."),
    (
        "stream-memory",
        "Memory of the supervisor",
        GIB,
        "GiB",
        "KiB",
        "Proportional set size, the most that was seen in looks ten times a second.",
    ),
    ("stream-stall", "The longest that the producer was held up by one write", GIB, "GiB", "ms", ""),
    ("waiters-told", "From the end to the last of those who wait", "waiters", "waiter", "ms", ""),
    (
        "waiters-memory",
        "Memory of those who wait",
        "waiters",
        "waiter",
        "KiB",
        "Proportional set size of all of them together: processes `outlast wait`, and what as many waits add to one program with the library, and to the supervisor.",
    ),
    (
        "waiters-switches",
        "Wake-ups in 5 seconds of waiting",
        "waiters",
        "waiter",
        "wake-ups",
        "Of all who wait, the supervisors and the keeper together.",
    ),
    (
        "sessions-memory",
        "Memory of keepers and supervisors",
        "sessions",
        "session",
        "MiB",
        "Proportional set size; four commands run in each.",
    ),
    (
        "sessions-start",
        "Start of one more command",
        "sessions",
        "session",
        "ms",
        "In the session that was made last, library.",
    ),
    ("sessions-look", "Looking at sessions, command line", "sessions", "session", "ms", ""),
    ("sessions-end", "Ending all of them", "sessions", "session", "ms", "One after the other, library, each verified."),
    (
        "day-idle",
        "Wake-ups of real processes in a minute in which nothing happens",
        "silent commands",
        "command",
        "wake-ups",
        "All supervisors together, and their keeper.",
    ),
];

/// The charts without lines.
pub fn empty() -> Vec<Chart> {
    let charts = CHARTS.map(|(name, title, x, each, unit, note)| Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x: x.to_owned(),
        each: each.to_owned(),
        unit: unit.to_owned(),
        note: note.to_owned(),
        lines: Vec::new(),
    });
    charts.into()
}
