//! Looking: reads by offset, followers, names, the content-free view.

use outlast::core::record::Phase;
use outlast::core::request::{Stdin, Streams};
use outlast::{ErrorKind, Outcome, Piece, ReadOptions, Reading, StopOptions, Stream};

use crate::world::{World, in_world, soon, start};

async fn text(mut reading: Reading) -> (Vec<u8>, u64) {
    let mut all = Vec::new();
    while let Some(piece) = reading.next().await.expect("a piece") {
        match piece {
            Piece::Bytes { bytes, .. } => all.extend(bytes),
            Piece::Gap { .. } => panic!("a gap"),
        }
    }
    let next = reading.next_offset();
    (all, next)
}

/// Covers: C11
#[test]
fn c11_reads_go_by_offset() {
    in_world("c11", async |world: World| {
        let session = world.session().await;
        let line = "printf one; while [ ! -e go ]; do sleep 0.02; done; printf two";
        let command = start(&world, &session, line).await;
        soon("the first output", async || command.snapshot().await.expect("a look").output.bytes == 3).await;
        let (first, next) = text(command.read(ReadOptions::default()).await.expect("a read")).await;
        assert_eq!((first.as_slice(), next), (&b"one"[..], 3));
        let (none, next) =
            text(command.read(ReadOptions { offset: next, ..Default::default() }).await.expect("a read")).await;
        assert_eq!((none.as_slice(), next), (&b""[..], 3));
        let mut follower = command.follow(0).await.expect("a follower");
        std::fs::write(world.work_dir.join("go"), "").expect("the sign to go on");
        let mut followed = Vec::new();
        while let Some(piece) = follower.next().await.expect("a piece") {
            if let Piece::Bytes { bytes, .. } = piece {
                followed.extend(bytes);
            }
        }
        assert_eq!(followed, b"onetwo");
        session.wait(std::slice::from_ref(&command), Default::default()).await.expect("a wait");
        let (new, next) =
            text(command.read(ReadOptions { offset: 3, ..Default::default() }).await.expect("a read")).await;
        assert_eq!((new.as_slice(), next), (&b"two"[..], 6));
        let range = ReadOptions { offset: 1, bytes: Some(3), ..Default::default() };
        assert_eq!(text(command.read(range).await.expect("a read")).await, (b"net".to_vec(), 4));
        let past = ReadOptions { offset: 999, ..Default::default() };
        assert_eq!(text(command.read(past).await.expect("a read")).await, (Vec::new(), 6));
    });
}

