//! Who was told of which end, and how often: once for each consumer.

use std::collections::BTreeSet;

use outlast_testkit::{Json, Output, World};
use serde_json::Value;

use crate::calls::{Told, What};
use crate::plan::CONSUMERS;

/// One telling of one end to one consumer.
#[derive(Debug)]
struct Telling {
    consumer: &'static str,
    id: String,
    /// Told by `inbox`, which tells only what is new.
    as_news: bool,
    /// The call that told it ended well, so that it could say that it had told it.
    well: bool,
    /// The call said that this may have been told before.
    again: bool,
}

/// A call that may have told an end and died, or failed, before it could say so.
#[derive(Debug)]
struct Broken {
    consumer: &'static str,
    /// The command that it was made for; none: all of them.
    of: Option<String>,
}

/// All tellings of a round.
#[derive(Debug, Default)]
pub struct Tellings {
    all: Vec<Telling>,
    broken: Vec<Broken>,
}

impl Tellings {
    /// Those of the calls of a storm.
    pub fn of(told: &[Told]) -> Tellings {
        let mut all = Tellings::default();
        for one in told {
            all.note_broken(one);
            let Some(object) = one.object() else { continue };
            let well = !one.killed && one.excuse.is_none();
            match &one.what {
                What::Inbox(consumer) => all.add_news(consumer, &object, well),
                What::Wait(_, consumer) => all.add_ends(consumer, &object, well),
                What::Stop(_) => all.add_ends(CONSUMERS[0], &object, well),
                What::Run(_) if !one.hands_out() => all.add_ends(CONSUMERS[0], &object, well),
                What::Run(_) | What::Send => {}
            }
        }
        all
    }

    /// Only the death of who tells excuses that an end is told again, and never that of a keeper or a supervisor: a claim
    /// belongs to the call that took it.
    fn note_broken(&mut self, one: &Told) {
        if !one.killed && (one.excuse.is_none() || one.output.code == Some(0)) {
            return;
        }
        self.broken.extend(match &one.what {
            What::Inbox(consumer) => Some(Broken { consumer, of: None }),
            What::Wait(id, consumer) => Some(Broken { consumer, of: Some(id.clone()) }),
            What::Stop(id) => Some(Broken { consumer: CONSUMERS[0], of: id.clone() }),
            What::Run(_) | What::Send => None,
        });
    }

    fn was_broken(&self, consumer: &str, id: &str) -> bool {
        self.broken.iter().any(|one| one.consumer == consumer && one.of.as_deref().is_none_or(|of| of == id))
    }

    /// Adds what a `wait` or a `stop` has told a consumer.
    pub fn read(&mut self, consumer: &'static str, output: &Output) {
        if let Ok(object) = serde_json::from_slice(&output.stdout) {
            self.add_ends(consumer, &object, true);
        }
    }

    fn add_news(&mut self, consumer: &'static str, object: &Value, well: bool) {
        for entry in object["completions"].as_array().into_iter().flatten() {
            let id = entry["id"].as_str().unwrap_or_default().to_owned();
            let again = entry["redelivered"] != false;
            self.all.push(Telling { consumer, id, as_news: true, well, again });
        }
    }

    fn add_ends(&mut self, consumer: &'static str, object: &Value, well: bool) {
        let many = object["commands"].as_array();
        for entry in many.map_or(vec![object], |all| all.iter().collect()) {
            if entry["phase"] == "ended" {
                let id = entry["id"].as_str().unwrap_or_default().to_owned();
                self.all.push(Telling { consumer, id, as_news: false, well, again: false });
            }
        }
    }

    /// Asks for all that is left to be told, and holds everything against the commands that are over.
    pub fn judge(&mut self, world: &World, listed: &[Json], torn: bool) {
        let is_due =
            |one: &&Json| one.str("/phase") == "ended" && (one.bool("/demoted") || one.str("/end/kind") == "lost");
        let due: BTreeSet<String> = listed.iter().filter(is_due).map(|one| one.str("/id").to_owned()).collect();
        let over: BTreeSet<String> =
            listed.iter().filter(|one| one.str("/phase") == "ended").map(|one| one.str("/id").to_owned()).collect();
        for consumer in CONSUMERS {
            self.ask(world, consumer);
        }
        for consumer in CONSUMERS {
            for id in &due {
                let told = self.all.iter().any(|one| one.consumer == consumer && one.id == *id);
                assert!(told, "{id} was never told to {consumer}: {self:?} of {listed:?}");
            }
        }
        for one in self.all.iter().filter(|one| one.as_news) {
            let known = due.contains(&one.id) || !over.contains(&one.id);
            assert!(known, "{one:?} is no completion: {listed:#?}");
            self.check_repeats(one);
        }
        if !torn {
            let lines = world.trace("completed");
            let pairs: BTreeSet<(&str, &str)> =
                lines.iter().map(|line| (line.str("/id"), line.str("/consumer"))).collect();
            assert_eq!(pairs.len(), lines.len(), "a completion has two lines: {lines:#?}");
        }
    }
    /// Asks for what is left to be told to a consumer, twice; the ids.
    fn ask(&mut self, world: &World, consumer: &'static str) -> BTreeSet<String> {
        let rest = world.outlast(&["inbox", "--ack", "--json", "--consumer", consumer]).ok().json();
        let rest = rest.items("/completions");
        for one in &rest {
            let id = one.str("/id");
            let told = self.all.iter().any(|told| told.consumer == consumer && told.well && told.id == id);
            assert!(!told || one.bool("/redelivered"), "{id} was told to {consumer} and is told again: {self:?}");
        }
        for one in &rest {
            let (id, again) = (one.str("/id").to_owned(), one.bool("/redelivered"));
            self.all.push(Telling { consumer, id, as_news: true, well: true, again });
        }
        let more = world.acked(consumer);
        assert!(more.is_empty(), "told twice to {consumer}: {more:#?}");
        rest.iter().map(|one| one.str("/id").to_owned()).collect()
    }

    /// A telling as news is the only one by a call that ended well, and one that says that it may be a repeat has a call
    /// before it that was killed or failed.
    fn check_repeats(&self, one: &Telling) {
        let (consumer, id) = (one.consumer, &one.id);
        let same = self.all.iter().filter(|other| other.as_news && other.consumer == consumer && other.id == *id);
        let news = same.filter(|other| other.well).count();
        assert!(news <= 1, "{id} was told {news} times to {consumer}: {self:?}");
        let excused = !one.again || self.was_broken(consumer, id);
        assert!(excused, "{id} is told to {consumer} as a repeat, and no call broke over it: {self:?}");
    }

    /// Asks once more, when more commands are over: `expected` of them were told to nobody, and must be told now, each
    /// once, to each consumer but `aware`, who knows.
    pub fn judge_later(&mut self, world: &World, expected: &BTreeSet<String>, aware: Option<&str>) {
        for consumer in CONSUMERS {
            let told = self.ask(world, consumer);
            let due = if aware == Some(consumer) { BTreeSet::new() } else { expected.clone() };
            assert_eq!(told, due, "other ends than these are told to {consumer} now: {self:?}");
        }
        self.all.iter().filter(|one| one.as_news).for_each(|one| self.check_repeats(one));
    }
}
