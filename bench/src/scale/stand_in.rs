//! Stand-ins of this benchmark: a stream whose every MiB is known, and a command that ends when it is told to.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use rustix::pipe::SpliceFlags;
use rustix::stdio;

use crate::Result;
use crate::stand_in::monotonic;

/// What the stream repeats; each begins with its number.
pub const BLOCK: usize = 1 << 20;
/// Bytes of a line.
const LINE: usize = 64;

/// Becomes the stand-in that the words name.
pub fn act(words: &[&str]) -> Result<()> {
    match words {
        ["stream", mib, told] => stream(mib.parse()?, Path::new(told)),
        ["stamp-at-end"] => stamp_at_end(),
        _ => Err("the verbs are scale measure, plots, stream MIB FILE and stamp-at-end".into()),
    }
}

/// The block of this number.
pub fn block(number: u64) -> Vec<u8> {
    let mut block = heading(number);
    for at in 1..BLOCK / LINE {
        block.extend_from_slice(format!("{at:.>63}\n").as_bytes());
    }
    block
}

fn heading(number: u64) -> Vec<u8> {
    format!("block {number:.>57}\n").into_bytes()
}

/// Writes so many blocks, and tells how long that took and how long the longest call was, in nanoseconds.
fn stream(blocks: u64, told: &Path) -> Result<()> {
    let mut pages = File::from(rustix::fs::memfd_create("block", MemfdFlags::CLOEXEC)?);
    pages.write_all(&block(0))?;
    let (began, mut longest) = (Instant::now(), Duration::ZERO);
    for number in 0..blocks {
        let mut heading = &heading(number)[..];
        while !heading.is_empty() {
            heading = &heading[rustix::io::write(stdio::stdout(), heading)?..];
        }
        let mut at = LINE as u64;
        while at < BLOCK as u64 {
            let call = Instant::now();
            let left = usize::try_from(BLOCK as u64 - at)?;
            let moved = rustix::pipe::splice(&pages, Some(&mut at), stdio::stdout(), None, left, SpliceFlags::empty())?;
            longest = longest.max(call.elapsed());
            if moved == 0 {
                return Err("nothing was taken".into());
            }
        }
    }
    std::fs::write(told, format!("{} {}", began.elapsed().as_nanos(), longest.as_nanos()))?;
    Ok(())
}

/// Lives until its input ends, and prints the monotonic clock in nanoseconds as its last act.
fn stamp_at_end() -> Result<()> {
    while rustix::io::read(stdio::stdin(), &mut [0_u8; 64])? > 0 {}
    let text = format!("{}\n", monotonic().as_nanos());
    rustix::io::write(stdio::stdout(), text.as_bytes())?;
    Ok(())
}