#[test]
fn lines_and_streams_are_read_alone() {
    in_world("lines", async |world: World| {
        let session = world.session().await;
        let line = "i=0; while [ $i -lt 100 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
        let request = outlast::RunRequest { streams: Streams::Separate, ..world.shell(line) };
        let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
        let command = demotion.command;
        session.wait(std::slice::from_ref(&command), Default::default()).await.expect("a wait");
        let read = async |options| text(command.read(options).await.expect("a read")).await.0;
        let err = ReadOptions { stream: Some(Stream::Stderr), ..Default::default() };
        let expected: String = (0..100).map(|n| format!("err {n}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&read(err).await), expected);
        assert_eq!(read(ReadOptions { tail_lines: Some(2), ..err }).await, b"err 98\nerr 99\n");
        assert_eq!(read(ReadOptions { head_lines: Some(2), ..err }).await, b"err 0\nerr 1\n");
        // The last line of one stream, with more of the other behind it.
        let line = "echo a >&2; echo b >&2; read x; seq 100";
        let request = outlast::RunRequest { streams: Streams::Separate, stdin: Stdin::Open, ..world.shell(line) };
        let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
        let apart = demotion.command;
        let mut follower = apart.follow(0).await.expect("a follower");
        while follower.next_offset() < 4 {
            follower.next().await.expect("output").expect("more output");
        }
        apart.send(b"go\n", true).await.expect("input");
        session.wait(std::slice::from_ref(&apart), Default::default()).await.expect("a wait");
        let last = apart.read(ReadOptions { tail_lines: Some(1), ..err }).await.expect("a read");
        assert_eq!(text(last).await.0, b"b\n");
        let merged = start(&world, &session, "echo x").await;
        let refused = merged.read(err).await.expect_err("a refusal");
        assert_eq!(refused.kind(), ErrorKind::Refused);
        session.wait(&[], Default::default()).await.expect("a wait");
    });
}

/// Covers: J2, J3, D2
#[test]
fn j3_names_resolve_in_their_session() {
    in_world("j3", async |world: World| {
        let (one, other) = (world.session().await, world.session().await);
        let (a, b) = (start(&world, &one, "exec sleep 60").await, start(&world, &other, "exec sleep 60").await);
        for (session, command) in [(&one, &a), (&other, &b)] {
            let prefix = command.id().to_string()[..30].to_owned();
            for name in ["w1", &format!(" {} ", command.id()), &prefix] {
                assert_eq!(session.command(name).await.expect(name).id(), command.id());
            }
            let foreign = if command.id() == a.id() { b.id() } else { a.id() };
            for name in ["w2", "nonsense", "wrk_f", &foreign.to_string()] {
                let error = session.command(name).await.expect_err("an unknown name");
                assert_eq!(error.kind(), ErrorKind::Unknown, "{name}: {error}");
            }
        }
        let found = world.runtime.find_command(b.id()).await.expect("its session");
        assert_eq!(found.id(), other.id());
        start(&world, &one, "true").await;
        let ambiguous = one.command("wrk_0").await.expect_err("an ambiguous prefix");
        assert_eq!(ambiguous.kind(), ErrorKind::Usage, "{ambiguous}");
        for session in [one, other] {
            session.stop_all(StopOptions::by("model"), false).await.expect("stops");
            session.wait(&[], Default::default()).await.expect("a wait");
        }
    });
}

/// Covers: D11
#[test]
fn d11_the_view_for_machines_has_no_content() {
    in_world("d11", async |world: World| {
        let session = world.session().await;
        assert!(session.entries().await.expect("a view").is_empty());
        let mut request = world.shell("echo secret-output");
        request.label = Some("secret-label".into());
        let Outcome::Demoted(ended) = session.start(request).await.expect("a start") else { panic!("it ended") };
        session.wait(&[ended.command], Default::default()).await.expect("a wait");
        let open = start(&world, &session, "exec sleep 60").await;
        let entries = session.entries().await.expect("a view");
        let shape: Vec<_> = entries.iter().map(|entry| (entry.phase, entry.end, entry.complete)).collect();
        assert_eq!(shape, [(Phase::Running, None, true), (Phase::Ended, Some("exited"), true)]);
        assert!(!format!("{entries:?}").contains("secret"));
        open.stop(StopOptions::by("model")).await.expect("a stop");
        let exit = session.path().expect("a path").join(format!("work/{}/exit.json", open.id()));
        std::fs::write(exit, "{").expect("damage");
        let error = session.entries().await.expect_err("an error");
        assert!(error.to_string().contains(&open.id().to_string()), "{error}");
    });
}

/// Covers: D10
#[test]
fn d10_thousands_of_ended_commands_are_listed() {
    in_world("many", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "true").await;
        session.wait(std::slice::from_ref(&command), Default::default()).await.expect("a wait");
        let work = session.path().expect("a path").join("work");
        let one = work.join(command.id().to_string());
        let exit = std::fs::read_to_string(one.join("exit.json")).expect("the record");
        let first = command.id().to_string();
        for number in 0..3_000_u32 {
            let id = format!("{}{number:08x}", &first[..28]);
            let copy = work.join(&id);
            std::fs::create_dir(&copy).expect("a directory");
            std::fs::write(copy.join("exit.json"), exit.replace(&first, &id)).expect("a record");
        }
        let began = std::time::Instant::now();
        let all = session.list(true).await.expect("a list").len();
        let took = began.elapsed();
        assert!(session.list(false).await.expect("a list").is_empty());
        assert!(all >= 3_000);
        // Unoptimised and on a busy machine; the bound of an optimised build is in the benchmarks.
        assert!(took < std::time::Duration::from_secs(3), "{took:?}");
    });
}

/// Covers: C7
#[test]
fn c7_a_follower_never_shows_what_the_cap_dropped_as_zeros() {
    in_world("c7", async |world: World| {
        let session = world.session().await;
        let mut request = world.shell("i=0; while [ $i -lt 30000 ]; do echo 123456789; i=$((i+1)); done");
        request.cap = outlast::core::request::LogCap::of(16 * 1024);
        let Outcome::Demoted(demotion) = session.start(request).await.expect("a start") else { panic!("it ended") };
        let mut follower = demotion.command.follow(0).await.expect("a follower");
        let (mut shown, mut missing) = (0, 0);
        while let Some(piece) = follower.next().await.expect("a piece") {
            match piece {
                Piece::Bytes { offset, bytes, .. } => {
                    assert_eq!(offset, shown + missing);
                    assert!(bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n'), "at {offset}");
                    shown += bytes.len() as u64;
                }
                Piece::Gap { why: _, offset, bytes } => {
                    assert!(offset <= shown + missing, "a gap at {offset} after {}", shown + missing);
                    missing = offset + bytes - shown;
                }
            }
        }
        assert_eq!(shown + missing, 300_000);
        session.wait(&[demotion.command], Default::default()).await.expect("a wait");
    });
}
