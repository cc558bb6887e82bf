//! The log and its index: whatever a writer did and wherever it died, a reader is shown the bytes that came at their
//! offsets, or a gap where the cap dropped some; and whatever stands in these files, reading them ends.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use outlast_core::record::{Gap, OutputState, StatusRecord};
use outlast_core::request::LogCap;
use outlast_fuzz::{Stored, number, put, stored, take};
use outlast_host::frame::Stream;
use outlast_host::store::index::{Entry, IndexWriter, read_index, read_stream};
use outlast_host::store::log::LogWriter;
use outlast_host::store::name;
use outlast_host::store::reader::{LogReader, ReadPiece, survey};

static STORED: LazyLock<Stored> = LazyLock::new(stored);

static STATUS: LazyLock<StatusRecord> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../crates/host/fixtures/1/status.json")).expect("a record"));

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    match take(&mut rest, 1).first() {
        Some(b'w') => written(rest),
        Some(b'd') => damaged(rest),
        _ => return,
    }
    for file in [name::LOG, name::INDEX, name::STATUS] {
        STORED.command.dir().remove_if_there(file).expect("it can be removed");
    }
});

/// What a writer did: the output so far is known by its length, because each byte of it is.
struct Written {
    writer: LogWriter,
    index: IndexWriter,
    cap: LogCap,
    /// As it was published last.
    known: OutputState,
    /// Whether the capture is over: nothing is added any more.
    over: bool,
}

/// The longest output, in bytes: what matters is beyond the cap, and reading it takes time.
const LONGEST: u64 = 320 << 10;

/// The byte of the output at this offset; never zero, which is what a hole reads as.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1
}

fn output(from: u64, count: u64) -> Vec<u8> {
    (from..from + count).map(byte).collect()
}

/// Steps of a writer: each is a byte that says what, and one that says how much.
fn written(mut steps: &[u8]) {
    let dir = STORED.command.dir();
    let total = take(&mut steps, 2).iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let cap = LogCap::of(total * 4);
    let writer = LogWriter::create(dir, "a line", cap).expect("a log");
    let known = writer.output();
    let mut log = Written { writer, index: IndexWriter::create(dir).expect("an index"), cap, known, over: false };
    for step in steps.chunks_exact(2).take(24) {
        let much = u64::from(step[1]);
        match step[0] % 8 {
            0..=3 => log.append(much << (3 * (step[0] % 4)), if step[0] & 8 == 0 { Stream::Out } else { Stream::Err }),
            4 => log.publish(),
            5 => log.check(log.writer.bytes() * much / 255),
            6 => log.die(),
            _ => {
                log.over = true;
                log.writer.close();
            }
        }
    }
    log.publish();
    log.check(0);
    log.finish();
}

impl Written {
    fn append(&mut self, count: u64, stream: Stream) {
        let at = self.writer.bytes();
        let count = if self.over { 0 } else { count.min(LONGEST - at.min(LONGEST)) };
        self.writer.append(&output(at, count));
        assert_eq!(self.writer.bytes(), at + count);
        if let (Ok(length), true) = (u32::try_from(count), count > 0) {
            self.index.append(Entry { offset: at, at_ms: at / 4096, length, stream }).expect("it is written");
        }
    }

    fn publish(&mut self) {
        self.known = self.writer.output();
        self.write_status(true);
    }

    fn write_status(&self, capturing: bool) {
        let status = StatusRecord { output: self.known, capturing, ..STATUS.clone() };
        STORED.command.write_status(&status).expect("it is written");
    }

    /// Reads from an offset to the end, with what was published and nothing else.
    fn check(&self, from: u64) {
        let mut reader = LogReader::open(STORED.command.dir(), self.known.start, self.known.gap).expect("a log");
        if self.known.gap.is_none_or(|gap| gap.on_disk == gap.bytes) {
            self.read_all(&reader, from.min(self.known.bytes), self.known.bytes);
        }
        reader.update(&self.known);
        self.read_all(&reader, from, self.known.bytes);
    }

    fn read_all(&self, reader: &LogReader, mut at: u64, end: u64) {
        let mut buffer = vec![0; 10_000];
        while at < end {
            match reader.read_at(at, &mut buffer).expect("it can be read") {
                ReadPiece::Bytes(count) => {
                    assert!(count > 0, "nothing at {at} of {end}");
                    // A reader that does not know the end reads the trailer, too.
                    let wrong = (at..end).zip(&buffer[..count]).find(|(offset, read)| byte(*offset) != **read);
                    assert_eq!(wrong, None, "a wrong byte is shown; {:?}", self.known);
                    at += count as u64;
                }
                ReadPiece::Gap { offset, bytes } => {
                    self.is_dropped(Gap { offset, bytes, on_disk: bytes });
                    assert!(offset <= at && at < offset + bytes, "a gap that is elsewhere");
                    at = offset + bytes;
                }
            }
        }
    }

