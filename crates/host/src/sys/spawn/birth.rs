//! The one call that makes a child: on a borrowed memory where the processor's assembly is written, else on a copy.

use super::Prepared;
use rustix::io::Errno;

/// `clone3(2)` with these arguments; the child's pid in the parent, 0 in a child that goes on from here.
///
/// # Safety
///
/// `args` is a `struct clone_args` of `size` bytes without CLONE_VM and without a stack, and the pointers in
/// it are valid. The child may only make async-signal-safe calls.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn clone3(args: &mut [u64], size: usize, prepared: &Prepared<'_>) -> Result<u32, Errno> {
    const CLONE_VM: u64 = 0x100;
    const CLONE_VFORK: u64 = 0x4000;
    /// In units of 16 bytes, so that the top is aligned as the System V ABI wants it. Large enough for the
    /// allocator to map it apart and unmap it again (mallopt(3), M_MMAP_THRESHOLD).
    const STACK: usize = 16_384;

    extern "C" fn enter(prepared: *const Prepared<'_>) -> ! {
        // SAFETY: the parent waits in the kernel until this child has its own memory or is gone, so what it
        // prepared stays where it is.
        unsafe { &*prepared }.become_leader()
    }

    let mut stack: Vec<std::mem::MaybeUninit<u128>> = Vec::with_capacity(STACK);
    args[0] |= CLONE_VM | CLONE_VFORK;
    args[5] = stack.as_mut_ptr().expose_provenance() as u64;
    args[6] = (STACK * size_of::<u128>()) as u64;
    let result: isize;
    // SAFETY: the kernel reads `size` bytes of `args`. The parent is suspended until the child's exec or exit
    // and gets its registers back but for rax, rcx and r11 (syscall(2)). The child starts on the top of
    // `stack`, which lives until this function returns, and never comes out of `enter`. Memory that the child
    // writes is its stack, errno, and nothing that this thread holds in registers.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") args.as_ptr(),
            in("rsi") size,
            in("r12") std::ptr::from_ref(prepared),
            in("r13") enter as extern "C" fn(*const Prepared<'_>) -> !,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    drop(stack);
    match u32::try_from(result) {
        Ok(pid) => Ok(pid),
        Err(_) => Err(Errno::from_raw_os_error(i32::try_from(-result).unwrap_or(libc::EIO))),
    }
}

/// The same on other processors: the child has a copy of the memory and goes on from here.
///
/// # Safety
///
/// As above.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn clone3(args: &mut [u64], size: usize, _: &Prepared<'_>) -> Result<u32, Errno> {
    // SAFETY: the caller's promise; without CLONE_VM and without a stack the child returns as after fork.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, args.as_mut_ptr(), size) };
    u32::try_from(pid).map_err(|_| super::last_errno())
}
