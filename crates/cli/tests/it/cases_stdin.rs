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
