//! The command gate: it understands or refuses every line, in bounded time and stack, and what it lets through has ended
//! where it says: a line behind it is looked at like any other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_core::policy::gate::{Gate, Mode};
use outlast_core::request::OsText;

/// A program that is in no list.
const FORBIDDEN: &str = "never-allowed";

/// The settings with which a line is tried in its longest form too: what takes more than a moment there hangs.
const REPEATED: u8 = 0xfe;

fuzz_target!(|data: &[u8]| {
    let Some((settings, line)) = data.split_first() else { return };
    let (preset, strict) = (settings & 1 != 0, settings & 2 != 0);
    let allow: Vec<String> = ["command", "exec", "builtin", "make", ":", "sh", "/bin/sh"].map(str::to_owned).to_vec();
    let gate = Gate { mode: Mode::Enforce, allow, preset, strict };
    let enforced = admit(&gate, line);
    let warned = admit(&Gate { mode: Mode::Warn, ..gate.clone() }, line).expect("it only warns");
    assert_eq!(enforced.is_err(), warned.is_some(), "what would be refused is what is warned of");
    assert_eq!(admit(&Gate { mode: Mode::Off, ..gate.clone() }, line), Ok(None));
    if *settings == REPEATED {
        // As long as one argument of a command may be (execve(2)).
        let _any = admit(&gate, &line.repeat((128 << 10) / line.len().max(1)));
    }
    if enforced.is_err() {
        return;
    }
    let wider = Gate { preset: true, strict: false, ..gate.clone() };
    assert_eq!(admit(&wider, line), Ok(None), "a wider gate lets less through");
    let behind = |more: &str| [line, b"\n", more.as_bytes()].concat();
    assert_eq!(admit(&gate, &behind(":")), Ok(None), "a harmless line behind it is refused");
    let refused = admit(&gate, &behind(FORBIDDEN)).expect_err("a line behind it is not looked at");
    assert!(refused.contains(FORBIDDEN), "{refused}");
    assert!(admit(&gate, &behind(&format!("x=$({FORBIDDEN})"))).is_err(), "a substitution behind it is not looked at");
});

fn admit(gate: &Gate, line: &[u8]) -> Result<Option<String>, String> {
    gate.admit(&[OsText::from("sh"), OsText::from("-c"), OsText(line.to_vec())])
}
