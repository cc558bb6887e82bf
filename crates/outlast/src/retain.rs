//! What is kept and what is removed from a state directory.

use std::path::PathBuf;

use outlast_host::store::crumbs;

use crate::error::Result;
use crate::runtime::Runtime;

impl Runtime {
    /// Removes what a crash left behind: records that were never published, and names of anchors that lead
    /// nowhere. With `dry_run` nothing is removed. The paths, in order. Sessions, records of commands and
    /// output are never touched.
    pub async fn clear_leftovers(&self, dry_run: bool) -> Result<Vec<PathBuf>> {
        Ok(crumbs::clear(self.state()?, dry_run)?)
    }
}
