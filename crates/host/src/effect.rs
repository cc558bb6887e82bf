//! Effects: what others still see when this process is dead, each right behind its crash point.
//!
//! Here, and in [`crate::sys`] for processes and signals, are the only calls that write, rename, remove, lock, make or
//! send: whoever needs another one gives it a function here. Each takes the name of what it acts on, by which a test can
//! kill the process right before it. Nothing else happens here; callers make errors out of what the kernel says.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command};

use rustix::fs::{self, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::net::{self, SendAncillaryBuffer, SendFlags, SocketAddrUnix};

use crate::crash::point;

/// Writes all of these bytes at an offset.
pub fn write_at(what: &str, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    point("write", &what);
    file.write_all_at(bytes, offset)
}

/// Writes all of these bytes where the file goes on.
pub fn append(what: &str, mut file: &File, bytes: &[u8]) -> io::Result<()> {
    point("write", &what);
    file.write_all(bytes)
}

/// Writes as many of these bytes as are taken.
pub fn write(what: &str, fd: impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    point("write", &what);
    rustix::io::write(fd, bytes)
}

/// Gives a file this length.
pub fn set_len(what: &str, file: &File, length: u64) -> io::Result<()> {
    point("cut", &what);
    file.set_len(length)
}

/// Sets space aside, or punches a hole.
pub fn allocate(what: &str, file: &File, flags: FallocateFlags, offset: u64, length: u64) -> Result<(), Errno> {
    point("allocate", &what);
    fs::fallocate(file, flags, offset, length)
}

/// Writes a file, or the names of a directory, to the disk.
pub fn sync(what: &str, fd: impl AsFd) -> Result<(), Errno> {
    point("sync", &what);
    fs::fsync(fd)
}

/// Writes the content of a file to the disk.
pub fn sync_data(what: &str, fd: impl AsFd) -> Result<(), Errno> {
    point("sync", &what);
    fs::fdatasync(fd)
}

/// Opens a file; an effect where the flags say that it may be made.
pub fn open(parent: impl AsFd, what: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    if flags.contains(OFlags::CREATE) {
        point("create", &what);
    }
    fs::openat(parent, what, flags, mode)
}

/// Makes a directory.
pub fn make_dir(parent: impl AsFd, what: &str, mode: Mode) -> Result<(), Errno> {
    point("mkdir", &what);
    fs::mkdirat(parent, what, mode)
}

/// Makes a directory at a path, which is called `what`.
pub fn make_dir_at(what: &str, path: &Path, mode: Mode) -> Result<(), Errno> {
    point("mkdir", &what);
    fs::mkdir(path, mode)
}

/// Changes the mode of what is open.
pub fn chmod(what: &str, fd: impl AsFd, mode: Mode) -> Result<(), Errno> {
    point("chmod", &what);
    fs::fchmod(fd, mode)
}

/// Changes the mode of what is at a path, which is called `what`; links are followed.
pub fn chmod_at(what: &str, parent: impl AsFd, path: &Path, mode: Mode) -> Result<(), Errno> {
    point("chmod", &what);
    fs::chmodat(parent, path, mode, AtFlags::empty())
}

/// Gives a thing another name.
pub fn rename(from: impl AsFd, name: &str, to: impl AsFd, what: &str, flags: RenameFlags) -> Result<(), Errno> {
    point("rename", &what);
    match flags.is_empty() {
        true => fs::renameat(from, name, to, what),
        false => fs::renameat_with(from, name, to, what, flags),
    }
}

/// Gives a thing one name more.
pub fn link(from: impl AsFd, name: &str, to: impl AsFd, what: &str) -> Result<(), Errno> {
    point("link", &what);
    fs::linkat(from, name, to, what, AtFlags::empty())
}

/// Takes a name away.
pub fn remove(parent: impl AsFd, path: &Path, flags: AtFlags) -> Result<(), Errno> {
    point("remove", &path.file_name().unwrap_or_default().display());
    fs::unlinkat(parent, path, flags)
}

/// Locks an open file.
pub fn lock(what: &str, file: &File, operation: FlockOperation) -> Result<(), Errno> {
    point("lock", &what);
    fs::flock(file, operation)
}

/// Gives a socket its place in the file system.
pub fn bind(what: &str, socket: &OwnedFd, address: &SocketAddrUnix) -> Result<(), Errno> {
    point("bind", &what);
    net::bind(socket, address)
}

/// Lets others connect to a socket.
pub fn listen(what: &str, socket: &OwnedFd, backlog: i32) -> Result<(), Errno> {
    point("listen", &what);
    net::listen(socket, backlog)
}

/// Connects to a socket of others.
pub fn connect(what: &str, socket: &OwnedFd, address: &SocketAddrUnix) -> Result<(), Errno> {
    point("connect", &what);
    net::connect(socket, address)
}

/// Ends a connection on both sides.
pub fn shut(what: &str, socket: &OwnedFd) -> Result<(), Errno> {
    point("shut", &what);
    net::shutdown(socket, net::Shutdown::Both)
}

/// Sends bytes, and descriptors on them.
pub fn send(
    what: &dyn std::fmt::Display,
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    control: &mut SendAncillaryBuffer<'_, '_, '_>,
    flags: SendFlags,
) -> Result<usize, Errno> {
    point("send", what);
    let sent = net::sendmsg(socket, &[IoSlice::new(bytes)], control, flags);
    point("sent", what);
    sent
}

/// Starts a program.
pub fn spawn(what: &str, command: &mut Command) -> io::Result<Child> {
    point("spawn", &what);
    let spawned = command.spawn();
    point("spawned", &what);
    spawned
}
