//! The operator's policies: one TOML file, which `OUTLAST_POLICY` names. Without it every policy is at its default.
//!
//! It is a file and not some variables, because its lists are long and because one file can belong to the operator.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use outlast::LiveOutput;
use outlast_core::policy::credentials::is_secret;
use serde::Deserialize;

/// What the file says.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Whether secrets are masked; without it they are in everything that a model may read.
    pub redact: Option<bool>,
    /// Whether the output of a command is shown while it runs.
    pub live_output: LiveOutput,
}

impl Policy {
    /// Reads the file. A policy that cannot be understood must not count as none, so that it is an error.
    pub fn load(path: &Path) -> Result<Policy, String> {
        let failed = |reason: String| {
            let path = path.display();
            format!("the policy file {path}, which OUTLAST_POLICY names: {reason}; nothing is done without it")
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        toml_edit::de::from_str(&text).map_err(|error| failed(error.to_string().trim_end().replace('\n', " ")))
    }

    /// What the library is told. `to_model`: a model may read what is shown.
    pub fn library(&self, to_model: bool, environment: &[(OsString, OsString)]) -> outlast::Policy {
        let secret = |(name, value): &(OsString, OsString)| {
            is_secret(&name.to_string_lossy(), value.as_bytes()).then(|| OsStr::as_bytes(value).to_vec())
        };
        outlast::Policy {
            redact: self.redact.unwrap_or(to_model),
            secrets: environment.iter().filter_map(secret).collect(),
            live_output: self.live_output,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Policy, String> {
        toml_edit::de::from_str(text).map_err(|error| error.to_string())
    }

    /// Covers: R5, C21
    #[test]
    fn r5_the_policy_file() {
        assert_eq!(read(""), Ok(Policy::default()));
        let policy = read("redact = false\nlive_output = \"withheld\"\n").expect("a policy");
        assert_eq!(policy, Policy { redact: Some(false), live_output: LiveOutput::Withheld });
        for wrong in ["redact = 1", "redacted = true", "live_output = \"off\"", "="] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let error = Policy::load(Path::new("/nowhere/policy.toml")).expect_err("no file");
        assert!(error.contains("/nowhere/policy.toml") && error.contains("OUTLAST_POLICY"), "{error}");
    }

    /// Covers: R5
    #[test]
    fn r5_who_reads_decides_unless_the_file_does() {
        let environment = [("X_TOKEN".into(), "12345678".into()), ("HOME".into(), "/home/somebody".into())];
        for (said, to_model, masked) in
            [(None, true, true), (None, false, false), (Some(false), true, false), (Some(true), false, true)]
        {
            let policy = Policy { redact: said, ..Policy::default() }.library(to_model, &environment);
            assert_eq!((policy.redact, policy.secrets.len()), (masked, 1));
        }
    }
}
