//! What this machine offers, and what does not answer.

use std::path::PathBuf;

use outlast_core::wire::{FromKeeper, ToKeeper};
use outlast_host::cgroup::{self, Leaf};
use outlast_host::store::{ledger, moving};
use outlast_host::sys::pidfd;
use rustix::io::Errno;

use crate::command::Command;
use crate::error::{Error, Result};
use crate::keeper;
use crate::probe::{self, Probe};
use crate::runtime::Runtime;
use crate::session::Session;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What: a constant word such as `pidfd_handle`, or the id of a session or command.
    pub name: String,
    /// Whether it is as it should be; a feature that is merely missing is not a problem.
    pub ok: bool,
    /// What was found, and what to do about it.
    pub detail: String,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct DoctorReport {
    /// The state directory.
    pub state_dir: PathBuf,
    /// The executable that becomes the keeper.
    pub executable: Option<PathBuf>,
    /// `cgroup` or `subreaper`.
    pub containment: String,
    /// Everything that was looked at.
    pub findings: Vec<Finding>,
}

impl Runtime {
    /// Looks at the machine, the state directory and every keeper and supervisor in it.
    pub async fn doctor(&self) -> Result<DoctorReport> {
        let mut findings = vec![finding("kernel", true, kernel())];
        let executable = match self.executable() {
            Ok(path) => Some(path),
            Err(error) => {
                findings.push(finding("executable", false, error.to_string()));
                None
            }
        };
        let (containment, detail, controllers) = containment();
        findings.push(finding("containment", true, detail));
        findings.push(finding("limits", true, keepers(&controllers)));
        process_features(&mut findings);
        let tried = self.records().map_err(ToString::to_string).and_then(|()| {
            let state = self.state().map_err(|error| error.to_string())?;
            state.try_record().map_err(|error| error.to_string())
        });
        match tried {
            Ok(()) => findings.push(finding("state_dir", true, "records can be made".to_owned())),
            Err(error) => findings.push(finding("state_dir", false, format!("no records can be made: {error}"))),
        }
        if let Ok(state) = self.state() {
            for id in state.list()? {
                match self.open_session(&id).await {
                    Ok(session) => look_at(&session, &mut findings).await?,
                    Err(error) => findings.push(finding(&id.to_string(), false, error.to_string())),
                }
            }
        }
        Ok(DoctorReport {
            state_dir: self.state_dir().to_owned(),
            executable,
            containment: containment.to_owned(),
            findings,
        })
    }
}

fn finding(name: &str, ok: bool, detail: String) -> Finding {
    Finding { name: name.to_owned(), ok, detail }
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

/// How trees are held together, and the controllers of their cgroups.
fn containment() -> (&'static str, String, Vec<String>) {
    let tried = cgroup::parent().and_then(|parent| match parent {
        Some(parent) => {
            let leaf = Leaf::create(&parent, &format!("outlast-doctor-{}", std::process::id()))?;
            let controllers = leaf.controllers();
            leaf.remove()?;
            Ok(Some((parent.path, controllers?)))
        }
        None => Ok(None),
    });
    let without = |why: String| ("subreaper", format!("{why}; trees are held by their subreaper"), Vec::new());
    match tried {
        Ok(Some((path, controllers))) => ("cgroup", format!("cgroups can be made in {}", path.display()), controllers),
        Ok(None) => without("no cgroup v2 mount is there".to_owned()),
        Err(error) => without(format!("no cgroup can be made ({error})")),
    }
}

/// Who keeps the bounds on whole trees.
fn keepers(controllers: &[String]) -> String {
    let by = |controller: &str, otherwise: &'static str| match controllers.iter().any(|have| have == controller) {
        true => "the kernel",
        false => otherwise,
    };
    format!(
        "memory is bounded by {}, processes by {}, processor share by {}, disk traffic by {}",
        by("memory", "sampling"),
        by("pids", "sampling"),
        by("cpu", "nothing (no cgroup controller)"),
        by("io", "nothing (no cgroup controller)")
    )
}

/// What the kernel offers beyond what outlast needs.
fn process_features(findings: &mut Vec<Finding>) {
    let own = match pidfd::open(std::process::id()) {
        Ok(own) => own,
        Err(errno) => {
            let detail = format!("no process descriptor can be opened ({errno}); outlast needs Linux 5.3");
            findings.push(finding("pidfd", false, detail));
            return;
        }
    };
    let group = match pidfd::group_is_empty(&own) {
        Err(Errno::INVAL) => "missing (Linux 6.9): groups are signalled while their leader is not reaped",
        Ok(_) | Err(_) => "there",
    };
    findings.push(finding("pidfd_signal_group", true, group.to_owned()));
    let handle = match pidfd::handle(&own) {
        Ok(Some(_)) => "there",
        Ok(None) | Err(_) => "missing (Linux 6.14): processes are recognised by pid, start time and boot",
    };
    findings.push(finding("pidfd_handle", true, handle.to_owned()));
}

async fn look_at(session: &Session, findings: &mut Vec<Finding>) -> Result<()> {
    let summary = session.summary().await?;
    let name = session.id().to_string();
    if let Some(problem) = summary.problem {
        findings.push(finding(&name, false, problem));
    }
    let dir = session.dir()?;
    if summary.kept {
        match keeper::ask(dir.dir(), &ToKeeper::Ping, keeper::ANSWER_BOUND).await {
            Ok(Some(FromKeeper::Pong { keeper, keeping, .. })) => {
                let plural = if keeping == 1 { "" } else { "s" };
                let detail = format!("its keeper (pid {}) answers and keeps {keeping} command{plural}", keeper.pid);
                findings.push(finding(&name, true, detail));
            }
            Ok(Some(other)) => findings.push(finding(&name, false, format!("its keeper answered Ping with {other:?}"))),
            Ok(None) => findings.push(finding(&name, true, "its keeper is coming or going".to_owned())),
            Err(error @ (Error::Silent { .. } | Error::Unreachable(_) | Error::Protocol(_))) => {
                findings.push(finding(&name, false, error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    if let Err(error) = ledger::read(dir.dir()) {
        findings.push(finding(&name, false, error.to_string()));
    }
    for id in moving::waiting(dir)? {
        let detail = format!("its records were not moved to where {name} is bound; `outlast session bind` says why");
        findings.push(finding(&id.to_string(), false, detail));
    }
    for id in dir.commands()? {
        let Some(command) = dir.command(id)? else { continue };
        let looked = Command { session: session.clone(), id }.brief().await?;
        if let Some(damage) = looked.damaged {
            findings.push(finding(&id.to_string(), false, damage));
        } else if let Some(note) = looked.note.filter(|_| looked.end.is_some()) {
            findings.push(finding(&id.to_string(), true, note));
        }
        if command.lease_is_held()?
            && let Probe::Silent { note } = probe::status(&command).await?
        {
            findings.push(finding(&id.to_string(), false, note));
        }
    }
    Ok(())
}
