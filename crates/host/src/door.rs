//! Doors: listening sockets in a directory that only their own user may use, at any path length.
//!
//! A socket address holds 107 bytes of path (unix(7)). Doors are bound and reached through
//! `/proc/self/fd/N`, where N is an open directory or the socket file itself, so the state directory
//! may be as deep as it likes and no link is followed on the way.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::dir::{Dir, FILE_MODE, FileError, fd_path, if_there};
use crate::effect;
use crate::frame::{Channel, ChannelError};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 256;

/// How often a door is made that somebody takes away in between.
const BINDS: usize = 64;

/// Why a door cannot be opened or passed.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// There is no door, or nobody listens behind it.
    #[error("nobody listens at {}", .0.display())]
    Nobody(std::path::PathBuf),
    /// Somebody listens but accepts nobody now: the process may be stopped.
    #[error("the process behind {} takes no connection now; it may be stopped (SIGSTOP)", .0.display())]
    Busy(std::path::PathBuf),
    /// The process behind the door belongs to another user.
    #[error("the process behind {} belongs to another user (uid {uid})", path.display())]
    Foreign {
        /// The door.
        path: std::path::PathBuf,
        /// The other user.
        uid: u32,
    },
    /// Something else went wrong with the socket file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The connection could not be set up.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

/// A door that is open: removed from the directory by whoever ends with it, not on drop.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
}

impl Listener {
    /// Opens a door, in place of one that a dead process left behind.
    ///
    /// The caller holds the lock that says whose door it is; a living listener's door would be
    /// taken over otherwise. One that somebody takes away while it is made is made again.
    pub fn bind(dir: &Dir, name: &str) -> Result<Listener, DoorError> {
        for _ in 1..BINDS {
            match Listener::bind_once(dir, name) {
                Err(DoorError::File(error)) if error.is_missing() => {}
                bound => return bound,
            }
        }
        Listener::bind_once(dir, name)
    }

    /// As [`Listener::bind`], with what becomes readable once somebody takes the door away or renames it; none where the
    /// kernel gives no more watches.
    pub fn bind_watched(dir: &Dir, name: &str) -> Result<(Listener, Option<OwnedFd>), DoorError> {
        for _ in 1..BINDS {
            let listener = Listener::bind(dir, name)?;
            match if_there(watch(dir, name)) {
                // One that was taken away while it was looked up for the watch is watched and tells nothing any more.
                Ok(Some(taken)) if dir.exists(name)? => return Ok((listener, Some(taken))),
                Ok(_) => {}
                Err(_) => return Ok((listener, None)),
            }
        }
        Listener::bind(dir, name).map(|listener| (listener, None))
    }

    fn bind_once(dir: &Dir, name: &str) -> Result<Listener, DoorError> {
        let failed = |e| FileError::os("open the door", dir.path_of(name), e);
        dir.remove_if_there(name)?;
        let fd = socket().map_err(failed)?;
        // The file gets the mode of the socket less the umask (unix_bind in net/unix/af_unix.c), so
        // it is 0600 or less from the first instant; the second call gives back what the umask took.
        let mode = Mode::from_raw_mode(FILE_MODE);
        effect::chmod(name, &fd, mode).map_err(failed)?;
        let address = SocketAddrUnix::new(fd_path(dir.as_fd()).join(name)).map_err(failed)?;
        effect::bind(name, &fd, &address).map_err(failed)?;
        effect::chmod_at(name, dir, name.as_ref(), mode).map_err(failed)?;
        effect::listen(name, &fd, BACKLOG).map_err(failed)?;
        Ok(Listener { fd })
    }

    /// The next connection of this user or of root; `None` when none waits. Others are hung up on.
    pub fn accept(&self) -> Result<Option<Channel>, ChannelError> {
        loop {
            match net::accept_with(&self.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => {
                    if may_pass(peer_uid(&fd)?) {
                        return Channel::from_fd(fd).map(Some);
                    }
                }
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(e) => return Err(ChannelError::Os("accept a connection", e)),
            }
        }
    }
}

