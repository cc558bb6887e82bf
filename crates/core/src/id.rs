//! The names of sessions, commands, events and reports, and the ways a command can be addressed.
//!
//! An id is a prefix of four characters and a UUID version 7 (RFC 9562, section 5.7) as 32 lowercase
//! hexadecimal digits, so ids sort by the time they were made in, as values and as text alike.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A text that is not an id, an alias or a prefix of an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct IdError {
    /// The text as it was given, white space included.
    pub text: String,
    /// What was expected in its place.
    pub expected: &'static str,
}

/// Defines one kind of id; all kinds differ only in their prefix.
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// The characters every id of this kind starts with.
            pub const PREFIX: &'static str = $prefix;

            /// Builds an id from the wall clock in milliseconds since 1970 (UTC, 48 bits are kept), a
            /// counter for ids made in the same millisecond (12 bits are kept) and random bits (62 are
            /// kept). Ids with a later time, or the same time and a higher counter, sort later.
            #[must_use]
            pub fn from_parts(unix_ms: u64, counter: u16, random: u64) -> Self {
                Self(uuid_v7(unix_ms, counter, random))
            }

            /// The time the id was made, in milliseconds since 1970 (UTC).
            #[must_use]
            pub fn unix_ms(self) -> u64 {
                (self.0.as_u128() >> 80) as u64
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            /// Reads an id; white space around it is ignored.
            fn from_str(text: &str) -> Result<Self, IdError> {
                parse_uuid(text, $prefix)
                    .map(Self)
                    .ok_or_else(|| IdError { text: text.to_owned(), expected: $expected })
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }
    };
}

id_type!(
    /// The identity of a session.
    SessionId, "ses_", "a session id (ses_ and 32 hexadecimal digits)"
);
id_type!(
    /// The identity of a command.
    CommandId, "wrk_", "a command id (wrk_ and 32 hexadecimal digits)"
);
id_type!(
    /// The identity of one line of the trace.
    EventId, "evt_", "an event id (evt_ and 32 hexadecimal digits)"
);
id_type!(
    /// The identity of one report of work that a session left behind.
    ReportId, "rep_", "a report id (rep_ and 32 hexadecimal digits)"
);

/// The short name of a command inside its session: `w1`, `w2`, …, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Alias(
    /// The number behind the `w`.
    pub u32,
);

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

impl FromStr for Alias {
    type Err = IdError;

    /// Reads an alias; white space around it is ignored.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let error = || IdError { text: text.to_owned(), expected: "an alias (w1, w2, …)" };
        let digits = text.trim().strip_prefix('w').ok_or_else(error)?;
        // One alias has one spelling, so neither `w+1` nor `w01` is one.
        if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error());
        }
        digits.parse().map(Alias).map_err(|_| error())
    }
}

impl From<Alias> for String {
    fn from(alias: Alias) -> String {
        alias.to_string()
    }
}

impl TryFrom<String> for Alias {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

/// How a caller names a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// By its whole id, which is good in every session of a state directory.
    Full(CommandId),
    /// By its alias, which is good in one session.
    Alias(Alias),
    /// By the start of its id, which is good in one session as long as only one id starts so. Holds
    /// `wrk_` and at least one and at most 31 hexadecimal digits.
    Prefix(String),
}

/// What a selector stands for among the commands of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Exactly this command.
    One(CommandId),
    /// No command that is known here.
    Unknown,
    /// A prefix of all of these ids, in their order.
    Ambiguous(Vec<CommandId>),
}

impl Selector {
    /// Finds what this selector stands for among the commands of one session.
    pub fn resolve(&self, known: impl IntoIterator<Item = (CommandId, Option<Alias>)>) -> Resolved {
        let mut found: Vec<CommandId> = known
            .into_iter()
            .filter(|(id, alias)| match self {
                Selector::Full(wanted) => id == wanted,
                Selector::Alias(wanted) => *alias == Some(*wanted),
                Selector::Prefix(start) => id.to_string().starts_with(start.as_str()),
            })
            .map(|(id, _)| id)
            .collect();
        found.sort_unstable();
        found.dedup();
        match found.as_slice() {
            [] => Resolved::Unknown,
            [id] => Resolved::One(*id),
            _ => Resolved::Ambiguous(found),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Full(id) => id.fmt(f),
            Selector::Alias(alias) => alias.fmt(f),
            Selector::Prefix(start) => f.write_str(start),
        }
    }
}

