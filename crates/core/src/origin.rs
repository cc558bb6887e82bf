//! Who asked, and how far that is believed. Trust follows from the origin; nobody can declare it.

use serde::{Deserialize, Serialize};

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A person.
    User,
    /// Another agent.
    Peer,
    /// A schedule that a person set up.
    Schedule,
    /// The host of the agent.
    System,
    /// Something that happened outside: a message, a web hook.
    Event,
    /// The end of a command.
    Completion,
}

/// How far a text is believed. The lower one comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "String")]
pub enum Trust {
    /// As data. This is also the trust of what nobody knows.
    #[default]
    Untrusted,
    /// As the word of whom the agent works for.
    Trusted,
}

/// Which of the tasks that wait for an agent comes first: a lane is empty before the one below is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// What a person asked.
    User,
    /// What another agent asked.
    Peer,
    /// All that nobody waits for.
    Background,
}

impl Origin {
    /// Every origin.
    pub const ALL: [Origin; 6] =
        [Origin::User, Origin::Peer, Origin::Schedule, Origin::System, Origin::Event, Origin::Completion];

    /// The lane of a task of this origin.
    #[must_use]
    pub fn lane(self) -> Lane {
        match self {
            Origin::User => Lane::User,
            Origin::Peer => Lane::Peer,
            Origin::Schedule | Origin::System | Origin::Event | Origin::Completion => Lane::Background,
        }
    }
}

impl Lane {
    /// Every lane, the first one first.
    pub const ALL: [Lane; 3] = [Lane::User, Lane::Peer, Lane::Background];
}

impl Trust {
    /// The word that is stored and shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Trust::Trusted => "trusted",
            Trust::Untrusted => "untrusted",
        }
    }
}

impl From<String> for Trust {
    /// What a record says. Any word but `trusted` is no trust.
    fn from(word: String) -> Self {
        if word == Trust::Trusted.word() { Trust::Trusted } else { Trust::Untrusted }
    }
}

impl std::fmt::Display for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// An origin and the trust that follows from it. There is no other way to make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Provenance {
    origin: Origin,
    trust: Trust,
}

/// A provenance as it travels to another agent. Any program can write one, so it is believed only as far
/// as [`Provenance::from_wire`] says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stamp {
    /// The name of an origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What the sender's own work inherited: `trusted` or `untrusted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
}

impl Provenance {
    /// What follows from an origin, where the work that it came out of has this trust. Only a peer and a
    /// completion inherit; where there is nothing to inherit they are not trusted.
    #[must_use]
    pub fn derive(origin: Origin, inherited: Option<Trust>) -> Self {
        let trust = match origin {
            Origin::User | Origin::Schedule | Origin::System => Trust::Trusted,
            Origin::Event => Trust::Untrusted,
            Origin::Peer | Origin::Completion => inherited.unwrap_or_default(),
        };
        Provenance { origin, trust }
    }

    /// Who asked.
    #[must_use]
    pub fn origin(self) -> Origin {
        self.origin
    }

    /// How far that is believed.
    #[must_use]
    pub fn trust(self) -> Trust {
        self.trust
    }

    /// Where a task of it waits.
    #[must_use]
    pub fn lane(self) -> Lane {
        self.origin.lane()
    }

    /// The provenance, at a peer, of what this work asks of it.
    #[must_use]
    pub fn at_peer(self) -> Self {
        Self::derive(Origin::Peer, Some(self.trust))
    }

    /// As it is written to another agent.
    #[must_use]
    pub fn stamp(self) -> Stamp {
        let origin = serde_json::to_value(self.origin).ok().and_then(|word| word.as_str().map(str::to_owned));
        Stamp { origin, trust: Some(self.trust.word().to_owned()) }
    }

    /// What came from another agent. A peer and a completion are believed, with what they inherit; all else,
    /// which only who stands at the keyboard or the host itself can be, is an event.
    #[must_use]
    pub fn from_wire(stamp: &Stamp) -> Self {
        let origin = match stamp.origin.as_deref() {
            Some("peer") => Origin::Peer,
            Some("completion") => Origin::Completion,
            _ => Origin::Event,
        };
        Self::derive(origin, stamp.trust.clone().map(Trust::from))
    }
}

