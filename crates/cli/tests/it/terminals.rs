//! Commands with a terminal of their own: what it is, what it prints, and how it ends.

use crate::support::*;

/// What a Python program says about descriptors 0 to 2 and the terminal of its session.
const ASKS: &str = "import os, sys
print([os.isatty(n) for n in range(3)], len({os.ttyname(n) for n in range(3)}), os.get_terminal_size())
print(os.getsid(0) == os.getpid() == os.tcgetpgrp(0), os.ctermid(), open('/dev/tty').isatty(), os.listdir('/proc/self/fd'))";

#[test]
fn terminal_is_all_three_streams_and_controls_the_session() {
    let world = world();
    let told = world.outlast(&["run", "--json", "--pty", "--", "python3", "-c", ASKS]).ok().json();
    let expected = "[True, True, True] 1 os.terminal_size(columns=80, lines=24)\n\
                    True /dev/tty True ['0', '1', '2', '3']\n";
    assert_eq!(told.output(), expected);
}

#[test]
fn terminal_has_a_name_unless_the_caller_gives_one() {
    let world = world();
    let line = "echo \"$TERM\"";
    let terms =
        [(None, &[][..], "xterm-256color"), (Some("vt100"), &[], "vt100"), (None, &["-e", "TERM=dumb"], "dumb")];
    for (inherited, options, expected) in terms {
        let words = [&["run", "--pty"], options, &["-c", line]].concat();
        let call = world.call(&words).without("TERM");
        let call = if let Some(term) = inherited { call.env("TERM", term) } else { call };
        assert_eq!(call.run().ok().text(), format!("{expected}\r\n"));
    }
    assert_eq!(world.call(&["run", "-c", line]).without("TERM").run().ok().text(), "\n", "only a terminal has one");
}

#[test]
fn log_of_a_terminal_is_what_the_terminal_printed() {
    let world = world();
    let frames = "for i in 10 60 100; do printf '\\r\\033[K\\033[32m%s%%\\033[0m' $i; done; echo; seq 1 20000; exit 5";
    let id = bg_shell(&world, &["--pty"], frames);
    world.wait(&id).ends("exited", 5);
    let numbers: String = (1..=20000).map(|number| format!("{number}\r\n")).collect();
    let drawn: String = [10, 60, 100].map(|i| format!("\r\x1b[K\x1b[32m{i}%\x1b[0m")).concat();
    assert_eq!(world.raw(&id), format!("{drawn}\r\n{numbers}").into_bytes());
    let read = world.outlast(&["logs", &id, "--head", "2"]).ok().text();
    assert!(read.starts_with("100%\n1\n"), "{read:?}");
    let file = std::fs::read_to_string(world.dir(&id).join("output.log")).expect("a log");
    assert!(file.ends_with("20000\r\n\n\nExit code: 5\n"), "{:?}", &file[file.len() - 40..]);
}

#[test]
fn last_words_of_many_short_commands_are_all_there() {
    let world = world();
    for round in 0..50 {
        let told = world.outlast(&["run", "--pty", "-c", &format!("printf last{round}")]).ok();
        assert_eq!(told.text(), format!("last{round}"));
    }
}

#[test]
fn leader_may_close_its_terminal_and_come_back_to_it() {
    let world = world();
    let line = "echo here; exec </dev/null >/dev/null 2>&1; echo >closed; until [ -e go ]; do sleep .05; done; \
                echo back >/dev/tty; exit 3";
    let id = bg_shell(&world, &["--pty"], line);
    world.wait_file("closed");
    world.status(&id).runs();
    std::fs::write(world.file("go"), "").expect("a file");
    world.wait(&id).ends("exited", 3);
    assert_eq!(world.raw(&id), b"here\r\nback\r\n");
}

