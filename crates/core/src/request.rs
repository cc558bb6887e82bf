//! What is asked of outlast when a command is to run.

use std::ffi::OsString;
use std::num::NonZeroU16;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{CommandId, SessionId};
use crate::origin::Trust;
use crate::units::parse_duration;

/// Bytes that the kernel takes as a string: an argument, an environment entry, a path.
///
/// Stored as a JSON string where it is UTF-8, else as `{"hex": "…"}`, so nothing is lost.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OsText(pub Vec<u8>);

impl OsText {
    /// The text with marks in place of bytes that are not UTF-8.
    pub fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The same bytes as the platform's string.
    pub fn to_os(&self) -> OsString {
        OsString::from_vec(self.0.clone())
    }
}

impl std::fmt::Debug for OsText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.lossy())
    }
}

impl<T: AsRef<std::ffi::OsStr>> From<T> for OsText {
    fn from(text: T) -> Self {
        OsText(text.as_ref().as_bytes().to_vec())
    }
}

#[derive(Serialize, Deserialize)]
struct Hex {
    hex: String,
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Hex { hex: to_hex(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrHex)
    }
}

/// Takes either form as it comes: a list of ten thousand commands reads many of these.
struct TextOrHex;

impl<'de> serde::de::Visitor<'de> for TextOrHex {
    type Value = OsText;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text, or an object with the key hex")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OsText, E> {
        Ok(OsText(text.as_bytes().to_vec()))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<OsText, A::Error> {
        let Hex { hex } = Hex::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        from_hex(&hex).map(OsText).ok_or_else(|| serde::de::Error::custom("not a hexadecimal string"))
    }
}

/// Lowercase hexadecimal digits of bytes.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that [`to_hex`] wrote; none where the text is not that.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// Where the command's standard input comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// `/dev/null`.
    #[default]
    Null,
    /// A pipe that `send` writes into.
    Open,
    /// A pseudo-terminal of this size (pty(7)), which standard output and standard error are too and which
    /// controls the command's session. `send` types into it. Its output is one stream.
    Terminal(TerminalSize),
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: NonZeroU16,
    /// Characters in a line.
    pub columns: NonZeroU16,
}

impl Default for TerminalSize {
    /// 24 lines of 80 characters.
    fn default() -> Self {
        const { TerminalSize { rows: NonZeroU16::new(24).unwrap(), columns: NonZeroU16::new(80).unwrap() } }
    }
}

/// How standard output and standard error are captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// One pipe for both, so the log has the true order.
    #[default]
    Merged,
    /// A pipe each and an index.
    Separate,
}

/// What becomes of descendants that live on after the leader was reaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Survivors {
    /// They stay under the same id, captured, until a stop or the session's end.
    #[default]
    Keep,
    /// They are ended: TERM, and KILL after the drain bound.
    Kill,
}

/// What bounds a command's life from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// The session's end.
    #[default]
    Session,
    /// Only its time to live, in milliseconds from the start.
    Detached {
        /// The time to live in milliseconds.
        ttl_ms: u64,
    },
}

/// Reads a lifetime: `session`, `detached`, or `detached:8h` with a time to live.
pub fn parse_lifetime(text: &str) -> Result<Lifetime, String> {
    match text.split_once(':') {
        None if text == "session" => Ok(Lifetime::Session),
        None if text == "detached" => Ok(Lifetime::Detached { ttl_ms: DETACHED_TTL_MS }),
        Some(("detached", ttl)) => {
            let ttl = parse_duration(ttl).map_err(|error| error.to_string())?;
            Ok(Lifetime::Detached { ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX) })
        }
        _ => Err("it must be session, detached or detached:TTL (example: detached:8h)".to_owned()),
    }
}

/// The form in which the end of a command in the background is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// As a task of its own, which wakes an idle consumer. The default: who started something and does
    /// not wait for it mostly wants to go on with it when it is done.
    #[default]
    Task,
    /// As a part of the consumer's next message, together with others; it wakes nobody.
    Note,
    /// Not by itself: it stays pending for whoever looks.
    Poll,
}

