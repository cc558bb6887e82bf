//! Durations, sizes and times as people write and read them.

use std::time::Duration;

use bytesize::ByteSize;
use jiff::Timestamp;

/// A duration or size that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a duration.
    #[error("{text:?} is not a duration: {reason} (examples: 250ms, 10s, 5m, 1h30m)")]
    Duration {
        /// The text as it was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Not a size.
    #[error("{text:?} is not a size (examples: 64KiB, 1GiB, 1MB, or a number of bytes)")]
    Size {
        /// The text as it was given.
        text: String,
    },
}

/// The units of a duration, longest first, with their length in milliseconds.
const DURATION_UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a duration such as `250ms`, `10s`, `5m`, `1h30m`, `2d`: whole numbers with units from days to
/// milliseconds, longer units first. `1.5s` is fine where a single unit is used, and `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let fail = |reason| UnitError::Duration { text: text.to_owned(), reason };
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(fail("it is empty"));
    }
    let mut total_ms: u64 = 0;
    let mut units = DURATION_UNITS.as_slice();
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !(c.is_ascii_digit() || c == '.'));
        let (unit, after) = split_where(after, |c| c.is_ascii_digit() || c == '.');
        if number.is_empty() {
            return Err(fail("a number is missing"));
        }
        if unit.is_empty() {
            return Err(fail("a unit is missing"));
        }
        let length = DURATION_UNITS.iter().find(|(name, _)| *name == unit);
        let (_, length) = *length.ok_or_else(|| fail("the units are d, h, m, s and ms"))?;
        let place = units.iter().position(|(name, _)| *name == unit);
        units = &units[place.ok_or_else(|| fail("longer units stand first, each at most once"))? + 1..];
        let alone = rest.len() == text.trim().len() && after.is_empty();
        let part = if number.contains('.') {
            if !alone {
                return Err(fail("a fraction stands alone"));
            }
            fraction_ms(number, length).ok_or_else(|| fail("the number is not one"))?
        } else {
            let count: u64 = number.parse().map_err(|_| fail("it is too long"))?;
            count.checked_mul(length).ok_or_else(|| fail("it is too long"))?
        };
        total_ms = total_ms.checked_add(part).ok_or_else(|| fail("it is too long"))?;
        rest = after;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Writes a duration so that [`parse_duration`] reads it back: `250ms`, `10s`, `1h30m`, `0s`. What is
/// below a millisecond is left out.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let mut rest = millis(duration);
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, length) in DURATION_UNITS {
        if rest >= length {
            text.push_str(&format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    text
}

/// Writes a time that has passed, rounded for reading: `350ms`, `12.3s`, `4m5s`, `1h2m`, `3d4h`.
#[must_use]
pub fn format_elapsed(elapsed: Duration) -> String {
    let ms = millis(elapsed);
    let seconds = ms.saturating_add(500) / 1000;
    let minutes = ms.saturating_add(30_000) / 60_000;
    let hours = ms.saturating_add(1_800_000) / 3_600_000;
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..59_950 => format!("{}.{}s", (ms + 50) / 1000, (ms + 50) % 1000 / 100),
        59_950..3_599_500 => format!("{}m{}s", seconds / 60, seconds % 60),
        3_599_500..86_370_000 => format!("{}h{}m", minutes / 60, minutes % 60),
        _ => format!("{}d{}h", hours / 24, hours % 24),
    }
}

/// Reads a size such as `64KiB`, `1GiB`, `1MB`, `1.5MiB`, or a bare number of bytes.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let fail = || UnitError::Size { text: text.to_owned() };
    if let Ok(bytes) = text.trim().parse() {
        return Ok(bytes);
    }
    let size: ByteSize = text.trim().parse().map_err(|_| fail())?;
    // The parser saturates; a size with a unit at its end is one that was too large.
    if size.as_u64() == u64::MAX { Err(fail()) } else { Ok(size.as_u64()) }
}

/// Writes a size so that [`parse_size`] reads the same number back: `64KiB`, `1GiB`, `1500`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, bits) in UNITS {
        if bytes != 0 && bytes.trailing_zeros() >= bits {
            return format!("{}{unit}", bytes >> bits);
        }
    }
    bytes.to_string()
}

