//! What the policies make of a start: refused, or changed and said.

use std::path::Path;
use std::time::Duration;

use outlast_core::policy::Environment;
use outlast_core::policy::decisive;
use outlast_core::policy::start::{clean, sure_path};
use outlast_core::request::OsText;

use crate::error::{Error, Result};
use crate::request::RunRequest;
use crate::session::Session;

impl Session {
    /// Refuses what the policies do not allow, and changes what they say otherwise; gives what is to be said of it beside
    /// the answer.
    pub(crate) fn admit(&self, request: &mut RunRequest, background: bool) -> Result<Vec<String>> {
        let policy = &self.runtime().inner.config.policy;
        let refused = Error::Refused;
        policy.role.admit(policy.shell_access).map_err(refused)?;
        let mut remarks = policy.limits.cuts(&request.limits);
        request.limits = policy.limits.narrowed_by(&request.limits);
        if !request.rights.is_empty() {
            return Err(Error::Refused(format!(
                "more rights were asked for ({}), and there is no sandbox that could give them: a command has the rights of its \
                 caller; nothing ran; ask for none",
                request.rights.join(", ")
            )));
        }
        if policy.is_about_starts() {
            let argv: Vec<OsText> = request.argv.iter().map(OsText::from).collect();
            if let (Some(programs), Some(program)) = (&policy.programs, argv.first()) {
                programs.admit(program).map_err(refused)?;
            }
            remarks.extend(policy.gate.admit(&argv).map_err(refused)?);
            let is_long = policy.background.iter().any(|rule| rule.matches(&argv, request.limits.wall_ms));
            if is_long && request.can_be_told && !background {
                request.grace = Some(Duration::ZERO);
            }
        }
        if policy.goes_by_names() {
            keep_meanings(request)?;
        }
        if let Some(root) = &policy.root {
            remarks.extend(inside(root, request)?);
        }
        if policy.env == Environment::Clean {
            self.clean(request)?;
        }
        Ok(remarks)
    }

    fn clean(&self, request: &mut RunRequest) -> Result<()> {
        let policy = &self.runtime().inner.config.policy;
        let home = self.dir()?.create_home()?;
        let asked: Vec<OsText> = request.asked.iter().map(OsText::from).collect();
        let mut env = std::mem::take(&mut request.env)
            .into_iter()
            .map(|(name, value)| (OsText::from(name), OsText::from(value)))
            .collect();
        clean(&mut env, &asked, &policy.env_keep, &policy.env_strip);
        env.push((OsText::from("HOME"), OsText::from(home)));
        request.env = env.into_iter().map(|(name, value)| (name.to_os(), value.to_os())).collect();
        Ok(())
    }
}

/// Refuses entries of the call that decide what a name means or what code is loaded, and takes out of the `PATH` what
/// depends on the working directory.
fn keep_meanings(request: &mut RunRequest) -> Result<()> {
    for name in &request.asked {
        let name = name.to_string_lossy();
        if let Some(why) = decisive::in_a_call(&name) {
            return Err(Error::Refused(format!(
                "the variable {name} may not be set where a policy goes by the names of programs: {why}; nothing ran; leave \
                 it out"
            )));
        }
    }
    let path = request.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| OsText::from(path));
    request.env.retain(|(name, _)| name != "PATH");
    request.env.push(("PATH".into(), sure_path(path.as_ref()).to_os()));
    Ok(())
}

/// Moves a command into the root whose directory is outside of it. Where that cannot be told nothing is started.
fn inside(root: &str, request: &mut RunRequest) -> Result<Option<String>> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| {
            let path = path.display();
            Error::Refused(format!("whether {path} is inside of the root {root} cannot be told: {error}; nothing ran"))
        })
    };
    let root_dir = real(Path::new(root))?;
    let cwd = real(&request.cwd)?;
    if cwd.starts_with(&root_dir) {
        // Where its links lead now is where it runs.
        request.cwd = cwd;
        return Ok(None);
    }
    let remark = format!("{} is outside of the root, so it ran in {root}", request.cwd.display());
    request.cwd = root_dir;
    Ok(Some(remark))
}
