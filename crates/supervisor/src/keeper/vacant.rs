//! Commands whose supervisor was killed: their tree is ended and their record finished in its place.

use std::os::fd::OwnedFd;

use outlast_core::ending::{BY_SESSION_END, End, Fact};
use outlast_core::id::CommandId;
use outlast_core::lifecycle::end_without_supervisor;
use outlast_core::record::{ExitRecord, Phase, StatusRecord};
use outlast_host::cgroup::Leaf;
use outlast_host::dir::FileError;
use outlast_host::lock::Lock;
use outlast_host::proc::{self, Stat};
use outlast_host::store::command::CommandDir;
use outlast_host::store::log::LogWriter;
use outlast_host::store::session::SessionDir;
use outlast_host::sys::pidfd;
use outlast_host::{clock, mark, strays};
use rustix::event::Timespec;
use rustix::process::Signal;

use super::Keeper;
use crate::context::own_mark;
use crate::tree::signal_exact;

/// How often, and how far apart, a lease is tried that nobody should hold any more.
const LEASE_TRIES: usize = 100;
const LEASE_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// A command without a supervisor.
pub struct Vacant {
    /// The exit record as the supervisor last told it.
    pub draft: ExitRecord,
    /// Whether it has records.
    pub materialised: bool,
    /// Whether its caller has shown its end, so that it needs no records to be told from.
    pub told: bool,
    /// The pid that the supervisor had.
    pub supervisor: u32,
    /// Whether the leader and its descendants fell to this process.
    pub own_child: bool,
    /// The stop that was ordered before, by its word.
    pub ordered: Option<String>,
    /// A descriptor of the leader, where its supervisor lived to hand one over.
    pub leader: Option<OwnedFd>,
    /// What the kernel said of the leader.
    pub fact: Option<Fact>,
}

impl Vacant {
    /// Pid and start time of the leader.
    pub fn leader_id(&self) -> Option<(u32, u64)> {
        self.draft.leader.as_ref().map(|leader| (leader.pid, leader.start))
    }

    /// Its end: what it was ended for, if its supervisor said that or it was ordered; its own if it had
    /// ended by itself.
    fn end(&self) -> End {
        let fact = self.fact;
        match &self.draft.end {
            End::Stopped { by, fact: told } => return End::Stopped { by: by.clone(), fact: told.or(fact) },
            End::TimedOut { clock, fact: told } => return End::TimedOut { clock: *clock, fact: told.or(fact) },
            End::Limit { resource, fact: told } => return End::Limit { resource: *resource, fact: told.or(fact) },
            End::Abandoned { fact: told } => return End::Abandoned { fact: told.or(fact) },
            // Its supervisor knew it already, and may have told it.
            known @ (End::Exited { .. } | End::Signaled { .. } | End::SpawnFailed { .. }) => return known.clone(),
            End::Lost | End::Interrupted => {}
        }
        match (self.ordered.as_deref(), fact) {
            (Some(BY_SESSION_END), fact) => End::Abandoned { fact },
            (Some(by), fact) => End::Stopped { by: by.to_owned(), fact },
            (None, fact) => end_without_supervisor(fact),
        }
    }

    fn final_record(&self) -> ExitRecord {
        let mut exit = self.draft.clone();
        exit.end = self.end();
        if exit.ended_at_ms == 0 {
            exit.ended_at_ms = clock::unix_ms();
            // The clock of day may have been set meanwhile; the kernel dates the start of a leader by one that is not.
            let age = exit.leader.as_ref().map(clock::age_ms);
            exit.duration_ms = age.unwrap_or_else(|| exit.ended_at_ms.saturating_sub(exit.started_at_ms));
        }
        exit.recorded_by = "keeper".to_owned();
        (exit.demoted, exit.told) = (true, true);
        exit.demoted_at_ms.get_or_insert(exit.ended_at_ms);
        exit.errors.push(match self.materialised {
            true => "its supervisor was killed: what was in its pipes then is not in the log".to_owned(),
            false => "its supervisor was killed: the output that it held in memory is lost".to_owned(),
        });
        exit
    }
}

