//! The beginning of a command: the request is read, refused or accepted, and the leader started.

use std::sync::Arc;

use outlast_core::ending::End;
use outlast_core::joining::Joinable;
use outlast_core::lifecycle::Life;
use outlast_core::policy::redact::Redactor;
use outlast_core::record::{ExitRecord, PROCESS, ProcessMark};
use outlast_core::request::{OsText, Request, to_hex};
use outlast_core::wire::{DemotedBy, FromSupervisor, Refusal, ToOwnKeeper, ToSupervisor};
use outlast_host::frame::Channel;
use outlast_host::store::records::{self, Unpublished};
use outlast_host::sys::pidfd;
use outlast_host::sys::spawn::Leader;
use outlast_host::{clock, mark, proc};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;

use super::callers::Caller;
use super::pipes::Pace;
use super::tracking::Baseline;
use super::{LEADER, Post, Stdin, Watch};
use crate::birth::{self, Born, Failed};
use crate::capture::Capture;
use crate::clients::{Clients, token};
use crate::context::Work;
use crate::limits::{Cage, Sampler};
use crate::poll::{Interest, Ready};
use crate::veil::Veil;

/// Serves a start up to a running leader; none where nothing was started.
pub fn begin<'a>(post: &'a mut Post, work: Work) -> Option<Watch<'a>> {
    let Work { channel, joinable } = work;
    let mut clients = Clients::default();
    let caller = clients.add(&post.poll, channel)?;
    let Some(request) = read_request(&mut clients, caller) else {
        clients.remove(&post.poll, caller);
        return None;
    };
    let generation = joinable.map(|joinable| joinable.generation);
    clients.say(caller, &FromSupervisor::Accepted { supervisor: post.me.clone(), joined: None, generation });
    let redactor = request.redactor().map(Arc::new);
    let concealed = redactor.as_ref().map(|redactor| redactor.conceal(&request));
    match start(post, &request, concealed.as_ref().unwrap_or(&request), redactor.as_deref()) {
        Ok(started) => {
            let request = concealed.unwrap_or(request);
            Some(watch(post, request, redactor, clients, First { caller, joinable }, started))
        }
        Err(answer) => {
            clients.say(caller, &answer);
            if let FromSupervisor::Ended { exit, .. } = &answer {
                post.trace_finished(concealed.as_ref().unwrap_or(&request), exit);
            }
            part(post, clients, caller);
            None
        }
    }
}