/// Covers: S8
#[test]
fn s8_keys_reach_the_terminal() {
    let world = world();
    // The end of input is typed: behind a line that was begun it is needed twice, and the terminal stays.
    for (words, expected) in [
        (&["abc", "--eof"][..], "abc\r\nabc\r\nthen\r\n"),
        (&["abc", "--no-newline", "--eof"], "abcabcthen\r\n"),
        (&["--eof"], "then\r\n"),
    ] {
        let id = bg_shell(&world, &["--pty"], "cat; echo then; exec cat");
        world.outlast(&[&["send", &id], words].concat()).ok();
        world.wait_until("the first cat has ended", || world.raw(&id).ends_with(b"then\r\n"));
        assert_eq!(String::from_utf8_lossy(&world.raw(&id)), expected);
        assert!(world.outlast(&["status", &id, "--json"]).ok().json().str("/phase") == "running");
        world.outlast(&["send", &id, "--eof"]).ok();
        world.wait(&id).ends("exited", 0);
        let refused = world.outlast(&["send", &id, "late"]).exits(4);
        assert!(refused.err().contains("ended"), "{refused:?}");
    }
}

#[test]
fn survivors_hold_a_terminal_and_delay_no_end() {
    let world = world();
    let line = "trap '' HUP; (until [ -e go ]; do sleep .05; done; echo late; exec sleep 300) & echo early; exit 7";
    let id = bg_shell(&world, &["--pty"], line);
    let told = world.wait(&id);
    told.ends("exited", 7);
    assert!(!told.survivors().is_empty(), "{told:?}");
    assert_eq!(world.raw(&id), b"early\r\n");
    std::fs::write(world.file("go"), "").expect("a file");
    world.wait_until("what survivors print is captured", || world.raw(&id) == b"early\r\nlate\r\n");
    world.stop(&id);
    world.nothing_left_of(&id);
    world.status(&id).ends("exited", 7);
    let file = std::fs::read_to_string(world.dir(&id).join("output.log")).expect("a log");
    assert!(file.ends_with("late\r\n\n\nExit code: 7\n"), "{file:?}");
}

#[test]
fn terminal_that_nobody_holds_any_more_wakes_nobody_and_takes_no_input() {
    let world = world();
    let line = "trap '' HUP; (exec sleep 300 </dev/null >/dev/null 2>&1) & echo $PPID $$ >pids; until [ -e go ]; do \
                sleep .05; done";
    let id = bg_shell(&world, &["--pty"], line);
    let (supervisor, _, _) = family(&world, "pids");
    std::fs::write(world.file("go"), "").expect("a file");
    let told = world.wait(&id);
    assert_eq!((told.str("/end/kind"), told.survivors().len()), ("exited", 1), "{told:?}");
    // A hang-up that is told again and again would keep it from sleeping.
    world.wait_until("its supervisor sleeps", || proc::stat(supervisor).is_some_and(|one| one.state == 'S'));
    world.outlast(&["send", &id, "x"]).exits(4);
    world.wait_until("its supervisor sleeps", || proc::stat(supervisor).is_some_and(|one| one.state == 'S'));
    world.stop(&id);
    world.nothing_left_of(&id);
}

#[test]
fn what_a_shell_leaves_in_front_is_hung_up_with_it() {
    let world = world();
    let told = shell_json(
        &world,
        &["--pty"],
        "(trap 'echo hung up >hup; exit' HUP; echo >p; sleep 300 & wait) & \
                                              until [ -e p ]; do sleep .05; done",
    );
    told.ends("exited", 0);
    assert_eq!(world.wait_file("hup"), "hung up");
}

#[test]
fn terminal_in_the_foreground_moves_to_the_background_and_ends_by_its_limits() {
    let world = world();
    let moved = world.call(&["run", "--json", "--pty", "--grace", "100ms", "-c", "echo up; exec sleep 300"]);
    let moved = moved.open_input().run().exits(75).json();
    let id = moved.str("/id");
    world.wait_until("its output is in the log", || world.raw(id) == b"up\r\n");
    world.stop(id);
    world.status(id).ends("stopped", 143);
    shell_json(&world, &["--pty", "--limit", "200ms"], "sleep 300").ends("timed_out", 124).detail("wall");
    let idle = bg_shell(&world, &["--pty", "--idle-limit", "300ms"], "echo once; exec cat");
    world.wait(&idle).ends("timed_out", 124).detail("idle");
    world.nothing_left_of(&idle);
}

