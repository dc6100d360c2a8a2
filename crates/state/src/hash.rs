//! The hash that replicas compare.

/// FNV-1a with 128 bits: the same on every machine and in every version. It guards against mistakes, not against malice.
pub(crate) struct StateHasher(u128);

impl StateHasher {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    pub(crate) fn new() -> Self {
        Self(Self::OFFSET)
    }

    /// Adds bytes and their number, so that the borders between parts count.
    pub(crate) fn part(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(Self::PRIME);
        }
    }

    pub(crate) fn finish(self) -> u128 {
        self.0
    }
}
