//! What random values follow from.

/// One number from several: other parts give another number, which reveals nothing about them (the finalizer of SplitMix64
/// after each part).
pub fn seed_of(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |seed, part| {
        let mut mixed = (seed ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}