impl FromStr for Selector {
    type Err = IdError;

    /// Reads an id, an alias or the start of an id; white space around it is ignored.
    fn from_str(text: &str) -> Result<Self, IdError> {
        if let Ok(id) = text.parse() {
            return Ok(Selector::Full(id));
        }
        if let Ok(alias) = text.parse() {
            return Ok(Selector::Alias(alias));
        }
        let start = text.trim();
        match start.strip_prefix(CommandId::PREFIX) {
            Some(digits) if (1..32).contains(&digits.len()) && is_lower_hex(digits) => {
                Ok(Selector::Prefix(start.to_owned()))
            }
            _ => Err(IdError {
                text: text.to_owned(),
                expected: "the id of a command (wrk_…, the start of one, or an alias like w1)",
            }),
        }
    }
}

fn uuid_v7(unix_ms: u64, counter: u16, random: u64) -> Uuid {
    let time = u128::from(unix_ms & 0xffff_ffff_ffff) << 80;
    let version = 7 << 76;
    let counter = u128::from(counter & 0x0fff) << 64;
    let variant = 0b10 << 62;
    let random = u128::from(random & 0x3fff_ffff_ffff_ffff);
    Uuid::from_u128(time | version | counter | variant | random)
}

fn parse_uuid(text: &str, prefix: &str) -> Option<Uuid> {
    let digits = text.trim().strip_prefix(prefix)?;
    // Uuid itself also reads upper case, hyphens and braces, which would give one id two spellings.
    if digits.len() != 32 || !is_lower_hex(digits) {
        return None;
    }
    Uuid::try_parse(digits).ok()
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(n: u16) -> CommandId {
        CommandId::from_parts(1_700_000_000_000, n, 0x1234)
    }

    #[test]
    fn j1_ids_are_unique_sorted_and_of_one_form() {
        let mut last: Option<CommandId> = None;
        for n in 0..10_000_u64 {
            // Seven ids share each millisecond, and the random part falls while the counter rises.
            let id = CommandId::from_parts(1_700_000_000_000 + n / 7, (n % 7) as u16, u64::MAX - n);
            let text = id.to_string();
            assert_eq!(text.len(), 36);
            assert!(text.starts_with("wrk_") && is_lower_hex(&text[4..]), "{text}");
            assert_eq!(&text[16..17], "7", "the version digit of {text}");
            assert!("89ab".contains(&text[20..21]), "the variant digit of {text}");
            assert_eq!(id.unix_ms(), 1_700_000_000_000 + n / 7);
            if let Some(last) = last {
                assert!(last < id && last.to_string() < text, "{last} before {text}");
            }
            last = Some(id);
        }
    }

    #[test]
    fn j1_parts_too_large_do_not_reach_into_each_other() {
        let id = SessionId::from_parts(u64::MAX, u16::MAX, u64::MAX);
        assert_eq!(id.to_string(), "ses_ffffffffffff7fffbfffffffffffffff");
    }

    /// Covers: J4
    #[test]
    fn j4_an_id_is_parsed_as_a_whole() {
        let id = command(1);
        for good in [format!("{id}"), format!("  {id}\t"), format!("{id}\n")] {
            assert_eq!(good.parse::<CommandId>().as_ref(), Ok(&id), "{good:?}");
            assert_eq!(good.parse(), Ok(Selector::Full(id)), "{good:?}");
        }
        let digits = id.to_string()[4..].to_owned();
        for bad in [
            String::new(),
            "wrk_".to_owned(),
            digits.clone(),
            format!("ses_{digits}"),
            format!("wrk_{}", digits.to_uppercase()),
            format!("wrk_{digits}0"),
            format!("wrk_{}\0", &digits[..31]),
            format!("wrk_{digits}\0"),
            format!("wrk_{}\u{7f}{}", &digits[..3], &digits[4..]),
            format!("wrk_{}\n{}", &digits[..3], &digits[4..]),
            format!("wrk_{digits} wrk_{digits}"),
            format!("WRK_{digits}"),
            format!("{}-{}", &id.to_string()[..12], &digits[8..]),
        ] {
            let error = bad.parse::<CommandId>().expect_err(&bad);
            assert_eq!(error.text, bad);
        }
        assert!(format!("wrk_{digits}").parse::<SessionId>().is_err());
    }

    /// Covers: J4, D2
    #[test]
    fn j4_selectors() {
        let prefix = |text: &str| Selector::Prefix(text.to_owned());
        let digits = &command(1).to_string()[4..];
        let longest = format!("wrk_{}", &digits[..31]);
        for (text, expected) in [
            ("w1", Some(Selector::Alias(Alias(1)))),
            (" w42\n", Some(Selector::Alias(Alias(42)))),
            ("w4294967295", Some(Selector::Alias(Alias(u32::MAX)))),
            ("w4294967296", None),
            ("w", None),
            ("w0", None),
            ("w01", None),
            ("w+1", None),
            ("w1 w2", None),
            ("w1\0", None),
            ("W1", None),
            ("1", None),
            ("wrk_0", Some(prefix("wrk_0"))),
            (" wrk_01ab ", Some(prefix("wrk_01ab"))),
            (longest.as_str(), Some(prefix(&longest))),
            ("wrk_", None),
            ("wrk_0g", None),
            ("wrk_0A", None),
            ("wrk_0/../x", None),
            ("../wrk_01", None),
            ("ses_01", None),
            ("", None),
        ] {
            match text.parse::<Selector>() {
                Ok(found) => assert_eq!(Some(found), expected, "{text:?}"),
                Err(error) => {
                    assert_eq!(None, expected, "{text:?}");
                    assert_eq!(error.text, text, "the answer names the id as given");
                    assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
                }
            }
        }
    }

    /// Covers: D2
    #[test]
    fn d2_a_selector_stands_for_one_none_or_several() {
        let a = CommandId::from_parts(0x1111_1111_0000, 0, 1);
        let b = CommandId::from_parts(0x1111_2222_0000, 0, 2);
        let unmaterialised = CommandId::from_parts(0x3333_0000_0000, 0, 3);
        let known = [(b, Some(Alias(2))), (a, Some(Alias(1))), (unmaterialised, None)];
        for (text, expected) in [
            ("w1", Resolved::One(a)),
            ("w3", Resolved::Unknown),
            ("wrk_11111", Resolved::One(a)),
            ("wrk_1111", Resolved::Ambiguous(vec![a, b])),
            ("wrk_3", Resolved::One(unmaterialised)),
            ("wrk_4", Resolved::Unknown),
        ] {
            let selector: Selector = text.parse().expect(text);
            assert_eq!(selector.resolve(known), expected, "{text}");
            assert_eq!(selector.to_string(), text);
        }
        assert_eq!(Selector::Full(b).resolve(known), Resolved::One(b));
        assert_eq!(Selector::Full(command(9)).resolve(known), Resolved::Unknown);
    }

    #[test]
    fn j1_ids_and_aliases_are_stored_as_text() {
        let id = command(5);
        let json = serde_json::to_string(&(id, Alias(3))).expect("plain values");
        assert_eq!(json, format!("[\"{id}\",\"w3\"]"));
        assert_eq!(serde_json::from_str::<(CommandId, Alias)>(&json).expect("as written"), (id, Alias(3)));
        assert!(serde_json::from_str::<CommandId>("\"wrk_1\"").is_err());
        assert!(serde_json::from_str::<Alias>("\"3\"").is_err());
    }
}
