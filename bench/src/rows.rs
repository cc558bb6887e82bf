//! The rows, in groups that are measured one after another.

mod start;
mod calls;
mod wake;
mod capture;
mod memory;
mod looks;
mod many;

use crate::Result;
use crate::peers::Peer;
use crate::place::Place;
use crate::report::Report;

/// The groups in the order in which they are measured.
pub const GROUPS: [&str; 7] = ["start", "calls", "wake", "capture", "memory", "looks", "many"];

/// How much of everything.
pub struct Sizes {
    /// Bytes of the large log.
    pub bytes: u64,
    /// Commands that run at once.
    pub running: u64,
    /// Commands that ended in one session.
    pub ended: u64,
}

/// Measures one group.
pub async fn measure(group: &str, place: &Place, peers: &[Peer], sizes: &Sizes, report: &mut Report) -> Result<()> {
    match group {
        "start" => start::measure(place, report).await,
        "calls" => calls::measure(place, peers, report).await,
        "wake" => wake::measure(place, report).await,
        "capture" => capture::measure(place, sizes.bytes, report).await,
        "memory" => memory::measure(place, sizes.running, report).await,
        "looks" => looks::measure(place, sizes.bytes, report).await,
        "many" => many::measure(place, sizes.ended, report).await,
        _ => Err(format!("there is no group {group}").into()),
    }
}
