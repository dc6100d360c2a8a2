//! Bytes as a row of choices.

/// What is decided next is read from bytes. Behind their end every choice is the first, which is the plain one: so bytes
/// that are cut or set to zero make a simpler case, and that is how a failing one is made small.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    /// From the first of these bytes on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Choices { bytes, at: 0 }
    }

    /// Whether all bytes are used.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next byte; 0 behind the end.
    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        match end {
            0..=1 => 0,
            2..=256 => usize::from(self.byte()) % end,
            _ => self.wide() % end,
        }
    }

    fn wide(&mut self) -> usize {
        usize::from(self.byte()) << 16 | usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    /// Whether one of so many hundred chances came; not behind the end.
    pub fn percent(&mut self, percent: u8) -> bool {
        let byte = usize::from(self.byte());
        byte * 100 >= (100 - usize::from(percent.min(100))) * 256
    }

    /// One of these, which are not none.
    pub fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }

    /// A size that is mostly small, sometimes middling, and now and then as large as may be.
    pub fn size(&mut self, max: usize) -> usize {
        let size = match self.byte() {
            small @ 0..=199 => usize::from(small) % 4,
            200..=239 => self.below(17),
            240..=251 => self.below(257),
            _ => self.below(max + 1),
        };
        size.min(max)
    }
}

/// Bytes of a seed, the same on every machine.
pub fn bytes_of_seed(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = move || {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let words = 60 + next() % 60 * (1 + next() % 20);
    (0..words).flat_map(|_| next().to_le_bytes()).collect()
}
