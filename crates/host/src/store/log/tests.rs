//! Tests of writing a log and of reading it back.

use super::*;
use outlast_core::record::StatusRecord;

use crate::dir::tests::TempDir;
use crate::frame::Stream;
use crate::store::index::{Entry, IndexWriter, read_index, read_stream};
use crate::store::reader::{LogReader, ReadPiece};

const SMALL: LogCap = LogCap { head: 10_000, tail: 300_000 };

/// The output byte that stands at an offset in these tests: no two nearby parts are alike.
fn byte_at(offset: u64) -> u8 {
    let mixed = offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

fn bytes_of(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(byte_at).collect()
}

fn write(log: &mut LogWriter, total: u64, step: u64) {
    let mut at = log.bytes();
    while at < total {
        let next = total.min(at + step);
        log.append(&bytes_of(at, next));
        at = next;
    }
}

/// Reads everything and checks every byte that exists against its offset; tells what is missing.
fn check(reader: &LogReader, total: u64) -> u64 {
    let mut buffer = vec![0; 70_000];
    let (mut at, mut missing) = (0, 0);
    loop {
        match reader.read_at(at, &mut buffer).unwrap() {
            ReadPiece::Bytes(0) => break,
            ReadPiece::Bytes(count) => {
                let next = at + count as u64;
                assert!(buffer[..count] == bytes_of(at, next), "wrong bytes in {at}..{next}");
                at = next;
            }
            ReadPiece::Gap { offset, bytes } => {
                assert_eq!(offset, at);
                missing += bytes;
                at = offset + bytes;
            }
        }
    }
    assert_eq!(at, total);
    missing
}

fn reader_of(dir: &Dir, state: &OutputState) -> LogReader {
    let mut reader = LogReader::open(dir, state.start, state.gap).unwrap();
    reader.update(state);
    reader
}

fn blocks(dir: &Dir) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(dir.path_of(name::LOG)).unwrap().blocks() * 512
}

/// Covers: C1
#[test]
fn c1_the_layout_is_fixed() {
    for (output, number, expected) in [
        (&b"out\n"[..], Some(7), &b"Command: sh -c x\n\nout\n\n\nExit code: 7\n"[..]),
        (b"no newline", Some(143), b"Command: sh -c x\n\nno newline\n\nExit code: 143\n"),
        (b"", Some(0), b"Command: sh -c x\n\n\n\nExit code: 0\n"),
        (b"lost", None, b"Command: sh -c x\n\nlost"),
        (b"\0\xff\xfeu\0", Some(0), b"Command: sh -c x\n\n\0\xff\xfeu\0\n\nExit code: 0\n"),
    ] {
        let temp = TempDir::new();
        let dir = temp.dir();
        let mut log = LogWriter::create(&dir, "sh -c x", LogCap::default()).unwrap();
        log.append(output);
        let running = dir.read(name::LOG, 1000).unwrap();
        assert_eq!(running, [b"Command: sh -c x\n\n", output].concat(), "no trailer while it is captured");
        let state = log.finish(number);
        assert_eq!(dir.read(name::LOG, 1000).unwrap(), expected);
        let bytes = output.len() as u64;
        assert_eq!(state, OutputState { start: 18, bytes, gap: None, whole: true });
    }
}

/// Covers: C1, C11, C16
#[test]
fn c1_offsets_are_offsets_of_the_output() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create(&dir, "yes", LogCap::default()).unwrap();
    log.append(b"0123456789");
    let reader = LogReader::open(&dir, log.output().start, None).unwrap();
    assert_eq!(reader.len().unwrap(), 10);
    let mut buffer = [0; 4];
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), ReadPiece::Bytes(4));
    assert_eq!(&buffer, b"0123");
    assert_eq!(reader.read_at(8, &mut buffer).unwrap(), ReadPiece::Bytes(2));
    publish(&dir, log.output(), true);
    for behind in [99, u64::MAX >> 1, u64::MAX - 20, u64::MAX] {
        assert_eq!(reader.read_at(behind, &mut buffer).unwrap(), ReadPiece::Bytes(0), "{behind}");
    }
    let reader = reader_of(&dir, &log.finish(Some(0)));
    let mut rest = [0; 100];
    assert_eq!(reader.read_at(0, &mut rest).unwrap(), ReadPiece::Bytes(10), "the trailer is no output");
}

