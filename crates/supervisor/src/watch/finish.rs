//! The end of a command: what is in the pipes, the exit record, whom to tell, the trailer.

use std::time::Duration;

use outlast_core::ending::{Clock, End, Resource};
use outlast_core::lifecycle::Cause;
use outlast_core::names::{PROCESS_CHARACTERS, shorten};
use outlast_core::notice::{Bound, limit_sentence};
use outlast_core::record::{ExitRecord, Fate, Survivor};
use outlast_core::wire::{DemotedBy, FromSupervisor, ToOwnKeeper};
use outlast_host::sys::reap;
use outlast_host::{clock, proc};

use super::Watch;
use crate::limits::Cage;
use crate::tree;

/// Turns of reading before the end is recorded although more still comes.
const LAST_READS: usize = 64;

impl Watch<'_> {
    /// Drains, writes the exit record, and tells it: in this order, so that whoever has seen the end
    /// finds it recorded.
    pub(super) fn record(&mut self) {
        let alive = reap::has_children();
        self.drain(alive);
        let survivors = self.name_survivors(alive);
        if !survivors.is_empty() && self.records.is_none() {
            self.records_for_survivors();
        }
        if !alive {
            self.capture.close();
        }
        let mut exit = self.final_record(survivors);
        exit.tracked = self.tracked();
        exit.told = exit.demoted;
        if let Some(records) = &mut self.records
            && let Err(error) = records.write_exit(&exit)
        {
            exit.errors.push(format!("the end could not be recorded: {error}"));
            self.errors.push(error);
        }
        self.trace_masked();
        self.exit = Some(exit.clone());
        // What is told next must be what the keeper says too, should this process die over it.
        let unwritten = self.records.is_none().then(|| Box::new(exit.clone()));
        self.post.tell_keeper(&ToOwnKeeper::Recorded { exit: unwritten }, None);
        self.tell_end(exit);
    }

    /// Reads what is in the pipes; all of it where nobody is left to write.
    fn drain(&mut self, alive: bool) {
        let turns = if alive { 1 } else { LAST_READS };
        for number in 0..2 {
            for _ in 0..turns {
                if !self.read_pipe(number, u64::MAX) {
                    break;
                }
            }
            if !alive {
                self.pass_on(|capture, sink| capture.unveil(number, sink));
            }
        }
        if self.records.is_none() && self.capture.overflows() {
            self.overflow();
        }
        self.store_for_the_many();
    }

    fn name_survivors(&self, alive: bool) -> Vec<Survivor> {
        if !alive {
            return Vec::new();
        }
        let fate = if self.signals_sent > 0 { Fate::Unstoppable } else { Fate::Kept };
        tree::survivors().into_iter().map(|survivor| Survivor { fate, ..survivor }).collect()
    }

    /// Survivors of a foreground command stay under its id, so it gets records; where none can be made
    /// the survivors are ended, because nobody could address them.
    fn records_for_survivors(&mut self) {
        self.overflow();
        if self.records.is_none() {
            self.errors.push("without records the survivors could not be kept: they were killed".into());
            self.sweep();
        }
    }

    fn final_record(&self, survivors: Vec<Survivor>) -> ExitRecord {
        let evidence = self.post.cage.as_ref().and_then(Cage::evidence);
        let end = self.life.end(evidence).unwrap_or(End::Lost);
        let mut exit = self.draft_now();
        exit.limit = self.limit_text(&end);
        exit.end = end;
        exit.ended_at_ms = self.ended_at_ms.unwrap_or_else(clock::unix_ms);
        exit.duration_ms = millis(self.life.elapsed(clock::monotonic()));
        let killed = self.life.killed_survivors();
        exit.survivors = match (killed, survivors.is_empty()) {
            (true, true) => self.killed.clone(),
            _ => survivors,
        };
        exit
    }

    fn limit_text(&self, end: &End) -> Option<String> {
        self.limit.clone().or_else(|| match end {
            End::Limit { resource, .. } => Some(limit_sentence(self.bound_of(*resource))),
            _ => None,
        })
    }

    /// Keeps in words which limit ends it and what was alive then, before anything is signalled.
    pub(super) fn note_limit(&mut self) {
        if self.life.killed_survivors() && self.killed.is_empty() {
            self.killed = tree::survivors().into_iter().map(|one| Survivor { fate: Fate::Killed, ..one }).collect();
        }
        if self.limit.is_some() {
            return;
        }
        let limits = &self.request.limits;
        let time = |ms: Option<u64>| Duration::from_millis(ms.unwrap_or(0));
        let bound = match self.life.cause() {
            Some(Cause::Clock(Clock::Wall)) => Bound::Wall(time(limits.wall_ms)),
            Some(Cause::Clock(Clock::Idle)) => Bound::Idle(time(limits.idle_ms)),
            Some(Cause::Clock(Clock::Ttl)) => Bound::TimeToLive(time(self.request.ttl_ms())),
            Some(Cause::Resource(resource)) => self.bound_of(*resource),
            Some(Cause::Stop { .. } | Cause::SessionEnd) | None => return,
        };
        let alive = self.alive_then();
        let alive = if alive.is_empty() { String::new() } else { format!("; alive then: {}", alive.join(", ")) };
        self.limit = Some(format!("{}{alive}", limit_sentence(bound)));
    }

    fn bound_of(&self, resource: Resource) -> Bound {
        let limits = &self.request.limits;
        match resource {
            Resource::Memory => Bound::Memory(limits.memory.unwrap_or(0)),
            Resource::Pids => Bound::Pids(limits.pids.unwrap_or(0)),
            Resource::FileSize => Bound::FileSize(limits.file_size.unwrap_or(0)),
            Resource::Cpu => Bound::Cpu(Duration::from_secs(limits.cpu_s.unwrap_or(0))),
            Resource::Output => Bound::Output(self.request.cap.head + self.request.cap.tail),
        }
    }

    /// The command lines of what is alive, the wrapping shell left out.
    fn alive_then(&self) -> Vec<String> {
        let whole = self.request.line();
        let found = proc::descendants(std::process::id()).unwrap_or_default();
        let lines = found.iter().filter_map(|stat| proc::cmdline(stat.pid, 4 * PROCESS_CHARACTERS).ok().flatten());
        let shown = |line: String| self.redactor.as_ref().map_or(line.clone(), |redactor| redactor.text(&line));
        lines
            .map(shown)
            .filter(|line| *line != whole && !line.is_empty())
            .take(8)
            .map(|line| shorten(&line, PROCESS_CHARACTERS))
            .collect()
    }

    /// The held output to the callers of a command without records, and the end to everyone.
    fn tell_end(&mut self, exit: ExitRecord) {
        self.show_end_to_callers(&exit);
        let materialised = self.records.is_some();
        self.clients.tell(&FromSupervisor::Ended { exit: Box::new(exit), materialised });
        // Once it is in the background nobody has to confirm: what is pending is on disk.
        if self.is_demoted() {
            self.told = true;
            self.callers.clear();
        }
        if self.callers.is_empty() && !self.told {
            self.demote_late();
        }
    }

    /// The caller vanished between the end and its word that it was shown: the end becomes a completion.
    pub(super) fn demote_late(&mut self) {
        self.told = true;
        let Some(mut exit) = self.exit.clone() else { return };
        if self.records.is_none() {
            self.overflow();
        }
        self.demoted_at_ms = Some(clock::unix_ms());
        (exit.demoted, exit.told) = (true, true);
        exit.demoted_at_ms = self.demoted_at_ms;
        exit.output = self.capture.output();
        let Some(records) = &mut self.records else {
            self.give_up_records();
            return;
        };
        exit.alias = Some(records.alias);
        let written = match records.dir.has_exit() {
            Ok(true) => records.amend_exit(&exit),
            Ok(false) | Err(_) => records.write_exit(&exit),
        };
        if let Err(error) = written {
            self.errors.push(error);
        }
        self.exit = Some(exit);
        self.trace_late();
        if self.life.stage() == outlast_core::lifecycle::Stage::Over {
            self.close();
        }
    }

    fn trace_late(&mut self) {
        self.demote(DemotedBy::CallerGone);
    }

    /// Nothing of the tree is left: the log gets its trailer, and it is told that nothing more comes.
    pub(super) fn close(&mut self) {
        self.capture.close();
        let number = self.exit.as_ref().and_then(|exit| exit.end.exit_code());
        if self.records.is_some() {
            let output = self.capture.output();
            if output.gap.is_some() || self.exit.as_ref().is_some_and(|exit| exit.output != output) {
                // Readers must know the gap before the tail is moved over it, and whoever finishes the log for a dead
                // supervisor where the output ended and the trailer begins.
                self.publish_status(true);
            }
            self.capture.finish(number);
            self.trace_masked();
            self.publish_status(false);
        }
        self.give_up_records();
        let output = self.capture.output();
        if let Some(records) = &mut self.records {
            records.give_back();
        }
        self.clients.tell(&FromSupervisor::CaptureClosed { output });
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
