//! What is said of a command that runs.

use std::time::Duration;

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
    let ways =
        if tools { "`read` shows it, `stop` ends it" } else { "`outlast logs` shows it, `outlast stop` ends it" };
    format!(
        "{name} is still running after {time} without visible output; this is not an error.{}{input} {ways}, {how} \
         switches this notice off.",
        cpu.unwrap_or_default()
    )
}
