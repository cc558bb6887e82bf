//! Stand-ins for commands: programs that print a known output, or say when they end.

use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::stdio;
use rustix::time::{ClockId, clock_gettime};

use crate::Result;

/// Bytes that `flood` writes at a time.
const BLOCK: usize = 64 * 1024;
/// Bytes of a line of `flood`; a part of the block, so that blocks end with a line.
pub const FLOOD_LINE: usize = 64;
/// Bytes of a line of `lines`.
pub const LINE: usize = 80;
/// How long `stamp` lives, so that whoever waits for it waits already when it ends.
const STAMP_LIFE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How many lineages a storm has.
const LINEAGES: u64 = 8;
/// After so many generations a storm is over by itself.
const GENERATIONS: u64 = 10_000;
/// How long a process of a storm lives.
const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// Becomes the stand-in that the words name.
pub fn act(words: &[&str]) -> Result<()> {
    match words {
        ["stamp"] => stamp(),
        ["lines", count, told] => lines(count.parse()?, Path::new(told)),
        ["flood", bytes] => flood(bytes.parse()?),
        ["hold", bytes, told] => {
            flood(bytes.parse()?)?;
            std::fs::write(told, "written\n")?;
            until_input_ends()
        }
        ["random", bytes] => random(bytes.parse()?),
        ["both", count] => both(count.parse()?),
        ["storm", way, ready, halt] => storm(way, Path::new(ready), halt),
        ["lineage", way, halt, left] => lineage(way, halt, left.parse()?),
        _ => Err("a verb is missing: measure, fight, or that of a stand-in".into()),
    }
}

/// The monotonic clock, which is one for all processes (clock_gettime(2)).
pub fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Lives a little and prints the monotonic clock in nanoseconds as its last act.
fn stamp() -> Result<()> {
    poll(&mut [] as &mut [PollFd<'_>], Some(&STAMP_LIFE))?;
    let text = format!("{}\n", monotonic().as_nanos());
    rustix::io::write(stdio::stdout(), text.as_bytes())?;
    Ok(())
}

/// Writes lines with one call each, and tells in a file how many nanoseconds that took.
fn lines(count: u64, told: &Path) -> Result<()> {
    let line = line_of(LINE);
    let began = monotonic();
    for _ in 0..count {
        write_whole(&line)?;
    }
    let took = monotonic() - began;
    std::fs::write(told, took.as_nanos().to_string())?;
    Ok(())
}

/// Writes so many bytes as fast as they are taken: lines of 64 bytes, in blocks of 64 KiB.
fn flood(bytes: u64) -> Result<()> {
    let block = line_of(FLOOD_LINE).repeat(BLOCK / FLOOD_LINE);
    let mut left = bytes;
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        write_whole(&block[..count])?;
        left -= count as u64;
    }
    Ok(())
}

/// Writes bytes that look random and are always the same.
fn random(bytes: u64) -> Result<()> {
    let mut source = Random::default();
    let mut left = bytes;
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        write_whole(&source.bytes(count))?;
        left -= count as u64;
    }
    Ok(())
}

/// The bytes that `random` writes (xorshift64).
pub struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    /// The next ones; whole blocks, or what is left.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            bytes.extend_from_slice(&self.0.to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

/// Writes numbered lines to standard output and standard error in turns, each with one call.
fn both(count: u64) -> Result<()> {
    for number in 0..count {
        let line = format!("{number}\n");
        if number % 2 == 0 {
            rustix::io::write(stdio::stdout(), line.as_bytes())?;
        } else {
            rustix::io::write(stdio::stderr(), line.as_bytes())?;
        }
    }
    Ok(())
}

/// Starts lineages of processes that each live for a moment and are followed by the next, and says when all have begun.
fn storm(way: &str, ready: &Path, halt: &str) -> Result<()> {
    for _ in 0..LINEAGES {
        follow(way, halt, GENERATIONS)?;
    }
    std::fs::write(ready, "raging\n")?;
    for _ in 0..GENERATIONS {
        poll(&mut [] as &mut [PollFd<'_>], Some(&MOMENT))?;
        if Path::new(halt).exists() {
            break;
        }
    }
    Ok(())
}

/// Lives for a moment, and starts the next one unless the storm is over.
fn lineage(way: &str, halt: &str, left: u64) -> Result<()> {
    if way == "apart" {
        rustix::process::setsid()?;
    }
    poll(&mut [] as &mut [PollFd<'_>], Some(&MOMENT))?;
    if left > 0 && !Path::new(halt).exists() {
        follow(way, halt, left - 1)?;
    }
    Ok(())
}

fn follow(way: &str, halt: &str, left: u64) -> Result<()> {
    let mut next = std::process::Command::new(std::env::current_exe()?);
    next.args(["lineage", way, halt, &left.to_string()]).spawn()?;
    Ok(())
}

fn until_input_ends() -> Result<()> {
    while rustix::io::read(stdio::stdin(), &mut [0_u8; 64])? > 0 {}
    Ok(())
}

/// A line of so many bytes, its newline among them.
pub fn line_of(length: usize) -> Vec<u8> {
    let mut line = vec![b'x'; length];
    line[length - 1] = b'\n';
    line
}

fn write_whole(mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let count = rustix::io::write(stdio::stdout(), bytes)?;
        bytes = &bytes[count..];
    }
    Ok(())
}