/// Writes a wall-clock time in milliseconds since 1970 as RFC 3339 in UTC, always with milliseconds. A
/// time after the year 9999, which RFC 3339 cannot write, is shown as the last one it can.
#[must_use]
pub fn format_time(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn split_where(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

/// Milliseconds in `number` (with a decimal point) units of `length` milliseconds, rounded down.
fn fraction_ms(number: &str, length: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.')?;
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // Nine digits are more than a millisecond can show of the longest unit.
    let digits = &fraction[..fraction.len().min(9)];
    let scale = 10_u128.pow(digits.len() as u32);
    let whole: u64 = whole.parse().ok()?;
    let part = u128::from(digits.parse::<u64>().ok()?) * u128::from(length) / scale;
    whole.checked_mul(length)?.checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, ms) in [
            ("250ms", 250),
            ("10s", 10_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("0s", 0),
            ("0", 0),
            (" 1s ", 1_000),
            ("1d", 86_400_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("90m", 5_400_000),
            ("1.5s", 1_500),
            ("0.25h", 900_000),
            ("0.0005s", 0),
            ("1.0000000000000000000001s", 1_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("  ", "empty"),
            ("10", "unit is missing"),
            ("s", "number is missing"),
            ("10 s", "units are"),
            ("-1s", "number is missing"),
            ("+1s", "number is missing"),
            ("1S", "units are"),
            ("1w", "units are"),
            ("30m1h", "longer units"),
            ("1s1s", "longer units"),
            ("1h1.5s", "fraction"),
            ("1.5h1s", "fraction"),
            ("0s1.5ms", "fraction"),
            (".5s", "not one"),
            ("1.s", "not one"),
            ("1.2.3s", "not one"),
            ("99999999999999999999s", "too long"),
            ("999999999999999999d", "too long"),
            ("１s", "number is missing"),
        ] {
            let message = parse_duration(text).expect_err(text).to_string();
            assert!(message.contains(reason) && message.contains(&format!("{text:?}")), "{message}");
        }
    }

    #[test]
    fn durations_survive_writing_and_reading() {
        for (ms, text) in [
            (0, "0s"),
            (250, "250ms"),
            (1_500, "1s500ms"),
            (10_000, "10s"),
            (5_400_000, "1h30m"),
            (86_400_000, "1d"),
            (86_400_001, "1d1ms"),
        ] {
            let duration = Duration::from_millis(ms);
            assert_eq!(format_duration(duration), text);
            assert_eq!(parse_duration(text), Ok(duration));
        }
        let longest = Duration::from_millis(u64::MAX);
        assert_eq!(parse_duration(&format_duration(longest)), Ok(longest));
    }

    #[test]
    fn elapsed_times_are_rounded() {
        for (ms, text) in [
            (0, "0ms"),
            (350, "350ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (12_345, "12.3s"),
            (59_949, "59.9s"),
            (59_950, "1m0s"),
            (245_400, "4m5s"),
            (3_599_499, "59m59s"),
            (3_599_500, "1h0m"),
            (3_720_000, "1h2m"),
            (86_369_999, "23h59m"),
            (86_370_000, "1d0h"),
            (273_600_000, "3d4h"),
        ] {
            assert_eq!(format_elapsed(Duration::from_millis(ms)), text, "{ms}");
        }
        assert!(format_elapsed(Duration::MAX).ends_with('h'));
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [
            ("64KiB", 65_536),
            ("1GiB", 1 << 30),
            ("1MB", 1_000_000),
            ("1.5MiB", 1_572_864),
            ("16384", 16_384),
            ("0", 0),
            (" 2 KiB ", 2_048),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text:?}");
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes), "{text:?}");
        }
        for text in ["", "x", "-1", "1QB", "99999999999TiB", "KiB", "1 2"] {
            let message = parse_size(text).expect_err(text).to_string();
            assert!(message.contains(&format!("{text:?} is not a size")), "{message}");
        }
        assert_eq!(parse_size(&format_size(u64::MAX)), Ok(u64::MAX));
        assert_eq!(parse_size("18446744073709551616").ok(), None, "one more than there can be");
        assert_eq!(format_size(65_536), "64KiB");
        assert_eq!(format_size(1_500), "1500");
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(format_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_time(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert!(format_time(u64::MAX).starts_with("9999-12-30T"));
    }
}
