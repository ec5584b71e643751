//! A small seeded generator: the same seed gives the same traces on every machine.

/// A stream of numbers (`SplitMix64`: a counter passed through a mixing function).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The seed from the environment variable `TIDEGATE_SEED`, or one that never changes.
    pub fn seed_from_environment() -> u64 {
        std::env::var("TIDEGATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x71DE_6A7E)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match (high - low).checked_add(1) {
            Some(span) => low + self.number() % span,
            None => self.number(),
        }
    }

    /// A number from `low` to `high` whose size, not whose value, is evenly spread.
    pub fn sized(&mut self, low: u64, high: u64) -> u64 {
        let bits = self.between(0, 64 - u64::from(high.leading_zeros()));
        let most = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        self.between(0, most).clamp(low, high)
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.between(0, 99) < chance
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() as u64 - 1) as usize]
    }
}