    /// Nothing is missing that the cap keeps.
    fn is_dropped(&self, gap: Gap) {
        let kept_from = self.writer.bytes().saturating_sub(self.cap.tail);
        assert!(gap.offset >= self.cap.head, "{gap:?} begins in the head of {:?}", self.cap);
        assert!(gap.offset + gap.bytes <= kept_from, "{gap:?} ends in the tail from {kept_from} on");
    }

    /// The writer dies; the next one, which only finishes it, goes by what was published and what is in the file.
    fn die(&mut self) {
        let dir = STORED.command.dir();
        let bytes = self.writer.bytes();
        let found = survey(dir, &self.known, self.cap).expect("it can be looked at");
        assert_eq!(found.bytes, bytes, "all that was written is found");
        self.writer = LogWriter::reopen(dir, &self.known, self.cap).expect("it can be written");
        assert_eq!(self.writer.bytes(), bytes);
        self.over = true;
        self.publish();
        self.check(0);
    }

    fn finish(mut self) {
        let dir = STORED.command.dir();
        let bytes = self.writer.bytes();
        self.writer.close();
        self.publish();
        self.check(0);
        self.known = self.writer.finish(Some(7));
        assert!(self.writer.failure().is_none() && self.known.whole && self.known.bytes == bytes);
        self.write_status(false);
        self.check(0);
        let dropped = bytes.saturating_sub(self.cap.head + self.cap.tail);
        assert_eq!(self.known.gap.map_or(0, |gap| gap.bytes), dropped, "the cap keeps exactly what it says");
        let text = std::fs::read(dir.path_of(name::LOG)).expect("a log");
        assert!(text.starts_with(b"Command: a line\n\n") && text.ends_with(b"\n\nExit code: 7\n"));
        let index = read_index(dir).expect("it can be read").expect("it is there");
        let mut reader = LogReader::open(dir, self.known.start, self.known.gap).expect("a log");
        reader.update(&self.known);
        let streams = [Stream::Out, Stream::Err].map(|stream| {
            read_stream(&reader, &index, stream, 0, usize::MAX >> 1).expect("it can be read").0.len() as u64
        });
        assert_eq!(streams[0] + streams[1], bytes - dropped, "the streams together are what is kept");
        // Who finishes it once more, because nobody knows that it is done, changes nothing.
        let found = survey(dir, &self.known, self.cap).expect("it can be looked at");
        assert_eq!((found.bytes, found.gap), (self.known.bytes, self.known.gap));
    }
}

/// Files and records that nobody wrote this way.
fn damaged(mut rest: &[u8]) {
    let dir = STORED.command.dir();
    let how = take(&mut rest, 1).first().copied().unwrap_or_default();
    // Small numbers meet each other, large ones meet the ends of what can be counted.
    let mut next = || match how & 1 {
        0 => take(&mut rest, 2).iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        _ => number(&mut rest),
    };
    let gap = Gap { offset: next(), bytes: next(), on_disk: next() };
    let output = OutputState { start: next(), bytes: next(), gap: (how & 2 != 0).then_some(gap), whole: how & 4 != 0 };
    let (asked, cap) = (next(), LogCap::of(next() & 0xf_ffff));
    let index = take(&mut rest, usize::from(how >> 3) * 8);
    put(dir.path_of(name::INDEX), index);
    put(dir.path_of(name::LOG), rest);
    let status = StatusRecord { output, capturing: how & 8 != 0, ..STATUS.clone() };
    STORED.command.write_status(&status).expect("it is written");

    // A record of such numbers is refused where it is read.
    let Ok(Some(status)) = STORED.command.status() else { return };
    let output = status.record.output;
    let mut reader = LogReader::open(dir, output.start, output.gap).expect("a log");
    let _length = reader.len();
    reading_ends(&reader, asked);
    reader.update(&output);
    reading_ends(&reader, asked);
    if let Ok(Some(index)) = read_index(dir) {
        for stream in [Stream::Out, Stream::Err] {
            if let Ok((text, next)) = read_stream(&reader, &index, stream, asked, 64) {
                assert!(text.len() <= 64 && next >= asked, "{} bytes up to {next}", text.len());
            }
        }
    }
    if survey(dir, &output, cap).is_ok()
        && let Ok(mut writer) = LogWriter::reopen(dir, &output, cap)
    {
        writer.append(b"more");
        let _state = writer.finish(Some(1));
    }
}

/// Every piece leads on, and what lies behind the end has nothing.
fn reading_ends(reader: &LogReader, mut at: u64) {
    let mut buffer = [0; 256];
    for _ in 0..64 {
        match reader.read_at(at, &mut buffer) {
            Ok(ReadPiece::Bytes(0)) | Err(_) => return,
            Ok(ReadPiece::Bytes(count)) => at += count as u64,
            Ok(ReadPiece::Gap { offset, bytes }) => {
                assert!(offset <= at && offset + bytes > at, "a gap at {offset} of {bytes} for {at}");
                at = offset + bytes;
            }
        }
    }
}
