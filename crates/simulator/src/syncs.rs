//! Which of the real files are synced: those of states are LMDB's, which writes and syncs them by itself.
//!
//! The simulation takes the place of the two functions of the C library, counts the calls, and passes them on. So a checkpoint
//! that is never synced is seen, and a power failure may take it back.

use std::cell::Cell;
use std::ffi::c_int;

thread_local! {
    static SYNCS: Cell<u64> = const { Cell::new(0) };
}

/// How many syncs of real files this thread has made.
pub fn count() -> u64 {
    // So that the linker takes these and not those of the C library.
    std::hint::black_box([fsync as extern "C" fn(c_int) -> c_int, fdatasync]);
    SYNCS.get()
}

fn synced(call: libc::c_long, descriptor: c_int) -> c_int {
    SYNCS.set(SYNCS.get() + 1);
    // SAFETY: the call takes a number alone, and fails for one that is no open file.
    let result = unsafe { libc::syscall(call, descriptor) };
    c_int::try_from(result).unwrap_or(-1)
}

// SAFETY: it has the signature and does the work of the function of the C library that it replaces.
#[unsafe(no_mangle)]
extern "C" fn fsync(descriptor: c_int) -> c_int {
    synced(libc::SYS_fsync, descriptor)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    synced(libc::SYS_fdatasync, descriptor)
}
