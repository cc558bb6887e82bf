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
    for fact in ["this is not an error", "of processor time", "`outlast logs`", "`outlast stop`", "--quiet-after 0s"] {
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
