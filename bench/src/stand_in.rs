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
const FLOOD_LINE: usize = 64;
/// Bytes of a line of `lines`.
const LINE: usize = 80;
/// How long `stamp` lives, so that whoever waits for it waits already when it ends.
const STAMP_LIFE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

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
        _ => Err("the verbs are measure, stamp, lines COUNT FILE, flood BYTES and hold BYTES FILE".into()),
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

fn until_input_ends() -> Result<()> {
    while rustix::io::read(stdio::stdin(), &mut [0_u8; 64])? > 0 {}
    Ok(())
}

fn line_of(length: usize) -> Vec<u8> {
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
