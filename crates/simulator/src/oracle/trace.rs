//! Determinism: the same seed twice gives the same trace hash. Without it no failure could be repeated, and a difference
//! means that production code asks a clock, a random number or the order of a hash map.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// Everything that happened, as a hash; as text where that is asked for.
#[derive(Default)]
pub struct Trace {
    hash: u64,
}

impl Trace {
    /// Takes something into the hash.
    pub fn note(&mut self, what: &str, numbers: &[u64], text: &str) {
        let mut hasher = FxHasher::default();
        hasher.write_u64(self.hash);
        hasher.write(what.as_bytes());
        for number in numbers {
            hasher.write_u64(*number);
        }
        hasher.write(text.as_bytes());
        self.hash = hasher.finish();
        tracing::trace!(target: "trace", what, ?numbers, text);
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}