impl Delivery {
    /// Whether it is the form of who asked for none; records leave that one out.
    #[must_use]
    pub fn is_task(&self) -> bool {
        *self == Delivery::Task
    }
}

/// What happens when the log's cap is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverCap {
    /// Head and tail are kept and the rest is counted.
    #[default]
    Drop,
    /// The command is stopped with `limit(output)`.
    Stop,
}

/// The cap of a log: how much of its beginning and of its end is kept, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCap {
    /// Bytes kept of the beginning.
    pub head: u64,
    /// Bytes kept of the end.
    pub tail: u64,
}

impl LogCap {
    /// The smallest cap that may be asked for, in bytes.
    pub const SMALLEST: u64 = 1024;

    /// A cap of so many bytes in all: a quarter head, the rest tail, as in the default.
    pub fn of(total: u64) -> Self {
        let total = total.max(Self::SMALLEST);
        LogCap { head: total / 4, tail: total - total / 4 }
    }
}

impl Default for LogCap {
    /// 64 MiB: 16 MiB head, 48 MiB tail.
    fn default() -> Self {
        LogCap::of(64 << 20)
    }
}

/// Bounds that stop a command. Absent means no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Milliseconds since the start.
    pub wall_ms: Option<u64>,
    /// Milliseconds since the last byte of output.
    pub idle_ms: Option<u64>,
    /// Bytes of memory of the whole tree.
    pub memory: Option<u64>,
    /// Processes of the whole tree.
    pub pids: Option<u64>,
    /// Seconds of processor time (RLIMIT_CPU), for each process.
    pub cpu_s: Option<u64>,
    /// Bytes of the largest file that may be written (RLIMIT_FSIZE), for each process.
    pub file_size: Option<u64>,
    /// Open files (RLIMIT_NOFILE), for each process.
    pub files: Option<u64>,
    /// Bytes of address space (RLIMIT_AS), for each process.
    pub address_space: Option<u64>,
    /// Bytes of the largest core file (RLIMIT_CORE), for each process.
    pub core: Option<u64>,
    /// Processes and threads of its user beyond those that there are when it starts (RLIMIT_NPROC); the kernel bounds no
    /// privileged user by it.
    pub more_processes: Option<u64>,
    /// Whether the whole tree is slowed down to [`CPU_PERCENT`] and [`DISK_RATE`], by those controllers that its cgroup has;
    /// where it has none of them nothing slows it down.
    pub throttled: bool,
}

/// The processor time of a throttled tree, in percent of one processor.
pub const CPU_PERCENT: u64 = 200;
/// What a throttled tree may read from each disk, and write to it, in bytes a second.
pub const DISK_RATE: u64 = 100 << 20;

/// The time that TERM is given before KILL, in milliseconds.
pub const STOP_GRACE_MS: u64 = 2_000;
/// The time to live of a detached command that was given none, in milliseconds.
pub const DETACHED_TTL_MS: u64 = 24 * 3_600_000;
/// Output held in memory for a foreground command, in bytes for each stream.
pub const HOLD_BYTES: u64 = 16_384;

