//! What this process was told by its surroundings: the only reader of environment, home and terminal.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_core::retention::{self, Limits, SessionBounds};
use outlast_core::units;

use crate::policy::Policy;

/// The consumer that is a person.
const HUMAN: &str = "human";

/// Bounds that an operator sets for everyone on the machine; none is set by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// `OUTLAST_MAX_LOG`: the cap of a log that asks for none, in bytes.
    pub max_log: Option<u64>,
    /// `OUTLAST_GRACE`: the grace of a run that asks for none.
    pub grace: Option<Duration>,
    /// `OUTLAST_LIMIT`: the limit of a run that asks for none.
    pub limit: Option<Duration>,
    /// `OUTLAST_MAX_LIMIT`: the largest limit; a larger one is cut to it.
    pub max_limit: Option<Duration>,
    /// `OUTLAST_KEEP_SESSIONS`, `OUTLAST_KEEP_AGE`, `OUTLAST_KEEP_OUTPUT`: what is kept.
    pub keep: Limits,
    /// Settings that are there and make no sense, one line each; they are ignored.
    pub ignored: Vec<String>,
}

impl Bounds {
    /// The limit that a run asks for which names this one.
    pub fn wall(&self, asked: Option<Duration>) -> Option<Duration> {
        asked.or(self.limit)
    }
}

/// What the surroundings say.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where sessions and their records live.
    pub state_dir: PathBuf,
    /// The session that is spoken for, as `OUTLAST_SESSION` names it.
    pub session: Option<String>,
    /// Who is spoken for: `OUTLAST_CONSUMER`, else `human` on a terminal and `model` elsewhere.
    pub consumer: String,
    /// Whether a person sits in front of it.
    pub terminal: bool,
    /// Whether standard output takes colours.
    pub colour: bool,
    /// The operator's bounds.
    pub bounds: Bounds,
    /// The operator's policies.
    pub policy: Policy,
    /// What is odd about it, one line each, to be said beside every answer.
    pub notes: Vec<String>,
    /// How wide tables are where no terminal says so: `COLUMNS`, else 80.
    pub columns: usize,
    /// The working directory; where it cannot be told, the one that the shell believes to be in.
    pub cwd: PathBuf,
    vars: Vec<(OsString, OsString)>,
}

impl Config {
    /// Reads everything once. The error says what to set.
    #[expect(clippy::disallowed_methods, reason = "this is the configuration of the command line")]
    pub fn read() -> Result<Config, String> {
        let vars: Vec<_> = std::env::vars_os().collect();
        let out = std::io::stdout().is_terminal();
        // An agent captures what is said; a person who redirects the output alone still sits there.
        let terminal = out || (std::io::stdin().is_terminal() && std::io::stderr().is_terminal());
        let cwd = std::env::current_dir().ok();
        let home = if get(&vars, "HOME").is_some() { None } else { std::env::home_dir() };
        Config::from_vars(vars, home, cwd, terminal).map(|config| Config { colour: config.colour && out, ..config })
    }

    /// The same from values. `home` is the one of the user database, for an environment without `HOME`.
    fn from_vars(
        vars: Vec<(OsString, OsString)>,
        home: Option<PathBuf>,
        cwd: Option<PathBuf>,
        terminal: bool,
    ) -> Result<Config, String> {
        let cwd = cwd.or_else(|| get(&vars, "PWD").map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("."));
        let text = |key| get(&vars, key).map(|value| value.to_string_lossy().into_owned());
        let (state_dir, relative) = state_dir(&vars, home, &cwd)?;
        let note = |key: &str| format!("{key} is no absolute path; the state directory is {}", state_dir.display());
        Ok(Config {
            notes: relative.map(note).into_iter().collect(),
            columns: text("COLUMNS")
                .and_then(|columns| columns.parse().ok())
                .filter(|columns| *columns > 0)
                .unwrap_or(80),
            state_dir,
            session: text("OUTLAST_SESSION"),
            consumer: text("OUTLAST_CONSUMER").unwrap_or_else(|| if terminal { HUMAN } else { "model" }.to_owned()),
            terminal,
            colour: get(&vars, "NO_COLOR").is_none() && get(&vars, "TERM").is_none_or(|term| term != "dumb"),
            bounds: bounds(&vars),
            policy: get(&vars, "OUTLAST_POLICY")
                .map_or_else(|| Ok(Policy::default()), |path| Policy::load(&cwd.join(path)))?,
            cwd,
            vars,
        })
    }

