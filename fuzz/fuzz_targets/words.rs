//! Words that people and programs give: ids, durations, sizes, lifetimes, signals and names. What is written is read
//! back as the same, and what is read is written in one way.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use outlast_core::ending::{signal_name, signal_number};
use outlast_core::id::{Alias, CommandId, EventId, ReportId, Resolved, Selector, SessionId};
use outlast_core::names::{NameField, check_context, check_name};
use outlast_core::request::{Lifetime, OsText, from_hex, parse_lifetime, to_hex};
use outlast_core::units::{format_duration, format_elapsed, format_size, format_time, parse_duration, parse_size};
use outlast_fuzz::number;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    written(number(&mut rest), number(&mut rest));
    read(&String::from_utf8_lossy(data));
    let text = OsText(data.to_vec());
    let stored = serde_json::to_string(&text).expect("plain data");
    assert_eq!(serde_json::from_str::<OsText>(&stored).expect("its own shape"), text);
    assert_eq!(from_hex(&to_hex(data)).as_deref(), Some(data));
});

/// What is written from values.
fn written(first: u64, second: u64) {
    let duration = Duration::from_millis(first);
    assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
    assert_eq!(parse_size(&format_size(first)), Ok(first), "{}", format_size(first));
    assert!(format_elapsed(duration).len() < 24 && format_time(first).len() == 24);
    let (counter, later) = (first as u16 & 0xfff, second & 0xffff_ffff_ffff);
    let id = CommandId::from_parts(later, counter, first);
    assert_eq!(id.unix_ms(), later);
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!(id.to_string().parse(), Ok(Selector::Full(id)));
    let next = CommandId::from_parts(later + u64::from(counter == 0xfff), (counter + 1) & 0xfff, second);
    assert!(later == 0xffff_ffff_ffff || (id < next && id.to_string() < next.to_string()), "{id} before {next}");
    let alias = Alias((first as u32).max(1));
    assert_eq!(alias.to_string().parse(), Ok(Selector::Alias(alias)));
    let known = [(id, Some(alias)), (next, None)];
    assert_eq!(Selector::Full(id).resolve(known), Resolved::One(id));
    assert_eq!(Selector::Alias(alias).resolve(known), Resolved::One(id));
    let signal = (first % 64) as i32 + 1;
    // 32 and 33 are the C library's own.
    if !(32..34).contains(&signal) {
        assert_eq!(signal_number(&signal_name(signal)), Some(signal), "{}", signal_name(signal));
    }
}

/// What is read from a text.
fn read(text: &str) {
    if let Ok(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&format_duration(duration)), Ok(duration), "{text:?}");
    }
    if let Ok(size) = parse_size(text) {
        assert_eq!(parse_size(&format_size(size)), Ok(size), "{text:?}");
    }
    if let Ok(selector) = text.parse::<Selector>() {
        let shown = selector.to_string();
        assert_eq!(shown.parse(), Ok(selector), "{text:?}");
        assert_eq!(shown, text.trim(), "two spellings");
    }
    one_spelling::<CommandId>(text);
    one_spelling::<SessionId>(text);
    one_spelling::<EventId>(text);
    one_spelling::<ReportId>(text);
    if let Ok(Lifetime::Detached { ttl_ms }) = parse_lifetime(text) {
        let again = format!("detached:{}", format_duration(Duration::from_millis(ttl_ms)));
        assert_eq!(parse_lifetime(&again), Ok(Lifetime::Detached { ttl_ms }), "{text:?}");
    }
    if let Some(signal) = signal_number(text) {
        assert!((1..=64).contains(&signal), "{text:?} is {signal}");
    }
    for field in [NameField::Kind, NameField::Consumer, NameField::Session] {
        if check_name(field, text).is_ok() {
            let path = std::path::Path::new(text);
            assert_eq!(path.components().count(), 1, "{text:?} is no name of a file");
            assert!(matches!(path.components().next(), Some(std::path::Component::Normal(_))), "{text:?}");
        }
    }
    if let Ok(Some(key)) = check_context(text) {
        assert!(key == text && !key.contains(char::is_control));
    }
}

fn one_spelling<T: std::str::FromStr + ToString>(text: &str) {
    if let Ok(id) = text.parse::<T>() {
        assert_eq!(id.to_string(), text.trim(), "two spellings");
    }
}
