//! Area C: output, log, tail.

use std::fs;
use std::process::Command;

use crate::support::*;

/// The whole log file, after capture has ended.
fn log(world: &World, id: &str) -> Vec<u8> {
    fs::read(world.dir(id).join("output.log")).expect("a log")
}

#[test]
fn c1_log_byte_for_byte() {
    let world = world();
    let rows: [(&[&str], &str, &str); 4] = [
        (&["-c", "echo out; exit 7"], "out\n", "7"),
        (&["-c", "echo err >&2"], "err\n", "0"),
        (&["-c", "printf unfinished"], "unfinished", "0"),
        (&["--", "true"], "", "0"),
    ];
    for (args, output, code) in rows {
        let id = world.bg(args);
        world.wait(&id);
        let text = String::from_utf8(log(&world, &id)).expect("a text");
        let (header, rest) = text.split_once("\n\n").expect("an empty line ends the header");
        assert!(header.starts_with("Command: ") && header.lines().count() == 1, "{header}");
        assert_eq!(rest, format!("{output}\n\nExit code: {code}\n"));
        let start = world.record(&id, "status.json").int("/output/start");
        assert_eq!(start, i64::try_from(header.len() + 2).expect("small"));
        let first = world.outlast(&["logs", &id, "--raw", "--offset", "0", "--bytes", "1"]).ok();
        assert_eq!(first.text(), output.chars().take(1).collect::<String>());
    }
}

#[test]
fn c1_trailer_is_the_last_thing_written() {
    let world = world();
    let id = bg_shell(&world, &[], "echo first; echo >p; exec sleep 300");
    world.wait_file("p");
    assert!(!String::from_utf8_lossy(&log(&world, &id)).contains("Exit code"));
    world.stop(&id);
    assert!(log(&world, &id).ends_with(b"first\n\n\nExit code: 143\n"));

    let line = "(while [ ! -e go ]; do sleep .05; done; echo later) & echo first";
    let id = shell_json(&world, &[], line).str("/id").to_owned();
    assert!(world.dir(&id).join("exit.json").exists());
    assert!(!String::from_utf8_lossy(&log(&world, &id)).contains("Exit code"), "a trailer while it is captured");
    fs::write(world.file("go"), "").expect("a file");
    world.wait_until("capture has ended", || log(&world, &id).ends_with(b"Exit code: 0\n"));
    assert_eq!(world.raw(&id), b"first\nlater\n");
}

#[test]
fn c2_running_status_shows_the_tail_without_the_file() {
    let world = world();
    let id = bg_shell(&world, &[], "seq 100000000 100004999; echo MARKER-10; echo >p; exec sleep 300");
    world.wait_file("p");
    world.wait_until("all was captured", || world.status(&id).int("/output/bytes") == 50_010);
    let whole = seq(100_000_000, 100_004_999) + "MARKER-10\n";
    assert_eq!(world.raw(&id), whole.as_bytes());
    let path = world.dir(&id).join("output.log");
    fs::rename(&path, world.dir(&id).join("elsewhere")).expect("our file");
    let told = world.status(&id);
    fs::rename(world.dir(&id).join("elsewhere"), &path).expect("our file");
    assert_eq!((told.int("/output/bytes"), told.int("/output/shown_from")), (50_010, 33_626));
    assert!(told.bool("/output/truncated"));
    assert_eq!(told.output(), &whole[33_626..]);
}

#[test]
fn c3_count_is_of_what_came() {
    let world = world();
    let id = bg_shell(&world, &["--max-log", "1KiB"], "seq 100000");
    let whole = i64::try_from(seq(1, 100_000).len()).expect("small");
    assert_eq!(world.wait(&id).int("/output/bytes"), whole);
    let small = world.outlast(&["run", "--max-log", "1023B", "--", "true"]).exits(2);
    assert!(small.err().contains("max-log"), "{small:?}");
}