/// The first message, which must be a start; none if the caller went away first.
fn read_request(clients: &mut Clients, caller: u32) -> Option<Request> {
    loop {
        let client = clients.get(caller)?;
        match client.channel.receive() {
            Ok(Some(frame)) => match frame.json() {
                // Whoever went away while it waited here was never answered, and wants it no more.
                Ok(ToSupervisor::Start { request }) => return (!hung_up(&client.channel)).then_some(*request),
                Ok(_) | Err(_) => return None,
            },
            Ok(None) if client.channel.is_eof() => return None,
            Ok(None) => {}
            Err(_) => return None,
        }
        // Of this channel alone: what the keeper says meanwhile is for later.
        let mut polled = [PollFd::new(&client.channel, PollFlags::IN | PollFlags::RDHUP)];
        match rustix::event::poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Whether the peer closed its end, whatever it sent before.
fn hung_up(channel: &Channel) -> bool {
    let mut polled = [PollFd::new(channel, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(rustix::event::poll(&mut polled, Some(&now)), Ok(1))
}

struct Started {
    born: Born,
    program: OsText,
    unpublished: Option<Unpublished>,
    at: std::time::Duration,
    at_ms: u64,
    limits_left: outlast_core::request::Limits,
    baseline: Option<Baseline>,
}

/// Starts what is asked for; `stored` is that as it may be stored, without what the redactor masks.
fn start(
    post: &mut Post,
    request: &Request,
    stored: &Request,
    redactor: Option<&Redactor>,
) -> Result<Started, FromSupervisor> {
    let failed = |failed: Failed| spawn_failed(stored, &failed, redactor);
    let prepared = birth::prepare(request).map_err(failed)?;
    let program = redactor.map_or_else(|| prepared.program.clone(), |redactor| redactor.word(&prepared.program));
    let unpublished = match request.background {
        true => Some(records_for_background(post, stored, &program)?),
        false => None,
    };
    let begun = ExitRecord { started_at_ms: clock::unix_ms(), ..ExitRecord::draft(stored, &program) };
    post.tell_keeper_whole(&ToOwnKeeper::Begun { draft: Box::new(begun) });
    let mut limits_left = request.limits.clone();
    post.cage = match post.cage.take() {
        Some(cage) => cage.renew(post.context.cgroups.as_ref()),
        None => Cage::make(post.context.cgroups.as_ref()),
    };
    if let Some(cage) = &mut post.cage {
        limits_left = cage.bound(&request.limits);
    }
    let baseline = Baseline::take(request);
    let (at, at_ms) = (clock::monotonic(), clock::unix_ms());
    let leaf = post.cage.as_ref().map(|cage| cage.leaf().fd());
    match prepared.start(request, &post.context, leaf.as_ref()) {
        Ok(born) => Ok(Started { born, program, unpublished, at, at_ms, limits_left, baseline }),
        Err(error) => {
            if let Some(unpublished) = unpublished {
                unpublished.discard();
            }
            Err(failed(error))
        }
    }
}

fn records_for_background(post: &Post, request: &Request, program: &OsText) -> Result<Unpublished, FromSupervisor> {
    let refused = |reason: String| FromSupervisor::Refused { refusal: Refusal::NoRecords, reason, running: Vec::new() };
    let Some(session) = post.context.dir() else {
        return Err(refused(
            "a background start needs records, and there is no session directory to put them in".into(),
        ));
    };
    let built = records::build(session, PROCESS, request, program, &post.me);
    built.map_err(|reason| {
        session.remove_unmade(request.id);
        refused(reason)
    })
}

fn spawn_failed(request: &Request, failed: &Failed, redactor: Option<&Redactor>) -> FromSupervisor {
    let mut exit = ExitRecord::draft(request, request.argv.first().unwrap_or(&OsText(Vec::new())));
    exit.end = End::SpawnFailed { step: failed.step.to_owned(), errno: errno_name(failed.errno) };
    let what = redactor.map_or_else(|| failed.what.clone(), |redactor| redactor.text(&failed.what));
    exit.errors.push(format!("{}: {what}: {}", failed.step, std::io::Error::from(failed.errno)));
    exit.started_at_ms = clock::unix_ms();
    exit.ended_at_ms = exit.started_at_ms;
    FromSupervisor::Ended { exit: Box::new(exit), materialised: false }
}

/// The name of an error as errno(3) has it; its number where a failed start never has it.
fn errno_name(errno: Errno) -> String {
    let named = NAMES.iter().find(|(known, _)| *known == errno);
    named.map_or_else(|| errno.raw_os_error().to_string(), |(_, name)| (*name).to_owned())
}

const NAMES: [(Errno, &str); 20] = [
    (Errno::NOENT, "ENOENT"),
    (Errno::ACCESS, "EACCES"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::LOOP, "ELOOP"),
    (Errno::TOOBIG, "E2BIG"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NFILE, "ENFILE"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NOEXEC, "ENOEXEC"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::PERM, "EPERM"),
    (Errno::TXTBSY, "ETXTBSY"),
    (Errno::IO, "EIO"),
    (Errno::NODEV, "ENODEV"),
    (Errno::BUSY, "EBUSY"),
    (Errno::FAULT, "EFAULT"),
    (Errno::LIBBAD, "ELIBBAD"),
];

/// The first caller, and by what others can join it.
struct First {
    caller: u32,
    joinable: Option<Joinable>,
}

fn watch<'a>(
    post: &'a mut Post,
    request: Request,
    redactor: Option<Arc<Redactor>>,
    clients: Clients,
    first: First,
    started: Started,
) -> Watch<'a> {
    let Started { born, program, unpublished, at, at_ms, limits_left, baseline } = started;
    let leader = leader_mark(&born.leader, &post.me);
    let line_begun = born.terminal.is_some().then_some(false);
    let queue = Default::default();
    let stdin = born.stdin.map(|fd| Stdin { fd, queue, close_when_empty: false, line_begun, watched: false });
    let mut watch = Watch {
        life: Life::begin(&request, at),
        capture: Capture::new(&request, born.outputs, redactor.clone().map(Veil::new)),
        redactor,
        baseline,
        started_at_ms: at_ms,
        demoted_at_ms: None,
        rest_at: None,
        again_at: None,
        unmade: false,
        pace: Pace::default(),
        held_up_since: None,
        ended_at_ms: None,
        leader,
        pidfd: born.leader.pidfd,
        terminal: born.terminal,
        stdin,
        records: None,
        clients,
        callers: vec![Caller::new(first.caller, &request, at)],
        joining: Vec::new(),
        joinable: first.joinable,
        raw: None,
        receipts: Default::default(),
        exit: None,
        told: false,
        errors: Vec::new(),
        limit: None,
        sampler: Sampler::new(&limits_left, at),
        orphan: None,
        first_signal: Signal::TERM,
        signals_sent: 0,
        killed: Vec::new(),
        reaped: false,
        program,
        request,
        post,
    };
    watch.observe();
    watch.announce(unpublished);
    watch
}

/// The mark of the leader, which is our unreaped child: its start time can be read even if it ended
/// already.
fn leader_mark(leader: &Leader, me: &ProcessMark) -> ProcessMark {
    if let Ok(Some(mark)) = mark::mark_of_pidfd(leader.pid, &leader.pidfd) {
        return mark;
    }
    let start = proc::stat(leader.pid).ok().flatten().map_or(0, |stat| stat.start);
    let handle = pidfd::handle(&leader.pidfd).ok().flatten().map(|bytes| to_hex(&bytes));
    ProcessMark { pid: leader.pid, start, boot: me.boot.clone(), handle }
}

impl Watch<'_> {
    fn observe(&mut self) {
        // A descriptor that cannot be watched (no memory) would leave the command unseen: it is ended.
        let mut all = self.post.poll.add(&self.pidfd, LEADER, Interest::Read).is_ok();
        all &= self.watch_pipes();
        if !all {
            self.errors.push("the machine refused to watch the command: it was stopped".into());
            let cause = outlast_core::lifecycle::Cause::Stop { by: outlast_core::ending::BY_SUPERVISOR_LOST.into() };
            self.step(outlast_core::lifecycle::Event::Stop { cause, grace: Some(std::time::Duration::ZERO) });
        }
    }

    /// Tells caller and keeper that the leader runs, and puts the records of a background start in place.
    fn announce(&mut self, unpublished: Option<Unpublished>) {
        let first = self.callers.first().map(|caller| caller.number);
        if let Some(number) = first {
            self.say_started(number);
        }
        self.introduce();
        if let Some(unpublished) = unpublished {
            self.publish(unpublished, Some(DemotedBy::Background));
            first.into_iter().for_each(|number| self.release(number, DemotedBy::Background));
        }
    }
}

/// Waits until the caller has taken the refusal, or is gone.
fn part(post: &mut Post, mut clients: Clients, caller: u32) {
    let until = clock::monotonic() + super::FAREWELL;
    loop {
        clients.settle(&post.poll);
        let Some(client) = clients.get(caller) else { return };
        let heard = client.channel.receive();
        if matches!(heard, Ok(Some(_))) {
            // One that is gone needs no answer.
            let _ = client.channel.send_json(&FromSupervisor::Heard);
        }
        let answered = matches!(heard, Ok(Some(_)) | Err(_)) || client.channel.is_eof();
        let left = until.saturating_sub(clock::monotonic());
        if answered || left.is_zero() {
            clients.remove(&post.poll, caller);
            return;
        }
        let ready: Vec<Ready> = post.poll.wait(Some(left)).unwrap_or_default();
        if ready.iter().any(|one| one.token == token(caller) && one.writable) {
            let _ = client_flush(&mut clients, caller);
        }
        let _ = outlast_host::sys::signals::read_signalfd(&post.signals);
    }
}

fn client_flush(clients: &mut Clients, caller: u32) -> Option<bool> {
    clients.get(caller)?.channel.flush().ok()
}