/// Covers: C3, C7, case-084
#[test]
fn c7_a_full_log_keeps_head_and_tail_at_their_offsets() {
    for total in [310_000, 310_001, 330_000, 400_000, 700_000, 3_000_000] {
        let temp = TempDir::new();
        let dir = temp.dir();
        let mut log = LogWriter::create(&dir, "yes", SMALL).unwrap();
        write(&mut log, total, 9_999);
        let state = log.finish(Some(0));
        assert_eq!(state.bytes, total);
        assert!(state.whole);
        assert_eq!(check(&reader_of(&dir, &state), total), total - 310_000, "{total}: {state:?}");
        let text = std::fs::read(dir.path_of(name::LOG)).unwrap();
        assert!(text.ends_with(b"\n\nExit code: 0\n"));
        if total >= 700_000 {
            let mark = format!("\n[outlast: {} bytes not kept]\n", total - 310_000);
            let place = (state.start + 10_000) as usize;
            assert_eq!(&text[place..place + mark.len()], mark.as_bytes());
            assert_eq!(text.len(), state.start as usize + 310_000 + mark.len() + 15);
        }
    }
}

/// Covers: C7, case-084
#[test]
fn c7_while_it_runs_the_disk_use_stays_near_the_cap_and_reads_are_true() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create(&dir, "yes", SMALL).unwrap();
    let mut most = 0;
    for total in (0..8_000_000).step_by(500_000) {
        write(&mut log, total, 65_536);
        most = most.max(blocks(&dir));
        let state = log.output();
        assert_eq!(check(&reader_of(&dir, &state), total), state.gap.map_or(0, |gap| gap.bytes));
    }
    assert!(most < 600_000, "{most}");
    assert!(log.gap().is_some());
}

fn publish(dir: &Dir, output: OutputState, capturing: bool) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/1/status.json");
    let mut status: StatusRecord = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    (status.output, status.capturing) = (output, capturing);
    crate::store::put(dir, name::STATUS, &status, Default::default()).unwrap();
}

/// Covers: C7, C11
#[test]
fn c7_a_reader_that_was_told_nothing_is_never_shown_a_wrong_byte() {
    for total in [350_000, 500_000, 2_000_000] {
        let temp = TempDir::new();
        let dir = temp.dir();
        let mut log = LogWriter::create(&dir, "yes", SMALL).unwrap();
        publish(&dir, log.output(), true);
        let reader = LogReader::open(&dir, log.output().start, None).unwrap();
        write(&mut log, total, 65_536);
        check(&reader, total);
        log.close();
        check(&reader, total);
        publish(&dir, log.output(), true);
        assert_eq!(check(&reader, total), total - 310_000);
        // The state between the copy and the cut.
        let Kept::Trimmed { hole_end, gap: Some(gap) } = log.kept else { panic!("{log:?}") };
        log.close_hole(hole_end, gap).unwrap();
        assert_eq!(check(&reader, total), total - 310_000);
        let stale = log.output();
        let state = log.finish(None);
        assert_eq!(check(&reader, total), total - 310_000);
        assert_eq!(check(&reader_of(&dir, &stale), total), total - 310_000);
        publish(&dir, state, false);
        assert_eq!(check(&reader, total), total - 310_000);
    }
}

