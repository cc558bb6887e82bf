//! Cases of the kind "output": bounded, ordered, exact, and clean for a reader.

use std::os::unix::fs::MetadataExt;

use crate::support::*;

#[test]
fn case_084_log_has_a_cap_and_the_producer_none() {
    let world = world();
    let id = world.bg(&["--max-log", "1MiB", "--", "yes"]);
    world.wait_until("much came", || world.status(&id).int("/output/bytes") > 20 << 20);
    let told = world.status(&id);
    told.runs();
    assert!(told.int("/output/gap/bytes") > 10 << 20, "{told:?}");
    let blocks: u64 = tree(&world.state()).iter().map(|path| path.symlink_metadata().map_or(0, |m| m.blocks())).sum();
    assert!(blocks * 512 < 3 << 20, "{} bytes on disk for a cap of 1 MiB", blocks * 512);
    world.stop(&id);
    let ended = world.status(&id);
    let (bytes, gap) = (ended.int("/output/bytes"), ended.int("/output/gap/bytes"));
    let raw = world.raw(&id);
    assert!(raw.starts_with(b"y\ny\n") && raw.len() <= 1 << 20, "{} bytes kept", raw.len());
    assert_eq!(i64::try_from(raw.len()).expect("small"), bytes - gap, "{ended:?}");
    let text = world.outlast(&["logs", &id]).ok().text();
    assert!(text.contains(&gap.to_string()), "the text does not say how much is missing");
}

#[test]
fn case_086_equal_lines_and_blocks_are_counted() {
    let world = world();
    let same = shell_json(&world, &[], "yes same | head -n 1000");
    assert!(same.output().matches("same").count() < 5, "{same:?}");
    assert!(["1000", "999"].iter().any(|count| same.output().contains(count)), "{same:?}");
    let block =
        shell_json(&world, &[], "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo start; echo 'error: no port'; done");
    assert!(block.output().matches("error: no port").count() < 5, "{block:?}");
    assert!(["300", "299"].iter().any(|count| block.output().contains(count)), "{block:?}");
}

#[test]
fn case_087_every_reply_is_bounded() {
    let world = world();
    let output = world.outlast(&["run", "--json", "-c", "seq 1000000"]).ok();
    assert!(output.stdout.len() < 40_000, "{} bytes in a reply", output.stdout.len());
    let told = output.json();
    let whole = seq(1, 1_000_000);
    assert!(told.bool("/output/truncated"));
    assert_eq!(told.int("/output/bytes"), i64::try_from(whole.len()).expect("small"));
    let from = told.int("/output/shown_from").to_string();
    let id = told.str("/id");
    let shown = world.outlast(&["logs", id, "--raw", "--offset", &from]).ok();
    assert_eq!(shown.text(), told.output());
    let missing = world.outlast(&["logs", id, "--raw", "--offset", "0", "--bytes", &from]).ok();
    assert!(missing.text() + &shown.text() == whole, "the offsets do not lead to the missing bytes");
}

#[test]
fn case_089_only_the_last_frame_is_shown() {
    let world = world();
    let line = "for i in $(seq 0 100); do printf '\\rDownloading %d%%' $i; done; echo";
    let id = bg_shell(&world, &[], line);
    let told = world.wait(&id);
    assert_eq!(told.output(), "Downloading 100%\n");
    let frames: String = (0..=100).map(|percent| format!("\rDownloading {percent}%")).collect();
    assert_eq!(String::from_utf8_lossy(&world.raw(&id)), frames + "\n");
}

#[test]
fn case_091_no_escape_sequence_in_text() {
    let world = world();
    let rows: [(&str, &str); 6] = [
        (r"for i in 1 2 3; do printf '\033[2K\033[1A\033[31m%d\033[0m\n' $i; done", "1\n2\n3\n"),
        (r"printf '\033]0;title\007x\n'", "x\n"),
        (r"printf '\033]8;;http://a\033\\link\033]8;;\033\\\n'", "link\n"),
        (r"printf '\033Pq#0;2\033\\dcs\n'", "dcs\n"),
        (r"printf 'cut\n\033[3'", "cut\n"),
        (r"printf 'a\033['; sleep .2; printf '31mb\n'", "ab\n"),
    ];
    for (line, text) in rows {
        let id = bg_shell(&world, &[], line);
        assert_eq!(world.wait(&id).output(), text, "{line}");
        assert!(world.raw(&id).contains(&0x1b), "the log is raw: {line}");
    }
}

#[test]
fn case_092_characters_stay_whole() {
    let world = world();
    let split = shell_json(&world, &[], r"printf '\344\275'; sleep .2; printf '\240\n'");
    assert_eq!(split.output(), "你\n");
    let split = bg_shell(&world, &[], r"printf '\344\275'; sleep .2; printf '\240\n'");
    assert_eq!(world.outlast(&["logs", &split, "-f"]).ok().text(), "你\n");
    let long = world.bg(&["--", "python3", "-c", "print('你' * 50000)"]);
    let told = world.wait(&long);
    assert!(told.bool("/output/truncated"));
    assert!(told.output().contains('你') && !told.output().contains('\u{fffd}'));
    assert_eq!(String::from_utf8(world.raw(&long)).expect("whole characters"), "你".repeat(50_000) + "\n");
    let middle = world.outlast(&["logs", &long, "--offset", "1", "--bytes", "10"]).ok();
    assert!(middle.text().contains('你'));
}

#[test]
fn case_095_both_streams_in_their_true_order() {
    let world = world();
    let line = "for i in 1 2 3; do echo o$i; echo e$i >&2; done";
    assert_eq!(shell_json(&world, &[], line).output(), "o1\ne1\no2\ne2\no3\ne3\n");
    let id = bg_shell(&world, &["--streams", "separate"], line);
    world.wait(&id);
    let stream = |name: &str| world.outlast(&["logs", &id, "--raw", "--stream", name]).ok().text();
    assert_eq!(stream("stdout"), "o1\no2\no3\n");
    assert_eq!(stream("stderr"), "e1\ne2\ne3\n");
    assert!(world.dir(&id).join("output.idx").exists());
    let front = world.outlast(&["run", "--streams", "separate", "-c", line]).ok();
    assert_eq!((front.text().as_str(), front.err().as_str()), ("o1\no2\no3\n", "e1\ne2\ne3\n"));
}

#[test]
fn case_098_background_does_not_reach_the_terminal() {
    let world = world();
    let line = "printf '\\033[?1049h\\033[?1003h'; echo >p; sleep 300";
    let starting =
        world.outlast(&["run", "-b", "--label", "red\u{1b}[31m\u{9b}2J", "-c", &format!("{line} # \u{1b}[2J")]);
    let starting = starting.ok();
    printable(&starting.text());
    world.wait_file("p");
    let id = ids(&world.list())[0].clone();
    for verb in [&["ps"][..], &["ps", "-a"], &["status", &id], &["inbox"], &["trace"], &["logs", &id]] {
        let output = world.outlast(verb).ok();
        printable(&(output.text() + &output.err()));
    }
    world.stop(&id);
    let inbox = world.outlast(&["inbox", "--consumer", "human"]).ok();
    printable(&inbox.text());
}
