//! Starts the leader of a command: own session, default signals, fds 0 to 2 only, dies with its parent.

use super::fork::fork_with_pidfd;
use super::{last_errno, pidfd, signals};
use crate::crash::point;

mod birth;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::ptr;

/// What to start. Whatever can fail early (names, descriptors) was prepared by the caller.
#[derive(Debug)]
pub struct LeaderPlan<'a> {
    /// The file to execute, as [`crate::program::resolve_program`] found it; relative to `cwd`.
    pub program: CString,
    /// The arguments, the name of the program first.
    pub argv: Vec<CString>,
    /// The whole environment, each entry `KEY=value`.
    pub env: Vec<CString>,
    /// The working directory.
    pub cwd: BorrowedFd<'a>,
    /// Becomes descriptor 0.
    pub stdin: BorrowedFd<'a>,
    /// Whether `stdin` is a terminal, which then controls the leader's session (ioctl_tty(2), TIOCSCTTY).
    pub terminal: bool,
    /// Becomes descriptor 1.
    pub stdout: BorrowedFd<'a>,
    /// Becomes descriptor 2; may be the same as `stdout`.
    pub stderr: BorrowedFd<'a>,
    /// The directory of the cgroup to be born in.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// Limits, soft and hard alike (processor time: a second more for the hard one); one above the inherited hard limit becomes that limit.
    pub rlimits: Vec<(Resource, u64)>,
    /// Limits of the caller that differ from this process's own, set before `rlimits`. A hard limit that may
    /// not be raised stays, with the soft one below it.
    pub inherited: Vec<(Resource, Rlimit)>,
    /// The caller's umask.
    pub umask: Option<Mode>,
    /// How readily the kernel picks the command when memory runs out (-1000 to 1000); never less readily
    /// than this process. A help only: where it cannot be set, the command starts all the same.
    pub oom_score_adj: Option<i32>,
}

/// A started leader: an unreaped child of this process, session and group leader.
#[derive(Debug)]
pub struct Leader {
    /// Its process id, which is also the id of its session and group.
    pub pid: u32,
    /// A descriptor of it, closed on exec.
    pub pidfd: OwnedFd,
}

/// Why no leader runs. The child that failed was reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {errno}")]
pub struct SpawnError {
    /// What failed: one of [`STEPS`].
    pub step: &'static str,
    /// The kernel's reason.
    pub errno: Errno,
}

/// The names of the steps that can fail, in order: the first three in this process, the others in the child.
pub const STEPS: [&str; 12] = [
    "pipe",
    "clone",
    "pidfd",
    "cgroup",
    "signals",
    "setsid",
    "terminal",
    "pdeathsig",
    "cwd",
    "stdio",
    "rlimit",
    "exec",
];

/// An index into [`STEPS`].
#[derive(Clone, Copy)]
enum Step {
    Pipe,
    Clone,
    Pidfd,
    Cgroup,
    Signals,
    Setsid,
    Terminal,
    Pdeathsig,
    Cwd,
    Stdio,
    Rlimit,
    Exec,
}

impl Step {
    fn failed(self) -> impl Fn(Errno) -> SpawnError {
        move |errno| SpawnError { step: STEPS[self as usize], errno }
    }
}

/// Starts the leader and returns once its program runs, or with the step that failed.
///
/// The parent's death kills the leader. That is bound to the calling *thread*, so the thread must live as
/// long as the process (`PR_SET_PDEATHSIG(2const)`). A file that the kernel cannot execute (`ENOEXEC`) is
/// run by `/bin/sh`, as `execvp(3)` does. SIGCHLD must not be ignored by this process.
pub fn spawn_leader(plan: &LeaderPlan<'_>) -> Result<Leader, SpawnError> {
    spawn_by(plan, clone_with_pidfd)
}

/// How a child is made: the leader in the parent, nothing in the child.
type Birth = fn(&Prepared<'_>) -> Result<Option<Leader>, SpawnError>;

fn spawn_by(plan: &LeaderPlan<'_>, birth: Birth) -> Result<Leader, SpawnError> {
    let (reader, writer) = report_pipe().map_err(Step::Pipe.failed())?;
    let prepared = Prepared::new(plan, writer);
    // Otherwise a handler of this process could run in the child.
    let blocked = signals::AllBlocked::new().map_err(Step::Signals.failed())?;
    point("spawn", &"leader");
    let mut born = birth(&prepared);
    if matches!(&born, Err(error) if matches!(error.errno, Errno::NOSYS | Errno::PERM | Errno::TOOBIG)) {
        born = fork_into_cgroup(&prepared);
    }
    let Some(leader) = born.transpose() else { prepared.become_leader() };
    point("spawned", &"leader");
    drop(blocked);
    drop(prepared);
    let leader = leader?;
    match read_report(&reader) {
        None => Ok(leader),
        // The child ends right after its report.
        Some(error) => match pidfd::wait_exit(&leader.pidfd) {
            // Reaped by the kernel already, where SIGCHLD is ignored in spite of the rule above.
            Ok(_) | Err(Errno::CHILD) => Err(error),
            Err(errno) => Err(Step::Pidfd.failed()(errno)),
        },
    }
}

/// A pipe that exec closes, with no end among the descriptors that become stdio.
fn report_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let writer = if writer.as_raw_fd() < 3 { rustix::io::fcntl_dupfd_cloexec(&writer, 3)? } else { writer };
    Ok((reader, writer))
}

