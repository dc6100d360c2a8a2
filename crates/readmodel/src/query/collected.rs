//! What is collected for an answer, charged by its bytes.

use crate::database::{Error, Result};

/// What is counted in groups has no more bytes of names and keys.
pub(super) const COLLECTED_BYTES_MAX: usize = 16 << 20;
/// What a group costs besides its names.
const GROUP_BYTES: usize = 64;

/// How much was collected.
#[derive(Debug, Default)]
pub(super) struct Collected(usize);

impl Collected {
    /// Charges a group with names of so many bytes.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        self.0 += bytes + GROUP_BYTES;
        if self.0 > COLLECTED_BYTES_MAX { Err(Error::TooMuch) } else { Ok(()) }
    }
}
