//! What must be true of one command, given what was done to it: the second opinion, which shares nothing with outlast.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::plan::{Act, Starved};
use crate::shapes::OwnEnd;
use crate::storm::Deaths;

/// Everything that was done to one command, and what it says of itself.
#[derive(Debug, Default)]
pub struct Facts {
    /// How often its line began to run.
    pub ran: usize,
    /// How often its line came to its end.
    pub done: usize,
    /// Whether its supervisor was killed.
    pub supervisor_dead: bool,
    /// Whether the keeper of that supervisor was killed.
    pub keeper_dead: bool,
    /// Whether its leader was killed.
    pub leader_dead: bool,
    /// Whether somebody asked to stop it.
    pub stopped: bool,
    /// Whether its session was ended while it ran.
    pub session_ended: bool,
}

impl Facts {
    /// Gathers them for a command with this id and supervisor, as far as these are known.
    pub fn of(work: &Path, act: &Act, id: &str, supervisor: Option<i32>, deaths: &Deaths) -> Facts {
        let read = |kind: &str| fs::read_to_string(work.join(format!("{kind}.{}", act.label))).unwrap_or_default();
        let ran = read("ran");
        let watchers = ran.lines().filter_map(|line| line.split(' ').nth(1)?.parse().ok());
        let watchers: Vec<i32> = watchers.chain(supervisor).collect();
        let is_orphan = |pid: &i32| {
            deaths.orphans.contains(pid)
                || deaths.supervisors.get(pid).is_some_and(|keeper| deaths.keepers.contains(keeper))
        };
        // Of a command that nobody can name a watcher of, anybody may have been the one; where several callers started
        // several commands, the lines of evidence do not say whose they are.
        let unknown = watchers.is_empty() || act.callers > 1 && supervisor.is_none();
        Facts {
            ran: ran.lines().count(),
            done: read("done").lines().count(),
            supervisor_dead: watchers.iter().any(|pid| deaths.supervisors.contains_key(pid))
                || unknown && !deaths.supervisors.is_empty(),
            keeper_dead: watchers.iter().any(is_orphan) || unknown && !deaths.keepers.is_empty(),
            leader_dead: deaths.leaders.contains(id),
            stopped: false,
            session_ended: false,
        }
    }

    /// Why a command cannot have ended so, if it cannot. `end` is the object that outlast shows.
    pub fn objection(&self, act: &Act, end: &Value) -> Option<String> {
        let word = |name: &str| end[name].as_str().unwrap_or_default();
        let (kind, by, signal, code) = (word("kind"), word("by"), word("signal"), end["code"].as_i64());
        let own = act.shape.own_end.code();
        let by_itself = code.is_some() && code == own && self.done > 0;
        let starved = act.starved.is_some();
        let holds = match (kind, by) {
            ("exited", _) => by_itself || starved && code.is_some(),
            ("signaled", _) => self.leader_dead && signal == "KILL" || starved && code.is_none(),
            ("stopped", "supervisor_lost") => {
                // KILL is what the kernel and the keeper send when a supervisor dies; before it PIPE meets a leader that
                // writes, and HUP one at a terminal. None: nobody saw it. TERM: it was being stopped just then.
                let known = ["KILL", "PIPE", "HUP", ""].contains(&signal) || self.is_ending() && signal == "TERM";
                self.supervisor_dead && known && code.is_none()
            }
            ("stopped", "model") => self.stopped && (by_itself || code.is_none() && ["TERM", "KILL"].contains(&signal)),
            ("abandoned", _) => self.session_ended && (by_itself || code.is_none()),
            ("lost", _) => self.supervisor_dead && self.keeper_dead,
            ("spawn_failed", _) => starved,
            ("limit", _) => matches!(act.starved, Some(Starved::FileSize(_))) && word("detail") == "file_size",
            _ => false,
        };
        (!holds).then(|| format!("{} ({}, {self:?}) cannot have ended as {end}", act.label, act.shape.name))
    }

    fn is_ending(&self) -> bool {
        self.stopped || self.session_ended
    }