    /// The environment that a command inherits.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        self.vars.clone()
    }

    /// The settings of the library. `to_model`: a model may read what is shown.
    pub fn library(&self, to_model: bool) -> outlast::Config {
        let mut library = outlast::Config::new(&self.state_dir);
        library.search = self.path();
        library.policy = self.policy.library(to_model, &self.vars);
        let most = self.bounds.max_limit.map(|most| u64::try_from(most.as_millis()).unwrap_or(u64::MAX));
        library.policy.limits.wall_ms = most;
        library
    }

    /// Whether whoever is spoken for may be a model: everyone but a person.
    pub fn speaks_to_model(&self) -> bool {
        self.consumer != HUMAN
    }

    /// A variable that is set and not empty.
    pub fn var(&self, key: &str) -> Option<String> {
        get(&self.vars, key).map(|value| value.to_string_lossy().into_owned())
    }

    /// Where programs are looked for.
    pub fn path(&self) -> Option<OsString> {
        get(&self.vars, "PATH").map(OsStr::to_owned)
    }

    /// The process whose life bounds a session that is named nowhere: the session leader where there is a
    /// controlling terminal, else the parent.
    pub fn anchor(&self) -> u32 {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        // Opening /dev/tty fails with ENXIO where there is no controlling terminal (tty(4)).
        let leader = open("/dev/tty", flags, Mode::empty()).ok().and_then(|_| rustix::process::getsid(None).ok());
        let anchor = leader.or_else(rustix::process::getppid);
        // A parent outside of this pid namespace has no number here; process 1 lives as long as the namespace.
        anchor.map_or(1, |pid| pid.as_raw_nonzero().get().unsigned_abs())
    }
}

fn get<'a>(vars: &'a [(OsString, OsString)], key: &str) -> Option<&'a OsStr> {
    let found = vars.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_os_str());
    found.filter(|value| !value.is_empty())
}

/// `OUTLAST_STATE_DIR`, else `$XDG_STATE_HOME/outlast`, else `~/.local/state/outlast` (XDG base directory
/// specification; a relative `XDG_STATE_HOME` is ignored, as it says). With it the name of a variable whose
/// path is relative, because another directory then has other records.
fn state_dir(
    vars: &[(OsString, OsString)],
    home: Option<PathBuf>,
    cwd: &Path,
) -> Result<(PathBuf, Option<&'static str>), String> {
    let relative = |path: &Path, key| (!path.is_absolute()).then_some(key);
    if let Some(named) = get(vars, "OUTLAST_STATE_DIR") {
        return Ok((cwd.join(named), relative(Path::new(named), "OUTLAST_STATE_DIR")));
    }
    let xdg = get(vars, "XDG_STATE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    if let Some(dir) = xdg {
        return Ok((dir.join("outlast"), None));
    }
    let home = get(vars, "HOME").map(PathBuf::from).or(home);
    match home {
        Some(home) => Ok((cwd.join(&home).join(".local/state/outlast"), relative(&home, "HOME"))),
        None => Err("there is no home directory to keep state in: set OUTLAST_STATE_DIR".to_owned()),
    }
}