/// What the child reported before it ended; nothing when its program runs, or was killed before it did.
fn read_report(reader: &OwnedFd) -> Option<SpawnError> {
    let mut report = [0u8; 8];
    let length = loop {
        match rustix::io::read(reader, &mut report) {
            Err(Errno::INTR) => {}
            Err(errno) => return Some(Step::Pipe.failed()(errno)),
            Ok(length) => break length,
        }
    };
    let (step, errno) = report.split_first_chunk::<4>()?;
    // Eight bytes are written to a pipe whole or not at all.
    (length == 8).then(|| SpawnError {
        step: STEPS.get(u32::from_ne_bytes(*step) as usize).copied().unwrap_or("exec"),
        errno: Errno::from_raw_os_error(i32::from_ne_bytes(errno.try_into().unwrap_or_default())),
    })
}

/// `clone3(2)` with the descriptor and the cgroup at birth.
///
/// On x86-64 the child borrows this memory until its exec, as after vfork(2), and runs on a stack of its
/// own: no page table is copied, and no page of this process faults again afterwards. Elsewhere it goes on
/// with a copy of the memory, as after fork.
fn clone_with_pidfd(prepared: &Prepared<'_>) -> Result<Option<Leader>, SpawnError> {
    /// `struct clone_args` of `linux/sched.h`: flags, pidfd, child_tid, parent_tid, exit_signal, stack,
    /// stack_size, tls, set_tid, set_tid_size, cgroup.
    const WHOLE: usize = 88;
    /// The part that Linux 5.3 knew, up to and with `tls`.
    const FIRST: usize = 64;
    const CLONE_PIDFD: u64 = 0x1000;
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

    let mut number: i32 = -1;
    let place = &raw mut number;
    let mut args = [0u64; WHOLE / 8];
    args[0] = CLONE_PIDFD;
    args[1] = place.expose_provenance() as u64;
    args[4] = libc::SIGCHLD as u64;
    let mut size = FIRST;
    if let Some(cgroup) = prepared.plan.cgroup {
        args[0] |= CLONE_INTO_CGROUP;
        args[10] = u64::from(cgroup.as_raw_fd().unsigned_abs());
        size = WHOLE;
    }
    // SAFETY: `args` has `size` bytes of the struct that the kernel reads, and `place` takes the answer. The
    // child makes async-signal-safe calls only, until exec or _exit.
    let pid = unsafe { birth::clone3(&mut args, size, prepared) };
    match pid {
        Ok(0) => Ok(None),
        Ok(pid) => {
            // SAFETY: on success the kernel wrote there the number of a descriptor that nobody else knows of.
            let pidfd = unsafe { OwnedFd::from_raw_fd(place.read()) };
            Ok(Some(Leader { pid, pidfd }))
        }
        Err(errno @ (Errno::AGAIN | Errno::NOMEM | Errno::NOSYS | Errno::PERM | Errno::TOOBIG)) => {
            Err(Step::Clone.failed()(errno))
        }
        Err(errno) if prepared.plan.cgroup.is_some() => Err(Step::Cgroup.failed()(errno)),
        Err(errno) => Err(Step::Clone.failed()(errno)),
    }
}

/// The same where `clone3` is missing or forbidden: fork, and move to the cgroup before anything else.
fn fork_into_cgroup(prepared: &Prepared<'_>) -> Result<Option<Leader>, SpawnError> {
    // SAFETY: the child makes async-signal-safe calls only, until exec or _exit.
    let forked = unsafe { fork_with_pidfd() }.map_err(Step::Clone.failed())?;
    if let (None, Some(cgroup)) = (&forked, prepared.plan.cgroup) {
        join_cgroup(cgroup).unwrap_or_else(|errno| prepared.give_up(Step::Cgroup, errno));
    }
    Ok(forked.map(|(pid, pidfd)| Leader { pid, pidfd }))
}

