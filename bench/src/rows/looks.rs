//! Looking at a command that printed much, against one that printed little.

use std::time::{Duration, Instant};

use outlast::{Command, Outcome, ReadOptions, RunRequest, Session, WaitOptions};
use outlast_core::request::{LogCap, Stdin};
use rustix::fs::{CWD, FileType, Mode, OFlags};

use crate::Result;
use crate::peers::done;
use crate::place::{self, Place};
use crate::report::{Bound, Report};
use crate::samples::Samples;

const SMALL: u64 = 4 * 1024;
const TAIL: u64 = 10;
const ROUNDS: usize = 40;
const LEAST_ROUNDS: usize = 5;
/// After this a look is known to be slow and enough of it was seen.
const TIME: Duration = Duration::from_secs(20);
/// How long the large output may take to be written.
const WRITE_BOUND: Duration = Duration::from_secs(600);

/// The ways to look.
const LOOKS: [(&str, Look); 4] = [
    ("status, command line", Look::Status),
    ("status, library", Look::Snapshot),
    ("tail of 10 lines, command line", Look::Tail),
    ("tail of 10 lines, library", Look::Read),
];

#[derive(Clone, Copy)]
enum Look {
    Status,
    Snapshot,
    Tail,
    Read,
}

/// Both kinds of command while they run, and after they ended.
pub async fn measure(place: &Place, bytes: u64, report: &mut Report) -> Result<()> {
    let session = place.session().await?;
    let large = written(place, &session, bytes).await?;
    let small = written(place, &session, SMALL).await?;
    let running = all_looks(place, &large, &small).await?;
    for command in [&large, &small] {
        command.close_input().await?;
    }
    session.wait(&[large.clone(), small.clone()], WaitOptions::default()).await?;
    let ended = all_looks(place, &large, &small).await?;
    place::end(&session).await?;
    let gib = bytes >> 30;
    for ((name, _), (running, ended)) in LOOKS.iter().zip(running.into_iter().zip(ended)) {
        let ratio = |pair: &(Samples, Samples)| pair.0.median() / pair.1.median();
        let ((mut large, mut small), mut phase) = (running.clone(), "running");
        if ratio(&ended) > ratio(&running) {
            ((large, small), phase) = (ended.clone(), "ended");
        }
        let what = format!("{name}: {gib} GiB of log against 4 KiB, worst of running and ended ({phase})");
        report.ratio(what, &large, &small, Some(Bound::AtMost(2.0)));
        for (phase, (large, small)) in [("running", running), ("ended", ended)] {
            report.keep(format!("{name}: {gib} GiB, {phase}"), large);
            report.keep(format!("{name}: 4 KiB, {phase}"), small);
        }
    }
    Ok(())
}

/// A command that has printed so many bytes, all of them captured, and lives on.
async fn written(place: &Place, session: &Session, bytes: u64) -> Result<Command> {
    let told = place.dir().join(format!("written-{bytes}"));
    rustix::fs::mknodat(CWD, &told, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let hears = rustix::fs::open(&told, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
    let words = ["hold", &bytes.to_string(), told.to_str().ok_or("the directory's name is not text")?];
    let request =
        RunRequest { cap: LogCap::of(bytes.saturating_mul(2)), stdin: Stdin::Open, ..place.stand_in_request(&words) };
    let Outcome::Demoted(demotion) = session.start(request).await? else {
        return Err("the stand-in could not be started".into());
    };
    if !place::readable_within(&hears, WRITE_BOUND)? {
        return Err(format!("{bytes} bytes were not written within {WRITE_BOUND:?}").into());
    }
    let command = demotion.command;
    let mut follower = command.follow(bytes).await?;
    while follower.next_offset() < bytes {
        follower.next().await?.ok_or("capture ended early")?;
    }
    Ok(command)
}

async fn all_looks(place: &Place, large: &Command, small: &Command) -> Result<Vec<(Samples, Samples)>> {
    let mut found = Vec::new();
    for (_, look) in LOOKS {
        let (mut on_large, mut on_small) = (Samples::default(), Samples::default());
        for command in [large, small] {
            look.once(place, command).await?;
        }
        let began = Instant::now();
        for round in 0..ROUNDS {
            if round >= LEAST_ROUNDS && began.elapsed() > TIME {
                break;
            }
            on_large.time_async(look.once(place, large)).await?;
            on_small.time_async(look.once(place, small)).await?;
        }
        found.push((on_large, on_small));
    }
    Ok(found)
}

impl Look {
    async fn once(self, place: &Place, command: &Command) -> Result<()> {
        let id = command.id().to_string();
        let mut outlast = place.program(place.outlast());
        match self {
            Look::Status => done(outlast.args(["status", &id])),
            Look::Tail => done(outlast.args(["logs", &id, "--tail", &TAIL.to_string()])),
            Look::Snapshot => {
                command.snapshot().await?;
                Ok(())
            }
            Look::Read => {
                let options = ReadOptions { tail_lines: Some(TAIL), ..ReadOptions::default() };
                let mut reading = command.read(options).await?;
                while reading.next().await?.is_some() {}
                Ok(())
            }
        }
    }
}