/// Covers: C3, C4
#[test]
fn c4_full_disk_loses_no_end() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: this user may not mount a small file system");
        return;
    };
    // The world is dropped before the disk, so that nothing uses it any more when it is unmounted.
    let world = World::with_state(BINARY, disk.0.join("state").to_str().expect("a text"));
    let id = bg_shell(&world, &[], "seq 1000000; echo LAST; exit 7");
    let told = world.wait(&id);
    told.ends("exited", 7);
    assert_eq!(told.str("/status"), "error");
    assert_eq!(told.int("/output/bytes"), i64::try_from(seq(1, 1_000_000).len() + 5).expect("small"));
    assert!(told.output().ends_with("LAST\n"), "the kept tail is not readable: {told:?}");
    let errors = world.record(&id, "exit.json").at("/errors").to_string();
    assert!(["ENOSPC", "o space"].iter().any(|words| errors.contains(words)), "{errors}");
    // What is nowhere is told as that, and never as what the cap dropped.
    let status = world.status(&id);
    let (from, missing) = (status.int("/output/unwritten/offset"), status.int("/output/unwritten/bytes"));
    assert!(status.at("/output/gap").is_null(), "{status:?}");
    let whole = seq(1, 1_000_000) + "LAST\n";
    let (head, next) = (usize::try_from(from).expect("small"), usize::try_from(from + missing).expect("small"));
    assert_eq!(world.raw(&id), [&whole[..head], &whole[next..]].concat().into_bytes());
    let mark = format!("[{missing} bytes missing here, which could not be written to the log, from offset {from};");
    let text = world.outlast(&["logs", &id]).ok();
    assert!(text.text().contains(&mark) && !text.text().contains("cap"), "{text:?}");
    let text = world.outlast(&["status", &id]).ok();
    assert!(text.text().contains(&format!("{missing} bytes at offset {from} could not be written")), "{text:?}");
    // Behind it nothing is masked that its own lines show to be no secret.
    let offset = (next + 100).to_string();
    let read = world.outlast(&["logs", &id, "--offset", &offset, "--bytes", "60"]).ok();
    assert_eq!(read.text(), whole[next + 100..next + 160]);
    // An exit that is not an error by itself is one by its lost output. It needs room for its records.
    fs::remove_file(world.dir(&id).join("output.log")).expect("a log");
    let clean = bg_shell(&world, &[], "seq 1000000");
    assert_eq!(world.wait(&clean).ends("exited", 0).str("/status"), "error");
    fs::remove_file(world.dir(&clean).join("output.log")).expect("a log");
    // In the foreground the kept end is passed on, and the rest is said to be missing.
    let inline = world.outlast(&["run", "--grace", "60s", "-c", "seq 1000000; echo LAST"]).exits(0);
    assert!(inline.text().ends_with("LAST\n"), "{inline:?}");
    assert!(inline.err().contains("could not be written to the log"), "{inline:?}");
}

/// Covers: C14
#[test]
fn c14_supervisor_holds_little_of_the_output() {
    let world = world();
    for options in [&["--streams", "merged"], &["--streams", "separate"]] {
        let line = "echo $PPID >p; read x; head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2; echo >q; read x";
        let id = bg_shell(&world, &[&options[..], &["--stdin", "--max-log", "1MiB"]].concat(), line);
        let supervisor = world.wait_pids("p")[0];
        let before = peak(supervisor);
        world.outlast(&["send", &id, "go"]).ok();
        world.wait_file("q");
        world.wait_until("all of it came", || world.status(&id).int("/output/bytes") == 100_000_000);
        let grown = peak(supervisor).saturating_sub(before);
        assert!(grown < 1024, "{grown} KiB more, with {options:?}");
        world.outlast(&["send", &id, "go"]).ok();
        world.wait(&id).ends("exited", 0);
        for name in ["p", "q"] {
            fs::remove_file(world.file(name)).expect("our file");
        }
    }
}

/// The most memory that a process ever had, in KiB (proc(5), `VmHWM`).
fn peak(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Covers: C15, D5
#[test]
fn c15_what_is_wrong_with_the_records_is_said_by_every_read() {
    let world = world();
    let path = world.session_dir(&world.session()).join("trace.jsonl");
    let aside = world.session_dir(&world.session()).join("trace.aside");
    fs::rename(&path, &aside).expect("our file");
    fs::create_dir(&path).expect("a directory in its place");
    let id = bg_shell(&world, &[], "echo out");
    fs::remove_dir(&path).expect("our directory");
    fs::rename(&aside, &path).expect("our file");
    let told = world.wait(&id);
    assert_eq!((told.ends("exited", 0).str("/status"), told.output()), ("error", "out\n"), "{told:?}");
    for verb in [&["status", &id][..], &["wait", &id], &["logs", &id]] {
        let said = world.outlast(verb);
        let text = said.text() + &said.err();
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.trim_start_matches("outlast: "))
            .filter(|line| line.starts_with("records incomplete:"))
            .collect();
        assert!(lines.len() == 1 && lines[0].contains("trace"), "{verb:?}: {said:?}");
        assert!(text.contains("out"), "{verb:?}: {said:?}");
    }
    assert_eq!(world.raw(&id), b"out\n");
}

