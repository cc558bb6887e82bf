//! One command that prints far more than its log keeps.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use outlast::{Session, Snapshot, WaitOptions};
use outlast_core::request::LogCap;

use super::data::Data;
use super::stand_in::{BLOCK, block};
use super::tools;
use crate::Result;
use crate::place::{self, Place};
use crate::proc::pss;

/// The time between two looks at log and supervisor.
const LOOK: Duration = Duration::from_millis(100);
/// The most that is also written into a loop that throws it away, in GiB.
const MOST_THROWN: u64 = 10;

/// What was seen of one stream.
struct Seen {
    took: Duration,
    /// Most blocks of the log in use, in bytes.
    disk: u64,
    /// Most memory of the supervisor, in KiB.
    memory: u64,
}

/// Each size in turn, its log looked at byte by byte.
pub async fn measure(place: &Place, sizes: &[u64], data: &mut Data) -> Result<()> {
    let session = place.session().await?;
    for gib in sizes {
        let told = place.dir().join("told");
        let mib = (gib << 10).to_string();
        let words = ["scale", "stream", mib.as_str(), told.to_str().ok_or("the directory's name is not text")?];
        let (seen, snapshot) = captured(place, &session, &words).await?;
        let longest: u64 = fs::read_to_string(&told)?.split(' ').nth(1).ok_or("nothing was told")?.parse()?;
        let log = snapshot.output.log.clone().ok_or("the command has no log")?;
        let left = fs::metadata(&log)?.blocks() * 512;
        let found = check(&snapshot, &log, gib << 30)?;
        data.value("stream-rate", "through the cap", *gib, *gib as f64 / seen.took.as_secs_f64());
        if *gib <= MOST_THROWN {
            let took = thrown_away(place, &words, gib << 30)?;
            data.value("stream-rate", "thrown away", *gib, *gib as f64 / took.as_secs_f64());
        }
        data.value("stream-disk", "most while it ran", *gib, seen.disk as f64 / f64::from(1 << 20));
        data.value("stream-disk", "after its end", *gib, left as f64 / f64::from(1 << 20));
        data.value("stream-memory", "the supervisor", *gib, seen.memory as f64);
        data.value("stream-stall", "the producer", *gib, longest as f64 / 1e6);
        data.say("stream", format!("the log of {gib} GiB"), found);
    }
    place::end(&session).await
}

async fn captured(place: &Place, session: &Session, words: &[&str]) -> Result<(Seen, Snapshot)> {
    let began = Instant::now();
    let command = tools::start(session, place.stand_in_request(words)).await?;
    let supervisor = tools::supervisor(&command).await?;
    let log = command.brief().await?.output.log.ok_or("the command has no log")?;
    let mut seen = Seen { took: Duration::ZERO, disk: 0, memory: 0 };
    let commands = [command];
    let mut wait = Box::pin(session.wait(&commands, WaitOptions::default()));
    loop {
        // A look that comes too late finds no supervisor any more.
        seen.memory = seen.memory.max(pss(supervisor).unwrap_or(0));
        seen.disk = seen.disk.max(fs::metadata(&log)?.blocks() * 512);
        if let Ok(report) = tokio::time::timeout(LOOK, &mut wait).await {
            report?;
            break;
        }
    }
    seen.took = began.elapsed();
    // The end is told before the log has its final form; who follows it is told that.
    let mut rest = commands[0].follow(u64::MAX).await?;
    while rest.next().await?.is_some() {}
    Ok((seen, commands[0].snapshot().await?))
}

/// Compares every byte that is kept with what was written there, and tells what is kept.
fn check(snapshot: &Snapshot, path: &Path, bytes: u64) -> Result<String> {
    let output = &snapshot.output;
    if snapshot.ok != Some(true) || output.bytes != bytes {
        return Err(format!("{} of {bytes} bytes were captured: {:?}", output.bytes, snapshot.end).into());
    }
    let cap = LogCap::default();
    let gap = output.gap.ok_or("the cap has dropped nothing")?;
    if (gap.offset, gap.bytes) != (cap.head, bytes - cap.head - cap.tail) {
        return Err(format!("the gap of {bytes} bytes is {gap:?}").into());
    }
    let log = File::open(path)?;
    let mut heading = vec![0; 64 << 10];
    let read = log.read_at(&mut heading, 0)?;
    let start = heading[..read].windows(2).position(|two| two == b"\n\n").ok_or("the log has no heading")? as u64 + 2;
    same(&log, start, 0, cap.head)?;
    let mark = format!("\n[outlast: {} bytes not kept]\n", gap.bytes);
    let mut there = vec![0; mark.len()];
    log.read_exact_at(&mut there, start + gap.offset)?;
    if there != mark.as_bytes() {
        return Err(format!("the mark is {:?}", String::from_utf8_lossy(&there)).into());
    }
    same(&log, start + gap.offset + gap.on_disk, bytes - cap.tail, cap.tail)?;
    let (head, tail) = (cap.head >> 20, cap.tail >> 20);
    Ok(format!("first {head} MiB and last {tail} MiB equal byte for byte; gap told as {} bytes, exact", gap.bytes))
}

/// Whether the file has from `at` on what was written from `offset` on.
fn same(log: &File, at: u64, offset: u64, length: u64) -> Result<()> {
    let size = BLOCK as u64;
    let mut there = vec![0; BLOCK];
    let mut done = 0;
    while done < length {
        let number = (offset + done) / size;
        let whole = block(number);
        let from = usize::try_from((offset + done) % size)?;
        let count = (BLOCK - from).min(usize::try_from(length - done)?);
        log.read_exact_at(&mut there[..count], at + done)?;
        if there[..count] != whole[from..from + count] {
            return Err(format!("block {number} of the output differs").into());
        }
        done += count as u64;
    }
    Ok(())
}

fn thrown_away(place: &Place, words: &[&str], bytes: u64) -> Result<Duration> {
    let began = Instant::now();
    let mut child = place.program(place.stand_in()).args(words).stdout(Stdio::piped()).spawn()?;
    let mut from = child.stdout.take().ok_or("the program has no output")?;
    let mut buffer = vec![0; 64 * 1024];
    let mut read = 0;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        read += count as u64;
    }
    let status = child.wait()?;
    if status.success() && read == bytes {
        Ok(began.elapsed())
    } else {
        Err(format!("{status} after {read} bytes").into())
    }
}
