//! Numbers at random.

/// Marsaglia's generator: the same numbers in every run.
#[derive(Clone, Debug)]
pub(crate) struct Xorshift(u64);

impl Default for Xorshift {
    fn default() -> Xorshift {
        Xorshift(0x9e37_79b9_7f4a_7c15)
    }
}

impl Xorshift {
    /// A number below the bound.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from 0 up to, and not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
