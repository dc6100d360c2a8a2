//! The only source of chance: a seed repeats whatever was drawn from it, in every version.

#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]

use std::ops::Range;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of pseudo-random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// A separate stream for some part, so that what happens there does not shift what happens elsewhere.
    pub fn fork(&mut self) -> Chance {
        Chance(self.number())
    }

    /// The next number, any of 64 bits.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        finalized(self.0)
    }

    /// A number below the limit, or 0 when that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.number() % limit }
    }

    /// An index into something of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// A number of the range.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// True about once in this many calls.
    pub fn one_in(&mut self, calls: u64) -> bool {
        self.below(calls) == 0
    }

    /// True with a probability in hundredths.
    pub fn percent(&mut self, probability: usize) -> bool {
        self.index(100) < probability
    }

    /// True with a probability in thousandths.
    pub fn per_mille(&mut self, probability: u64) -> bool {
        self.below(1_000) < probability
    }

    /// One of several.
    ///
    /// # Panics
    /// When there is none.
    pub fn choose<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// A copy of one of several.
    ///
    /// # Panics
    /// When there is none.
    pub fn copy_of<T: Copy>(&mut self, of: &[T]) -> T {
        *self.choose(of)
    }

    /// One of several, each as often as its weight says; `None` when all weights are 0.
    pub fn weighted<'a, T>(&mut self, of: &'a [(usize, T)]) -> Option<&'a T> {
        let mut place = self.index(of.iter().map(|(weight, _)| weight).sum());
        of.iter().find_map(|(weight, item)| {
            if place < *weight {
                return Some(item);
            }
            place -= weight;
            None
        })
    }
}

/// One number from several: other parts give another number, which reveals nothing about them.
pub fn seed_of(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |seed, part| finalized((seed ^ part).wrapping_add(STEP)))
}

/// Each bit of the result depends on all bits of the number (the finalizer of SplitMix64).
fn finalized(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded seeds of the simulator and results of the engine follow from these numbers.
    #[test]
    fn a_seed_gives_the_numbers_that_were_published_for_it() {
        let mut chance = Chance::new(1_234_567);
        let numbers: Vec<u64> = (0..3).map(|_| chance.number()).collect();
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn what_weighs_nothing_is_never_chosen() {
        let mut chance = Chance::new(1);
        assert!((0..1_000).all(|_| chance.weighted(&[(0, 'a'), (3, 'b'), (0, 'c')]) == Some(&'b')));
        assert_eq!(chance.weighted(&[(0, 'a')]), None);
    }
}
