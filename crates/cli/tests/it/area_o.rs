//! Area O: notices.

use crate::support::*;

#[test]
fn o1_a_silent_command_in_the_foreground_is_noticed_once() {
    let world = world();
    let line = "while [ ! -e gate ]; do sleep 0.05; done; echo out; sleep 1; exit 3";
    let front = world.spawn(&["run", "--grace", "60s", "--quiet-after", "300ms", "-c", line]);
    front.wait_stderr("it is noticed", |text| text.contains("without visible output"));
    std::fs::write(world.file("gate"), "").expect("the gate");
    let ended = front.wait().exits(3);
    let told = ended.err();
    // After output the time begins anew, but one notice is enough.
    assert_eq!(told.matches("is still running after 1s").count(), 1, "{told}");
    for fact in ["this is not an error", "of processor time", "Ctrl-Z moves it", "Ctrl-C", "--quiet-after 0s"] {
        assert!(told.contains(fact), "{fact}: {told}");
    }
    for claim in ["stalled", "stuck"] {
        assert!(!told.contains(claim), "{told}");
    }
    let off = world.outlast(&["run", "--quiet-after", "0s", "-c", "sleep 0.5"]).ok();
    assert_eq!(off.err(), "");
    // A time beyond all clocks is cut and not an error.
    assert_eq!(world.outlast(&["run", "--quiet-after", "100000d", "true"]).ok().err(), "");
}

#[test]
fn o2_what_waits_for_input_is_said_to_do_so() {
    let world = world();
    let told = |line: &str| {
        let words = ["run", "--grace", "60s", "--stdin", "--quiet-after", "300ms", "-c", line];
        let mut front = world.call(&words).open_input().spawn();
        let told = front.wait_stderr("it is noticed", |text| text.contains("without visible output"));
        front.close_input();
        front.wait().ok();
        told.contains("It waits for input.")
    };
    let cat = told("exec cat");
    // Where the kernel shows no process where another waits (proc(5), syscall; Yama), nothing is claimed.
    let shown = std::path::Path::new("/proc/self/syscall").exists();
    let restricted = std::fs::read("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| !scope.starts_with(b"0"));
    assert!(cat == shown || restricted);
    assert!(!told("exec sleep 2"));
}

/// Covers: O8
#[test]
fn o8_the_inbox_has_lines_that_match_as_long_as_the_command_runs() {
    let world = world();
    world.outlast(&["run", "--notify", "(", "true"]).exits(2);
    world.outlast(&["run", "--notify", "x", "--join", "true"]).exits(2);
    let inbox = |words: &[&str]| world.outlast(&[&["inbox", "--json"], words].concat()).ok().json();
    // What ends in the foreground was seen, and leaves nothing.
    assert_eq!(world.outlast(&["run", "--notify", "X", "-c", "echo X"]).ok().text(), "X\n");
    assert!(inbox(&[]).items("/heads_ups").is_empty());
    let line = "echo one; echo 'E: disk full'; echo W; while [ ! -e go ]; do sleep 0.02; done; echo E; exec sleep 300";
    let id = bg_shell(&world, &["--notify", "^E", "--notify", "W$"], line);
    world.wait_until("they are printed", || {
        inbox(&[]).items("/heads_ups").first().is_some_and(|one| one.int("/lines") == 2)
    });
    let shown = inbox(&[]);
    let one = &shown.items("/heads_ups")[0];
    assert_eq!((one.str("/id"), one.str("/alias"), one.str("/last"), one.int("/first")), (id.as_str(), "w1", "W", 4));
    assert_eq!(one.at("/patterns"), &serde_json::json!(["^E", "W$"]));
    let told = format!(
        "- {id} is still running and has printed 2 lines that match \"^E\" or \"W$\": the last one \"W\". \
         `outlast logs` shows its output.\n"
    );
    let text = world.outlast(&["inbox"]).ok().text();
    assert!(text.contains(&told) && !text.contains("Nothing to tell"), "{text}");
    assert!(inbox(&["--consumer", "human"]).items("/heads_ups").is_empty(), "it has asked for nothing");
    assert_eq!(inbox(&["--ack"]).items("/heads_ups").len(), 1);
    assert_eq!(world.outlast(&["inbox"]).ok().text(), "Nothing to tell.\n");
    // Whoever asks is told at once of what came since.
    std::fs::write(world.file("go"), "").expect("the gate");
    world.wait_until("the next is printed", || !inbox(&[]).items("/heads_ups").is_empty());
    let shown = inbox(&["--ack"]);
    assert_eq!(shown.each("/heads_ups", "/last"), ["E"]);
    world.stop(&id);
    assert!(inbox(&[]).items("/heads_ups").is_empty());
}

/// Covers: O8
#[test]
fn o8_secrets_in_lines_are_masked_and_withheld_output_is_not_told() {
    let world = world();
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let line = format!("echo 'E {secret} x'; exec sleep 300");
    let id = bg_shell(&world, &["--notify", "^E"], &line);
    world.outlast(&["wait", &id, "--until", "output:^E", "--timeout", "30s"]).ok();
    let text = world.outlast(&["inbox"]).ok().text();
    assert!(text.contains("1 line that matches") && text.contains("E ****") && !text.contains(&secret), "{text}");
    let policy = world.file("policy.toml");
    std::fs::write(&policy, "live_output = \"withheld\"\n").expect("a file");
    let withheld = world.call(&["inbox"]).env("OUTLAST_POLICY", policy.to_str().expect("a path")).run().ok().text();
    assert_eq!(withheld, "Nothing to tell.\n");
}