/// Everything that the supervisor needs to run one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The command's id, given by the runtime.
    pub id: CommandId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The program as invoked, and its arguments. Never empty.
    pub argv: Vec<OsText>,
    /// The working directory.
    pub cwd: OsText,
    /// The whole environment of the command, `KEY` and value, already decided.
    pub env: Vec<(OsText, OsText)>,
    /// Standard input.
    #[serde(default)]
    pub stdin: Stdin,
    /// Merged or separate capture.
    #[serde(default)]
    pub streams: Streams,
    /// Milliseconds in the foreground; none means no clock.
    pub grace_ms: Option<u64>,
    /// Started in the background: the records exist before the leader does.
    #[serde(default)]
    pub background: bool,
    /// Whether the caller can be told of a completion later. If not there is no demotion by the grace.
    #[serde(default = "yes")]
    pub can_be_told: bool,
    /// Whether the caller wants the output as it comes.
    #[serde(default)]
    pub follow: bool,
    /// Bounds that stop it.
    #[serde(default)]
    pub limits: Limits,
    /// Milliseconds between TERM and KILL.
    pub stop_grace_ms: u64,
    /// Where nothing that is stored of it may hold a secret: values that are secrets beside those of its environment, which
    /// are left out of its record as the environment is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conceal: Option<Vec<OsText>>,
    /// Whether an end in the foreground has its line in the trace too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trace_all: bool,
    /// What bounds its life from outside.
    #[serde(default)]
    pub lifetime: Lifetime,
    /// What becomes of survivors.
    #[serde(default)]
    pub survivors: Survivors,
    /// The log's cap.
    #[serde(default)]
    pub cap: LogCap,
    /// What happens at the cap.
    #[serde(default)]
    pub over_cap: OverCap,
    /// Output held in memory before the command is materialised, in bytes for each stream.
    pub hold: u64,
    /// A line for people.
    pub label: Option<String>,
    /// The consumer that started it.
    pub consumer: String,
    /// The trust of who asked.
    #[serde(default)]
    pub trust: Trust,
    /// The form in which its end is told.
    #[serde(default, skip_serializing_if = "Delivery::is_task")]
    pub delivery: Delivery,
    /// Regular expressions: of lines of its output that match one its consumer hears while it runs in the background.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// The directory below which is looked for files that change while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_changes: Option<OsText>,
    /// The caller's file mode creation mask (umask(2)); none leaves the keeper's.
    #[serde(default)]
    pub umask: Option<u32>,
    /// The caller's resource limits, for a command starts under those of its caller and not of whoever
    /// started the keeper.
    #[serde(default)]
    pub inherited: Vec<Inherited>,
    /// The trace event of the turn that asked, where there is one.
    #[serde(default)]
    pub turn: Option<String>,
    /// The command on whose behalf it runs, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_command: Option<CommandId>,
    /// The session of whoever asked, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
}

/// One resource limit of the caller (getrlimit(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    /// The number of the resource, as the kernel counts them.
    pub resource: u32,
    /// The soft limit; none is no limit.
    pub soft: Option<u64>,
    /// The hard limit; none is no limit.
    pub hard: Option<u64>,
}

fn yes() -> bool {
    true
}

impl Request {
    /// The bound on its life in milliseconds from the start, for a detached command.
    pub fn ttl_ms(&self) -> Option<u64> {
        match self.lifetime {
            Lifetime::Session => None,
            Lifetime::Detached { ttl_ms } => Some(ttl_ms),
        }
    }

    /// The command line as it stands at the head of the log, arguments joined by spaces.
    pub fn line(&self) -> String {
        line_of(&self.argv)
    }
}

/// Arguments joined by spaces, for people to read.
pub fn line_of(argv: &[OsText]) -> String {
    argv.iter().map(OsText::lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_json() {
        for bytes in [&b"plain"[..], b"\xff\x00x", "ü".as_bytes(), b""] {
            let text = OsText(bytes.to_vec());
            let json = serde_json::to_string(&text).expect("plain data");
            assert_eq!(serde_json::from_str::<OsText>(&json).expect("its own shape"), text);
        }
    }

    #[test]
    fn lifetimes_are_read() {
        assert_eq!(parse_lifetime("session"), Ok(Lifetime::Session));
        assert_eq!(parse_lifetime("detached"), Ok(Lifetime::Detached { ttl_ms: 86_400_000 }));
        assert_eq!(parse_lifetime("detached:1h"), Ok(Lifetime::Detached { ttl_ms: 3_600_000 }));
        for wrong in ["", "ever", "detached:", "detached:1", "session:1h"] {
            assert!(parse_lifetime(wrong).is_err(), "{wrong}");
        }
    }

    /// Covers: C7
    #[test]
    fn c7_the_default_cap_is_16_and_48_mib() {
        assert_eq!(LogCap::default(), LogCap { head: 16 << 20, tail: 48 << 20 });
        assert_eq!(LogCap::of(1).head + LogCap::of(1).tail, 1024);
    }
}
