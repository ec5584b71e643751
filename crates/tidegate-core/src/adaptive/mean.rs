//! The usual latency of a number of calls, and its statistical error.
//!
//! It is the mean of the logarithms, the geometric mean. A call that is a hundred times longer than the rest weighs
//! seven times as much as a usual one, not a hundred times. The standard error of that mean bounds the difference
//! between two samples of the same calls: if some replies come from a cache and others from a disk, two rounds differ
//! by their mix, although nothing has become slower.

use crate::time::Ticks;

/// An accumulator of latencies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    calls: u64,
    /// The sum of the logarithms, with 32 bits of fraction.
    logarithms: u128,
    /// The sum of the squares of logarithms with 16 bits of fraction, so that the sum does not overflow.
    squares: u128,
}

/// The latency of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latency {
    /// The usual latency less a standard error.
    pub(super) least: Ticks,
    pub(super) usual: Ticks,
    /// The usual latency plus a standard error.
    pub(super) most: Ticks,
}

impl Latency {
    /// Returns a latency without error.
    #[cfg(all(test, not(tidegate_models)))]
    pub(super) fn exactly(ticks: u64) -> Latency {
        let usual = Ticks::new(ticks);
        Latency { least: usual, usual, most: usual }
    }
}

impl Mean {
    pub(super) fn add(&mut self, latency: Ticks) {
        let own = logarithm(latency);
        self.calls += 1;
        self.logarithms += u128::from(own);
        self.squares += u128::from(own >> 16).pow(2);
    }

    /// Returns the latency of the calls; `None` if there were none.
    pub(super) fn latency(&self) -> Option<Latency> {
        let calls = u128::from(self.calls);
        let mean = self.logarithms.checked_div(calls)?;
        let variance = (self.squares / calls).saturating_sub((mean >> 16).pow(2));
        let error = (variance / calls).isqrt() << 16;
        let power_of = |logarithm: u128| power(u64::try_from(logarithm).unwrap_or(u64::MAX));
        Some(Latency {
            least: power_of(mean.saturating_sub(error)),
            usual: power_of(mean),
            most: power_of(mean + error),
        })
    }
}

/// Returns the binary logarithm with 32 bits of fraction, linear between powers of two. Zero counts as one tick.
fn logarithm(latency: Ticks) -> u64 {
    let ticks = latency.get().max(1);
    let whole = ticks.ilog2();
    let fraction =
        if whole >= 32 { (ticks >> (whole - 32)) - (1 << 32) } else { (ticks << (32 - whole)) - (1 << 32) };
    (u64::from(whole) << 32) + fraction
}

/// Returns the latency with this logarithm.
fn power(logarithm: u64) -> Ticks {
    let (whole, fraction) = (logarithm >> 32, (logarithm & 0xFFFF_FFFF) + (1 << 32));
    match whole {
        0..32 => Ticks::new(fraction >> (32 - whole)),
        32..64 => Ticks::new(fraction << (whole - 32)),
        _ => Ticks::MAX,
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    fn latency_of(latencies: &[u64]) -> Latency {
        let mut mean = Mean::default();
        latencies.iter().for_each(|took| mean.add(Ticks::new(*took)));
        mean.latency().expect("calls were answered")
    }

    #[test]
    fn the_usual_latency_is_the_mean_of_the_logarithms() {
        assert_eq!(latency_of(&[12_345; 16]), Latency::exactly(12_345));
        assert_eq!(latency_of(&[1, 4, 1, 4]).usual.get(), 2);
        assert_eq!(latency_of(&[0; 16]), Latency::exactly(1), "no time counts as a tick");
        let kept = Latency::exactly(u64::MAX - (1 << 31) + 1);
        assert_eq!(latency_of(&[u64::MAX; 16]), kept, "32 bits of it are kept");
        assert_eq!(Mean::default().latency(), None);
    }

    #[test]
    fn an_outlier_moves_it_little() {
        let mut latencies = [1024; 16];
        latencies[3] = 1024 << 16;
        let usual = latency_of(&latencies).usual.get();
        assert_eq!(usual, 2048, "65,536 times as long: twice the mean, not 4,097 times");
    }

    #[test]
    fn the_error_of_the_mean_is_a_standard_error() {
        // Half take 2^10 and half 2^14: two powers from the mean, and a quarter of that for sixteen calls.
        let latencies: Vec<_> = (0..16).map(|call| 1024 << (call % 2 * 4)).collect();
        let Latency { least, usual, most } = latency_of(&latencies);
        assert_eq!((least.get(), usual.get(), most.get()), (3072, 4096, 6144), "straight between powers");
    }

    #[test]
    fn logarithms_come_back() {
        for ticks in [1, 2, 3, 1000, 16_000_000_000, 1 << 32, (1 << 33) - 2, 1 << 63] {
            assert_eq!(power(logarithm(Ticks::new(ticks))).get(), ticks);
        }
    }
}