/// Moves this process; `0` stands for the writer (cgroup-v2.rst, "cgroup.procs").
fn join_cgroup(cgroup: BorrowedFd<'_>) -> Result<(), Errno> {
    let procs = rustix::fs::openat(cgroup, c"cgroup.procs", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(procs, b"0").map(drop)
}

/// Everything that the child needs, made before it is born, because it must not allocate.
struct Prepared<'a> {
    plan: &'a LeaderPlan<'a>,
    /// The write end of the report.
    report: OwnedFd,
    argv: Vec<*const c_char>,
    /// The arguments of `/bin/sh` for a file that the kernel cannot execute.
    shell_argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    parent: Pid,
    /// What to write to `/proc/self/oom_score_adj`.
    oom_score_adj: Option<CString>,
}

const SHELL: &CStr = c"/bin/sh";
const OOM_SCORE_ADJ: &CStr = c"/proc/self/oom_score_adj";

impl<'a> Prepared<'a> {
    fn new(plan: &'a LeaderPlan<'a>, report: OwnedFd) -> Self {
        let pointers = |strings: &[CString]| -> Vec<_> {
            strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
        };
        let argv = pointers(&plan.argv);
        let script = [SHELL.as_ptr(), plan.program.as_ptr()];
        // The name of the program gives way to the two of the shell; the null at the end stays.
        let rest = argv.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(&[ptr::null()]);
        Self {
            report,
            shell_argv: [&script, rest].concat(),
            argv,
            env: pointers(&plan.env),
            parent: rustix::process::getpid(),
            oom_score_adj: plan.oom_score_adj.and_then(raised_oom_score),
            plan,
        }
    }

    /// The child's way to its program. It allocates nothing, takes no lock and cannot panic.
    fn become_leader(&self) -> ! {
        let (step, errno) = match self.prepare_process() {
            Err(failure) => failure,
            Ok(()) => (Step::Exec, self.execute()),
        };
        self.give_up(step, errno)
    }

    fn prepare_process(&self) -> Result<(), (Step, Errno)> {
        signals::reset_dispositions();
        signals::unblock_all().map_err(|e| (Step::Signals, e))?;
        rustix::process::setsid().map_err(|e| (Step::Setsid, e))?;
        if self.plan.terminal {
            rustix::process::ioctl_tiocsctty(self.plan.stdin).map_err(|e| (Step::Terminal, e))?;
        }
        self.die_with_parent().map_err(|e| (Step::Pdeathsig, e))?;
        self.raise_oom_score();
        rustix::process::fchdir(self.plan.cwd).map_err(|e| (Step::Cwd, e))?;
        self.place_stdio().map_err(|e| (Step::Stdio, e))?;
        close_on_exec_from_3().map_err(|e| (Step::Stdio, e))?;
        // Last, as a low limit of descriptors would be in the way of the steps before.
        self.limit().map_err(|e| (Step::Rlimit, e))
    }

