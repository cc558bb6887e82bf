//! What may be started, and how: programs, callers, rules by the command line, the environment.

use serde::Deserialize;

use super::credentials::is_credential;
use crate::request::{OsText, line_of};

/// A list of programs; others are not started.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// What the list is called when something is refused.
    pub name: String,
    /// The programs, as they are invoked: a name does not allow a path to it.
    pub allow: Vec<String>,
}

impl Programs {
    /// Refuses a program that is not in the list.
    pub fn admit(&self, program: &OsText) -> Result<(), String> {
        if self.allow.iter().any(|allowed| allowed.as_bytes() == program.0) {
            return Ok(());
        }
        let program = program.lossy();
        Err(format!("{program:?} is not in the list of programs {:?}; nothing ran, and nothing will", self.name))
    }
}

/// Where programs are looked for where there is no directory that a `PATH` surely names.
const USUAL_PATH: &[u8] = b"/usr/bin:/bin";

/// The directories of a `PATH` that are the same wherever a command runs; the usual ones where there are none.
#[must_use]
pub fn sure_path(path: Option<&OsText>) -> OsText {
    let given = path.map_or(&[][..], |path| &path.0);
    let sure: Vec<&[u8]> = given.split(|byte| *byte == b':').filter(|dir| dir.starts_with(b"/")).collect();
    OsText(if sure.is_empty() { USUAL_PATH.to_vec() } else { sure.join(&b':') })
}

/// What a caller is to whoever runs outlast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It may start commands.
    #[default]
    Full,
    /// It may look.
    Readonly,
    /// It may look.
    Untrusted,
}

impl Role {
    /// Refuses a caller that may not start anything.
    pub fn admit(self, shell_access: Option<bool>) -> Result<(), String> {
        let why = match self {
            _ if shell_access == Some(false) => "shell_access is false",
            Role::Full => return Ok(()),
            Role::Readonly => "its role is readonly",
            Role::Untrusted => "its role is untrusted",
        };
        Err(format!("this caller may not start commands: {why}; nothing ran"))
    }
}

/// Commands that start in the background at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundRule {
    /// What stands in the command line.
    pub line: String,
    /// The smallest wall limit that such a command has, in milliseconds; without it any, also none.
    #[serde(default)]
    pub limit_ms: Option<u64>,
}

impl BackgroundRule {
    /// Whether a command with this wall limit is meant.
    #[must_use]
    pub fn matches(&self, argv: &[OsText], wall_ms: Option<u64>) -> bool {
        let is_long = self.limit_ms.is_none_or(|least| wall_ms.is_some_and(|limit| limit >= least));
        is_long && !self.line.is_empty() && line_of(argv).lines().any(|line| line.contains(&self.line))
    }
}

/// Which part of the environment that it inherits a command gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// All of it.
    #[default]
    Inherited,
    /// Little of it, no credential, and a home of its own.
    Clean,
}

/// What a clean environment inherits. A name that ends with `*` stands for all that begin like it.
const BASELINE: [&str; 14] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "PAGER",
    "GIT_PAGER",
    "GIT_TERMINAL_PROMPT",
    "OUTLAST_STATE_DIR",
];

/// Beginnings of names that are taken out of a clean environment beside those of credentials.
const STRIPPED: [&str; 5] = ["AWS_*", "AZURE_*", "GCP_*", "GOOGLE_*", "SSH_*"];

/// Takes out of an environment what a clean one does not have. `asked`: the names that the call itself set; `keep` and
/// `strip`: what was declared, exact, `BEGINNING*` or `*END`. HOME is not set here.
pub fn clean(env: &mut Vec<(OsText, OsText)>, asked: &[OsText], keep: &[String], strip: &[String]) {
    env.retain(|(name, _)| {
        let text = name.lossy();
        let wanted = BASELINE.iter().any(|pattern| is_like(&text, pattern))
            || asked.contains(name)
            || keep.iter().any(|pattern| is_like(&text, pattern));
        let stripped = is_credential(&text)
            || STRIPPED.iter().any(|pattern| is_like(&text, pattern))
            || strip.iter().any(|pattern| is_like(&text, pattern));
        wanted && !stripped && text != "HOME"
    });
}

