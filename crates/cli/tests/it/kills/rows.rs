//! The rows of the acceptance list that are about killed watchers, one by one.

use crate::support::*;
