//! What commands take, and the distribution of it.

use std::fmt;

use engine::Spent;

use crate::memory::Memory;

/// What one command took.
#[derive(Clone, Debug)]
pub struct Cost {
    /// The step of the case that it belongs to.
    pub step: usize,
    /// The command, as its kind and intent.
    pub name: String,
    /// Processor time of the thread in nanoseconds. It depends on the machine, so nothing is decided by it.
    pub processor_nanoseconds: u64,
    /// Memory.
    pub memory: Memory,
    /// What it used of its limits.
    pub spent: Spent,
    /// How many records it made.
    pub records: usize,
    /// The beginning of the reason why it was refused, if it was.
    pub refusal: Option<String>,
    /// Whether it did nothing else: the refusal is its own, not one of a command that follows from it.
    pub is_refused_at_once: bool,
}

/// Processor time of this thread so far, in nanoseconds.
pub fn processor_nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is one that each system with threads has, and the structure is there to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often values came, in steps of a sixteenth.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Vec<u64>,
    max: u64,
    total: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution { counts: vec![0; 1 + 64 * 16], max: 0, total: 0 }
    }
}

impl Distribution {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.counts[place(value)] += 1;
        self.max = self.max.max(value);
        self.total += 1;
    }

    /// The value that so many thousandths of all do not exceed, rounded up.
    pub fn thousandths(&self, thousandths: u64) -> u64 {
        let wanted = self.total.saturating_mul(thousandths).div_ceil(1_000);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return end_of(place).min(self.max);
            }
        }
        self.max
    }
}

/// The place of a value: its highest bit and the four bits below.
fn place(value: u64) -> usize {
    let shift = (64 - value.leading_zeros()).saturating_sub(5);
    shift as usize * 16 + (value >> shift) as usize
}

/// The largest value of a place.
fn end_of(place: usize) -> u64 {
    if place < 32 {
        return place as u64;
    }
    let shift = place / 16 - 1;
    let first = (place - shift * 16) as u128;
    u64::try_from(((first + 1) << shift) - 1).unwrap_or(u64::MAX)
}

impl fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, nearly] = [500, 990, 999].map(|thousandths| self.thousandths(thousandths));
        write!(formatter, "p50 {half}, p99 {most}, p99.9 {nearly}, max {}", self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::Distribution;

    #[test]
    fn a_distribution_knows_its_thousandths() {
        let mut distribution = Distribution::default();
        for value in 1..=1_000 {
            distribution.add(value);
        }
        for (thousandths, exact) in [(1, 1), (10, 10), (500, 500), (990, 990), (1_000, 1_000)] {
            let value = distribution.thousandths(thousandths);
            assert!(value >= exact && value <= exact + exact / 16, "{thousandths}: {value}");
        }
        distribution.add(u64::MAX);
        assert_eq!(distribution.thousandths(1_000), u64::MAX);
    }
}