    fn die_with_parent(&self) -> Result<(), Errno> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that died before the call above sends nothing any more.
        if rustix::process::getppid() == Some(self.parent) { Ok(()) } else { Err(Errno::SRCH) }
    }

    /// A failure is no reason not to start: the score only says whom the kernel should pick first.
    fn raise_oom_score(&self) {
        let Some(score) = &self.oom_score_adj else { return };
        if let Ok(file) = rustix::fs::open(OOM_SCORE_ADJ, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            let _ = rustix::io::write(file, score.to_bytes());
        }
    }

    fn place_stdio(&self) -> Result<(), Errno> {
        // First out of the way of the targets, so that none overwrites a source that is still needed.
        let plan = self.plan;
        let stdin = rustix::io::fcntl_dupfd_cloexec(plan.stdin, 3)?;
        let stdout = rustix::io::fcntl_dupfd_cloexec(plan.stdout, 3)?;
        let stderr = rustix::io::fcntl_dupfd_cloexec(plan.stderr, 3)?;
        for (source, target) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
            // SAFETY: the numbers 0 to 2 are taken over by design: this process has no other owner of them,
            // as it runs nothing but these steps, and `source` is above them.
            let result = unsafe { libc::dup2(source.into_raw_fd(), target) };
            if result < 0 {
                return Err(last_errno());
            }
        }
        Ok(())
    }

    fn limit(&self) -> Result<(), Errno> {
        if let Some(mask) = self.plan.umask {
            rustix::process::umask(mask);
        }
        for &(resource, limit) in &self.plan.inherited {
            if rustix::process::setrlimit(resource, limit).is_err() {
                let maximum = rustix::process::getrlimit(resource).maximum;
                let lower =
                    |own: Option<u64>| own.map_or(maximum, |own| Some(maximum.map_or(own, |most| own.min(most))));
                rustix::process::setrlimit(resource, Rlimit { current: lower(limit.current), maximum })?;
            }
        }
        for &(resource, value) in &self.plan.rlimits {
            let hard = rustix::process::getrlimit(resource).maximum;
            let value = hard.map_or(value, |hard| value.min(hard));
            // At the hard limit of processor time the kernel sends KILL, which nobody could attribute
            // (setrlimit(2)): the second above lets it send XCPU first.
            let slack = u64::from(resource == Resource::Cpu && hard.is_none_or(|hard| hard > value));
            let limit = Rlimit { current: Some(value), maximum: Some(value + slack) };
            rustix::process::setrlimit(resource, limit)?;
        }
        Ok(())
    }

    /// Returns only when neither the program nor, for `ENOEXEC`, the shell could be executed.
    fn execute(&self) -> Errno {
        let run = |program: &CStr, argv: &[*const c_char]| {
            // SAFETY: both lists end in a null, and their strings live in the plan or are constant.
            unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), self.env.as_ptr()) };
            last_errno()
        };
        match run(&self.plan.program, &self.argv) {
            Errno::NOEXEC => run(SHELL, &self.shell_argv),
            errno => errno,
        }
    }

    fn give_up(&self, step: Step, errno: Errno) -> ! {
        let [a, b, c, d] = (step as u32).to_ne_bytes();
        let [e, f, g, h] = errno.raw_os_error().to_ne_bytes();
        // A parent that cannot be told is gone.
        let _ = rustix::io::write(&self.report, &[a, b, c, d, e, f, g, h]);
        super::fork::exit_now(127)
    }
}

/// The score as it is written, when it is higher than that of this process.
fn raised_oom_score(wanted: i32) -> Option<CString> {
    let inherited = std::fs::read_to_string("/proc/self/oom_score_adj").ok()?.trim().parse::<i32>().ok()?;
    let digits = (wanted > inherited).then(|| wanted.min(1000).to_string())?;
    CString::new(digits).ok()
}

/// Leaves only descriptors 0 to 2 to the program; the report stays open until then.
fn close_on_exec_from_3() -> Result<(), Errno> {
    // SAFETY: the flag is set on descriptors only, none is closed.
    if unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } == 0 {
        return Ok(());
    }
    // Before Linux 5.11: one by one, as listed.
    let list = rustix::fs::open(c"/proc/self/fd", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&list, &mut buffer);
    while let Some(entry) = entries.next() {
        let number = entry?.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok());
        let Some(number) = number.filter(|&number| number >= 3) else { continue };
        // SAFETY: the call takes numbers, and setting this flag closes nothing.
        if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(last_errno());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;

    /// Where `clone3` is missing the same leader is born by fork.
    #[test]
    fn fork_does_what_clone3_does() {
        let null = rustix::fs::open(c"/dev/null", OFlags::RDWR, Mode::empty()).expect("null");
        let cwd = rustix::fs::open(c"/", OFlags::PATH, Mode::empty()).expect("root");
        let words = |words: &[&CStr]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let mut plan = LeaderPlan {
            program: c"/bin/sh".to_owned(),
            argv: words(&[c"sh", c"-c", c"test $(cut -d' ' -f6 /proc/self/stat) = $$ && exit 7"]),
            env: words(&[c"PATH=/bin:/usr/bin"]),
            cwd: cwd.as_fd(),
            stdin: null.as_fd(),
            terminal: false,
            stdout: null.as_fd(),
            stderr: null.as_fd(),
            cgroup: None,
            rlimits: vec![],
            inherited: vec![],
            umask: None,
            oom_score_adj: None,
        };
        let leader = spawn_by(&plan, fork_into_cgroup).expect("leader");
        assert_eq!(pidfd::wait_exit(&leader.pidfd).expect("status").code(), Some(7));

        plan.cgroup = Some(cwd.as_fd());
        let error = spawn_by(&plan, fork_into_cgroup).expect_err("no cgroup");
        assert_eq!((error.step, error.errno), ("cgroup", Errno::NOENT));
        assert!(!crate::sys::reap::has_children());

        plan.cgroup = None;
        plan.program = c"/no/such/program".to_owned();
        let refused = |_: &Prepared<'_>| Err(Step::Clone.failed()(Errno::NOSYS));
        let error = spawn_by(&plan, refused).expect_err("no program");
        assert_eq!((error.step, error.errno), ("exec", Errno::NOENT));
    }
}