#[test]
fn c5_overflow_keeps_everything_and_is_not_pending() {
    let world = world();
    let output = world.outlast(&["run", "--json", "-c", "seq 100000000 100001999; echo MARKER"]).ok();
    let told = output.json();
    assert!(told.bool("/output/truncated") && !told.bool("/demoted"));
    assert!(told.output().ends_with("100001999\nMARKER\n"));
    let whole = seq(100_000_000, 100_001_999) + "MARKER\n";
    let from = usize::try_from(told.int("/output/shown_from")).expect("an offset");
    assert_eq!(told.output(), &whole[from..]);
    assert!(told.str("/output/log").ends_with("output.log"));
    assert_eq!(world.raw(told.str("/id")), whole.as_bytes());
    assert!(world.acked("model").is_empty(), "told inline and pending all the same");
    let plain = world.outlast(&["run", "-c", "seq 100000000 100001999"]).ok();
    assert_eq!(plain.text(), seq(100_000_000, 100_001_999), "run passes every byte on");
}

#[test]
fn c6_full_pipes_are_drained() {
    let world = world();
    let script = "import sys; sys.stderr.write('e' * 9 + '\\n' * 1 + ('x' * 99 + '\\n') * 100000); sys.stdin.read()";
    for streams in ["merged", "separate"] {
        let words = ["run", "--json", "--streams", streams, "--", "python3", "-c", script];
        let told = world.outlast(&words).ok().json();
        assert_eq!(told.int("/output/bytes"), 10_000_010, "{streams}");
    }
}

#[test]
fn c7_cap_keeps_head_and_tail_and_never_blocks() {
    let world = world();
    let id = bg_shell(&world, &["--max-log", "64KiB"], "echo FIRST; seq 1000000; echo LAST");
    let told = world.wait(&id);
    told.ends("exited", 0);
    let whole = format!("FIRST\n{}LAST\n", seq(1, 1_000_000));
    let gap = (told.int("/output/gap/offset"), told.int("/output/gap/bytes"));
    let (head, missing) = (usize::try_from(gap.0).expect("an offset"), usize::try_from(gap.1).expect("a size"));
    assert_eq!(told.int("/output/bytes"), i64::try_from(whole.len()).expect("small"));
    let kept = format!("{}{}", &whole[..head], &whole[head + missing..]);
    assert!(kept.len() <= 64 * 1024 && kept.len() > 48 * 1024, "{} bytes kept", kept.len());
    assert_eq!(String::from_utf8_lossy(&world.raw(&id)), kept);
    // Offsets after the gap stay those of the true output.
    let after = (head + missing).to_string();
    let tail = world.outlast(&["logs", &id, "--raw", "--offset", &after]).ok();
    assert_eq!(tail.text(), &whole[head + missing..]);
    let inside = (head + 10).to_string();
    let raw = world.outlast(&["logs", &id, "--raw", "--offset", &inside]).ok();
    assert_eq!(raw.text(), &whole[head + missing..], "a raw read goes on after the gap");
    let (before, span) = ((head - 5).to_string(), (missing + 10).to_string());
    let raw = world.outlast(&["logs", &id, "--raw", "--offset", &before, "--bytes", &span]).ok();
    assert_eq!(raw.text(), whole[head - 5..head].to_owned() + &whole[head + missing..head + missing + 5]);
    let text = world.outlast(&["logs", &id, "--offset", &inside, "--bytes", "10"]).ok();
    assert!(text.text().contains(&missing.to_string()), "the mark is not shown: {text:?}");
}

#[test]
fn c9_text_is_cleaned_and_the_log_is_not() {
    let world = world();
    let rows = [
        (r"printf 'a\rb\n'", "b\n"),
        (r"printf 'a\r\n'", "a\n"),
        (r"printf '\033[1;31mred\033[0m\n'", "red\n"),
        (r"printf 'tab\there\n'", "tab\there\n"),
    ];
    for (line, text) in rows {
        assert_eq!(shell_json(&world, &[], line).output(), text, "{line}");
        let id = bg_shell(&world, &[], line);
        world.wait(&id);
        assert_eq!(world.outlast(&["logs", &id]).ok().text(), text, "{line}");
        let direct = Command::new("sh").args(["-c", line]).output().expect("sh runs").stdout;
        assert_eq!(world.raw(&id), direct, "{line}");
    }
    let long = shell_json(&world, &[], "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo next");
    let longest = long.output().lines().map(str::len).max().unwrap_or(0);
    assert!(longest < 10_000, "a line of {longest} bytes");
    assert!(long.output().ends_with("next\n"));
}

