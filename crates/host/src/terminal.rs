//! A pseudo-terminal for a command (pty(7)).

use outlast_core::request::TerminalSize;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{InputModes, OptionalActions, Winsize};

/// What stands for the end of input at the beginning of a line (termios(3), VEOF).
pub const END_OF_INPUT: u8 = 4;

/// Both ends of a pseudo-terminal, closed on exec. It controls no session yet.
#[derive(Debug)]
pub struct Terminal {
    /// Our end: reads what is printed, writes what is typed, never waits. Reading fails with `EIO` once everything was
    /// read and nobody holds the other end.
    pub ours: OwnedFd,
    /// The end of the command.
    pub theirs: OwnedFd,
}

impl Terminal {
    /// Opens one of this size that erases whole characters of UTF-8, everything else at the kernel's defaults. Fails
    /// where the machine has no `/dev/ptmx`, or no pseudo-terminal left.
    pub fn open(size: TerminalSize) -> Result<Terminal, Errno> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = rustix::pty::openpt(flags)?;
        rustix::pty::unlockpt(&ours)?;
        let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags)?;
        let size = Winsize { ws_row: size.rows.get(), ws_col: size.columns.get(), ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&ours, size)?;
        let mut modes = rustix::termios::tcgetattr(&ours)?;
        modes.input_modes |= InputModes::IUTF8;
        rustix::termios::tcsetattr(&ours, OptionalActions::Now, &modes)?;
        let status = rustix::fs::fcntl_getfl(&ours)?;
        rustix::fs::fcntl_setfl(&ours, status | OFlags::NONBLOCK)?;
        Ok(Terminal { ours, theirs })
    }
}
