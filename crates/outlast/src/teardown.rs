//! The end of a session, and its trace.

use std::time::Duration;

use outlast_core::record::{ClosedRecord, TraceLine};

use crate::error::Result;
use crate::session::Session;

/// The time that an end waits for verified ends by default.
pub const END_BOUND: Duration = Duration::from_secs(15);

impl Session {
    /// Ends the session: stops everything but detached commands (those too if asked), waits up to the
    /// bound (zero does not wait) and writes the report. A session that was ended before answers its
    /// first report.
    pub async fn end(&self, by: &str, bound: Duration, detached: bool) -> Result<ClosedRecord> {
        todo!()
    }

    /// The report of its end, if it was ended.
    pub async fn closed(&self) -> Result<Option<ClosedRecord>> {
        todo!()
    }

    /// The lines of its trace; lines that cannot be parsed are skipped.
    pub async fn trace(&self) -> Result<Vec<TraceLine>> {
        todo!()
    }

    /// The trace as it is stored, byte for byte.
    pub async fn raw_trace(&self) -> Result<Vec<u8>> {
        todo!()
    }
}
