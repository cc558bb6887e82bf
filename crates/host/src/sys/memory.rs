//! Memory of this process that it has used once and does not need while it waits.

/// How far below the frame in use pages of the stack are given back.
#[cfg(target_env = "gnu")]
const STACK_REACH: usize = 256 << 10;

/// Gives free memory of the allocator (malloc_trim(3)), and of the stack, back to the kernel, so that a process that
/// waits for long holds only what it uses. Without the GNU C library nothing is done.
///
/// For the first thread of a process, whose stack nobody else uses and which lies alone: the kernel keeps at least
/// 1 MiB between it and the next mapping below (`stack_guard_gap` in mm/mmap.c).
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        let page = rustix::param::page_size();
        let marker = 0u8;
        // The frames of the calls below, and what the kernel may put below a frame in use, stay.
        let end = ((&raw const marker).addr() & !(page - 1)).saturating_sub(2 * page);
        let start = end.saturating_sub(STACK_REACH);
        // SAFETY: the allocator touches only memory that nobody was given. Below the frames in use a stack holds nothing
        // that is read before it is written; an address that is not mapped is told as an error and changes nothing.
        unsafe {
            libc::malloc_trim(0);
            libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTNEED);
        }
    }
}