/// Covers: C7, C11
#[test]
fn c7_readers_beside_a_writer_see_true_bytes_only() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create(&dir, "yes", SMALL).unwrap();
    publish(&dir, log.output(), true);
    let start = log.output().start;
    let total = 6_000_000;
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let reader = LogReader::open(&dir, start, None).unwrap();
            scope.spawn(move || {
                let mut buffer = vec![0; 30_000];
                for turn in 0..2000u64 {
                    let at = turn.wrapping_mul(seed * 0x9e37_79b9) % total;
                    if let ReadPiece::Bytes(count) = reader.read_at(at, &mut buffer).unwrap() {
                        let within = count.min(usize::try_from(total - at).unwrap());
                        assert!(buffer[..within] == bytes_of(at, at + within as u64), "wrong bytes at {at}");
                    }
                }
            });
        }
        write(&mut log, total, 40_000);
        log.close();
        publish(&dir, log.output(), true);
        let state = log.finish(Some(0));
        publish(&dir, state, false);
    });
}

/// Covers: C7
#[test]
fn c7_a_writer_that_died_while_finishing_can_be_replaced() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create(&dir, "yes", SMALL).unwrap();
    write(&mut log, 2_000_000, 65_536);
    let running = log.output();
    log.close();
    let closed = log.output();
    let Kept::Trimmed { hole_end, gap: Some(gap) } = log.kept else { panic!("{log:?}") };
    log.close_hole(hole_end, gap).unwrap();
    drop(log);
    for known in [OutputState { gap: None, bytes: 0, ..running }, running, closed] {
        let found = survey(&dir, &known, SMALL).unwrap();
        check(&reader_of(&dir, &found), 2_000_000);
    }
    let state = LogWriter::reopen(&dir, &running, SMALL).unwrap().finish(Some(9));
    assert_eq!(check(&reader_of(&dir, &state), 2_000_000), 1_690_000);
    let text = std::fs::read(dir.path_of(name::LOG)).unwrap();
    assert!(text.ends_with(b"\n\nExit code: 9\n"));
    for known in [closed, state] {
        assert_eq!(LogWriter::reopen(&dir, &known, SMALL).unwrap().finish(Some(9)), state);
        assert_eq!(std::fs::read(dir.path_of(name::LOG)).unwrap(), text, "finishing twice changes nothing");
    }
}

/// Covers: C1
#[test]
fn c1_a_trailer_is_not_taken_for_output_by_whoever_finishes_again() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create(&dir, "yes", SMALL).unwrap();
    write(&mut log, 320_000, 65_536);
    log.close();
    let known = log.output();
    log.finish(Some(9));
    let text = std::fs::read(dir.path_of(name::LOG)).unwrap();
    LogWriter::reopen(&dir, &known, SMALL).unwrap().finish(Some(9));
    assert_eq!(std::fs::read(dir.path_of(name::LOG)).unwrap(), text);
}

/// Covers: C7
#[test]
fn c7_a_read_inside_the_gap_says_so_and_tells_the_next_offset() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create(&dir, "yes", SMALL).unwrap();
    write(&mut log, 1_000_000, 65_536);
    let reader = reader_of(&dir, &log.finish(Some(0)));
    let mut buffer = [0; 100];
    let gap = ReadPiece::Gap { offset: 10_000, bytes: 690_000 };
    assert_eq!(reader.read_at(10_000, &mut buffer).unwrap(), gap);
    assert_eq!(reader.read_at(699_999, &mut buffer).unwrap(), gap);
    assert_eq!(reader.read_at(700_000, &mut buffer).unwrap(), ReadPiece::Bytes(100));
    assert_eq!(reader.read_at(9_999, &mut buffer).unwrap(), ReadPiece::Bytes(1));
}

