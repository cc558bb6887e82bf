//! The foreground where its output is not read, and where the command is ended from outside.

use std::io::{PipeReader, Read};

use crate::support::*;

/// More than a pipe holds, on lines of their own.
const FLOOD: &str = "echo $PPID $$ >p; yes | head -c 200000";

/// Runs a line whose standard output goes into a pipe that nobody reads yet.
fn unread(world: &World, options: &[&str], line: &str) -> (PipeReader, outlast_testkit::Front) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let words = [&["run"], options, &["-c", line]].concat();
    (reader, world.call(&words).within(Duration::from_secs(20)).stdout(writer).spawn())
}

#[test]
fn unread_output_holds_no_demotion_up() {
    let world = world();
    for (options, signal) in [(&["--grace", "1s"][..], None), (&["--grace", "60s"], Some(Signal::TERM))] {
        let (_reader, front) = unread(&world, options, &format!("{FLOOD}; echo >flooded; exec sleep 50"));
        world.wait_file("flooded");
        if let Some(signal) = signal {
            front.signal(signal);
        }
        let told = front.wait().exits(75);
        let id = world.list().pop().expect("it was demoted").str("/id").to_owned();
        assert!(told.err().contains(&id) && told.err().lines().count() == 1, "{told:?}");
        world.status(&id).runs();
        assert_eq!(world.raw(&id).len(), 200_000);
        std::fs::remove_file(world.file("flooded")).expect("it was written");
    }
}

/// The bytes of `count` numbered lines, and a line that prints them.
fn numbered(count: u32) -> (Vec<u8>, String) {
    let lines: String = (1..=count).map(|number| format!("{number:09}\n")).collect();
    (lines.into_bytes(), format!("seq -f %09.0f {count}"))
}

/// Covers: C7
#[test]
fn c7_who_reads_gets_every_byte_of_an_output_beyond_the_cap() {
    let world = world();
    let (wrote, line) = numbered(1_200_000);
    for cap in ["256KiB", "1MiB", "4MiB"] {
        let told = world.outlast(&["run", "--consumer", "human", "--max-log", cap, "-c", &line]).ok();
        assert_eq!(told.stdout.len(), wrote.len(), "with a cap of {cap}: {}", told.err());
        assert!(told.stdout == wrote, "other bytes with a cap of {cap}");
        assert!(told.err().contains("all were passed on"), "{}", told.err());
    }
}

/// Covers: C7
#[test]
fn c7_who_reads_nothing_holds_an_output_beyond_the_cap_up_for_a_moment_only() {
    let world = world();
    let line = format!("{}; echo >flooded; exit 3", numbered(600_000).1);
    let (mut reader, front) = unread(&world, &["--consumer", "human", "--max-log", "256KiB"], &line);
    world.wait_file("flooded");
    let mut read = Vec::new();
    reader.read_to_end(&mut read).expect("a pipe");
    let told = front.wait().exits(3);
    let missing: usize = told.err().split(' ').find_map(|word| word.parse().ok()).expect("a number");
    assert_eq!(read.len() + missing, 6_000_000, "{}", told.err());
    assert!(told.err().contains("missing from the output"), "{}", told.err());
}

/// Covers: C7
#[test]
fn c7_an_output_that_no_log_can_be_kept_of_comes_whole() {
    let world = world();
    let (wrote, line) = numbered(1_200_000);
    let call = |words: &[&str]| {
        let words = [&["run", "--consumer", "human"], words, &["-c", &line]].concat();
        world.call(&words).without("OUTLAST_SESSION").env("OUTLAST_STATE_DIR", "/proc/no-such").run().ok()
    };
    assert!(call(&[]).stdout == wrote, "other bytes");
    let object = call(&["--json"]).json();
    assert_eq!(object.int("/output/bytes"), wrote.len() as i64);
    assert_eq!(object.str("/output/text").as_bytes(), &wrote[wrote.len() - 16_384..]);
}

