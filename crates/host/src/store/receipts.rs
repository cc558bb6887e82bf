//! Appends to and reads `receipts.jsonl`: what a command says it changed, a line each time.

use outlast_core::receipt::{Change, ReceiptLine, recovered};
use outlast_core::record::Durability;

use super::name;
use crate::dir::{Dir, FileError, Result};
use crate::effect;

/// The longest file that is read, in bytes: twice what a command may publish, as hexadecimal digits.
const LONGEST: u64 = 16 << 20;

/// Appends one line. Only who holds the lease of the command does this. A line that does not fit is taken back whole.
pub fn append(command: &Dir, line: &ReceiptLine, durability: Durability) -> Result<()> {
    let file = command.create_append(name::RECEIPTS)?;
    let failed = |error: std::io::Error| FileError::io("write", command.path_of(name::RECEIPTS), &error);
    let length = file.metadata().map_err(failed)?.len();
    if let Err(error) = effect::append(name::RECEIPTS, &file, &super::encode(command, name::RECEIPTS, line)?) {
        // If not even that works a torn line stays, which is read as a change of which nothing is known.
        let _ = effect::set_len(name::RECEIPTS, &file, length);
        return Err(failed(error));
    }
    match durability {
        Durability::Process => Ok(()),
        Durability::Power => effect::sync(name::RECEIPTS, &file).map_err(|e| failed(e.into())),
    }
}

/// What is stored; none where nothing was published.
pub fn read(command: &Dir) -> Result<Option<Vec<Change>>> {
    Ok(command.read_if_there(name::RECEIPTS, LONGEST)?.map(|stored| recovered(&stored)))
}

/// Whether anything was published.
pub fn any(command: &Dir) -> Result<bool> {
    command.exists(name::RECEIPTS)
}
