//! Numbers that look random and are the same for the same seed.

/// A counter, well stirred.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let stirred = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let stirred = (stirred ^ (stirred >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        stirred ^ (stirred >> 31)
    }

    /// A number below this one, which is at least 1.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Whether something happens that happens once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// The seed of this run: `TIDEGATE_SEED`, or always the same.
pub(crate) fn seed() -> u64 {
    std::env::var("TIDEGATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_115)
}

/// How many to try: all of them if `TIDEGATE_FULL` is set, else a share.
pub(crate) fn tries(full: usize, share: usize) -> usize {
    if std::env::var_os("TIDEGATE_FULL").is_some() { full } else { share }
}