#[test]
fn unread_output_of_one_that_ended_is_waited_for() {
    let world = world();
    let (mut reader, front) = unread(&world, &[], &format!("{FLOOD}; exit 3"));
    let leader = world.wait_pids("p")[1];
    world.wait_until("it has ended", || !proc::alive(leader));
    let mut read = Vec::new();
    reader.read_to_end(&mut read).expect("a pipe");
    assert_eq!(read.len(), 200_000);
    front.wait().exits(3);
    assert!(world.acked("model").is_empty(), "it was shown");
}

#[test]
fn signal_ends_a_call_whose_reader_does_not_read_and_the_end_stays_to_be_told() {
    let world = world();
    for (signal, code) in [(Signal::TERM, 75), (Signal::HUP, 75), (Signal::INT, 130)] {
        let (_reader, mut front) = unread(&world, &[], &format!("{FLOOD}; exit 3"));
        let leader = world.wait_pids("p")[1];
        world.wait_until("it has ended", || !proc::alive(leader));
        // The front end may hear of the end a moment later than this test, and INT goes to the command then.
        world.wait_until("the call ends", || {
            front.signal(signal);
            front.ended()
        });
        let told = front.wait().exits(code);
        let mut pending = Vec::new();
        world.wait_until("it is to be told", || {
            pending = world.acked("model");
            !pending.is_empty()
        });
        pending[0].ends("exited", 3);
        assert!(told.err().contains(pending[0].str("/id")), "{told:?}");
        std::fs::remove_file(world.file("p")).expect("it was written");
    }
}

#[test]
fn second_signal_ends_the_call_at_once() {
    let world = world();
    let front = world.spawn(&["run", "--grace", "60s", "-c", "echo $PPID $$ >p; exec sleep 50"]);
    let supervisor = world.wait_pids("p")[0];
    proc::signal(supervisor, Signal::STOP);
    // Two of one kind that come together are one signal (signal(7)).
    front.signal(Signal::TERM);
    front.signal(Signal::HUP);
    let told = front.wait();
    proc::signal(supervisor, Signal::CONT);
    let told = told.exits(75);
    world.wait_until("it is demoted", || !world.list().is_empty());
    assert!(told.err().contains(world.list()[0].str("/id")), "{told:?}");
}

#[test]
fn both_streams_unread_hold_no_signal_up() {
    let world = world();
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    let line = format!("exec outlast run --grace 500ms -c '{FLOOD}; exec sleep 50' 2>&1");
    let front = world.shell(&line).stdout(writer).within(Duration::from_secs(20)).spawn();
    world.wait_until("it is demoted", || world.list().iter().any(|one| one.bool("/demoted")));
    front.signal(Signal::TERM);
    front.wait().exits(75);
}

#[test]
fn end_from_outside_says_why() {
    let world = world();
    // Output above 16 KiB, so that it has records and can be named while it is in the foreground.
    let line = format!("{FLOOD}; exec sleep 50");
    let front = world.spawn(&["run", "--grace", "60s", "-c", &line]);
    world.wait_until("it has records", || world.list().len() == 1);
    world.outlast(&["stop", "w1", "--consumer", "ops"]).ok();
    let told = front.wait().exits(143);
    assert!(told.err().contains("stopped by ops"), "{told:?}");

    let ended = world.new_session(&[]);
    let front = world.call(&["run", "--grace", "60s", "-c", "echo x >ended; exec sleep 50"]).session(&ended).spawn();
    world.wait_file("ended");
    world.outlast(&["session", "end", &ended]).ok();
    let told = front.wait().exits(143);
    assert!(told.err().contains("its session was ended"), "{told:?}");

    let anchored = world.new_session(&[]);
    let front = world.call(&["run", "--grace", "60s", "-c", "echo x >gone; exec sleep 50"]).session(&anchored).spawn();
    world.wait_file("gone");
    world.kill_anchor(&anchored, Signal::KILL);
    let told = front.wait().exits(143);
    assert!(told.err().contains("anchored") && told.err().contains("is gone"), "{told:?}");
}
