//! What the command says it changed: taken while it runs, told or found after its end.

use outlast_core::id::CommandId;
use outlast_core::receipt::ReceiptLine;
use outlast_core::request::OsText;
use outlast_core::wire::FromSupervisor;
use outlast_host::store::command::CommandDir;

use super::Watch;

impl Watch<'_> {
    /// Takes what the command says it changed, or says why not. Whoever hears that it was taken finds it in the
    /// records, or in the hands of who is told the end.
    pub(super) fn take_receipt(&mut self, number: u32, id: CommandId, paths: Vec<OsText>) {
        let refused = self.keep_receipt(id, paths).err();
        self.clients.say(number, &FromSupervisor::Delivered { refused });
    }

    fn keep_receipt(&mut self, id: CommandId, paths: Vec<OsText>) -> Result<(), String> {
        // Whoever was told the end was told all that was changed.
        if id != self.request.id || self.exit.is_some() {
            return Err(format!("{id} has ended"));
        }
        let paths = match &self.redactor {
            Some(redactor) => paths.iter().map(|path| redactor.word(path)).collect(),
            None => paths,
        };
        let records = self.records.as_ref();
        let store =
            records.map(|records| |line: &_| records.dir.append_receipt(line).map_err(|error| error.to_string()));
        self.receipts.take(id, paths, store)
    }

    /// Puts what was held into the records that are being made.
    pub(super) fn store_receipts(&mut self, dir: &CommandDir) {
        if self.receipts.held.is_empty() {
            return;
        }
        if let Err(error) = dir.append_receipt(&ReceiptLine::of(self.receipts.held.clone())) {
            self.errors.push(format!("what it says it changed could not be recorded: {error}"));
        }
    }

    /// Lets go of what is in the records now, unless callers are told the end as if there were none.
    pub(super) fn forget_receipts(&mut self) {
        if self.raw.is_none() {
            self.receipts.held = Vec::new();
        }
    }

    /// Tells a caller what the command changed, where its end is told from no records.
    pub(super) fn show_receipts(&mut self, number: u32) {
        if !self.receipts.held.is_empty() {
            self.clients.say(number, &FromSupervisor::Changed { paths: self.receipts.held.clone() });
        }
    }
}