fn is_like(name: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (None, Some(beginning)) => name.starts_with(beginning),
        (None, None) => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<OsText> {
        line.iter().map(OsText::from).collect()
    }

    /// Covers: R1
    #[test]
    fn r1_a_list_of_programs() {
        let list = Programs { name: "builders".into(), allow: vec!["make".into(), "/usr/bin/cc".into()] };
        for listed in ["make", "/usr/bin/cc"] {
            assert_eq!(list.admit(&OsText::from(listed)), Ok(()));
        }
        for other in ["rm", "/tmp/make", "./make", "cc", ""] {
            let refusal = list.admit(&OsText::from(other)).expect_err(other);
            assert!(refusal.contains("\"builders\"") && refusal.contains("nothing ran"), "{refusal}");
        }
    }

    /// Covers: R1
    #[test]
    fn r1_programs_are_found_in_absolute_directories() {
        for (given, sure) in [
            ("/usr/bin:/bin", "/usr/bin:/bin"),
            (".:/opt/x/bin::bin:/bin:", "/opt/x/bin:/bin"),
            (".", "/usr/bin:/bin"),
            ("", "/usr/bin:/bin"),
        ] {
            assert_eq!(sure_path(Some(&OsText::from(given))), OsText::from(sure), "{given}");
        }
        assert_eq!(sure_path(None), OsText::from("/usr/bin:/bin"));
    }

    /// Covers: R4
    #[test]
    fn r4_roles() {
        assert!(Role::Full.admit(None).is_ok() && Role::default().admit(Some(true)).is_ok());
        assert!(Role::Full.admit(Some(false)).is_err_and(|why| why.contains("shell_access")));
        assert!(Role::Readonly.admit(None).is_err_and(|why| why.contains("readonly")));
        assert!(Role::Untrusted.admit(Some(true)).is_err_and(|why| why.contains("untrusted")));
    }

    /// Covers: A10
    #[test]
    fn a10_rules_for_the_background() {
        let rule = BackgroundRule { line: "cargo test".into(), limit_ms: Some(300_000) };
        let line = words(&["sh", "-c", "cd x\ncargo test -q"]);
        assert!(rule.matches(&line, Some(300_000)));
        assert!(!rule.matches(&line, Some(299_999)));
        assert!(!rule.matches(&line, None), "a bound that is not there is not at least so long");
        assert!(!rule.matches(&words(&["sh", "-c", "cargo\ntest"]), Some(300_000)));
        assert!(BackgroundRule { limit_ms: None, ..rule }.matches(&line, None));
    }

    /// Covers: Q7
    #[test]
    fn q7_a_clean_environment() {
        let all = [
            "PATH",
            "LC_ALL",
            "HOME",
            "EDITOR",
            "CARGO_HOME",
            "MINE",
            "AWS_PROFILE",
            "X_API_KEY",
            "GITHUB_TOKEN",
            "MY_URL",
            "NODE_X",
        ];
        let mut env: Vec<_> = all.iter().map(|name| (OsText::from(name), OsText::from("1"))).collect();
        let asked = words(&["MINE", "GITHUB_TOKEN", "HOME", "MY_URL", "NODE_X"]);
        let declared = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        clean(&mut env, &asked, &declared(&["CARGO_*", "X_API_KEY", "AWS_PROFILE"]), &declared(&["*_URL", "NODE_*"]));
        let left: Vec<String> = env.iter().map(|(name, _)| name.lossy()).collect();
        assert_eq!(left, ["PATH", "LC_ALL", "CARGO_HOME", "MINE"]);
    }
}