#[test]
fn prompt_at_a_terminal_is_discarded_with_its_session() {
    let world = world();
    let id = bg_shell(&world, &["--pty"], "printf 'Password: '; stty -echo; read x");
    world.wait_until("the prompt is visible", || world.raw(&id) == b"Password: ");
    world.outlast(&["session", "end", &world.session()]).ok();
    let told = world.status(&id);
    assert_eq!(told.str("/end/kind"), "abandoned");
    world.nothing_left_of(&id);
}

#[test]
fn killed_supervisor_takes_its_terminal_along() {
    let world = world();
    let line = "echo up; (trap '' HUP; exec sleep 300) & echo $PPID $$ >pids; exec cat";
    let id = bg_shell(&world, &["--pty"], line);
    let (supervisor, _, _) = family(&world, "pids");
    world.wait_until("its output is in the log", || world.raw(&id) == b"up\r\n");
    proc::signal(supervisor, Signal::KILL);
    let told = world.wait(&id);
    assert_eq!((told.str("/end/kind"), told.str("/end/by")), ("stopped", "supervisor_lost"), "{told:?}");
    assert!(matches!(told.str("/end/signal"), "HUP" | "KILL"), "{told:?}");
    assert_eq!(world.raw(&id), b"up\r\n");
    world.nothing_left_of(&id);
}

#[test]
fn terminal_joins_nothing_and_has_one_stream() {
    let world = world();
    for (options, word) in [(&["--join"][..], "--join"), (&["--streams", "separate"], "separate")] {
        let refused = world.outlast(&[&["run", "--pty"], options, &["--", "true"]].concat()).exits(2);
        assert!(refused.err().contains(word), "{refused:?}");
    }
}

/// A caller that sits at a terminal of 101 columns and 33 lines, types what it is told, and shows what it sees. The
/// last line says whether its terminal is as it was.
const SITS: &str = r#"
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 33, 101, 0, 0))
    os.execvp('outlast', ['outlast', 'run', '--pty'] + sys.argv[2:])
before = termios.tcgetattr(fd)
seen = b''
def see(what):
    global seen
    while what not in seen:
        try: got = os.read(fd, 65536)
        except OSError: got = b''
        if not got: sys.exit('ended before %r: %r' % (what, seen))
        seen += got
steps = eval(sys.argv[1])
for what, keys in steps:
    see(what)
    os.write(fd, keys)
while True:
    try: got = os.read(fd, 65536)
    except OSError: break
    if not got: break
    seen += got
    if termios.tcgetattr(fd) == before and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT): break
_, status = os.waitpid(pid, 0)
print(repr(seen.decode()), os.waitstatus_to_exitcode(status), flush=True)
"#;

fn sit(world: &World, steps: &str, words: &[&str]) -> String {
    std::fs::write(world.file("sits.py"), SITS).expect("a file");
    let words: Vec<String> =
        [steps].iter().chain(words).map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    world.shell(&format!("exec python3 sits.py {}", words.join(" "))).run().ok().text()
}

#[test]
fn keys_of_the_caller_go_to_the_terminal_of_the_command() {
    let world = world();
    let line = "stty size; printf 'name? '; read x; printf 'got:%s.' \"$x\"; trap 'echo over; exit 4' INT; \
                echo ready; while :; do sleep .05; done";
    let told = sit(&world, "[(b'name? ', b'a\\x7fyou\\r'), (b'ready', b'\\x03')]", &["-c", line]);
    // Each key is seen once, as the command's terminal echoes it, and the line is edited there.
    let expected = "'33 101\\r\\nname? a\\x08 \\x08you\\r\\ngot:you.ready\\r\\n^Cover\\r\\n' 4\n";
    assert_eq!(told.replace("\\r\\r\\n", "\\r\\n"), expected);
}

#[test]
fn interrupt_reaches_whoever_is_in_front_of_the_terminal() {
    let world = world();
    // An interactive shell has its commands in groups of their own, and goes on when one is interrupted.
    let steps = "[(b'$ ', b\"(echo i''n; exec sleep 300)\\r\"), (b'\\nin', b'\\x03'), (b'^C', b'exit 6\\r')]";
    let told = sit(
        &world,
        steps,
        &["-e", "PS1=$ ", "-e", "HISTFILE=", "--", "bash", "--norc", "--noprofile", "--noediting", "-i"],
    );
    assert!(told.ends_with(" 6\n"), "{told}");
}
