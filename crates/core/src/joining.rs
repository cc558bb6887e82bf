//! What makes two launches identical, so that one can join the other.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::request::{Limits, OsText, OverCap, Request, Stdin, Streams, Survivors};

/// Environment entries that outlast sets itself: they differ in every command, or are the session's.
const OWN_ENTRIES: [&[u8]; 2] = [b"OUTLAST_WORK_ID", b"OUTLAST_SESSION"];

/// The key of a launch for joining: the first 16 hexadecimal digits of a BLAKE3 hash. It is no id: a command
/// that is started anew has the same key and another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JoinKey(u64);

impl std::fmt::Display for JoinKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<JoinKey> for String {
    fn from(key: JoinKey) -> String {
        key.to_string()
    }
}

impl TryFrom<String> for JoinKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let key = u64::from_str_radix(&text, 16).ok().map(JoinKey);
        key.filter(|key| key.to_string() == text).ok_or_else(|| format!("{text:?} is not 16 hexadecimal digits"))
    }
}

/// By what a command can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joinable {
    /// What is identical in what joins it.
    pub key: JoinKey,
    /// Which command of this key it is within its session, counted from 1.
    pub generation: u32,
}

impl JoinKey {
    /// The key of a request: of everything that decides what runs and how it may end.
    ///
    /// Not in it are what only one caller sees of it (the grace, the label, the consumer, whether output is
    /// followed or held, whether it starts in the background) and the id. The session is not in it either:
    /// joining is between commands of one keeper.
    pub fn of(request: &Request) -> JoinKey {
        let mut fields = Fields(blake3::Hasher::new());
        fields.add(b"outlast: joining, 1");
        fields.all(request.argv.iter().map(|word| word.0.as_slice()));
        fields.add(&fixed_form(&request.cwd));
        fields.environment(&request.env);
        fields.limits(&request.limits);
        fields.add(request.trust.to_string().as_bytes());
        fields.terms(request);
        // The umask and the limits that the caller hands down change what the same line does.
        fields.number(request.umask.map_or(0, |umask| u64::from(umask) + 1));
        fields.number(request.inherited.len() as u64);
        for limit in &request.inherited {
            fields.number(limit.resource.into());
            fields.number(limit.soft.unwrap_or(u64::MAX));
            fields.number(limit.hard.unwrap_or(u64::MAX));
        }
        let hash = fields.0.finalize();
        let first: [u8; 8] = hash.as_bytes()[..8].try_into().expect("a hash of 32 bytes");
        JoinKey(u64::from_be_bytes(first))
    }
}

/// A directory in one fixed form: no `.`, no doubled or closing slash. `..` stays, because what it means depends
/// on links that only the machine knows.
fn fixed_form(cwd: &OsText) -> Vec<u8> {
    let cwd = cwd.to_os();
    let parts = Path::new(&cwd).components().filter(|part| *part != Component::CurDir);
    OsText::from(parts.collect::<std::path::PathBuf>()).0
}

/// What is hashed: each part with its length in front, so that no two lists of parts are the same bytes.
struct Fields(blake3::Hasher);