/// Covers: C7
#[test]
fn c7_without_holes_the_beginning_and_the_last_bytes_are_kept() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create_with(&dir, "yes", SMALL, |_, _, _| Err(Errno::OPNOTSUPP)).unwrap();
    write(&mut log, 2_000_000, 10_000);
    let running = log.output();
    check(
        &reader_of(&dir, &OutputState { bytes: running.gap.unwrap().offset, ..running }),
        running.gap.unwrap().offset,
    );
    let state = log.finish(Some(0));
    let missing = check(&reader_of(&dir, &state), 2_000_000);
    assert_eq!(missing, 2_000_000 - state.gap.unwrap().offset - MEMORY_TAIL as u64);
    assert!(std::fs::read(dir.path_of(name::LOG)).unwrap().len() < 500_000);
}

/// Covers: C3, C4
#[test]
fn c4_a_log_that_could_not_be_made_counts_on() {
    let temp = TempDir::new();
    let dir = temp.dir();
    std::fs::create_dir(dir.path_of(name::LOG)).unwrap();
    let error = LogWriter::create(&dir, "yes", SMALL).unwrap_err();
    assert!(error.to_string().contains("output.log"));
    let mut log = LogWriter::failed(&dir, SMALL, error);
    log.append(b"12345");
    let state = log.finish(Some(0));
    assert_eq!((state.bytes, state.whole), (5, false));
    assert!(log.failure().is_some());
}

/// Covers: C3, C4
#[test]
fn c4_a_full_disk_closes_the_log_for_good_and_the_end_still_lands() {
    let temp = TempDir::new();
    let disk = temp.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"])
        .arg(&disk)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: a tmpfs cannot be mounted here");
        return;
    }
    let outcome = std::panic::catch_unwind(|| fill_a_disk(&disk));
    std::process::Command::new("umount").arg("-l").arg(&disk).status().unwrap();
    outcome.unwrap();
}

fn fill_a_disk(disk: &std::path::Path) {
    use crate::atomic::{Durability, Reserved};
    let dir = Dir::open_state_root(disk).unwrap();
    let space = Reserved::create(&dir, name::EXIT_SPACE, name::EXIT, 16_384).unwrap();
    std::fs::write(dir.path_of("ballast"), vec![1; 40_000]).unwrap();
    // Less than came, and less than fits.
    let mut log = LogWriter::create(&dir, "yes", LogCap { head: 200_000, tail: 500_000 }).unwrap();
    write(&mut log, 1_000_000, 65_536);
    assert!(log.failure().unwrap().to_string().contains("output.log"), "{:?}", log.failure());
    assert_eq!(log.failure().unwrap().errno(), Some(Errno::NOSPC));
    let length = std::fs::metadata(dir.path_of(name::LOG)).unwrap().len();

    let exit = vec![b'x'; 16_000];
    space.fill(&exit, Durability::Process).unwrap();
    assert_eq!(dir.read(name::EXIT, 20_000).unwrap(), exit);

    // Space again: writing is not resumed, no hole and no trailer.
    std::fs::remove_file(dir.path_of("ballast")).unwrap();
    write(&mut log, 1_100_000, 65_536);
    let state = log.finish(Some(0));
    assert_eq!((state.bytes, state.whole), (1_100_000, false));
    assert_eq!(std::fs::metadata(dir.path_of(name::LOG)).unwrap().len(), length);
    assert_eq!(state.gap, None, "the cap dropped nothing of what is not there");
    let reader = reader_of(&dir, &state);
    assert_eq!(reader.written().unwrap(), length - state.start);
    let mut buffer = vec![0; length as usize];
    let ReadPiece::Bytes(count) = reader.read_at(0, &mut buffer).unwrap() else { panic!("no gap here") };
    assert!(buffer[..count] == bytes_of(0, length - state.start));
}

