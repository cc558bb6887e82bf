//! What is said of a command that runs.

use std::time::Duration;

use super::{CLOSING, EVENT};
use crate::names::{PROCESS_CHARACTERS, quoted, shorten};
use crate::units::{format_duration, format_elapsed};

/// What is known of a command that prints nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// For how long it has printed nothing.
    pub silent: Duration,
    /// Processor time that its processes have used since they began; none where that cannot be seen.
    pub cpu: Option<Duration>,
    /// Whether one of them waits in a read of its standard input.
    pub reads_input: bool,
}

/// What is said of a silent command, as facts. `how` says how to switch the notice off.
#[must_use]
pub fn quiet(name: &str, silence: Silence, tools: bool, how: &str) -> String {
    let time = format_duration(Duration::from_secs(silence.silent.as_secs().max(1)));
    let cpu = silence.cpu.map(|cpu| format!(" Its processes have used {} of processor time.", format_elapsed(cpu)));
    let input = if silence.reads_input { " It waits for input." } else { "" };
    // Without the tools it is said to whoever waits in the foreground, where no other verb knows its id yet.
    let ways = if tools {
        "`read` shows it, `stop` ends it"
    } else {
        "Ctrl-Z moves it to the background, Ctrl-C interrupts it"
    };
    format!(
        "{name} is still running after {time} without visible output; this is not an error.{}{input} {ways}, {how} \
         switches this notice off.",
        cpu.unwrap_or_default()
    )
}

/// Characters of a regular expression that a notice shows.
const PATTERN_CHARACTERS: usize = 80;

/// Lines of the output of a command that match what its caller wanted to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// How many lines match.
    pub lines: u64,
    /// The expressions that they match, in the order in which they were asked for.
    pub patterns: Vec<String>,
    /// Where in the output the first of them begins, in bytes.
    pub first: u64,
    /// The last of them, cut to [`PROCESS_CHARACTERS`].
    pub last: String,
    /// Bytes of output among them that were not kept, so that nobody knows whether lines in them match.
    pub missing: u64,
}

impl Matches {
    /// Takes the text of a line as the last one.
    pub fn set_last(&mut self, line: &[u8]) {
        // A character has four bytes at most.
        let part = &line[..line.len().min(4 * (PROCESS_CHARACTERS + 1))];
        self.last = shorten(&String::from_utf8_lossy(part), PROCESS_CHARACTERS);
    }
}

/// What a host is told of commands that printed such lines, each as [`heads_up`] says it.
#[must_use]
pub fn heads_ups(lines: &[String]) -> String {
    let lines: String = lines.iter().map(|line| format!("- {line}\n")).collect();
    format!("{EVENT} background commands have printed what was asked for.\n{lines}{CLOSING}\n")
}

/// What is said of a command that printed such lines, as facts; a part of the output is quoted.
#[must_use]
pub fn heads_up(name: &str, matches: &Matches, tools: bool) -> String {
    let patterns: Vec<String> =
        matches.patterns.iter().map(|pattern| quoted(&shorten(pattern, PATTERN_CHARACTERS))).collect();
    let (count, last) = match matches.lines {
        1 => ("1 line that matches".to_owned(), ""),
        lines => (format!("{lines} lines that match"), "the last one "),
    };
    let missing = match matches.missing {
        0 => String::new(),
        bytes => format!("; {bytes} bytes of output among them were not kept"),
    };
    let way = if tools { "`read`" } else { "`outlast logs`" };
    format!(
        "{name} is still running and has printed {count} {}: {last}{}{missing}. {way} shows its output.",
        patterns.join(" or "),
        quoted(&matches.last)
    )
}
