//! What a supervisor inherits from the keeper it was forked from.

use std::os::fd::OwnedFd;
use std::path::Path;

use outlast_core::id::EventId;
use outlast_core::joining::Joinable;
use outlast_core::record::{ProcessMark, SessionRecord};
use outlast_core::request::Inherited;
use outlast_host::cgroup::{self, CgroupParent};
use outlast_host::frame::Channel;
use outlast_host::store::session::SessionDir;
use outlast_host::{clock, mark};
use rustix::fs::{Mode, OFlags};

/// The session as its watchers know it.
pub struct Context {
    /// The session's directory and `session.json`; none where no records can be made.
    pub session: Option<(SessionDir, SessionRecord)>,
    /// `/dev/null`, for standard inputs.
    pub null: OwnedFd,
    /// The limits of this process.
    pub limits: Vec<Inherited>,
    /// Where leaves of the cgroup tree can be made.
    pub cgroups: Option<CgroupParent>,
    /// The resident owner now, where there is one.
    pub owner: Option<ProcessMark>,
}

impl Context {
    /// The context of a session.
    pub fn new(session: Option<(SessionDir, SessionRecord)>) -> Result<Context, String> {
        let null = rustix::fs::open(Path::new("/dev/null"), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| format!("cannot open /dev/null: {error}"))?;
        // Without a cgroup tree the sweep does the same work; doctor tells which is used.
        Ok(Context { session, null, limits: Vec::new(), cgroups: cgroup::parent().ok().flatten(), owner: None })
    }

    /// The session's directory.
    pub fn dir(&self) -> Option<&SessionDir> {
        self.session.as_ref().map(|(dir, _)| dir)
    }

    /// `session.json`.
    pub fn record(&self) -> Option<&SessionRecord> {
        self.session.as_ref().map(|(_, record)| record)
    }

    /// The process whose life bounds the session.
    pub fn anchor(&self) -> Option<&ProcessMark> {
        self.record().and_then(|record| record.anchor.as_ref())
    }
}

/// A start that a supervisor is given to serve.
pub struct Work {
    /// The channel to its caller.
    pub channel: Channel,
    /// By what the command can be joined; none where nobody may.
    pub joinable: Option<Joinable>,
}

/// This process, as it is recorded.
pub fn own_mark() -> ProcessMark {
    // Without a readable /proc a mark still names boot and pid, and compares equal to nothing alive.
    mark::own().unwrap_or_else(|_| ProcessMark {
        pid: std::process::id(),
        start: 0,
        boot: clock::boot_id().unwrap_or_default().to_owned(),
        handle: None,
    })
}

/// A new event id for the trace.
pub fn fresh_event() -> EventId {
    let mut random = [0; 8];
    // The kernel's pool is ready on any machine that runs user programs; zeros would still be unique by
    // time and pid, which is mixed in.
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    EventId::from_parts(clock::unix_ms(), 0, u64::from_le_bytes(random) ^ u64::from(std::process::id()))
}
