//! The caller's own terminal, while a command with another one is in the foreground.

use std::io::{self, IsTerminal};
use std::num::NonZeroU16;

use outlast_core::request::TerminalSize;
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios};

/// The size of the caller's terminal; none where it has none, or one of no size.
pub fn size() -> Option<TerminalSize> {
    let found = [rustix::termios::tcgetwinsize(io::stdout()), rustix::termios::tcgetwinsize(io::stdin())];
    found.into_iter().flatten().find_map(|size| {
        Some(TerminalSize { rows: NonZeroU16::new(size.ws_row)?, columns: NonZeroU16::new(size.ws_col)? })
    })
}

/// Has each key go on as it is typed, because the command's terminal echoes and edits. Keys that send a signal stay
/// what they are. Dropping it puts the terminal back.
pub struct Keys(Termios);

impl Keys {
    /// None where nobody types into this terminal and sees it at once.
    pub fn pass_on() -> Option<Keys> {
        let (keyboard, screen) = (io::stdin(), io::stdout());
        // Whoever is in the background would be stopped for changing the terminal (SIGTTOU, tcsetattr(3)).
        let ours = rustix::termios::tcgetpgrp(&keyboard).is_ok_and(|group| group == rustix::process::getpgrp());
        if !screen.is_terminal() || !ours {
            return None;
        }
        let before = rustix::termios::tcgetattr(&keyboard).ok()?;
        let mut modes = before.clone();
        modes.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::IXON;
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        rustix::termios::tcsetattr(&keyboard, OptionalActions::Now, &modes).ok()?;
        Some(Keys(before))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        let _gone = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
