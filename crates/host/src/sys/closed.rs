//! Whether this process began without a standard output, which the standard library hides behind `/dev/null`.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks before `main`, because the library's own start (`sanitize_standard_fds`) opens what is closed.
#[used]
// SAFETY: the loader calls what stands in this section once, before anything else of the program runs and in its only
// thread; the function fits that (ELF gABI, "Initialization and Termination Functions") and needs nothing of Rust's runtime.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asks for a flag of a number, whether or not it is open (fcntl(2)).
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// Makes a standard output that was closed at the start one that nobody reads, so that a write says so (`EPIPE`), and
/// not one that takes everything.
pub fn leave_output_closed() -> Result<(), Errno> {
    if !CLOSED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let (_reader, writer) = rustix::pipe::pipe()?;
    rustix::stdio::dup2_stdout(writer)
}
