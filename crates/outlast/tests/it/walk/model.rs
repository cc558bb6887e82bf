//! What must be true of who was told what, worked out without a line of the product's.

use std::collections::{BTreeMap, BTreeSet};

use outlast::core::id::CommandId;

/// Who may be told.
pub type Consumer = &'static str;

/// One command that went to the background.
pub struct Known {
    /// The gate it waits at; none for one that is joined by nobody and waits for nothing.
    pub gate: Option<u64>,
    pub starter: Consumer,
    pub ended: bool,
    pub pruned: bool,
    told: BTreeSet<Consumer>,
    leased: BTreeSet<Consumer>,
    /// Whether it says that it changes something.
    changes: bool,
    /// Who has consumed what it changed.
    consumed: BTreeSet<Consumer>,
}

/// How the consuming of receipts must come out.
#[derive(Debug, PartialEq, Eq)]
pub enum Receipt {
    Now,
    Before,
    Nothing,
    NotReady,
}

/// How a commit must come out.
#[derive(Debug, PartialEq, Eq)]
pub enum Expected {
    Now,
    Before,
    Elsewhere,
    NotDue,
}

#[derive(Default)]
pub struct Model {
    pub commands: BTreeMap<CommandId, Known>,
    /// Whoever once took or was told something.
    met: BTreeSet<Consumer>,
}

impl Model {
    pub fn began(&mut self, id: CommandId, gate: Option<u64>, starter: Consumer, changes: bool) {
        let fresh = Known {
            gate,
            starter,
            ended: false,
            pruned: false,
            told: BTreeSet::new(),
            leased: BTreeSet::new(),
            changes,
            consumed: BTreeSet::new(),
        };
        assert!(self.commands.insert(id, fresh).is_none(), "{id} was given twice");
    }

    fn known(&mut self, id: CommandId) -> &mut Known {
        self.commands.get_mut(&id).expect("a command of this walk")
    }

    /// Who runs behind a gate: what identical launches join.
    pub fn behind(&self, gate: u64) -> Option<CommandId> {
        let behind = self.commands.iter().find(|(_, one)| one.gate == Some(gate) && !one.ended);
        behind.map(|(id, _)| *id)
    }

    pub fn ended(&mut self, id: CommandId) {
        self.known(id).ended = true;
    }

    /// What a consumer was not told, in order.
    pub fn pending(&self, consumer: Consumer) -> Vec<CommandId> {
        self.where_one(|one| one.ended && !one.told.contains(consumer))
    }

    /// What a lease takes.
    pub fn lease(&mut self, consumer: Consumer) -> Vec<CommandId> {
        let taken = self.where_one(|one| one.ended && !one.told.contains(consumer) && !one.leased.contains(consumer));
        for id in &taken {
            self.known(*id).leased.insert(consumer);
            self.met.insert(consumer);
        }
        taken
    }

    pub fn given_back(&mut self, consumer: Consumer, id: CommandId) {
        assert!(self.known(id).leased.remove(consumer), "{id} was not taken by {consumer}");
    }

    /// The delivery of what was leased.
    pub fn handed_over(&mut self, consumer: Consumer, id: CommandId) {
        self.given_back(consumer, id);
        assert!(self.known(id).told.insert(consumer), "{consumer} is told of {id} a second time");
    }

    /// A delivery without a lease before it.
    pub fn told(&mut self, consumer: Consumer, id: CommandId) -> Expected {
        let one = self.known(id);
        if !one.ended {
            return Expected::NotDue;
        }
        if one.leased.contains(consumer) {
            return Expected::Elsewhere;
        }
        let fresh = one.told.insert(consumer);
        self.met.insert(consumer);
        if fresh { Expected::Now } else { Expected::Before }
    }

    /// Whose changes a consumer has not consumed, in order.
    pub fn unconsumed(&self, consumer: Consumer) -> Vec<CommandId> {
        self.where_one(|one| one.ended && one.changes && !one.consumed.contains(consumer))
    }

    /// A consumer consumes what a command changed.
    pub fn consume(&mut self, consumer: Consumer, id: CommandId) -> Receipt {
        let one = self.known(id);
        if !one.ended {
            return Receipt::NotReady;
        }
        if !one.changes {
            return Receipt::Nothing;
        }
        let fresh = one.consumed.insert(consumer);
        self.met.insert(consumer);
        if fresh { Receipt::Now } else { Receipt::Before }
    }

    /// What retention may take the output of.
    pub fn free_to_prune(&self) -> Vec<CommandId> {
        let must =
            |one: &Known| self.met.iter().copied().chain([one.starter, "model"]).all(|who| one.told.contains(who));
        self.where_one(|one| one.ended && !one.pruned && must(one))
    }

    /// How often anybody was told anything.
    pub fn tellings(&self) -> BTreeSet<(CommandId, Consumer)> {
        self.commands.iter().flat_map(|(id, one)| one.told.iter().map(|who| (*id, *who))).collect()
    }

    fn where_one(&self, is: impl Fn(&Known) -> bool) -> Vec<CommandId> {
        self.commands.iter().filter(|(_, one)| is(one)).map(|(id, _)| *id).collect()
    }
}