#[test]
fn c10_bytes_that_are_no_text_are_decoded_lossily() {
    let world = world();
    let told = shell_json(&world, &[], r"printf 'a\377b\n'");
    assert_eq!(told.output(), "a\u{fffd}b\n");
    let round = shell_json(&world, &[], "printf 'grün 你 🦀\\n'");
    assert_eq!(round.output(), "grün 你 🦀\n");
}

/// Covers: C11, C16
#[test]
fn c11_reads_by_offset_are_exact() {
    let world = world();
    let script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 600 + b'SUFFIX')";
    let id = world.bg(&["--", "python3", "-c", script]);
    world.wait(&id);
    let whole: Vec<u8> = (0..=255u8).cycle().take(256 * 600).chain(*b"SUFFIX").collect();
    assert_eq!(world.raw(&id), whole);
    for (offset, bytes) in [(0, 10), (250, 20), (131_072, 300), (153_600, 6), (153_600, 99), (200_000, 9)] {
        let (from, count) = (offset.to_string(), bytes.to_string());
        let read = world.outlast(&["logs", &id, "--raw", "--offset", &from, "--bytes", &count]).ok();
        let right = &whole[offset.min(whole.len())..(offset + bytes).min(whole.len())];
        assert_eq!(read.stdout, right, "{offset} {bytes}");
    }
}

#[test]
fn c11_following_ends_with_the_capture() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "echo one; read x; echo two");
    let following = world.spawn(&["logs", &id, "-f"]);
    following.wait_stdout("the first line", |text| text == "one\n");
    world.outlast(&["send", &id, "go"]).ok();
    assert_eq!(following.wait().ok().text(), "one\ntwo\n");
    let tail = world.outlast(&["logs", &id, "--tail", "1"]).ok();
    let head = world.outlast(&["logs", &id, "--head", "1"]).ok();
    assert_eq!((head.text().as_str(), tail.text().as_str()), ("one\n", "two\n"));
}

#[test]
fn c12_reads_can_be_filtered() {
    let world = world();
    let id = bg_shell(&world, &[], "for i in 1 2 3; do echo ok $i; echo ERR $i; done");
    world.wait(&id);
    assert_eq!(world.outlast(&["logs", &id, "--grep", "^ERR"]).ok().text(), "ERR 1\nERR 2\nERR 3\n");
    let invalid = world.outlast(&["logs", &id, "--grep", "("]).exits(2);
    assert!(invalid.err().contains('('), "{invalid:?}");
    let none = world.outlast(&["logs", &id, "--grep", "NOTHING"]).ok().text();
    assert!(!none.contains("ERR") && !none.contains("ok"), "{none}");
}

#[test]
fn c19_held_pipe_costs_neither_output_nor_end() {
    let world = world();
    for line in ["echo X; sleep 300 &", "echo X; setsid sleep 300 &", "echo X; while :; do echo x; sleep .1; done &"] {
        let id = bg_shell(&world, &[], line);
        let told = world.outlast(&["wait", &id, "--timeout", "20s", "--json"]).ok().json();
        told.ends("exited", 0);
        assert!(told.output().starts_with("X\n"), "{told:?}");
        assert!(!told.survivors().is_empty(), "{line}");
        world.stop(&id);
    }
}

#[test]
fn c20_log_path_opens_as_it_is_told() {
    let world = World::with_state(BINARY, "a state/with spaces");
    let id = bg_shell(&world, &[], "echo here");
    let told = world.wait(&id);
    let path = told.str("/output/log");
    assert!(String::from_utf8_lossy(&fs::read(path).expect("the path opens")).contains("here\n"));
    let notice = world.outlast(&["inbox", "--consumer", "human"]).ok().text();
    assert!(notice.contains(path), "{notice}");
}

#[test]
fn c21_output_of_a_running_command_is_visible() {
    let world = world();
    let id = bg_shell(&world, &[], "echo visible; exec sleep 300");
    world.wait_until("it is visible", || world.status(&id).output() == "visible\n");
    let told = world.status(&id);
    told.runs();
    assert!(!told.bool("/output/withheld"));
    assert!(world.outlast(&["logs", &id]).ok().text().contains("visible"));
}
