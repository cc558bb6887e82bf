//! Faults of the machine and of those who meddle: file systems, doors, files.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::time::{ClockId, clock_gettime, clock_settime};

use crate::disk;

/// What may be done to this machine.
#[derive(Debug)]
pub struct Means {
    /// Whether file systems can be mounted, else why not.
    pub mounts: Result<(), String>,
    /// Whether the clock of the whole machine may be moved, else why not.
    pub clock: Result<(), String>,
    /// Whether the kernel bounds the processes of this user, else why not.
    pub processes: Result<(), String>,
}

/// Whether `RLIMIT_NPROC` binds this process: it does not bind root, but the root of a user namespace (setrlimit(2)).
pub fn bounds_processes() -> Result<(), String> {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let mapped = map.split_whitespace().nth(1) != Some("0");
    match mapped || !rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err("the kernel does not bound the processes of root".to_owned()),
    }
}

/// The bytes of the small file system that a round fills.
const SMALL_DISK: &str = "size=8m,mode=700";

/// The file that fills it.
const FILLER: &str = "filler";

/// Runs a program of the system; what it says when it fails.
fn system(words: &[&str]) -> Result<(), String> {
    let mut command = Command::new(words[0]);
    let output =
        command.args(&words[1..]).stdin(Stdio::null()).output().map_err(|error| format!("{words:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Whether a process of ours may have file systems of its own: as it is, or as the root of a user namespace. The words
/// of the call that gives it some.
pub fn namespace() -> Result<Vec<&'static str>, String> {
    let plain = ["unshare", "--mount", "--propagation", "private"];
    let mapped = [&plain[..], &["--user", "--map-root-user"]].concat();
    let probe = ["sh", "-c", "mount -t tmpfs -o size=64k none /mnt && umount /mnt"];
    match system(&[&plain[..], &probe].concat()) {
        Ok(()) => Ok(plain.to_vec()),
        Err(_) => system(&[&mapped[..], &probe].concat()).map(|()| mapped),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of a world are text")
}

/// Mounts a small file system.
pub fn mount_small(at: &Path) -> Result<(), String> {
    fs::create_dir_all(at).map_err(|error| error.to_string())?;
    system(&["mount", "-t", "tmpfs", "-o", SMALL_DISK, "outlast-torture", text(at)])
}

/// Takes a mount away, also under those who still use it.
pub fn unmount(at: &Path) -> Result<(), String> {
    system(&["umount", "-l", text(at)])
}

/// Lays a read-only view of a directory over it.
pub fn make_read_only(at: &Path) -> Result<(), String> {
    system(&["mount", "--bind", text(at), text(at)])?;
    system(&["mount", "-o", "remount,bind,ro", text(at)]).inspect_err(|_| {
        // What lies there now can be written; that it cannot be taken away either would be told at the end of the round.
        let _unmounted = unmount(at);
    })
}

/// Fills the file system to its last byte.
pub fn fill(at: &Path) -> Result<(), String> {
    let mut file = File::create(at.join(FILLER)).map_err(|error| error.to_string())?;
    for size in [64 << 10, 4 << 10, 1] {
        while file.write(&vec![b'#'; size]).is_ok_and(|count| count == size) {}
    }
    Ok(())
}

/// Gives the space back.
pub fn free(at: &Path) {
    // It is missing only where it could not be made.
    let _gone = fs::remove_file(at.join(FILLER));
}

/// The clock of day after a jump; it jumps back when this is dropped.
#[derive(Debug)]
pub struct Jump(i64);

impl Jump {
    /// Moves the clock by so many seconds.
    pub fn by(seconds: i64) -> Result<Jump, String> {
        move_clock(seconds).map(|()| Jump(seconds)).map_err(|error| format!("the clock cannot be moved: {error}"))
    }
}

impl Drop for Jump {
    fn drop(&mut self) {
        // It could be moved before, by the same process.
        let _moved = move_clock(-self.0);
    }
}

fn move_clock(seconds: i64) -> Result<(), rustix::io::Errno> {
    let mut now = clock_gettime(ClockId::Realtime);
    now.tv_sec += seconds;
    clock_settime(ClockId::Realtime, now)
}

/// The doors below a directory, whether or not somebody is behind them.
fn doors(below: &Path) -> Vec<PathBuf> {
    let is_door = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    disk::files(below).into_iter().filter(is_door).collect()
}

/// Connects to a door, unless nobody is behind it.
fn connect(door: &Path) -> Option<UnixStream> {
    // The name of a socket may have 107 bytes (unix(7)); through an open directory every path is short enough.
    let dir = File::open(door.parent()?).ok()?;
    UnixStream::connect(format!("/proc/self/fd/{}/{}", dir.as_raw_fd(), disk::name(door))).ok()
}

/// The doors below a directory that somebody is behind: a socket of the dead refuses whoever connects to it.
pub fn open_doors(below: &Path) -> Vec<PathBuf> {
    doors(below).into_iter().filter(|door| connect(door).is_some()).collect()
}

/// Connects to one of the doors below a directory and sends bytes that are no message, or just goes. Says which door.
pub fn knock(state: &Path, nth: usize, garbage: bool) -> Option<PathBuf> {
    let doors = doors(state);
    let door = doors.get(nth % doors.len().max(1))?;
    let mut stream = connect(door)?;
    if garbage {
        let bytes: Vec<u8> = (0..200 + nth * 40).map(|at| (at * 131 + nth * 17) as u8).collect();
        // The other side may hang up over it at once, which is its right.
        let _refused = stream.write_all(&bytes);
    }
    Some(door.clone())
}

/// Cuts off or overwrites the last bytes of a file, under the lock that its writers take.
pub fn tear(path: &Path, bytes: u64, garble: bool) -> Option<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).ok()?;
    let keep = file.metadata().ok()?.len().saturating_sub(bytes);
    if garble {
        file.seek(SeekFrom::Start(keep)).ok()?;
        file.write_all(&vec![0xB5; usize::try_from(bytes).expect("few bytes")]).ok()
    } else {
        file.set_len(keep).ok()
    }
}

/// Leaves what writers leave that died over their work: half a ledger, half a directory of a command.
pub fn leave_behind(session: &Path) -> Option<Vec<PathBuf>> {
    let ledger = session.join(".inbox.json.tmp");
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(session.join("inbox.lock")).ok()?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).ok()?;
    fs::write(&ledger, "{\"schema\":\"outlast.led").ok()?;
    let half = session.join("work/.new-wrk_00000000000070008000000000000001");
    fs::create_dir_all(&half).ok()?;
    fs::write(half.join("request.json"), "{\"schema\":").ok()?;
    let report = session.join(".closed.json.1.0.tmp");
    fs::write(&report, "").ok()?;
    Some(vec![ledger, half, report])
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_door_is_open_as_long_as_somebody_is_behind_it() {
        let root = std::env::temp_dir().join(format!("outlast-torture-doors-{}", std::process::id()));
        fs::create_dir_all(root.join("deep")).expect("a directory can be made");
        let dir = File::open(root.join("deep")).expect("it is there");
        // As outlast binds them, so that no path of this world stands in /proc/net/unix.
        let door = UnixListener::bind(format!("/proc/self/fd/{}/keeper.sock", dir.as_raw_fd())).expect("a door");
        assert_eq!(open_doors(&root), [root.join("deep/keeper.sock")]);
        drop(door);
        let (open, there) = (open_doors(&root), doors(&root).len());
        fs::remove_dir_all(&root).expect("it can be removed");
        assert_eq!((open, there), (Vec::new(), 1), "a socket of the dead");
    }
}
