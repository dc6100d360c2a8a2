//! Asking the operating system.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The room on a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Space {
    pub total_bytes: u64,
    /// What this process may still use.
    pub free_bytes: u64,
}

impl Space {
    /// Of the volume that holds `path`.
    pub fn of(path: &Path) -> io::Result<Space> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let mut answer = MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: `path` is a string that ends with a zero byte and lives until the call returns, `answer` has room for
        // what the call writes, and all zeros are a valid value of it.
        let (result, answer) = unsafe { (libc::statvfs(path.as_ptr(), answer.as_mut_ptr()), answer.assume_init()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let bytes = |blocks| blocks_to_bytes(blocks, answer.f_frsize);
        Ok(Space { total_bytes: bytes(answer.f_blocks), free_bytes: bytes(answer.f_bavail) })
    }
}

#[allow(clippy::useless_conversion, reason = "the types differ between platforms")]
fn blocks_to_bytes(blocks: libc::fsblkcnt_t, block_bytes: libc::c_ulong) -> u64 {
    u64::from(blocks).saturating_mul(u64::from(block_bytes))
}

/// Makes the file at least `bytes` long, with room on the disk for all of it.
pub(super) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    // SAFETY: the call works on the descriptor of a file that is open until it returns, and touches no memory.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}
