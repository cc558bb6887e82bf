//! What `/proc` tells of processes: who they are, who started whom, what they use.

use crate::sys::reap::WaitStatus;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file of `/proc` could not be read, although its process may be there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {errno}")]
pub struct ProcError {
    /// The file or directory.
    pub path: String,
    /// The kernel's reason.
    pub errno: Errno,
}

/// A process as `/proc/PID/stat` shows it (`proc_pid_stat(5)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Process id.
    pub pid: u32,
    /// The name of its main thread, at most 15 bytes; not what it was started as.
    pub comm: String,
    /// One letter: `R`, `S`, `D`, `T`, `t`, `Z`, `X`, …
    pub state: char,
    /// Its parent; 0 when that is out of sight.
    pub ppid: u32,
    /// Its process group.
    pub pgrp: u32,
    /// Its session.
    pub session: u32,
    /// The number of its controlling terminal; 0 where it has none.
    pub terminal: u32,
    /// Whether it is past the point of no return on its way out (`PF_EXITING` of the kernel's
    /// `include/linux/sched.h`): its descriptors are being closed, and it can do nothing any more.
    pub exiting: bool,
    /// How many threads it has.
    pub threads: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Processor time that it has used.
    pub cpu: std::time::Duration,
    /// Its resident memory in bytes.
    pub rss: u64,
    /// The wait status when it is a zombie; 0 also when we may not know: see [`zombie_status`].
    pub exit_code: i32,
}

/// The bit of `flags` in `/proc/PID/stat`.
const PF_EXITING: u64 = 0x4;

impl Stat {
    /// Whether anything of it still runs. A main thread that ended before the others shows as `Z` too.
    pub fn is_live(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') || (self.state == 'Z' && self.threads > 1)
    }
}

/// Process `pid`; nothing when there is none, or none in sight.
pub fn stat(pid: u32) -> Result<Option<Stat>, ProcError> {
    let Some(text) = read(pid, "stat")? else { return Ok(None) };
    let parsed = parse_stat(&text);
    parsed.map(Some).ok_or_else(|| ProcError { path: format!("/proc/{pid}/stat"), errno: Errno::ILSEQ })
}

/// The name stands in parentheses and may itself hold spaces and parentheses: the last one closes it.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let open = text.iter().position(|&byte| byte == b'(')?;
    let close = text.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(&text[..open]).ok()?.trim().parse().ok()?;
    let rest: Vec<&str> = std::str::from_utf8(text.get(close + 1..)?).ok()?.split_ascii_whitespace().collect();
    // The manual counts from 1, and what follows the name begins with field 3.
    let field = |number: usize| rest.get(number - 3).copied();
    let id = |number| field(number)?.parse::<i64>().ok().map(|id| u32::try_from(id).unwrap_or(0));
    let ticks = field(14)?.parse::<u64>().ok()?.saturating_add(field(15)?.parse().ok()?);
    Some(Stat {
        pid,
        cpu: std::time::Duration::from_millis(ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second()),
        comm: String::from_utf8_lossy(text.get(open + 1..close)?).into_owned(),
        state: field(3)?.chars().next()?,
        ppid: id(4)?,
        pgrp: id(5)?,
        session: id(6)?,
        terminal: id(7)?,
        exiting: field(9)?.parse::<u64>().ok()? & PF_EXITING != 0,
        threads: id(20)?,
        start: field(22)?.parse().ok()?,
        rss: field(24)?.parse::<u64>().ok()?.saturating_mul(rustix::param::page_size() as u64),
        exit_code: field(52).and_then(|code| code.parse().ok()).unwrap_or(0),
    })
}

/// Whether `pid` waits at this moment in a read of its standard input (proc(5), syscall); false also where the kernel
/// does not let this process look.
pub fn reads_input(pid: u32) -> bool {
    let Ok(Some(text)) = read(pid, "syscall") else { return false };
    let text = String::from_utf8_lossy(&text);
    let mut words = text.split_ascii_whitespace();
    words.next().and_then(|number| number.parse().ok()) == Some(libc::SYS_read) && words.next() == Some("0x0")
}

/// The file name of the executable of `pid`; nothing when there is none in sight, or it is another user's.
pub fn executable(pid: u32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    // The kernel marks a file that was replaced or removed (proc_pid_exe(5)).
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some(name.strip_suffix(" (deleted)").map_or(name.clone(), str::to_owned))
}

