//! Checksums of resources.

use std::sync::Arc;

/// 128-bit FNV-1a: names the content for readers of the record stream. Sameness is decided on the content itself.
pub(super) fn checksum(content: &[u8]) -> Arc<[u8]> {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = content.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    Arc::from(hash.to_be_bytes().as_slice())
}
