//! The operator's policies: one TOML file, which `OUTLAST_POLICY` names. Without it every policy is at its default.
//!
//! It is a file and not some variables, because its lists are long and because one file can belong to the operator.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use outlast::LiveOutput;
use outlast_core::policy::credentials::is_secret;
use outlast_core::policy::{AtRest, BackgroundRule, Environment, Gate, Programs, Role, TraceRule};
use outlast_core::request::Limits;
use outlast_core::units;
use serde::Deserialize;

/// What the file says.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Whether secrets are masked; without it they are in everything that a model may read.
    pub redact: Option<bool>,
    /// What is stored of commands.
    pub at_rest: AtRest,
    /// Which ends the trace holds.
    pub trace: TraceRule,
    /// Whether the output of a command is shown while it runs.
    pub live_output: LiveOutput,
    /// What the caller is.
    pub role: Role,
    /// Whether the caller may start commands.
    pub shell_access: Option<bool>,
    /// The only programs that are started.
    pub programs: Option<Programs>,
    /// Which shell lines are started.
    pub gate: Gate,
    /// The directory in which all commands run.
    pub root: Option<String>,
    /// The bounds that every command has.
    pub limits: Bounds,
    /// Commands that start in the background at once.
    pub background: Vec<Background>,
    /// Which part of the environment a command gets.
    pub env: Environment,
    /// Names that a clean environment inherits as well.
    pub env_keep: Vec<String>,
    /// Names that a clean environment never has.
    pub env_strip: Vec<String>,
}

/// The bounds that every command has, as the file has them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Whether those that are not named are those of the policy `bounded`, and not none.
    bounded: bool,
    memory: Option<String>,
    pids: Option<u64>,
    cpu: Option<String>,
    file_size: Option<String>,
    files: Option<u64>,
    address_space: Option<String>,
    core: Option<String>,
    more_processes: Option<u64>,
}

impl Bounds {
    fn limits(&self) -> Result<Limits, String> {
        let size = |text: &Option<String>| {
            let size = text.as_deref().map(units::parse_size).transpose();
            size.map_err(|error| format!("[limits]: {error}"))
        };
        let cpu = self.cpu.as_deref().map(units::parse_duration).transpose();
        let cpu = cpu.map_err(|error| format!("[limits]: {error}"))?;
        if self.pids == Some(0) {
            return Err("[limits]: with `pids = 0` nothing could run".to_owned());
        }
        let rest = if self.bounded { Limits::bounded() } else { Limits::default() };
        Ok(Limits {
            memory: size(&self.memory)?.or(rest.memory),
            pids: self.pids.or(rest.pids),
            cpu_s: cpu.map(|time| time.as_secs().max(1)).or(rest.cpu_s),
            file_size: size(&self.file_size)?.or(rest.file_size),
            files: self.files.or(rest.files),
            address_space: size(&self.address_space)?.or(rest.address_space),
            core: size(&self.core)?.or(rest.core),
            more_processes: self.more_processes.or(rest.more_processes),
            ..rest
        })
    }
}

/// Commands that start in the background at once, as the file has them.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// What stands in the command line.
    line: String,
    /// The smallest limit of such a command.
    limit: Option<String>,
}

impl Background {
    fn rule(&self) -> Result<BackgroundRule, String> {
        let limit = self.limit.as_deref().map(units::parse_duration).transpose().map_err(|error| error.to_string())?;
        let limit_ms = limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        Ok(BackgroundRule { line: self.line.clone(), limit_ms })
    }
}

impl Policy {
    /// Reads the file. A policy that cannot be understood must not count as none, so that it is an error.
    pub fn load(path: &Path) -> Result<Policy, String> {
        let failed = |reason: String| {
            let path = path.display();
            format!("the policy file {path}, which OUTLAST_POLICY names: {reason}; nothing is done without it")
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let policy: Policy =
            toml_edit::de::from_str(&text).map_err(|error| failed(error.to_string().trim_end().replace('\n', " ")))?;
        policy.limits.limits().map_err(failed)?;
        policy.background.iter().try_for_each(|rule| rule.rule().map(drop)).map_err(failed)?;
        if policy.root.as_ref().is_some_and(|root| !Path::new(root).is_absolute()) {
            return Err(failed("`root` is no absolute path".to_owned()));
        }
        Ok(policy)
    }

    /// What the library is told. `to_model`: a model may read what is shown.
    pub fn library(&self, to_model: bool, environment: &[(OsString, OsString)]) -> outlast::Policy {
        let secret = |(name, value): &(OsString, OsString)| {
            is_secret(&name.to_string_lossy(), value.as_bytes()).then(|| OsStr::as_bytes(value).to_vec())
        };
        outlast::Policy {
            redact: self.redact.unwrap_or(to_model),
            secrets: environment.iter().filter_map(secret).collect(),
            at_rest: self.at_rest,
            trace: self.trace,
            live_output: self.live_output,
            role: self.role,
            shell_access: self.shell_access,
            programs: self.programs.clone(),
            gate: self.gate.clone(),
            root: self.root.clone(),
            // What makes no sense was refused when the file was read.
            limits: self.limits.limits().unwrap_or_default(),
            background: self.background.iter().filter_map(|rule| rule.rule().ok()).collect(),
            env: self.env,
            env_keep: self.env_keep.clone(),
            env_strip: self.env_strip.clone(),
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
        assert_eq!(policy, Policy { redact: Some(false), live_output: LiveOutput::Withheld, ..Policy::default() });
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