    /// Why the output that was kept cannot be what the command wrote, if it cannot. `shown` is the object that outlast
    /// shows, `raw` the bytes that it gives.
    pub fn output_objection(&self, act: &Act, shown: &Value, raw: &[u8], was_full: bool) -> Option<String> {
        let wrote = act.shape.output?();
        let whole = shown["end"]["kind"] == "exited" && self.done > 0 && !self.supervisor_dead;
        if act.starved.is_some() || self.supervisor_dead && act.shape.own_end == OwnEnd::OnceSent(8) {
            return None;
        }
        let (gap, total) = (&shown["output"]["gap"], shown["output"]["bytes"].as_u64().unwrap_or(0));
        let number = |name: &str| gap[name].as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
        let (from, to) = (number("offset"), number("offset") + number("bytes"));
        let fault = |what: &str| {
            let (ours, theirs) = (wrote.len(), raw.len());
            Some(format!(
                "{} ({}): {what}; it wrote {ours} bytes, {theirs} are there, gap {gap}",
                act.label, act.shape.name
            ))
        };
        if whole && total != wrote.len() as u64 {
            return fault(&format!("another count of bytes, {total}"));
        }
        if was_full {
            let said = !shown["errors"].as_array().is_none_or(Vec::is_empty);
            return if whole && raw != wrote && !said && gap.is_null() {
                fault("bytes are missing in silence")
            } else {
                None
            };
        }
        if gap.is_null() {
            return match whole {
                true if raw != wrote => fault("other bytes"),
                false if !wrote.starts_with(raw) => fault("bytes that it did not write"),
                _ => None,
            };
        }
        let Some(cap) = act.shape.cap else { return fault("a gap without a cap") };
        if to > wrote.len() || raw.len() < cap / 2 || raw.len() > cap + 4096 {
            return fault("a gap that does not fit the cap");
        }
        let kept = [&wrote[..from], &wrote[to..]].concat();
        if whole && raw != kept || !kept.starts_with(raw) { fault("other bytes around the gap") } else { None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::Mode;
    use crate::shapes::SHAPES;

    fn act(shape: &str) -> Act {
        let shape = SHAPES.iter().find(|one| one.name == shape).expect("a shape of that name");
        Act { label: "c0".to_owned(), shape, mode: Mode::Background, callers: 1, starved: None, left: false }
    }

    fn end(kind: &str, code: Option<i64>, signal: Option<&str>, by: Option<&str>) -> Value {
        json!({"kind": kind, "code": code, "signal": signal, "detail": null, "by": by})
    }

    #[test]
    fn an_end_needs_its_reason() {
        let (fails, endless) = (act("fails"), act("endless"));
        let calm = Facts { ran: 1, done: 1, ..Facts::default() };
        let stopped = Facts { ran: 1, stopped: true, ..Facts::default() };
        let orphan = Facts { ran: 1, supervisor_dead: true, ..Facts::default() };
        let alone = Facts { keeper_dead: true, ..Facts { ran: 1, supervisor_dead: true, ..Facts::default() } };
        let may = |facts: &Facts, act: &Act, end: Value| facts.objection(act, &end).is_none();
        assert!(may(&calm, &fails, end("exited", Some(3), None, None)));
        assert!(!may(&calm, &fails, end("exited", Some(0), None, None)), "another code");
        assert!(!may(&Facts::default(), &fails, end("exited", Some(3), None, None)), "it never came to its end");
        assert!(!may(&calm, &fails, end("lost", None, None, None)), "nobody was killed");
        assert!(!may(&orphan, &fails, end("lost", None, None, None)), "its keeper lived");
        assert!(may(&alone, &fails, end("lost", None, None, None)));
        assert!(may(&orphan, &endless, end("stopped", None, Some("KILL"), Some("supervisor_lost"))));
        assert!(!may(&calm, &endless, end("stopped", None, Some("KILL"), Some("supervisor_lost"))));
        assert!(may(&stopped, &endless, end("stopped", None, Some("TERM"), Some("model"))));
        assert!(!may(&calm, &endless, end("stopped", None, Some("TERM"), Some("model"))), "nobody asked");
        assert!(!may(&calm, &endless, end("signaled", None, Some("KILL"), None)), "its leader was not killed");
        assert!(!may(&calm, &endless, end("abandoned", None, Some("TERM"), None)), "its session goes on");
    }

    #[test]
    fn output_is_what_was_written_or_its_gap_is_named() {
        let calm = Facts { ran: 1, done: 1, ..Facts::default() };
        let shown = |bytes: u64, gap: Value| json!({"end": {"kind": "exited"}, "errors": [], "output": {"bytes": bytes, "gap": gap}});
        let objects = |act: &Act, shown: Value, raw: &[u8]| calm.output_objection(act, &shown, raw, false).is_some();
        assert!(!objects(&act("fails"), shown(4, Value::Null), b"out\n"));
        assert!(objects(&act("fails"), shown(4, Value::Null), b"out"), "a byte is missing");
        assert!(objects(&act("fails"), shown(3, Value::Null), b"out\n"), "another count");
        let capped = act("capped");
        let wrote = capped.shape.output.expect("it prints")();
        let kept = [&wrote[..16_384], &wrote[wrote.len() - 49_152..]].concat();
        let gap = json!({"offset": 16_384, "bytes": wrote.len() - 65_536, "on_disk": 40});
        let total = wrote.len() as u64;
        assert!(!objects(&capped, shown(total, gap.clone()), &kept));
        assert!(objects(&capped, shown(total, gap), &kept[1..]));
        assert!(objects(&capped, shown(total, Value::Null), &kept), "the gap is not named");
    }
}