impl Fields {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    fn all<'a>(&mut self, parts: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.number(parts.len() as u64);
        parts.for_each(|part| self.add(part));
    }

    fn environment(&mut self, env: &[(OsText, OsText)]) {
        let mut entries: Vec<_> = env.iter().filter(|(name, _)| !OWN_ENTRIES.contains(&name.0.as_slice())).collect();
        // Stable: of two entries of one name the order stays what the command sees.
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        self.number(entries.len() as u64);
        for (name, value) in entries {
            self.add(&name.0);
            self.add(&value.0);
        }
    }

    fn limits(&mut self, limits: &Limits) {
        let Limits {
            wall_ms,
            idle_ms,
            memory,
            pids,
            cpu_s,
            file_size,
            files,
            address_space,
            core,
            more_processes,
            throttled,
        } = limits;
        for limit in [wall_ms, idle_ms, memory, pids, cpu_s, file_size, files, address_space] {
            self.number(limit.unwrap_or(0));
        }
        // Of these a bound of 0 is one.
        for limit in [core, more_processes] {
            self.number(limit.map_or(0, |limit| limit.saturating_add(1)));
        }
        self.number(u64::from(*throttled));
    }

    /// How it is started, captured and ended, and whether it may be moved to the background.
    fn terms(&mut self, request: &Request) {
        let (stdin, rows, columns) = match request.stdin {
            Stdin::Null => (0, 0, 0),
            Stdin::Open => (1, 0, 0),
            Stdin::Terminal(size) => (2, size.rows.get().into(), size.columns.get().into()),
        };
        for number in [
            request.ttl_ms().map_or(0, |ttl| ttl.saturating_add(1)),
            stdin,
            rows,
            columns,
            u64::from(request.streams == Streams::Separate),
            u64::from(request.survivors == Survivors::Kill),
            u64::from(request.over_cap == OverCap::Stop),
            u64::from(request.conceal.is_some()),
            request.cap.head,
            request.cap.tail,
            request.stop_grace_ms,
            u64::from(request.can_be_told),
        ] {
            self.number(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Inherited, Lifetime, LogCap, TerminalSize};

    fn pair(name: &str, value: &str) -> (OsText, OsText) {
        (OsText::from(name), OsText::from(value))
    }

    fn request() -> Request {
        Request {
            id: "wrk_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e".parse().expect("an id"),
            session: "ses_0192f0c1a7b77c3a8d1e2f3a4b5c6d7e".parse().expect("an id"),
            argv: ["make", "-j", "8"].map(OsText::from).to_vec(),
            cwd: OsText::from("/home/me/project"),
            env: vec![pair("PATH", "/bin"), pair("A", "B")],
            stdin: Stdin::Null,
            streams: Streams::Merged,
            grace_ms: None,
            background: false,
            can_be_told: true,
            follow: false,
            limits: Limits::default(),
            stop_grace_ms: 2_000,
            lifetime: Lifetime::Session,
            survivors: Survivors::Keep,
            cap: LogCap::default(),
            over_cap: OverCap::Drop,
            hold: 16_384,
            label: None,
            consumer: "model".into(),
            trust: crate::origin::Trust::Untrusted,
            delivery: crate::request::Delivery::Task,
            umask: Some(0o022),
            inherited: Vec::new(),
            turn: None,
            parent_command: None,
            parent_session: None,
            conceal: None,
            trace_all: false,
            notify: Vec::new(),
            track_changes: None,
        }
    }

    /// Covers: H1
    #[test]
    fn h1_what_is_the_same_launch_has_the_same_key() {
        let key = JoinKey::of(&request());
        type Change = fn(&mut Request);
        let same: [(&str, Change); 10] = [
            ("another order", |one| one.env.reverse()),
            ("what outlast sets", |one| one.env.push(pair("OUTLAST_WORK_ID", "wrk_1"))),
            ("the session", |one| one.env.push(pair("OUTLAST_SESSION", "ses_1"))),
            ("an absent limit", |one| one.limits.wall_ms = Some(0)),
            ("another form of the directory", |one| one.cwd = OsText::from("/home//me/./project/")),
            ("the grace", |one| one.grace_ms = Some(5)),
            ("the label", |one| one.label = Some("x".into())),
            ("the consumer", |one| one.consumer = "human".into()),
            ("the background", |one| one.background = true),
            ("what a caller sees", |one| (one.follow, one.hold) = (true, 1)),
        ];
        for (what, change) in same {
            let mut changed = request();
            change(&mut changed);
            assert_eq!(JoinKey::of(&changed), key, "{what}");
        }
        let text = key.to_string();
        assert!(text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit()), "{text}");
        let json = serde_json::to_string(&key).expect("plain data");
        assert_eq!((json.trim_matches('"'), serde_json::from_str(&json).ok()), (text.as_str(), Some(key)));
        assert!(
            ["", "zz", "+123456789abcdef", "00112233445566778"]
                .map(|bad| JoinKey::try_from(bad.to_owned()))
                .iter()
                .all(Result::is_err)
        );
    }

    /// Covers: H1
    #[test]
    fn h1_what_is_another_launch_has_another_key() {
        let words = |words: &[&str]| words.iter().map(OsText::from).collect::<Vec<_>>();
        let mut keys = vec![JoinKey::of(&request())];
        let mut another = |change: &dyn Fn(&mut Request)| {
            let mut changed = request();
            change(&mut changed);
            let key = JoinKey::of(&changed);
            assert!(!keys.contains(&key), "{changed:?}");
            keys.push(key);
        };
        another(&|one| one.argv = words(&["make", "-j8"]));
        another(&|one| one.argv = words(&["make", "-j", "8", ""]));
        another(&|one| one.argv = words(&["make", "-j\0", "8"]));
        another(&|one| one.cwd = OsText::from("/home/me/projects"));
        another(&|one| one.cwd = OsText::from("/home/me/project/../project"));
        // One entry, the same text as two, and the same text cut elsewhere.
        another(&|one| one.env = vec![pair("A", "B=C")]);
        another(&|one| one.env = vec![pair("A", "B"), pair("B", "C")]);
        another(&|one| one.env = vec![pair("A=B", "C")]);
        another(&|one| one.env = vec![pair("A", "B\0=C")]);
        another(&|one| one.env = vec![pair("A", "1"), pair("A", "2")]);
        another(&|one| one.env = vec![pair("A", "2"), pair("A", "1")]);
        another(&|one| one.limits.wall_ms = Some(5));
        another(&|one| one.limits.idle_ms = Some(5));
        another(&|one| one.limits.memory = Some(5));
        another(&|one| one.limits.core = Some(0));
        another(&|one| one.limits.more_processes = Some(0));
        another(&|one| one.limits.throttled = true);
        another(&|one| one.trust = crate::origin::Trust::Trusted);
        another(&|one| one.lifetime = Lifetime::Detached { ttl_ms: 0 });
        another(&|one| one.lifetime = Lifetime::Detached { ttl_ms: 1 });
        another(&|one| one.stdin = Stdin::Open);
        let terminal = TerminalSize::default();
        another(&|one| one.stdin = Stdin::Terminal(terminal));
        another(&|one| one.stdin = Stdin::Terminal(TerminalSize { rows: terminal.columns, ..terminal }));
        another(&|one| one.streams = Streams::Separate);
        another(&|one| one.survivors = Survivors::Kill);
        another(&|one| one.over_cap = OverCap::Stop);
        another(&|one| one.conceal = Some(Vec::new()));
        another(&|one| one.cap = LogCap::of(4096));
        another(&|one| one.stop_grace_ms = 1);
        another(&|one| one.can_be_told = false);
        another(&|one| one.umask = None);
        another(&|one| one.umask = Some(0));
        another(&|one| one.inherited = vec![Inherited { resource: 7, soft: Some(1), hard: None }]);
    }
}
