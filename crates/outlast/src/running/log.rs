//! The log of a command in the foreground whose output outgrew what is held: read as it grows, and passed on.

use outlast_core::record::OutputState;
use outlast_core::wire::ToSupervisor;

use super::Running;
use crate::command::Command;
use crate::error::Result;
use crate::event::RunEvent;
use crate::output::Piece;
use crate::read::Reading;

/// After how many bytes a reader says how far it is: often enough that a cap with this tail drops nothing before it is read.
fn report_every(tail: u64) -> u64 {
    (tail / 8).clamp(1, 1 << 20)
}

/// The log of a command whose output outgrew what is held.
pub(super) struct Records {
    pub(super) command: Command,
    pub(super) reading: Reading,
    output: OutputState,
    /// Whether the supervisor may tell growth: it tells one for each time it is asked.
    pub(super) asked: bool,
    /// Up to where the supervisor knows that the log was read.
    reported: u64,
}

impl Running {
    pub(super) fn open_records(&mut self, output: OutputState) -> Result<()> {
        let command = Command { session: self.session.clone(), id: self.request.id };
        let reading = command.reading_from(self.held.received(), output)?;
        self.records = Some(Records { command, reading, output, asked: false, reported: 0 });
        Ok(())
    }

    /// Passes on the next piece of output from the log; false once everything that is known of was passed on.
    pub(super) async fn read_log(&mut self) -> Result<bool> {
        let Some(records) = &mut self.records else { return Ok(false) };
        let before = records.reading.next_offset();
        match records.reading.next().await? {
            Some(Piece::Bytes { stream, bytes, .. }) => {
                let seen = records.reading.next_offset();
                let due = seen - records.reported >= report_every(self.request.cap.tail) && self.last.is_none();
                if due {
                    (records.asked, records.reported) = (true, seen);
                }
                self.pass(stream, bytes);
                if due {
                    // A command that prints faster than this reads waits for it as long as it hears of progress.
                    self.launched.channel.send(&ToSupervisor::More { seen }).await?;
                }
                return Ok(true);
            }
            Some(Piece::Gap { offset, bytes, .. }) => {
                // Of a gap that grew over what was passed on already only the rest is missing.
                let missing = (offset + bytes).saturating_sub(before);
                self.pass_rest(true);
                self.events.push_back(RunEvent::OutputGap { bytes: missing });
                return Ok(true);
            }
            None => {}
        }
        if !records.asked && self.last.is_none() {
            records.asked = true;
            // What is known of and could not be read (the log failed) is as good as read.
            let seen = records.reading.next_offset().max(records.output.bytes);
            records.reported = seen;
            self.launched.channel.send(&ToSupervisor::More { seen }).await?;
        }
        Ok(false)
    }
}

impl Records {
    pub(super) fn grow(&mut self, output: OutputState) -> Result<()> {
        self.output = output;
        self.reading.grow(&self.command.dir()?, output)
    }
}