fn bounds(vars: &[(OsString, OsString)]) -> Bounds {
    let mut ignored = Vec::new();
    let mut read = |key: &str, example: &str, parse: fn(&str) -> Option<u64>| {
        let text = vars.iter().find(|(name, _)| name == key)?.1.to_string_lossy().into_owned();
        let value = parse(&text).filter(|value| *value > 0);
        if value.is_none() {
            ignored.push(format!("{key}={text:?} is ignored: it must be a value above 0, such as {example}"));
        }
        value
    };
    let duration = |text: &str| units::parse_duration(text).ok().and_then(|time| u64::try_from(time.as_millis()).ok());
    let size = |text: &str| units::parse_size(text).ok();
    let max_log = read("OUTLAST_MAX_LOG", "64MiB", size);
    let grace = read("OUTLAST_GRACE", "10s", duration).map(Duration::from_millis);
    let limit = read("OUTLAST_LIMIT", "10m", duration).map(Duration::from_millis);
    let max_limit = read("OUTLAST_MAX_LIMIT", "1h", duration).map(Duration::from_millis);
    let sessions = read("OUTLAST_KEEP_SESSIONS", "100", |text| text.parse().ok());
    let age_ms = read("OUTLAST_KEEP_AGE", "30d", duration);
    let output = read("OUTLAST_KEEP_OUTPUT", "2GiB", size).and_then(NonZeroU64::new);
    let keep = Limits {
        // What makes no sense was left out above, so that all that is refused here is that there is none.
        sessions: SessionBounds::new(sessions, age_ms).ok(),
        log_bytes: output.unwrap_or(retention::LOG_BYTES),
        untold: false,
    };
    Bounds { max_log, grace, limit, max_limit, keep, ignored }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(entries: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        entries.iter().map(|(key, value)| (key.into(), value.into())).collect()
    }

    fn config(entries: &[(&str, &str)], terminal: bool) -> Config {
        Config::from_vars(vars(entries), Some("/passwd".into()), Some("/here".into()), terminal).expect("a home")
    }

    /// Covers: M4
    #[test]
    fn m4_where_the_state_directory_is() {
        for (entries, dir) in [
            (&[("OUTLAST_STATE_DIR", "/s"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")][..], "/s"),
            (&[("OUTLAST_STATE_DIR", "s"), ("HOME", "/h")], "/here/s"),
            (&[("OUTLAST_STATE_DIR", ""), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")], "/x/outlast"),
            (&[("XDG_STATE_HOME", "x"), ("HOME", "/h")], "/h/.local/state/outlast"),
            (&[("HOME", "/h")], "/h/.local/state/outlast"),
            (&[], "/passwd/.local/state/outlast"),
        ] {
            assert_eq!(config(entries, false).state_dir, PathBuf::from(dir), "{entries:?}");
        }
        let error = Config::from_vars(vec![], None, None, false).expect_err("no home at all");
        assert!(error.contains("OUTLAST_STATE_DIR"));
    }

    #[test]
    fn who_is_spoken_for() {
        assert_eq!(config(&[], true).consumer, "human");
        assert_eq!(config(&[], false).consumer, "model");
        assert_eq!(config(&[("OUTLAST_CONSUMER", "hook")], true).consumer, "hook");
        assert_eq!(config(&[("OUTLAST_SESSION", "")], true).session, None);
    }

    #[test]
    fn a_directory_that_is_gone_is_the_one_that_the_shell_names() {
        let gone = Config::from_vars(vars(&[("HOME", "/h"), ("PWD", "/was/here")]), None, None, false);
        assert_eq!(gone.expect("a home").cwd, PathBuf::from("/was/here"));
    }

    /// Covers: I7
    #[test]
    fn i7_bounds_that_make_no_sense_are_ignored_and_told() {
        let set = [
            ("OUTLAST_MAX_LOG", "1MiB"),
            ("OUTLAST_GRACE", "5s"),
            ("OUTLAST_LIMIT", "1h"),
            ("OUTLAST_MAX_LIMIT", "2h"),
        ];
        let all = config(&set, false).bounds;
        assert_eq!(all.max_log, Some(1 << 20));
        assert_eq!(all.grace, Some(Duration::from_secs(5)));
        assert_eq!((all.limit, all.max_limit), (Some(Duration::from_secs(3600)), Some(Duration::from_secs(7200))));
        assert_eq!(all.ignored, [""; 0]);
        assert_eq!(all.keep, Limits::default());
        let keep = [("OUTLAST_KEEP_SESSIONS", "9"), ("OUTLAST_KEEP_AGE", "2d"), ("OUTLAST_KEEP_OUTPUT", "1MiB")];
        let keep = config(&keep, false).bounds.keep;
        assert_eq!(keep.sessions, SessionBounds::new(Some(9), Some(172_800_000)).ok());
        assert_eq!(keep.log_bytes.get(), 1 << 20);
        for junk in ["", "0", "0s", "much", "-1s"] {
            let bounds = config(&[("OUTLAST_GRACE", junk), ("OUTLAST_MAX_LOG", junk)], false).bounds;
            assert_eq!((bounds.grace, bounds.max_log, bounds.ignored.len()), (None, None, 2), "{junk:?}");
            let keep = config(&[("OUTLAST_KEEP_SESSIONS", junk), ("OUTLAST_KEEP_OUTPUT", junk)], false).bounds;
            assert_eq!((keep.keep, keep.ignored.len()), (Limits::default(), 2), "{junk:?}");
        }
    }
}
