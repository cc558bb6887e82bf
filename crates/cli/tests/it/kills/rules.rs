//! What must hold whoever was killed: every command has its true end or is lost for a named reason, every
//! end is told once, every record parses, and nothing is left.

use std::collections::BTreeSet;
use std::fs;

use super::shapes::Shape;
use super::victims::{Dead, holds_id};
use crate::support::*;

/// One call of `run` that happened while somebody was killed.
pub struct Act {
    /// Its label, by which its record is found when its id was never told.
    pub label: &'static str,
    pub shape: &'static Shape,
    pub dead: Dead,
    /// What the front end printed.
    pub told: Output,
}

impl Act {
    /// The arguments of the call.
    pub fn words(label: &str, shape: &Shape, options: &[&str]) -> Vec<String> {
        let line = format!("echo $$ >>ran.{label}; {}", shape.line);
        let own = ["run", "--json", "--consumer", "model", "--label", label];
        own.iter().chain(shape.options).chain(options).copied().chain(["-c", &line]).map(str::to_owned).collect()
    }

    /// The object that the front end printed before it ended, if it came that far.
    fn object(&self) -> Option<Json> {
        serde_json::from_str(&self.told.text()).ok().map(Json)
    }

    /// Whether the front end lived to tell, and told an end in place of handing out an id.
    fn told_end(&self) -> Option<Json> {
        self.object().filter(|told| !self.dead.front && !self.hands_out() && told.str("/phase") == "ended")
    }

    /// Whether the front end handed out an id, which is no telling of an end, whatever has become of it meanwhile.
    fn hands_out(&self) -> bool {
        self.told.code == Some(75) || self.is_of_the_background() && self.told.code == Some(0)
    }

    fn is_of_the_background(&self) -> bool {
        self.told.args.iter().any(|word| word == "-b")
    }

    /// Why this end cannot be, if it cannot.
    fn objection(&self, end: &Json, stopped: bool) -> Option<String> {
        let text = |pointer: &str| end.at(pointer).as_str().unwrap_or_default().to_owned();
        let (kind, by, signal) = (text("/end/kind"), text("/end/by"), text("/end/signal"));
        let dead = self.dead;
        let number = end.at("/end/code").as_i64();
        let holds = match (kind.as_str(), by.as_str()) {
            ("exited", _) => self.shape.code.is_some() && number == self.shape.code,
            ("signaled", _) => dead.leader && signal == "KILL",
            // KILL is what PDEATHSIG and the keeper send; before it PIPE meets a leader that wrote after the death of
            // its reader, and HUP one whose terminal is gone. Without any of them nobody saw the leader: the keeper
            // that adopted its supervisor cannot reap it, or its supervisor died before it named it.
            ("stopped", "supervisor_lost") => {
                dead.supervisor && matches!(signal.as_str(), "KILL" | "PIPE" | "HUP" | "") && number.is_none()
            }
            ("stopped", "model") => stopped && self.shape.code.is_none() && ["TERM", "KILL"].contains(&signal.as_str()),
            ("lost", _) => dead.supervisor && dead.keeper,
            _ => false,
        };
        (!holds).then(|| format!("{} ({dead:?}) cannot have ended so: {:#}", self.shape.name, end.at("/end")))
    }
}

/// Holds every rule against a world in which `acts` happened, and ends its session.
#[track_caller]
pub fn judge(world: &World, acts: &[Act]) {
    let ended = judge_acts(world, acts);
    judge_rest(world, &ended);
}

/// Holds every rule against what became of `acts`, and tells the records of all that ended.
#[track_caller]
pub fn judge_acts(world: &World, acts: &[Act]) -> Vec<Json> {
    every_file_parses(world);
    let told_inline: Vec<Json> = acts.iter().filter_map(Act::told_end).collect();
    let pending = world.outlast(&["inbox", "--consumer", "model", "--json"]).ok().json().each("/completions", "/id");
    for told in &told_inline {
        assert!(!pending.iter().any(|id| id == told.str("/id")), "told by the run and pending too: {told:?}");
    }
    let completed = world.trace("completed");
    for id in acts.iter().filter(|act| act.hands_out()).filter_map(Act::object) {
        let by_the_run = |line: &&Json| line.str("/id") == id.str("/id") && line.str("/delivered_via") == "wait";
        let told = completed.iter().find(by_the_run);
        assert!(told.is_none(), "its id was handed out, and its end counts as told: {told:?}");
    }
    let of_the_background = acts.iter().filter(|act| act.is_of_the_background() && !act.dead.front);
    for act in of_the_background.filter(|act| act.object().is_some_and(|told| told.bool("/demoted"))) {
        assert!(act.hands_out(), "what runs in the background is handed out, however it goes on: {:?}", act.told);
    }
    for act in acts {
        settle(world, act);
    }
    let ended = world.list();
    told_once(world, &ended);
    nothing_unknown_lives(world);
    every_file_parses(world);
    ended
}

