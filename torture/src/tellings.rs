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
    /// The call ended well and did not say that this may have been told before.
    firm: bool,
}

/// All tellings of a round.
#[derive(Debug, Default)]
pub struct Tellings(Vec<Telling>);

impl Tellings {
    /// Those of the calls of a storm.
    pub fn of(told: &[Told]) -> Tellings {
        let mut all = Tellings::default();
        for one in told {
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

    /// Adds what a `wait` or a `stop` has told a consumer.
    pub fn read(&mut self, consumer: &'static str, output: &Output) {
        if let Ok(object) = serde_json::from_slice(&output.stdout) {
            self.add_ends(consumer, &object, true);
        }
    }

    fn add_news(&mut self, consumer: &'static str, object: &Value, well: bool) {
        for entry in object["completions"].as_array().into_iter().flatten() {
            let id = entry["id"].as_str().unwrap_or_default().to_owned();
            let firm = well && entry["redelivered"] == false;
            self.0.push(Telling { consumer, id, as_news: true, firm });
        }
    }

    fn add_ends(&mut self, consumer: &'static str, object: &Value, well: bool) {
        let many = object["commands"].as_array();
        for entry in many.map_or(vec![object], |all| all.iter().collect()) {
            if entry["phase"] == "ended" {
                let id = entry["id"].as_str().unwrap_or_default().to_owned();
                self.0.push(Telling { consumer, id, as_news: false, firm: well });
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
            let before: BTreeSet<&str> =
                self.0.iter().filter(|one| one.consumer == consumer && one.firm).map(|one| one.id.as_str()).collect();
            let rest = world.outlast(&["inbox", "--ack", "--json", "--consumer", consumer]).ok().json();
            for one in rest.items("/completions") {
                let id = one.str("/id");
                let told = before.contains(id) && !one.bool("/redelivered");
                assert!(!told, "{id} was told to {consumer} and is told again: {self:?}");
            }
            self.add_news(consumer, &rest.0, true);
            let again = world.acked(consumer);
            assert!(again.is_empty(), "told twice to {consumer}: {again:#?}");
        }
        for consumer in CONSUMERS {
            for id in &due {
                let of = || self.0.iter().filter(|one| one.consumer == consumer && one.id == *id);
                let news = of().filter(|one| one.as_news && one.firm).count();
                assert!(news <= 1, "{id} was told {news} times to {consumer}: {self:?}");
                assert!(of().count() >= 1, "{id} was never told to {consumer}: {self:?} of {listed:?}");
            }
        }
        for one in self.0.iter().filter(|one| one.as_news) {
            let known = due.contains(&one.id) || !over.contains(&one.id);
            assert!(known, "{one:?} is no completion: {listed:#?}");
        }
        if !torn {
            let lines = world.trace("completed");
            let pairs: BTreeSet<(&str, &str)> =
                lines.iter().map(|line| (line.str("/id"), line.str("/consumer"))).collect();
            assert_eq!(pairs.len(), lines.len(), "a completion has two lines: {lines:#?}");
        }
    }
}
