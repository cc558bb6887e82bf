//! Cases of the kind "stdin and terminal": nothing to ask on unless it was asked for.

use crate::support::*;

#[test]
fn case_100_there_is_no_terminal_to_ask_on() {
    let world = world();
    let told = shell_json(&world, &[], "read x </dev/tty");
    assert_eq!(told.str("/end/kind"), "exited");
    assert_eq!(told.str("/status"), "error");
    assert!(told.output().contains("/dev/tty"), "{told:?}");
}

#[test]
fn case_100_not_even_when_started_from_one() {
    let world = world();
    let spawn = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let line = format!("exec python3 -c '{spawn}' outlast run -c 'read x </dev/tty || echo refused'");
    let output = world.shell(&line).within(Duration::from_secs(20)).run();
    assert!(output.text().contains("refused"), "{output:?}");
}

#[test]
fn case_103_a_question_meets_the_end_of_input_or_an_answer() {
    let world = world();
    let line = "printf 'Continue? [y/N] '; read x; echo \"got:$x\"";
    assert_eq!(shell_json(&world, &[], line).output(), "Continue? [y/N] got:\n");
    let id = bg_shell(&world, &["--stdin"], line);
    world.wait_until("the prompt is visible", || world.outlast(&["logs", &id]).ok().text().contains("[y/N]"));
    world.outlast(&["send", &id, "y", "--eof"]).ok();
    world.outlast(&["wait", &id]).ok();
    assert_eq!(world.outlast(&["logs", &id]).ok().text(), "Continue? [y/N] got:y\n");
}

#[test]
fn case_104_a_terminal_for_those_who_need_one() {
    let world = world();
    let asks = ["python3", "-c", "import sys; print(sys.stdout.isatty())"];
    assert_eq!(world.outlast(&[&["run", "--json", "--"][..], &asks].concat()).ok().json().output(), "False\n");
    let asks = ["python3", "-c", "import sys, os; print(sys.stdout.isatty(), os.get_terminal_size())"];
    let told = world.outlast(&[&["run", "--json", "--pty", "--"][..], &asks].concat()).ok().json();
    assert_eq!(told.output(), "True os.terminal_size(columns=80, lines=24)\n");
}

#[test]
fn case_104_an_interrupt_is_a_byte() {
    let world = world();
    let id = world.bg(&["--pty", "--", "cat"]);
    world.outlast(&["send", &id, "\x03"]).ok();
    let told = world.wait(&id);
    told.ends("signaled", 130);
    assert_eq!(told.str("/end/signal"), "INT");
    let id = bg_shell(&world, &["--pty"], "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep .05; done");
    world.wait_until("the trap is set", || world.raw(&id) == b"ready\r\n");
    world.outlast(&["send", &id, "\x03", "--no-newline"]).ok();
    world.wait(&id).ends("exited", 9);
    assert_eq!(world.raw(&id), b"ready\r\n^Ccaught\r\n");
}