/// The session goes on, and ends as any other.
#[track_caller]
pub fn judge_rest(world: &World, ended: &[Json]) {
    the_session_goes_on(world, ended);
    end_session(world, ended);
}

/// The record of an act, if it has one.
fn record_of(world: &World, act: &Act) -> Option<Json> {
    let mut found: Vec<Json> =
        world.list().into_iter().filter(|one| one.at("/label").as_str() == Some(act.label)).collect();
    assert!(found.len() <= 1, "{} has two records: {found:#?}", act.label);
    found.pop()
}

/// Whether a watcher has a command of which nothing is on disk yet.
fn is_undecided(world: &World) -> bool {
    let open = |one: &&Json| one.str("/phase") != "ended" || !one.items("/survivors").is_empty();
    let known = world.list().iter().filter(open).count();
    let doctor = world.outlast(&["doctor"]).text();
    let keeping =
        doctor.split(" answers and keeps ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    let cast = Cast::of(world);
    match keeping {
        Some(count) => count > known,
        None => !cast.keepers.is_empty() || cast.supervisors.len() > known,
    }
}

/// Brings one command to its end and holds that against what can have happened.
#[track_caller]
fn settle(world: &World, act: &Act) {
    let told = act.object();
    assert!(told.is_some() || act.dead.front, "the front end lived and told nothing: {:?}", act.told);
    if act.dead.front {
        world.wait_until("a command whose front end was killed is on disk or nowhere", || !is_undecided(world));
    }
    let Some(record) = record_of(world, act) else {
        if let Some(told) = told {
            assert_eq!(told.str("/phase"), "ended", "an id was handed out and nothing is known of it: {told:?}");
            assert_eq!(act.objection(&told, false), None);
            world.outlast(&["status", told.str("/id")]).exits(3);
        }
        ran(world, act, false);
        return;
    };
    let id = record.str("/id");
    if let Some(told) = &told {
        assert_eq!(told.str("/id"), id, "the record of another launch");
    }
    if act.shape.code.is_none() {
        let stopped = world.outlast(&["stop", id, "--grace", "100ms"]);
        assert!(matches!(stopped.code, Some(0 | 1)), "{stopped:?}");
    }
    let waited = world.call(&["wait", id, "--json", "--consumer", "model"]).within(Duration::from_secs(20)).run();
    let end = waited.json();
    assert_eq!(act.objection(&end, act.shape.code.is_none()), None, "told: {told:?}");
    let code = end.at("/exit_code").as_i64().unwrap_or(69);
    assert_eq!(waited.code.map(i64::from), Some(code), "{waited:?}");
    assert_eq!(world.status(id).at("/end"), end.at("/end"), "two looks, two ends");
    if let Some(told) = act.told_end() {
        assert_eq!(told.at("/end"), end.at("/end"), "told one end and recorded another");
    }
    ran(world, act, end.str("/end/kind") == "exited");
    if let (Some(output), "exited", false) = (act.shape.output, end.str("/end/kind"), act.dead.supervisor) {
        assert_eq!(world.raw(id), output(), "another output");
    }
    if let (Some(output), "exited", true) = (act.shape.output, end.str("/end/kind"), act.dead.supervisor)
        && !end.null("/output/log")
    {
        let raw = world.raw(id);
        assert!(output().starts_with(&raw), "bytes that it did not write: {}", String::from_utf8_lossy(&raw));
    }
}

/// The command ran at most once; once if it ended by itself.
#[track_caller]
fn ran(world: &World, act: &Act, exactly: bool) {
    let runs = fs::read_to_string(world.file(&format!("ran.{}", act.label))).unwrap_or_default().lines().count();
    assert!(runs <= 1 && (runs == 1 || !exactly), "{} ran {runs} times", act.label);
}

/// Every end that has to be told is told to a consumer who heard of none, in one call, and never again.
#[track_caller]
fn told_once(world: &World, ended: &[Json]) {
    let due = |one: &&Json| one.bool("/demoted") || one.str("/end/kind") == "lost";
    let expected = ids(&ended.iter().filter(due).cloned().collect::<Vec<_>>());
    assert_eq!(ids(&world.acked("human")), expected, "of {ended:#?}");
    assert!(world.acked("human").is_empty(), "told twice");
    assert!(world.acked("model").is_empty(), "told by the wait and by the inbox");
    let told = world.trace("completed");
    let pairs: BTreeSet<(String, String)> =
        told.iter().map(|line| (line.str("/id").to_owned(), line.str("/consumer").to_owned())).collect();
    assert_eq!(pairs.len(), told.len(), "a completion has two lines: {told:#?}");
    let lost = ids(&world.trace("lost"));
    assert_eq!(lost.iter().collect::<BTreeSet<_>>().len(), lost.len(), "two verdicts: {lost:?}");
}

/// Whoever lives of a command is named as its survivor.
#[track_caller]
fn nothing_unknown_lives(world: &World) {
    let unknown = || {
        let listed = world.list();
        let named = |pid: i32| {
            listed
                .iter()
                .any(|one| one.items("/survivors").iter().any(|survivor| survivor.int("/pid") == i64::from(pid)))
        };
        let all = world.processes();
        all.into_iter().filter(|one| holds_id(one.pid) && !named(one.pid)).collect::<Vec<_>>()
    };
    world.wait_until("every process that lives is named by a record", || unknown().is_empty());
}

/// A new command is served as if nothing had happened, under a number of its own.
#[track_caller]
fn the_session_goes_on(world: &World, ended: &[Json]) {
    let next = world.outlast(&["run", "-b", "--json", "--", "true"]).ok().json();
    let number = |one: &Json| one.str("/alias")[1..].parse::<u32>().expect("an alias is a w and a number");
    let highest = ended.iter().map(number).max().unwrap_or(0);
    assert!(number(&next) > highest, "an alias is used again: {next:?}");
    world.wait(next.str("/id")).ends("exited", 0);
    let lines = fs::read_to_string(world.session_dir(&world.session()).join("aliases")).expect("aliases");
    let named: BTreeSet<&str> = lines.lines().collect();
    assert_eq!(named.len(), lines.lines().count(), "a command has two aliases: {lines}");
}

/// The session ends as any other; the ends stay what they were, and no process is left.
#[track_caller]
fn end_session(world: &World, ended: &[Json]) {
    let words = ["session", "end", &world.session()];
    let first = world.outlast(&words);
    if first.code != Some(0) {
        // Its keeper was killed over it: the end is asked for again.
        assert!(first.code == Some(70) && first.err().contains("keeper"), "{first:?}");
        world.outlast(&words).ok();
    }
    world.wait_until("no process is left", || world.processes().is_empty());
    for before in ended {
        assert_eq!(world.status(before.str("/id")).at("/end"), before.at("/end"), "the end changed its mind");
    }
    every_file_parses(world);
}

/// Every JSON file of the state directory and every line of a trace is whole.
#[track_caller]
pub fn every_file_parses(world: &World) {
    for path in tree(&world.state()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A record may be replaced or its directory published while we look.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let hidden = path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
        if name.ends_with(".json") && !hidden {
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&text);
            let schema = parsed.as_ref().ok().and_then(|value| value["schema"].as_str());
            assert!(schema.is_some(), "{} is torn: {text:?}", path.display());
        } else if name == "trace.jsonl" {
            let whole = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
            // One that was made and not written yet is empty.
            assert!(
                text.lines().all(whole) && (text.is_empty() || text.ends_with('\n')),
                "{} is torn: {text:?}",
                path.display()
            );
        }
    }
}

/// Ends the session of a running command under a watcher that dies over it.
#[track_caller]
pub fn judge_end(world: &World, act: &Act) {
    let told = act.told.json();
    let id = told.str("/id");
    end_session(world, &[]);
    let end = world.wait(id);
    let kind = end.str("/end/kind");
    // The supervisor stops it for the session's end; its keeper says so in its place, if it was told.
    let holds = match kind {
        "abandoned" => matches!(end.at("/end/signal").as_str(), Some("TERM" | "KILL")),
        _ => act.objection(&end, false).is_none(),
    };
    assert!(holds, "{end:?}");
    assert_eq!(world.status(id).at("/end"), end.at("/end"));
    ran(world, act, false);
    every_file_parses(world);
    let closed = fs::read_to_string(world.session_dir(&world.session()).join("closed.json")).expect("a closing report");
    assert!(closed.contains(id), "the report of the end does not name it: {closed}");
}