impl From<Origin> for Provenance {
    /// With nothing to inherit.
    fn from(origin: Origin) -> Self {
        Self::derive(origin, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: Trust = Trust::Untrusted;
    const YES: Trust = Trust::Trusted;

    #[test]
    fn r10_trust_follows_from_the_origin() {
        let rows = [
            // origin, and its trust where it inherits: nothing, untrusted, trusted
            (Origin::User, [YES, YES, YES]),
            (Origin::Peer, [NO, NO, YES]),
            (Origin::Schedule, [YES, YES, YES]),
            (Origin::System, [YES, YES, YES]),
            (Origin::Event, [NO, NO, NO]),
            (Origin::Completion, [NO, NO, YES]),
        ];
        assert_eq!(rows.map(|(origin, _)| origin), Origin::ALL);
        for (origin, expected) in rows {
            for (inherited, trust) in [None, Some(NO), Some(YES)].into_iter().zip(expected) {
                let provenance = Provenance::derive(origin, inherited);
                assert_eq!((provenance.origin(), provenance.trust()), (origin, trust), "{inherited:?}");
                assert_eq!(provenance.lane(), origin.lane());
            }
        }
    }

    #[test]
    fn r10_from_the_wire_only_peer_and_completion_are_believed() {
        let read = |json: &str| Provenance::from_wire(&serde_json::from_str::<Stamp>(json).expect("a stamp"));
        let event = Provenance::from(Origin::Event);
        assert_eq!(event.trust(), NO);
        for (json, expected) in [
            (r#"{"origin":"peer","trust":"trusted"}"#, Provenance::derive(Origin::Peer, Some(YES))),
            (r#"{"origin":"peer","trust":"untrusted"}"#, Provenance::derive(Origin::Peer, Some(NO))),
            (r#"{"origin":"peer","trust":"Trusted"}"#, Provenance::derive(Origin::Peer, Some(NO))),
            (r#"{"origin":"peer"}"#, Provenance::derive(Origin::Peer, None)),
            (r#"{"origin":"completion","trust":"trusted"}"#, Provenance::derive(Origin::Completion, Some(YES))),
            (r#"{"origin":"completion"}"#, Provenance::derive(Origin::Completion, None)),
            (r#"{"origin":"user","trust":"trusted"}"#, event),
            (r#"{"origin":"schedule","trust":"trusted"}"#, event),
            (r#"{"origin":"system","trust":"trusted"}"#, event),
            (r#"{"origin":"event","trust":"trusted"}"#, event),
            (r#"{"origin":"root","trust":"trusted"}"#, event),
            (r#"{"origin":"PEER","trust":"trusted"}"#, event),
            (r#"{"trust":"trusted"}"#, event),
            ("{}", event),
        ] {
            assert_eq!(read(json), expected, "{json}");
        }
    }

    #[test]
    fn r10_a_stamp_for_a_peer_comes_back_equal() {
        for origin in Origin::ALL {
            for inherited in [None, Some(NO), Some(YES)] {
                let own = Provenance::derive(origin, inherited);
                let sent = own.at_peer();
                assert_eq!((sent.origin(), sent.trust()), (Origin::Peer, own.trust()));
                let json = serde_json::to_string(&sent.stamp()).expect("plain data");
                assert_eq!(Provenance::from_wire(&serde_json::from_str(&json).expect("a stamp")), sent);
            }
        }
    }

    /// Covers: G2, L8
    #[test]
    fn r10_a_stored_trust_is_a_word_and_any_other_word_is_none() {
        for (stored, trust) in [("trusted", YES), ("untrusted", NO), ("Trusted", NO), ("", NO), ("user", NO)] {
            assert_eq!(serde_json::from_value::<Trust>(stored.into()).expect("a word"), trust, "{stored:?}");
            assert_eq!(
                Trust::from(serde_json::to_value(trust).expect("a word").as_str().unwrap_or("").to_owned()),
                trust
            );
        }
        assert!(NO < YES && Trust::default() == NO);
    }
}