/// How zombie `pid` ended, asked by anyone with the same user id; nothing when it runs, or is not ours to know.
pub fn zombie_status(pid: u32) -> Result<Option<WaitStatus>, ProcError> {
    let Some(stat) = stat(pid)? else { return Ok(None) };
    let same_user = std::fs::metadata(format!("/proc/{pid}"))
        .is_ok_and(|process| process.uid() == rustix::process::geteuid().as_raw());
    // To others the kernel shows 0, which must not be taken for a success.
    let ended = !stat.is_live() && same_user;
    Ok(if ended { WaitStatus::from_raw(stat.exit_code) } else { None })
}

/// The children of `pid`, zombies included.
///
/// The kernel may leave one out while others end (`proc_tid_children(5)`): who needs to be sure asks until
/// two answers are empty.
pub fn children(pid: u32) -> Result<Vec<u32>, ProcError> {
    let mut found = Vec::new();
    for thread in numbers(&format!("/proc/{pid}/task"))? {
        match read(pid, &format!("task/{thread}/children"))? {
            Some(list) => {
                found.extend(String::from_utf8_lossy(&list).split_whitespace().filter_map(|n| n.parse::<u32>().ok()))
            }
            // Kernels without that file, or a thread that has just ended.
            None if !Path::new("/proc/thread-self/children").exists() => return children_by_scan(pid),
            None => {}
        }
    }
    Ok(found)
}

fn children_by_scan(parent: u32) -> Result<Vec<u32>, ProcError> {
    Ok(all()?.into_iter().filter(|stat| stat.ppid == parent).map(|stat| stat.pid).collect())
}

/// The live descendants of `root`, nearest first, without `root` itself.
pub fn descendants(root: u32) -> Result<Vec<Stat>, ProcError> {
    let mut found: Vec<Stat> = Vec::new();
    let mut waiting = VecDeque::from(children(root)?);
    while let Some(pid) = waiting.pop_front() {
        // A pid that moved up to an adopter while we looked may be listed twice.
        if found.iter().any(|seen| seen.pid == pid) {
            continue;
        }
        let Some(stat) = stat(pid)? else { continue };
        if stat.is_live() {
            waiting.extend(children(pid)?);
            found.push(stat);
        }
    }
    Ok(found)
}

