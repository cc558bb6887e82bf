//! The state of a captured output, as records and messages have it.

use serde::{Deserialize, Serialize};

/// More bytes than any output has, or any file may have (a quarter of what lseek(2) can count): whoever adds up a few
/// numbers below it gets a number. What is stored and larger was written by nobody, and is refused where it is read.
pub const MOST_OUTPUT: u64 = 1 << 60;

/// What a log's cap dropped, in offsets of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Offset of the first byte that is missing.
    pub offset: u64,
    /// How many bytes are missing.
    pub bytes: u64,
    /// How many bytes stand in the file where the gap is: a hole, or the mark that replaced it.
    pub on_disk: u64,
}

/// What could not be written to a log, in offsets of the output: from where the log failed to where the bytes begin that
/// were kept of the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwritten {
    /// Offset of the first byte that is nowhere.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// The state of the captured output. One that is read has no number above [`MOST_OUTPUT`], and its gap is inside of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct OutputState {
    /// Position in `output.log` of the first byte of output.
    pub start: u64,
    /// Bytes that came, whether or not they reached the file.
    pub bytes: u64,
    /// What the cap dropped.
    pub gap: Option<Gap>,
    /// Whether the file is complete but for the gap.
    pub whole: bool,
}

#[derive(Deserialize)]
struct Unchecked {
    start: u64,
    bytes: u64,
    gap: Option<Gap>,
    whole: bool,
}

impl TryFrom<Unchecked> for OutputState {
    type Error = String;

    fn try_from(read: Unchecked) -> Result<Self, String> {
        let Unchecked { start, bytes, gap, whole } = read;
        let gap_numbers = gap.map_or([0; 3], |gap| [gap.offset, gap.bytes, gap.on_disk]);
        if let Some(number) = [start, bytes].into_iter().chain(gap_numbers).find(|number| *number > MOST_OUTPUT) {
            return Err(format!("no output has {number} bytes"));
        }
        match gap {
            Some(gap) if gap.offset + gap.bytes > bytes => {
                Err(format!("an output of {bytes} bytes misses {} bytes from {} on", gap.bytes, gap.offset))
            }
            Some(_) | None => Ok(OutputState { start, bytes, gap, whole }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: M13
    #[test]
    fn m13_an_output_with_numbers_that_none_has_is_refused() {
        let text = |start: u64, bytes: u64, gap: [u64; 3]| {
            let [offset, missing, on_disk] = gap;
            let gap = format!(r#"{{"offset":{offset},"bytes":{missing},"on_disk":{on_disk}}}"#);
            format!(r#"{{"start":{start},"bytes":{bytes},"gap":{gap},"whole":true}}"#)
        };
        let read = |text: &str| serde_json::from_str::<OutputState>(text);
        assert!(read(&text(30, 50_010, [16_384, 17_242, 38])).is_ok());
        assert!(read(&text(0, MOST_OUTPUT, [0, MOST_OUTPUT, MOST_OUTPUT])).is_ok());
        for (start, bytes, gap) in [
            (MOST_OUTPUT + 1, 5, [0, 1, 1]),
            (0, u64::MAX, [0, 1, 1]),
            (0, 5, [u64::MAX, 1, 1]),
            (0, 5, [1, u64::MAX, 1]),
            (0, 5, [1, 1, u64::MAX]),
            (0, 5, [3, 3, 3]),
        ] {
            let error = read(&text(start, bytes, gap)).expect_err("no output").to_string();
            assert!(error.contains("no output has") || error.contains("misses 3 bytes from 3 on"), "{error}");
        }
    }
}
