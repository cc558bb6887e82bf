//! What the fuzz targets share: how an input is cut into pieces, and the files that they may write.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use outlast_core::id::CommandId;
use outlast_core::record::SessionRecord;
use outlast_host::store::command::CommandDir;
use outlast_host::store::session::SessionDir;
use outlast_host::store::state::State;

/// An input that says how it is cut.
pub struct Cut<'a> {
    lengths: &'a [u8],
    step: Option<usize>,
    /// The text without what says so.
    pub text: &'a [u8],
}

impl<'a> Cut<'a> {
    /// The first byte says how: below 128 so many lengths follow, a byte each; else all pieces but the last one have as
    /// many bytes as it is above 127.
    pub fn of(input: &'a [u8]) -> Cut<'a> {
        let Some((how, rest)) = input.split_first() else { return Cut { lengths: &[], step: None, text: input } };
        match usize::from(*how) {
            count @ 0..=127 => {
                let (lengths, text) = rest.split_at(count.min(rest.len()));
                Cut { lengths, step: None, text }
            }
            step => Cut { lengths: &[], step: Some(step - 127), text: rest },
        }
    }

    /// The pieces, one at least, which make the text when they are put together.
    pub fn pieces(&self) -> Vec<&'a [u8]> {
        if let Some(step) = self.step.filter(|_| !self.text.is_empty()) {
            return self.text.chunks(step).collect();
        }
        let mut rest = self.text;
        let mut pieces = Vec::new();
        for length in self.lengths {
            let (piece, more) = rest.split_at(usize::from(*length).min(rest.len()));
            pieces.push(piece);
            rest = more;
        }
        pieces.push(rest);
        pieces
    }
}

/// Takes so many bytes off the front of an input, fewer where it is shorter.
pub fn take<'a>(input: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(count.min(input.len()));
    *input = rest;
    taken
}

/// Takes a number of eight bytes, little endian, off the front of an input.
pub fn number(input: &mut &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let taken = take(input, 8);
    bytes[..taken.len()].copy_from_slice(taken);
    u64::from_le_bytes(bytes)
}

/// A session with one command, as the product makes them.
pub struct Stored {
    /// The state directory.
    pub state: State,
    /// The session.
    pub session: SessionDir,
    /// The command.
    pub command: CommandDir,
}

/// The id of the command in [`stored`], which the stored files of crates/host/fixtures have.
pub const COMMAND: &str = "wrk_0190a0b0c0d07000800000000000000b";

/// Makes the session of crates/host/fixtures in a directory of this process; whoever started it removes that. Files are
/// to be had in no other way than by an open directory, so there has to be a real one.
pub fn stored() -> Stored {
    let place = std::env::temp_dir().join(format!("outlast-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let state = State::open(&place.join("state")).expect("a state directory");
    let record: SessionRecord = serde_json::from_str(SESSION).expect("a record");
    let session = state.create_session(&record).expect("a session");
    let id: CommandId = COMMAND.parse().expect("an id");
    let command = session.new_command(id).and_then(|new| new.publish()).expect("a command");
    Stored { state, session, command }
}

const SESSION: &str = include_str!("../../crates/host/fixtures/1/session.json");

/// Puts these bytes in the place of a file.
pub fn put(path: PathBuf, bytes: &[u8]) {
    std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