/// The arguments of `pid` joined by spaces, cut to `most` bytes; its name in brackets when it has none.
pub fn cmdline(pid: u32, most: usize) -> Result<Option<String>, ProcError> {
    let Some(bytes) = read(pid, "cmdline")? else { return Ok(None) };
    let words: Vec<_> =
        bytes.split(|&byte| byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    if words.is_empty() {
        return Ok(stat(pid)?.map(|stat| format!("[{}]", stat.comm)));
    }
    let mut line = words.join(" ");
    line.truncate(line.floor_char_boundary(most));
    Ok(Some(line))
}

/// The resident memory of `pid` in bytes, shared pages counted in full.
pub fn rss(pid: u32) -> Result<Option<u64>, ProcError> {
    Ok(stat(pid)?.map(|stat| stat.rss))
}

/// The memory of `pid` in bytes, each shared page counted by its share; nothing also when we may not know.
pub fn pss(pid: u32) -> Result<Option<u64>, ProcError> {
    let rollup = match read(pid, "smaps_rollup") {
        Err(error) if matches!(error.errno, Errno::ACCESS | Errno::PERM) => return Ok(None),
        rollup => rollup?,
    };
    let Some(text) = rollup else { return Ok(None) };
    let text = String::from_utf8_lossy(&text);
    let kib = text.lines().find_map(|line| line.strip_prefix("Pss:")?.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.map(|kib| kib * 1024))
}

/// Whether `pid` was started with `key=value` in its environment; `false` also when we may not know.
pub fn environ_has(pid: u32, key: &str, value: &str) -> Result<bool, ProcError> {
    Ok(environ_value(pid, key)?.is_some_and(|found| found == value.as_bytes()))
}

/// The value of `key` in the environment that `pid` was started with; nothing also when we may not know.
pub fn environ_value(pid: u32, key: &str) -> Result<Option<Vec<u8>>, ProcError> {
    let environ = environ(pid)?.unwrap_or_default();
    let value = |entry: &[u8]| Some(entry.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?.to_owned());
    Ok(environ.split(|&byte| byte == 0).find_map(value))
}

/// The live processes, among those that we may know, that were started with `key=value` in their environment.
pub fn find_by_environ(key: &str, value: &str) -> Result<Vec<Stat>, ProcError> {
    let (mut found, mut bare) = (Vec::new(), Vec::new());
    for pid in numbers("/proc")? {
        match environ(pid)? {
            Some(entries) if entries.is_empty() => bare.push(pid),
            Some(entries) if holds_entry(&entries, key, value) => found.extend(stat(pid)?.filter(Stat::is_live)),
            Some(_) | None => {}
        }
    }
    // One that is between two programs (execve(2)) shows no environment for a moment.
    for pid in bare {
        if environ(pid)?.is_some_and(|entries| holds_entry(&entries, key, value)) {
            found.extend(stat(pid)?.filter(Stat::is_live));
        }
    }
    Ok(found)
}

/// The environment that `pid` was started with; nothing when there is no such process, or when we may not know.
fn environ(pid: u32) -> Result<Option<Vec<u8>>, ProcError> {
    match read(pid, "environ") {
        Err(error) if matches!(error.errno, Errno::ACCESS | Errno::PERM) => Ok(None),
        entries => entries,
    }
}

fn holds_entry(environ: &[u8], key: &str, value: &str) -> bool {
    let is = |entry: &[u8]| {
        let found = entry.strip_prefix(key.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        found == Some(value.as_bytes())
    };
    environ.split(|&byte| byte == 0).any(is)
}

/// Whether `pid` has something open below a directory of this name, or the directory; `false` also when we
/// may not know.
pub fn holds_open(pid: u32, name: &str) -> Result<bool, ProcError> {
    let directory = format!("/proc/{pid}/fd");
    let found = match numbers(&directory) {
        Err(error) if matches!(error.errno, Errno::ACCESS | Errno::PERM) => return Ok(false),
        found => found?,
    };
    // A descriptor may be closed while we look.
    let targets = found.iter().filter_map(|number| std::fs::read_link(format!("{directory}/{number}")).ok());
    Ok(targets.into_iter().any(|target| target.components().any(|part| part.as_os_str() == name)))
}

/// Every process in sight.
pub fn all() -> Result<Vec<Stat>, ProcError> {
    let mut found = Vec::new();
    for pid in numbers("/proc")? {
        found.extend(stat(pid)?);
    }
    Ok(found)
}

/// How many threads this process's user has: what its limit of processes counts (RLIMIT_NPROC).
pub fn threads_of_user() -> Result<u64, ProcError> {
    let user = rustix::process::getuid().as_raw();
    let mut threads = 0;
    for pid in numbers("/proc")? {
        // One that is gone has none.
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        if value("Uid:") == Some(u64::from(user)) {
            threads += value("Threads:").unwrap_or(0);
        }
    }
    Ok(threads)
}

/// The entries of `directory` that are numbers; none when it is gone.
fn numbers(directory: &str) -> Result<Vec<u32>, ProcError> {
    let failed = |error: std::io::Error| failure(directory, &error);
    let entries = match std::fs::read_dir(directory) {
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        match entry {
            Err(error) if is_gone(&error) => break,
            entry => {
                found.extend(entry.map_err(failed)?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()))
            }
        }
    }
    Ok(found)
}

/// A file of process `pid`; nothing when the process is gone.
/// Whether anybody listens at a TCP port, in the network of process `pid`. Where that is none, gone or out of
/// sight it is the network of this process.
pub fn listens(pid: Option<u32>, port: u16) -> Result<bool, ProcError> {
    let of_pid = pid.and_then(|pid| table(pid, "net/tcp").ok().flatten().map(|tcp| (pid, tcp)));
    let (pid, tcp) = match of_pid {
        Some(found) => found,
        None => {
            let own = std::process::id();
            let absent = || ProcError { path: format!("/proc/{own}/net/tcp"), errno: Errno::NOENT };
            (own, table(own, "net/tcp")?.ok_or_else(absent)?)
        }
    };
    // There is no second table where the kernel knows no IPv6.
    Ok(has_listener(&tcp, port) || table(pid, "net/tcp6")?.is_some_and(|tcp6| has_listener(&tcp6, port)))
}

fn table(pid: u32, file: &str) -> Result<Option<String>, ProcError> {
    Ok(read(pid, file)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The state of a socket that listens (`TCP_LISTEN` of the kernel's `include/net/tcp_states.h`).
const TCP_LISTEN: &str = "0A";

/// Fields of a line: number, local address, remote address, state, … (`proc_pid_net(5)`).
fn has_listener(table: &str, port: u16) -> bool {
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        let [_, local, _, TCP_LISTEN] = fields[..] else { return false };
        local.rsplit_once(':').and_then(|(_, hex)| u16::from_str_radix(hex, 16).ok()) == Some(port)
    })
}

fn read(pid: u32, file: &str) -> Result<Option<Vec<u8>>, ProcError> {
    let path = format!("/proc/{pid}/{file}");
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(failure(&path, &error)),
    }
}

/// A process that ends between open and read gives `ESRCH`, one that ended before `ENOENT`.
fn is_gone(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}

fn failure(path: &str, error: &std::io::Error) -> ProcError {
    ProcError { path: path.to_owned(), errno: Errno::from_io_error(error).unwrap_or(Errno::IO) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_known_by_its_port_and_its_state() {
        let line =
            |local: &str, state: &str| format!("   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000\n");
        let head = "  sl  local_address rem_address   st tx_queue rx_queue\n";
        let table = |local: &str, state: &str| format!("{head}{}{}", line("0100007F:0016", "0A"), line(local, state));
        assert!(has_listener(&table("0100007F:1F90", "0A"), 8080));
        assert!(has_listener(&table("00000000000000000000000001000000:1F90", "0A"), 8080));
        for other in
            [table("0100007F:1F90", "01"), table("0100007F:1F91", "0A"), table("1F90:0050", "0A"), String::new()]
        {
            assert!(!has_listener(&other, 8080), "{other}");
        }
    }

    #[test]
    fn a_port_is_open_while_somebody_listens_there() {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
        let any = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
        let ours = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&ours, &any).expect("a port");
        let own = getsockname(&ours).expect("a name");
        let port = std::net::SocketAddrV4::try_from(own).expect("an address of IPv4").port();
        assert_eq!(listens(None, port), Ok(false), "it is taken, and nobody listens");
        listen(&ours, 1).expect("it listens");
        // In the network of a process; a process that is not there has none of its own.
        for pid in [None, Some(std::process::id()), Some(u32::MAX)] {
            assert_eq!(listens(pid, port), Ok(true), "{pid:?}");
        }
        drop(ours);
        assert_eq!(listens(None, port), Ok(false));
    }

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        let rest = "S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 12345 1000 2 18446744073709551615 \
                    0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 1792";
        let stat = parse_stat(format!("42 (a) Z 1 (b) {rest}\n").as_bytes()).expect("stat");
        assert_eq!((stat.pid, stat.comm.as_str(), stat.state), (42, "a) Z 1 (b", 'S'));
        assert_eq!((stat.ppid, stat.pgrp, stat.session), (7, 8, 9));
        assert_eq!((stat.threads, stat.start, stat.exit_code), (3, 12345, 7 << 8));
        assert_eq!(stat.rss, 2 * rustix::param::page_size() as u64);
        for broken in ["", "42", "42 (a", "42 (a)", "x (a) S 1"] {
            assert_eq!(parse_stat(broken.as_bytes()), None, "{broken:?}");
        }
    }

    #[test]
    fn a_main_thread_that_ended_first_is_no_zombie() {
        let own = stat(std::process::id()).expect("readable").expect("here");
        let seems = |state, threads| Stat { state, threads, ..own.clone() }.is_live();
        assert!(seems('S', 1) && seems('T', 1) && seems('Z', 2));
        assert!(!seems('Z', 1) && !seems('X', 1));
    }

    #[test]
    fn what_is_gone_is_nothing_and_no_error() {
        let nobody = 0x7fff_fff0;
        assert_eq!(stat(nobody), Ok(None));
        assert_eq!(children(nobody), Ok(vec![]));
        assert_eq!(descendants(nobody), Ok(vec![]));
        assert_eq!(cmdline(nobody, 80), Ok(None));
        assert_eq!(pss(nobody), Ok(None));
        assert_eq!(zombie_status(nobody), Ok(None));
    }
}
