//! Memory of this process that its allocator holds and does not need.

/// Gives free memory of the allocator back to the kernel (malloc_trim(3)), so that a process that waits for
/// long holds only what it uses. Without the GNU C library nothing is done.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number and touches only memory that nobody was given.
    unsafe {
        libc::malloc_trim(0);
    }
}
