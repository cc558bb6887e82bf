//! How fast output is taken, against a loop that only copies it to a file.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use outlast::{Outcome, RunRequest, Session, WaitOptions};
use outlast_core::request::LogCap;

use crate::Result;
use crate::place::{self, Place};
use crate::report::{Bound, Report, Unit};
use crate::samples::{Samples, number};
use crate::stand_in::{FLOOD_LINE, LINE, line_of};

/// An even number, so that each side is first as often as the other.
const FLOOD_ROUNDS: usize = 4;
const LINE_ROUNDS: usize = 6;
const LINES: u64 = 1_000_000;
/// Lines that are compared at a time.
const COMPARED: usize = 16 * 1024;

/// A flood, then many small writes; each side first every other time.
pub async fn measure(place: &Place, bytes: u64, report: &mut Report) -> Result<()> {
    let session = place.session().await?;
    flood(place, &session, bytes, report).await?;
    lines(place, &session, report).await?;
    place::end(&session).await
}

async fn flood(place: &Place, session: &Session, bytes: u64, report: &mut Report) -> Result<()> {
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    let size = bytes.to_string();
    // Memory that a virtual machine has not touched lately is slow the first time, so one round is for nothing.
    for round in 0..=FLOOD_ROUNDS {
        if round == 1 {
            (ours, bare) = (Samples::default(), Samples::default());
        }
        for side in [round % 2, (round + 1) % 2] {
            let words = ["flood", size.as_str()];
            settle(place)?;
            if side == 0 {
                let log = ours.time_async(captured(place, session, &words, bytes)).await?;
                check(&log, heading(&log)?, FLOOD_LINE, bytes)?;
                forget(&log)?;
            } else {
                let file = place.dir().join("bare");
                bare.time(|| copied(place, &words, &file, bytes))?;
                check(&file, 0, FLOOD_LINE, bytes)?;
                std::fs::remove_file(file)?;
            }
        }
    }
    let gib = |samples: &Samples| bytes as f64 / f64::from(1 << 30) / (samples.median() / 1e3);
    let figures = format!("{} against {} GiB/s", number(gib(&ours)), number(gib(&bare)));
    let what = format!("capture of {} GiB: throughput against a bare 64 KiB loop from pipe to file", bytes >> 30);
    report.row(what, gib(&ours) / gib(&bare), Unit::Times, Some(Bound::AtLeast(0.9)), figures);
    report.keep(format!("capture of {} GiB", bytes >> 30), ours);
    report.keep(format!("bare loop over {} GiB", bytes >> 30), bare);
    Ok(())
}

async fn lines(place: &Place, session: &Session, report: &mut Report) -> Result<()> {
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    let took = place.dir().join("took");
    let count = LINES.to_string();
    let bytes = LINES * LINE as u64;
    let words = ["lines", count.as_str(), took.to_str().ok_or("the directory's name is not text")?];
    for round in 0..LINE_ROUNDS {
        for side in [round % 2, (round + 1) % 2] {
            settle(place)?;
            if side == 0 {
                let log = captured(place, session, &words, bytes).await?;
                check(&log, heading(&log)?, LINE, bytes)?;
                forget(&log)?;
            } else {
                let file = place.dir().join("bare");
                copied(place, &words, &file, bytes)?;
                check(&file, 0, LINE, bytes)?;
                std::fs::remove_file(file)?;
            }
            let told = Duration::from_nanos(std::fs::read_to_string(&took)?.parse()?);
            if side == 0 { &mut ours } else { &mut bare }.push(told);
        }
    }
    let what = "1,000,000 unbuffered lines of 80 bytes: the producer's time against the same into that loop";
    report.ratio(what, &ours, &bare, Some(Bound::AtMost(1.1)));
    report.keep("producer of 1,000,000 lines", ours);
    report.keep("producer of 1,000,000 lines into the bare loop", bare);
    Ok(())
}

/// Nothing of an earlier round is still on its way to the disk.
fn settle(place: &Place) -> Result<()> {
    rustix::fs::syncfs(File::open(place.dir())?)?;
    Ok(())
}

/// Frees the disk for the next round.
fn forget(log: &Path) -> Result<()> {
    Ok(File::options().write(true).open(log)?.set_len(0)?)
}

/// Bytes before the output in a log.
fn heading(log: &Path) -> Result<u64> {
    let mut first = vec![0; 64 << 10];
    let read = File::open(log)?.read_at(&mut first, 0)?;
    let at = first[..read].windows(2).position(|two| two == b"\n\n").ok_or("the log has no heading")?;
    Ok(at as u64 + 2)
}

/// Compares all of a file behind its heading with the lines of one length that were printed.
fn check(path: &Path, heading: u64, line: usize, bytes: u64) -> Result<()> {
    let file = File::open(path)?;
    let printed = line_of(line).repeat(COMPARED);
    let mut there = vec![0; printed.len()];
    let mut done = 0;
    while done < bytes {
        let count = usize::try_from(bytes - done)?.min(printed.len());
        file.read_exact_at(&mut there[..count], heading + done)?;
        if there[..count] != printed[..count] {
            return Err(format!("what was kept differs from what was printed, after {done} bytes").into());
        }
        done += count as u64;
    }
    Ok(())
}

/// A background command from its start to the return of whoever waits for it, which tells of every byte; its log is
/// returned.
async fn captured(place: &Place, session: &Session, words: &[&str], bytes: u64) -> Result<PathBuf> {
    let request = RunRequest { cap: LogCap::of(bytes + (1 << 30)), ..place.stand_in_request(words) };
    let Outcome::Demoted(demotion) = session.start(request).await? else {
        return Err("the stand-in could not be started".into());
    };
    let report = session.wait(&[demotion.command], WaitOptions::default()).await?;
    let waited = report.commands.first().ok_or("nothing was waited for")?;
    let output = &waited.snapshot.output;
    if waited.snapshot.ok != Some(true) || output.bytes != bytes || output.gap.is_some() {
        return Err(format!("{} of {bytes} bytes were captured: {:?}", output.bytes, waited.snapshot.end).into());
    }
    Ok(output.log.clone().ok_or("the command has no log")?)
}

/// The same program, read by 64 KiB and written to a file.
fn copied(place: &Place, words: &[&str], file: &Path, bytes: u64) -> Result<()> {
    let mut child = place.program(place.stand_in()).args(words).stdout(Stdio::piped()).spawn()?;
    let mut from = child.stdout.take().ok_or("the program has no output")?;
    let mut to = File::create(file)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut copied = 0;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        to.write_all(&buffer[..count])?;
        copied += count as u64;
    }
    let status = child.wait()?;
    if status.success() && copied == bytes { Ok(()) } else { Err(format!("{status} after {copied} bytes").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_that_differs_or_is_missing_is_seen() {
        let path = std::env::temp_dir().join(format!("capture-{}", std::process::id()));
        let log = [&b"heading\n\n"[..], &line_of(LINE).repeat(COMPARED + 3)].concat();
        let bytes = (log.len() - 9) as u64;
        let checked = |log: &[u8]| {
            std::fs::write(&path, log).expect("the file is written");
            let heading = heading(&path).expect("it has a heading");
            check(&path, heading, LINE, bytes).is_ok()
        };
        let mut other = log.clone();
        other[log.len() - LINE] = b'y';
        let seen = [checked(&log), checked(&other), checked(&log[..log.len() - 1])];
        std::fs::remove_file(&path).expect("the file is removed");
        assert_eq!(seen, [true, false, false]);
    }
}