impl Keeper {
    /// One pass over what the commands of dead watchers left, as long as the last one found something.
    pub(super) fn end_strays(&mut self) {
        if !self.strays_left {
            return;
        }
        let Some(session) = self.context.dir() else { return };
        // Where /proc cannot be read nothing can be proven, so nothing is ended.
        let mut strays = strays::of_session(session.id()).unwrap_or_default();
        // Whoever writes that a command is lost ends what it left, and says so there; the end of the
        // session does not wait for that.
        strays.retain(|stray| self.closing.is_some() || is_settled(session, stray.command));
        for stray in &strays {
            signal_exact(&stray.stat, Signal::KILL);
        }
        self.strays_left = !strays.is_empty();
    }

    /// Ends what dead supervisors left, and finishes their records once nothing of it is alive.
    pub(super) fn fill_vacancies(&mut self) {
        if self.vacant.is_empty() {
            return;
        }
        let leaves: Vec<Leaf> = self.vacant.iter().filter_map(|vacant| self.leaf_of(vacant)).collect();
        for leaf in &leaves {
            // What the leaf does not end, the sweep does.
            let _ = leaf.kill();
        }
        self.reap();
        let strays = self.strays();
        for stray in &strays {
            signal_exact(stray, Signal::KILL);
        }
        self.reap();
        // Whose parent ended during a pass has moved up behind it, and was not seen: only a second one is sure.
        if !strays.is_empty() || !self.strays().is_empty() {
            return;
        }
        for leaf in &leaves {
            let _ = leaf.remove();
        }
        for mut vacant in std::mem::take(&mut self.vacant) {
            self.learn_fact(&mut vacant);
            self.finish(&vacant);
        }
    }

    fn leaf_of(&self, vacant: &Vacant) -> Option<Leaf> {
        let parent = self.context.cgroups.as_ref()?;
        Leaf::open(&parent.path.join(parent.leaf_name(vacant.supervisor))).ok()
    }

    /// Processes of vacant commands: children that are no supervisors, in whatever state, since one may be dead and its
    /// threads not; with what descends from them and lives; for commands that were adopted, what carries their id in its environment.
    fn strays(&self) -> Vec<Stat> {
        let charges: Vec<u32> = self.charges.values().map(|charge| charge.pid).collect();
        let mut found = Vec::new();
        if self.vacant.iter().any(|vacant| vacant.own_child) {
            let children = proc::children(std::process::id()).unwrap_or_default();
            for pid in children.into_iter().filter(|pid| !charges.contains(pid)) {
                found.extend(proc::stat(pid).ok().flatten());
                found.extend(proc::descendants(pid).unwrap_or_default());
            }
        }
        for vacant in self.vacant.iter().filter(|vacant| !vacant.own_child) {
            let id = vacant.draft.id.to_string();
            let marked = proc::find_by_environ("OUTLAST_WORK_ID", &id).unwrap_or_default();
            found.extend(marked.into_iter().filter(Stat::is_live));
        }
        found
    }

    /// What any holder of a descriptor can still learn of a leader that another process reaped.
    fn learn_fact(&self, vacant: &mut Vacant) {
        if vacant.fact.is_some() {
            return;
        }
        let opened = vacant.draft.leader.as_ref().and_then(|leader| mark::open(leader).ok().flatten());
        let Some(fd) = vacant.leader.take().or(opened) else { return };
        let status = pidfd::exit_status(&fd).ok().flatten();
        let status = status.or_else(|| proc::zombie_status(vacant.leader_id()?.0).ok().flatten());
        vacant.fact = status.and_then(|status| match (status.code(), status.signal()) {
            (Some(code), _) => Some(Fact::Exited(code)),
            (None, Some(signal)) => Some(Fact::Signaled(signal)),
            (None, None) => None,
        });
    }

