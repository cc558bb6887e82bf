//! A command from the command line, against other tools.

use std::time::Duration;

use crate::Result;
use crate::peers::{Kind, Open, Peer, done};
use crate::place::{self, Place};
use crate::report::{Bound, Report};
use crate::samples::Samples;

const WARM: usize = 10;
const ROUNDS: usize = 200;
/// Calls that find no keeper; each waits until the one before has left nothing.
const COLD_ROUNDS: usize = 30;
/// Runs of as many calls as there are rounds, each.
const BATCHES: usize = 3;
/// How long an end may take to be known.
const WAIT_BOUND: Duration = Duration::from_secs(60);
/// Its daemon looks every 300 ms, so there are few.
const PUEUE_ROUNDS: usize = 5;

/// Alone first; then with the others in turns, call by call; then in turns, batch by batch.
pub async fn measure(place: &Place, peers: &[Peer], report: &mut Report) -> Result<()> {
    let mut cold = Samples::default();
    for _ in 0..COLD_ROUNDS {
        place.until_alone()?;
        cold.time(|| outlast(place, None))?;
    }
    let mut open = Vec::new();
    for peer in peers {
        match peer.open(place, &place.dir().join(peer.kind.key()), 1) {
            Ok(one) => open.push(one),
            Err(error) => report.fail(peer.kind.name(), &*error),
        }
    }
    let (slow, quick): (Vec<_>, Vec<_>) = open.into_iter().partition(|one| one.kind() == Kind::Pueue);
    let session = place.session().await?;
    let warm = session.id().to_string();
    // The first command of its owner starts its keeper, which then stays as long as the owner.
    session.run_to_end(place.request(&["/bin/true"])).await?;
    by_turns(place, &warm, &quick, report)?;
    by_batches(place, &quick, report)?;
    place::end(&session).await?;
    report.time("command line: `outlast run true` where no keeper is left of an earlier call", &cold, None);
    report.keep("outlast run true, no keeper", cold);
    for one in slow {
        patient(place, &*one, report)?;
        one.close()?;
    }
    for one in quick {
        one.close()?;
    }
    Ok(())
}

fn by_turns(place: &Place, warm: &str, peers: &[Box<dyn Open + '_>], report: &mut Report) -> Result<()> {
    let mut ours = Samples::default();
    let mut kept = Samples::default();
    let mut bare = Samples::default();
    let mut theirs = vec![Samples::default(); peers.len()];
    for round in 0..WARM + ROUNDS {
        if round == WARM {
            for samples in [&mut ours, &mut kept, &mut bare].into_iter().chain(&mut theirs) {
                samples.0.clear();
            }
        }
        ours.time(|| outlast(place, None))?;
        for (peer, samples) in peers.iter().zip(&mut theirs) {
            samples.time(|| call(&**peer))?;
        }
        kept.time(|| outlast(place, Some(warm)))?;
        bare.time(|| done(&mut place.program("/bin/true")))?;
    }
    for (peer, samples) in peers.iter().zip(theirs) {
        let what = format!("command line: `outlast run true` against add and wait of {}", peer.kind().name());
        report.ratio(what, &ours, &samples, bound(&**peer));
        report.keep(format!("add and wait of {}", peer.kind().name()), samples);
    }
    report.ratio("command line: `outlast run true` against posix_spawn and wait of `true` alone", &ours, &bare, None);
    report.ratio("command line: the same in a session whose owner keeps its keeper", &kept, &bare, None);
    report.keep("outlast run true", ours);
    report.keep("outlast run true, keeper alive", kept);
    Ok(())
}

fn by_batches(place: &Place, peers: &[Box<dyn Open + '_>], report: &mut Report) -> Result<()> {
    let mut ours = Samples::default();
    let mut theirs = vec![Samples::default(); peers.len()];
    let mut drained = vec![Samples::default(); peers.len()];
    for _ in 0..BATCHES {
        ours.time(|| (0..ROUNDS).try_for_each(|_| outlast(place, None)))?;
        for (at, peer) in peers.iter().enumerate() {
            theirs[at].time(|| (0..ROUNDS).try_for_each(|_| call(&**peer)))?;
            drained[at].time(|| drain(&**peer))?;
        }
    }
    for (at, peer) in peers.iter().enumerate() {
        let name = peer.kind().name();
        let what = format!("command line: {ROUNDS} `outlast run true` in a row against {ROUNDS} of {name}");
        report.ratio(what, &ours, &theirs[at], bound(&**peer));
        let what = format!("command line: the same against {ROUNDS} adds of {name} and one wait for the last");
        report.ratio(what, &ours, &drained[at], None);
        report.keep(format!("{ROUNDS} of {name}"), theirs[at].clone());
        report.keep(format!("{ROUNDS} adds of {name} and one wait"), drained[at].clone());
    }
    report.keep(format!("{ROUNDS} outlast run true"), ours);
    Ok(())
}

/// The few rounds of a tool that looks for ends now and then.
fn patient(place: &Place, peer: &dyn Open, report: &mut Report) -> Result<()> {
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..PUEUE_ROUNDS {
        ours.time(|| outlast(place, None))?;
        theirs.time(|| call(peer))?;
    }
    let what = format!("command line: `outlast run true` against add and wait of {}", peer.kind().name());
    report.ratio(what, &ours, &theirs, None);
    report.keep(format!("add and wait of {}", peer.kind().name()), theirs);
    Ok(())
}

/// Adds all, and waits for the last: one runs after the other.
fn drain(peer: &dyn Open) -> Result<()> {
    let mut last = String::new();
    for _ in 0..ROUNDS {
        last = peer.add(0, &["true"])?;
    }
    waited(peer, &last)
}

/// Adds `true` and waits for it: the calls that a caller makes who has to know the end.
fn call(peer: &dyn Open) -> Result<()> {
    waited(peer, &peer.add(0, &["true"])?)
}

fn waited(peer: &dyn Open, id: &str) -> Result<()> {
    if peer.wait(id, WAIT_BOUND)? { Ok(()) } else { Err(format!("{} still waits for {id}", peer.kind().name()).into()) }
}

/// One call whose output is read, as an agent does it.
fn outlast(place: &Place, session: Option<&str>) -> Result<()> {
    let mut program = place.program(place.outlast());
    program.arg("run").stdout(std::process::Stdio::piped());
    if let Some(session) = session {
        program.args(["--session", session]);
    }
    let told = program.arg("true").output()?;
    if told.status.success() { Ok(()) } else { Err(format!("outlast run true: {}", told.status).into()) }
}

/// Task-spooler is the one to be no slower than.
fn bound(peer: &dyn Open) -> Option<Bound> {
    (peer.kind() == Kind::TaskSpooler).then_some(Bound::AtMost(1.0))
}