impl Listener {
    /// The same door once more, to be waited at.
    pub fn try_clone(&self) -> std::io::Result<Listener> {
        Ok(Listener { fd: self.fd.try_clone()? })
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What becomes readable once somebody takes a door away or renames it (inotify(7); the count of links is an attribute).
fn watch(dir: &Dir, name: &str) -> Result<OwnedFd, FileError> {
    let failed = |e| FileError::os("watch", dir.path_of(name), e);
    let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(failed)?;
    let changes = WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DONT_FOLLOW;
    inotify::add_watch(&fd, fd_path(dir.as_fd()).join(name), changes).map_err(failed)?;
    Ok(fd)
}

/// Knocks at a door. Never blocks.
pub fn connect(dir: &Dir, name: &str) -> Result<Channel, DoorError> {
    let path = dir.path_of(name);
    let failed = |e| match e {
        Errno::NOENT | Errno::CONNREFUSED => DoorError::Nobody(path.clone()),
        Errno::WOULDBLOCK => DoorError::Busy(path.clone()),
        e => FileError::os("connect to", &path, e).into(),
    };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if !FileType::from_raw_mode(stat.st_mode).is_socket() {
        return Err(FileError::refused("connect to", path, "it is not a socket; move it away").into());
    }
    let fd = socket().map_err(failed)?;
    let address = SocketAddrUnix::new(fd_path(file.as_fd())).map_err(failed)?;
    effect::connect(name, &fd, &address).map_err(failed)?;
    let uid = peer_uid(&fd)?;
    if !may_pass(uid) {
        return Err(DoorError::Foreign { path, uid });
    }
    Ok(Channel::from_fd(fd)?)
}

/// The process at the other end of a connection, as the kernel saw it connect or listen.
pub fn peer_pid(channel: &Channel) -> Result<i32, ChannelError> {
    net::sockopt::socket_peercred(channel)
        .map(|cred| cred.pid.as_raw_nonzero().get())
        .map_err(|e| ChannelError::Os("identify the peer", e))
}

fn peer_uid(fd: &OwnedFd) -> Result<u32, ChannelError> {
    net::sockopt::socket_peercred(fd)
        .map(|cred| cred.uid.as_raw())
        .map_err(|e| ChannelError::Os("identify the peer", e))
}

fn may_pass(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::tests::TempDir;
    use rustix::event::{PollFd, PollFlags, Timespec};

    /// Covers: M1, M11
    #[test]
    fn m1_a_door_is_private_works_at_any_depth_and_is_opened_anew_after_a_death() {
        let temp = TempDir::new();
        let mut dir = temp.dir();
        for _ in 0..3 {
            dir = dir.create_sub(&"deep".repeat(25)).unwrap();
        }
        assert!(matches!(connect(&dir, "d"), Err(DoorError::Nobody(_))));
        let old = rustix::process::umask(Mode::empty());
        drop(Listener::bind(&dir, "d").unwrap());
        rustix::process::umask(old);
        assert_eq!(rustix::fs::statat(&dir, "d", rustix::fs::AtFlags::empty()).unwrap().st_mode & 0o777, 0o600);
        assert!(matches!(connect(&dir, "d"), Err(DoorError::Nobody(_))));

        let listener = Listener::bind(&dir, "d").unwrap();
        assert!(listener.accept().unwrap().is_none());
        let mut near = connect(&dir, "d").unwrap();
        let mut far = listener.accept().unwrap().unwrap();
        near.send_json("hello").unwrap();
        assert_eq!(far.receive().unwrap().unwrap().json::<String>().unwrap(), "hello");
        assert_eq!(u32::try_from(peer_pid(&near).unwrap()), Ok(std::process::id()));
    }

    #[test]
    fn a_door_that_is_taken_away_is_told() {
        let temp = TempDir::new();
        let dir = temp.dir();
        let is_told = |watch: &OwnedFd| {
            let mut polled = [PollFd::new(watch, PollFlags::IN)];
            rustix::event::poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
        };
        let listener = Listener::bind(&dir, "d").unwrap();
        let watches = [watch(&dir, "d").unwrap(), watch(&dir, "d").unwrap()];
        drop(connect(&dir, "d").unwrap());
        drop(listener.accept().unwrap());
        assert!(!watches.iter().any(is_told), "whoever knocks changes nothing");
        std::fs::rename(dir.path_of("d"), dir.path_of("e")).unwrap();
        assert!(is_told(&watches[0]));
        let watch = watch(&dir, "e").unwrap();
        std::fs::remove_file(dir.path_of("e")).unwrap();
        assert!(is_told(&watch));
    }

    #[test]
    fn a_door_that_is_taken_away_while_it_is_opened_is_opened_again_or_told() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let temp = TempDir::new();
        let dir = temp.dir();
        let take_away = || std::fs::remove_file(dir.path_of("d")).is_ok();
        let is_told = || {
            let opened = AtomicBool::new(false);
            std::thread::scope(|scope| {
                // So often while it is opened, at whatever instant, and once behind that.
                scope.spawn(|| {
                    let mut taken = 0;
                    while !opened.load(Ordering::Relaxed) {
                        taken += u32::from(taken < 30 && take_away());
                    }
                    take_away();
                });
                let bound = Listener::bind_watched(&dir, "d");
                opened.store(true, Ordering::Relaxed);
                let (_listener, taken) = bound.map_err(|error| error.to_string())?;
                let taken = taken.ok_or("no watch")?;
                let mut polled = [PollFd::new(&taken, PollFlags::IN)];
                let time = Timespec { tv_sec: 20, tv_nsec: 0 };
                rustix::event::poll(&mut polled, Some(&time)).map_err(|error| error.to_string())
            })
        };
        let untold: Vec<_> = (0..500).map(|_| is_told()).filter(|told: &Result<_, String>| *told != Ok(1)).collect();
        assert_eq!(untold, []);
    }

    /// Covers: M11
    #[test]
    fn m11_a_link_in_place_of_a_door_is_not_followed() {
        let temp = TempDir::new();
        let dir = temp.dir();
        let _listener = Listener::bind(&dir, "real").unwrap();
        std::os::unix::fs::symlink("real", dir.path_of("d")).unwrap();
        assert!(connect(&dir, "d").unwrap_err().to_string().contains("not a socket"));
    }

    #[test]
    fn a_full_door_is_busy_and_does_not_block() {
        let temp = TempDir::new();
        let dir = temp.dir();
        let _listener = Listener::bind(&dir, "d").unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            match connect(&dir, "d") {
                Ok(channel) => waiting.push(channel),
                Err(e) => break e,
            }
        };
        assert!(matches!(error, DoorError::Busy(_)), "{error}");
        assert!(waiting.len() <= 300);
    }
}
