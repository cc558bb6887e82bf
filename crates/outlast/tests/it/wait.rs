//! Waiting: the four ends, conditions, several commands.

use std::time::{Duration, Instant};

use outlast::core::ending::End;
use outlast::core::record::Phase;
use outlast::{ErrorKind, StopOptions, Told, Until, WaitEnd, WaitOptions};

use crate::world::{World, in_world, start};

fn bound(duration: Duration) -> WaitOptions {
    WaitOptions { timeout: Some(duration), ..WaitOptions::default() }
}

/// Covers: E1, E9
#[test]
fn e1_a_wait_ends_with_the_command() {
    in_world("e1", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "sleep 3; echo bye; exit 7").await;
        let began = Instant::now();
        let options = WaitOptions { consumer: Some("model".into()), ..bound(Duration::from_secs(30)) };
        let report = session.wait(std::slice::from_ref(&command), options.clone()).await.expect("a wait");
        assert!(began.elapsed() < Duration::from_secs(6));
        assert_eq!(report.end, WaitEnd::Met);
        let one = &report.commands[0];
        assert_eq!(one.snapshot.end, Some(End::Exited { code: 7 }));
        assert_eq!((one.snapshot.ok, one.snapshot.exit_code), (Some(false), Some(7)));
        assert!(one.snapshot.output.tail.ends_with(b"bye\n"));
        assert_eq!(one.told, Some(Told::Now));
        // An ended command returns at once, and says that it was told.
        let again = session.wait(std::slice::from_ref(&command), options).await.expect("a wait");
        assert!(matches!(again.commands[0].told, Some(Told::Before { .. })));
        assert!(again.waited < Duration::from_millis(500));
        assert!(session.pending("model").await.expect("pending").is_empty());
        assert_eq!(session.pending("human").await.expect("pending").len(), 1);
    });
}

/// Covers: E2, E3
#[test]
fn e2_a_bound_tells_nothing() {
    in_world("e2", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "exec sleep 60").await;
        let commands = std::slice::from_ref(&command);
        let options = WaitOptions { consumer: Some("model".into()), ..bound(Duration::from_secs(1)) };
        let report = session.wait(commands, options).await.expect("a wait");
        assert_eq!(report.end, WaitEnd::Bound);
        assert!(report.waited >= Duration::from_secs(1) && report.waited < Duration::from_secs(3));
        let one = &report.commands[0];
        assert_eq!((one.snapshot.phase, one.snapshot.exit_code, &one.told), (Phase::Running, None, &None));
        let looked = session.wait(commands, bound(Duration::ZERO)).await.expect("a look");
        assert_eq!(looked.end, WaitEnd::Bound);
        assert!(looked.waited < Duration::from_millis(500));
        // A wait that is dropped leaves nothing behind.
        let dropped = tokio::time::timeout(Duration::from_millis(200), session.wait(commands, WaitOptions::default()));
        assert!(dropped.await.is_err());
        let unknown = session.command("w99").await.expect_err("an unknown name");
        assert_eq!(unknown.kind(), ErrorKind::Unknown);
        command.stop(StopOptions::by("model")).await.expect("a stop");
        assert_eq!(session.pending("model").await.expect("pending").len(), 1);
    });
}

/// Covers: E4
#[test]
fn e4_a_wait_on_several() {
    in_world("e4", async |world: World| {
        let session = world.session().await;
        let nothing = session.wait(&[], WaitOptions::default()).await.expect("a wait");
        assert_eq!((nothing.end, nothing.commands.len()), (WaitEnd::Nothing, 0));
        let blocked = [start(&world, &session, "exec sleep 60").await, start(&world, &session, "exec sleep 60").await];
        for commands in [&blocked[..], &[]] {
            let report = session.wait(commands, bound(Duration::from_secs(1))).await.expect("a wait");
            assert_eq!((report.end, report.commands.len()), (WaitEnd::Bound, 2));
            assert!(report.commands.iter().all(|one| one.snapshot.phase == Phase::Running));
        }
        let short = start(&world, &session, "sleep 1; exit 4").await;
        let options = WaitOptions { any: true, ..bound(Duration::from_secs(20)) };
        let report = session.wait(&[], options).await.expect("a wait");
        assert_eq!((report.end, report.commands.len()), (WaitEnd::Met, 3));
        let first = &report.commands[report.first.expect("a first one")];
        assert_eq!((first.snapshot.id, first.snapshot.exit_code), (*short.id(), Some(4)));
        let stopped = session.stop_all(StopOptions::by("model"), false).await.expect("stops");
        assert_eq!(stopped.len(), 2);
        assert!(stopped.iter().all(|one| one.verified));
    });
}

