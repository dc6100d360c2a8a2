//! Random block-structured models under a random driver, the same on both sides. A seed gives the same model and, as long
//! as the reference does the same, the same steps.

mod choice;
mod known;
mod model;
mod run;
mod shrink;

pub use model::{FEATURES, Features};
pub use run::{Case, Finding, Outcome, Sides, replay, run};
pub use shrink::shrink;

/// A small generator of random numbers (SplitMix64): the same numbers for a seed in every version.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// True with this percentage.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several, which must not be empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One of several words, which must not be none.
    pub fn word(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    /// One of several, each as often as its weight says; `None` when all weights are 0.
    pub fn weighted<'a, T>(&mut self, from: &'a [(usize, T)]) -> Option<&'a T> {
        let total: usize = from.iter().map(|(weight, _)| weight).sum();
        let mut place = self.below(total);
        from.iter().find_map(|(weight, item)| {
            if place < *weight {
                return Some(item);
            }
            place -= weight;
            None
        })
    }
}