    fn finish(&mut self, vacant: &Vacant) {
        let mut exit = vacant.final_record();
        let kept = self.context.dir().cloned().map(|session| write(&session, vacant, &mut exit));
        let kept = match kept {
            Some(Ok(())) => true,
            Some(Err(reason)) => {
                exit.errors.push(format!("the end could not be recorded: {reason}"));
                false
            }
            None => false,
        };
        self.finished.insert(exit.id, (!kept).then_some(exit));
    }
}

/// Whether nothing of a command is left to be written: its end is, or it never had records.
fn is_settled(session: &SessionDir, id: CommandId) -> bool {
    match session.command(id) {
        Ok(Some(dir)) => matches!(dir.has_exit(), Ok(true)) || matches!(dir.verdict(), Ok(Some(_))),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Writes the end of a vacant command into its directory, which is made if it has none.
fn write(session: &SessionDir, vacant: &Vacant, exit: &mut ExitRecord) -> Result<(), String> {
    let tell = |error: outlast_host::dir::FileError| error.to_string();
    // Its supervisor may have put its directory in place and died before it could say so.
    let found = session.command(exit.id).map_err(tell)?;
    let Some(dir) = found else {
        if vacant.told {
            return Ok(());
        }
        if vacant.materialised {
            return Err("its directory is gone".into());
        }
        let new = session.new_command(exit.id).map_err(tell)?;
        exit.alias = Some(new.give_alias(session.dir()).map_err(tell)?);
        new.command().write_exit(exit, None).map_err(tell)?;
        return new.publish().map(drop).map_err(tell);
    };
    let Some(_lease) = free_lease(&dir).map_err(tell)? else {
        return Err("its lease is held by another process".into());
    };
    // Somebody who found no keeper may have called it lost before: a command has one end.
    if dir.verdict().map_err(tell)?.is_some() {
        return dir.remove_door().map_err(tell);
    }
    let status = dir.status().map_err(tell)?.map(|status| status.record);
    exit.alias = exit.alias.or(dir.request().map_err(tell)?.map(|request| request.record.alias));
    let found = dir.exit().map_err(tell)?.map(|exit| exit.record);
    let recorded = found.is_some();
    // Each was written when so much had come; behind the last of it the trailer may stand already.
    let known = status.as_ref().map(|status| status.output).into_iter().chain(found.as_ref().map(|exit| exit.output));
    if let Some(known) = known.max_by_key(|output| output.bytes) {
        exit.output = known;
    }
    let mut log = LogWriter::reopen(dir.dir(), &exit.output, exit.cap);
    if let (Ok(log), false) = (&mut log, recorded) {
        log.close();
        exit.output = log.output();
    }
    if !recorded {
        dir.write_exit(exit, None).map_err(tell)?;
    }
    // Where its supervisor died before it heard that the end was shown: whoever was shown it all the same commits that.
    if recorded {
        dir.tell_later().map_err(tell)?;
    }
    let number = found.map_or_else(|| exit.end.exit_code(), |found| found.end.exit_code());
    if let Ok(log) = &mut log {
        exit.output = log.finish(number);
    }
    close_status(&dir, status, exit)?;
    dir.remove_door().map_err(tell)
}

/// The lease of a command whose supervisor is dead. Whoever looks whether it is held holds it for that moment, of which
/// nothing tells: it is tried again for a while.
fn free_lease(dir: &CommandDir) -> Result<Option<Lock>, FileError> {
    for _ in 0..LEASE_TRIES {
        if let Some(lease) = dir.try_lease(&own_mark())? {
            return Ok(Some(lease));
        }
        // A wait for nothing is a pause; one that is cut short is as good.
        let _ = rustix::event::poll(&mut [], Some(&LEASE_PAUSE));
    }
    Ok(None)
}

fn close_status(dir: &CommandDir, status: Option<StatusRecord>, exit: &ExitRecord) -> Result<(), String> {
    let Some(mut status) = status else { return Ok(()) };
    status.phase = Phase::Ended;
    status.capturing = false;
    status.demoted_at_ms = status.demoted_at_ms.or(exit.demoted_at_ms);
    status.output = exit.output;
    dir.write_status(&status).map_err(|error| error.to_string())
}