/// Covers: E7
#[test]
fn e7_conditions() {
    in_world("e7", async |world: World| {
        let session = world.session().await;
        let command = start(&world, &session, "echo one; sleep 1; printf 'ready> '; sleep 2; echo; exit 5").await;
        let commands = std::slice::from_ref(&command);
        let until = |until: Until| WaitOptions { until, ..bound(Duration::from_secs(20)) };
        let pattern = |text: &str| Until::Output(regex::bytes::Regex::new(text).expect("an expression"));
        let there = session.wait(commands, until(pattern("^one$"))).await.expect("a wait");
        assert_eq!(there.end, WaitEnd::Met);
        let prompt = session.wait(commands, until(pattern("^ready> $"))).await.expect("a wait");
        assert_eq!((prompt.end, prompt.commands[0].snapshot.phase), (WaitEnd::Met, Phase::Running));
        let quiet = session.wait(commands, until(Until::Quiet(Duration::from_millis(500)))).await.expect("a wait");
        assert_eq!((quiet.end, quiet.commands[0].snapshot.phase), (WaitEnd::Met, Phase::Running));
        let never = session.wait(commands, until(pattern("never"))).await.expect("a wait");
        assert_eq!((never.end, never.commands[0].snapshot.exit_code), (WaitEnd::EndedBefore, Some(5)));
        // Over or not, what is in the output counts.
        let late = session.wait(commands, until(pattern("one"))).await.expect("a wait");
        assert_eq!(late.end, WaitEnd::Met);
    });
}

/// Covers: E7
#[test]
fn e7_a_port_counts_while_somebody_listens_and_the_command_lives() {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    in_world("e7-port", async |world: World| {
        let session = world.session().await;
        let any = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&listener, &any).expect("a port");
        let own = getsockname(&listener).expect("a name");
        let port = std::net::SocketAddrV4::try_from(own).expect("an address of IPv4").port();
        let until = |time: Duration| WaitOptions { until: Until::Port(port), ..bound(time) };
        let lasting = start(&world, &session, "exec sleep 300").await;
        let early = session.wait(std::slice::from_ref(&lasting), until(Duration::from_millis(300))).await;
        assert_eq!(early.expect("a wait").end, WaitEnd::Bound, "the port is taken, and nobody listens");
        let (waiting, waited) = (session.clone(), lasting.clone());
        let options = until(Duration::from_secs(20));
        let opened = tokio::spawn(async move { waiting.wait(&[waited], options).await.expect("a wait") });
        listen(&listener, 8).expect("it listens");
        let opened = opened.await.expect("the wait");
        assert_eq!((opened.end, opened.commands[0].snapshot.phase), (WaitEnd::Met, Phase::Running));
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true).expect("a setting");
        let nobody = listener.accept().expect_err("the wait must not connect");
        assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
        // A command that is over has no port, whoever else has it; one that left a server has.
        let over = start(&world, &session, "exit 7").await;
        session.wait(std::slice::from_ref(&over), bound(Duration::from_secs(20))).await.expect("a wait");
        let late = session.wait(&[over], until(Duration::from_secs(20))).await.expect("a wait");
        assert_eq!((late.end, late.commands[0].snapshot.exit_code), (WaitEnd::EndedBefore, Some(7)));
        let daemon = start(&world, &session, "sleep 300 >/dev/null 2>&1 &").await;
        session.wait(std::slice::from_ref(&daemon), bound(Duration::from_secs(20))).await.expect("a wait");
        let left = session.wait(&[daemon], until(Duration::from_secs(20))).await.expect("a wait");
        assert_eq!((left.end, left.commands[0].snapshot.phase), (WaitEnd::Met, Phase::Ended));
        session.end("human", outlast::END_BOUND, false).await.expect("an end");
    });
}