/// Covers: C1, C7
#[test]
fn c1_the_log_of_a_dead_writer_can_be_finished() {
    for total in [5_000, 350_000, 1_234_567] {
        let temp = TempDir::new();
        let dir = temp.dir();
        let mut log = LogWriter::create(&dir, "yes", SMALL).unwrap();
        write(&mut log, total, 50_000);
        let before = log.output();
        drop(log);
        let stale = OutputState { bytes: 7, gap: None, ..before };
        let mut log = LogWriter::reopen(&dir, &stale, SMALL).unwrap();
        assert_eq!(log.output(), before);
        let state = log.finish(Some(137));
        let missing = check(&reader_of(&dir, &state), total);
        assert_eq!(missing, total.saturating_sub(310_000));
        assert!(std::fs::read(dir.path_of(name::LOG)).unwrap().ends_with(b"\n\nExit code: 137\n"));
    }
}

/// Covers: C1
#[test]
fn c1_each_stream_can_be_read_alone() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create(&dir, "x", LogCap { head: 6, tail: 6 }).unwrap();
    let mut index = IndexWriter::create(&dir).unwrap();
    let parts: [(&[u8], Stream, u64); 5] = [
        (b"out", Stream::Out, 1),
        (b"put", Stream::Out, 1),
        (b"err", Stream::Err, 1),
        (b"or", Stream::Err, 2),
        (b"more", Stream::Out, 3),
    ];
    for (text, stream, at_ms) in parts {
        let length = u32::try_from(text.len()).unwrap();
        index.append(Entry { offset: log.bytes(), at_ms, length, stream }).unwrap();
        log.append(text);
    }
    let entries = read_index(&dir).unwrap().unwrap();
    assert_eq!(entries.len(), 4, "what came at once is one entry");
    let reader = LogReader::open(&dir, log.output().start, None).unwrap();
    let read = |stream, offset, most| read_stream(&reader, &entries, stream, offset, most).unwrap();
    assert_eq!(read(Stream::Out, 0, 99), (b"outputmore".to_vec(), 15));
    assert_eq!(read(Stream::Err, 0, 99), (b"error".to_vec(), 15));
    assert_eq!(read(Stream::Out, 4, 4), (b"utmo".to_vec(), 13));
    assert_eq!(read(Stream::Out, 13, 4), (b"re".to_vec(), 15));
    let capped = reader_of(&dir, &log.finish(Some(0)));
    assert_eq!(capped.gap().unwrap().bytes, 3);
    assert_eq!(read_stream(&capped, &entries, Stream::Err, 0, 99).unwrap(), (b"or".to_vec(), 15));
    assert!(read_index(&temp.dir().create_sub("none").unwrap()).unwrap().is_none());
}

/// Covers: C1
#[test]
fn c1_an_entry_of_an_offset_that_no_output_has_is_no_entry() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut index = IndexWriter::create(&dir).unwrap();
    let entry = |offset, stream| Entry { offset, at_ms: 1, length: 10, stream };
    index.append(entry(0, Stream::Out)).unwrap();
    index.append(entry(u64::MAX - 5, Stream::Err)).unwrap();
    let entries = read_index(&dir).unwrap().unwrap();
    assert_eq!(entries, [entry(0, Stream::Out)]);
    let mut log = LogWriter::create(&dir, "x", SMALL).unwrap();
    write(&mut log, 10, 10);
    let reader = reader_of(&dir, &log.output());
    assert_eq!(read_stream(&reader, &entries, Stream::Err, 0, 100).unwrap(), (Vec::new(), 10));
}

/// Covers: C1
#[test]
fn c1_reading_by_an_index_that_is_out_of_order_never_goes_back() {
    let temp = TempDir::new();
    let dir = temp.dir();
    let mut log = LogWriter::create(&dir, "x", SMALL).unwrap();
    write(&mut log, 200, 200);
    let reader = reader_of(&dir, &log.output());
    let entry = |offset| Entry { offset, at_ms: 1, length: 10, stream: Stream::Out };
    let index = [entry(100), entry(110), entry(0)];
    assert_eq!(read_stream(&reader, &index, Stream::Out, 50, 100).unwrap(), (bytes_of(100, 120), 120));
    assert_eq!(read_stream(&reader, &index, Stream::Err, 50, 100).unwrap(), (Vec::new(), 120));
}
