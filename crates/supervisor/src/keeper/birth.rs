//! How the keeper comes to be: out of every host's process tree, with nothing of its parent's.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outlast_core::id::SessionId;
use outlast_core::record::SessionRecord;
use outlast_core::wire::{FromKeeper, KEEPER_NAME, SUPERVISOR_NAME};
use outlast_host::clock;
use outlast_host::crash;
use outlast_host::frame::Channel;
use outlast_host::inherit;
use outlast_host::lock::Lock;
use outlast_host::store::session::SessionDir;
use outlast_host::store::state::State;
use outlast_host::sys::fork::{self, Forked};
use outlast_host::sys::{descriptors, signals};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::inotify;
use rustix::process::{Pid, Signal, WaitOptions};

use super::doors::Door;
use super::{Keeper, Newborn};
use crate::context::Context;
use crate::watch::Post;

/// In place of a session directory: no records can be made.
const NO_RECORDS: &str = "-";
/// How long a keeper that is about to end is waited for.
const HANDOVER: Duration = Duration::from_secs(2);
/// How long it is waited for at a time where nothing tells that it ended.
const UNWATCHED_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Becomes the keeper and never returns, if the program was started under its name.
///
/// The first argument is the absolute path of the session's directory, or `-`; standard input is one end
/// of a socket pair, the first connection.
pub fn enter_if_asked() {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    if Path::new(&name).file_name().is_none_or(|name| name.as_bytes() != KEEPER_NAME.as_bytes()) {
        return;
    }
    crash::become_role(BETWEEN_ROLE);
    let session = arguments.next().unwrap_or_default();
    let kept = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)
        .map_err(|error| error.to_string())
        .and_then(|first| keep(first, Path::new(&session)));
    fork::exit_now(if kept.is_ok() { 0 } else { 70 });
}

/// What crash points call the process between a front end and its keeper.
const BETWEEN_ROLE: &str = "between";
/// The process between a front end and the keeper that it forked; it ends at once.
static BETWEEN: AtomicU32 = AtomicU32::new(0);

/// Forks a keeper off this process, which must be small and have one thread: another exec of the same
/// program would cost more than everything else at a start. [`reap_forked`] belongs to it.
pub fn fork_keeper(first: BorrowedFd<'_>, session: &Path) -> std::io::Result<()> {
    match fork::fork(BETWEEN_ROLE)? {
        Forked::Parent { pid } => {
            BETWEEN.store(pid, Ordering::Relaxed);
            Ok(())
        }
        Forked::Child => {
            let kept = rustix::io::fcntl_dupfd_cloexec(first, 3)
                .map_err(|error| error.to_string())
                .and_then(|first| keep(first, session));
            fork::exit_now(if kept.is_ok() { 0 } else { 70 })
        }
    }
}

/// Reaps what [`fork_keeper`] left behind, at the end of the front end.
pub fn reap_forked() {
    let pid = BETWEEN.swap(0, Ordering::Relaxed);
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // It has ended long since; if somebody else reaped it, all is well.
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
    }
}

/// Keeps, in a process of its own, from the first connection on.
fn keep(first: OwnedFd, session: &Path) -> Result<(), String> {
    let tell = |error: rustix::io::Errno| error.to_string();
    // The process that was started ends here, so that its parent can reap it at once.
    fork::detach("keeper").map_err(tell)?;
    // Handlers of a front end that was forked would write to descriptors that are something else here.
    signals::reset_all().map_err(tell)?;
    signals::ignore(Signal::PIPE).map_err(tell)?;
    descriptors::close_all_but(&mut [first.as_raw_fd()]);
    // It serves other callers too: what the first one lacks they have not to suffer from.
    inherit::lift_limits();
    let context = Context::new(None)?;
    for standard in 0..3 {
        replace_standard(&context, standard)?;
    }
    rustix::process::chdir("/").map_err(tell)?;
    // A name for people who look at processes; nothing depends on it.
    let _ = outlast_host::sys::prctl::set_name(KEEPER_NAME);
    let first = Channel::from_fd(first).map_err(|error| error.to_string())?;
    match open(context, session, first)? {
        Some(keeper) => serve(keeper),
        None => Ok(()),
    }
}

fn replace_standard(context: &Context, standard: RawFd) -> Result<(), String> {
    let done = match standard {
        0 => rustix::stdio::dup2_stdin(&context.null),
        1 => rustix::stdio::dup2_stdout(&context.null),
        _ => rustix::stdio::dup2_stderr(&context.null),
    };
    done.map_err(|error| format!("cannot replace descriptor {standard}: {error}"))
}

/// Serves as keeper; a forked child comes out of the loop and serves as supervisor.
fn serve(keeper: Keeper) -> Result<(), String> {
    let Some(newborn) = keeper.run() else { return Ok(()) };
    let Newborn { context, link, first, open_files } = newborn;
    let mut keep: Vec<RawFd> = vec![context.null.as_raw_fd(), link.as_raw_fd()];
    keep.extend(first.as_ref().map(|work| work.channel.as_raw_fd()));
    keep.extend(context.dir().into_iter().flat_map(SessionDir::descriptors));
    descriptors::close_all_but(&mut keep);
    descriptors::restore_open_files(open_files);
    let _ = outlast_host::sys::prctl::set_name(SUPERVISOR_NAME);
    Post::take(context, link)?.serve(first);
    Ok(())
}

/// The keeper of the session in `path`, unless there is one already, which the caller is told.
fn open(mut context: Context, path: &Path, mut first: Channel) -> Result<Option<Keeper>, String> {
    if path.as_os_str() == NO_RECORDS {
        return Keeper::new(context, first, None, None).map(Some);
    }
    match take_session(path) {
        Ok(Some((dir, record, lock))) => {
            let orphans = dir.is_or_was_kept();
            let door = Door::open(&dir, lock);
            context.session = Some((dir, record));
            match door {
                Ok(door) => Keeper::new(context, first, Some(door), Some(orphans)).map(Some),
                Err(error) => fail(&mut first, error.to_string()),
            }
        }
        Ok(None) => {
            // The caller reads this, or finds the connection closed: both mean that another one keeps.
            let _ = first.send_json(&FromKeeper::Busy);
            Ok(None)
        }
        Err(reason) => fail(&mut first, reason),
    }
}

fn fail(first: &mut Channel, reason: String) -> Result<Option<Keeper>, String> {
    let _ = first.send_json(&FromKeeper::Failed { reason: reason.clone() });
    Err(reason)
}

fn take_session(path: &Path) -> Result<Option<(SessionDir, SessionRecord, Lock)>, String> {
    let unusable = |what: &str| format!("{}: {what}", path.display());
    let root: PathBuf = path.parent().and_then(Path::parent).ok_or_else(|| unusable("no session directory"))?.into();
    let id: SessionId = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| unusable("not the name of a session"))?;
    let state = State::find(&root).map_err(|error| error.to_string())?.ok_or_else(|| unusable("no state directory"))?;
    let dir = state.session(id).map_err(|error| error.to_string())?.ok_or_else(|| unusable("no such session"))?;
    let record = dir.record().map_err(|error| error.to_string())?.record;
    Ok(take_lock(&dir)?.map(|lock| (dir, record, lock)))
}

/// The keeper's lock; none where another keeper answers its door. One that is about to end has taken
/// its door away but may hold the lock a moment longer: its close of the lock's file is waited for.
fn take_lock(dir: &SessionDir) -> Result<Option<Lock>, String> {
    let (mut watch, mut wanted) = (None, dir.want_keeper_lock());
    let until = clock::monotonic() + HANDOVER;
    loop {
        if let Some(lock) = wanted.try_take().map_err(|error| error.to_string())? {
            return Ok(Some(lock));
        }
        if dir.connect().is_ok() || clock::monotonic() >= until {
            return Ok(None);
        }
        match &watch {
            // Watched first and looked at again: nothing can happen unseen in between. Only here, because
            // the kernel takes milliseconds to take a watch down (fsnotify waits for an SRCU grace period).
            None => watch = Some(watch_names(dir)),
            Some(watch) => wait_for_names(watch.as_ref()).map_err(|error| error.to_string())?,
        }
    }
}

/// None where the kernel gives this user no more watches.
fn watch_names(dir: &SessionDir) -> Option<OwnedFd> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).ok()?;
    let path = format!("/proc/self/fd/{}", dir.dir().as_fd().as_raw_fd());
    let events = inotify::WatchFlags::CREATE | inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::DELETE;
    inotify::add_watch(&watch, path, events).ok()?;
    Some(watch)
}

fn wait_for_names(watch: Option<&OwnedFd>) -> Result<(), rustix::io::Errno> {
    let Some(watch) = watch else {
        rustix::event::poll(&mut [], Some(&UNWATCHED_PAUSE))?;
        return Ok(());
    };
    let mut fds = [PollFd::new(watch, PollFlags::IN)];
    let time = Timespec { tv_sec: 0, tv_nsec: HANDOVER.subsec_nanos().max(100_000_000).into() };
    rustix::event::poll(&mut fds, Some(&time))?;
    if !fds[0].revents().is_empty() {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
        inotify::Reader::new(watch, &mut buffer).next()?;
    }
    Ok(())
}
