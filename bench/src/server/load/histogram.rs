//! Latencies, counted in boxes whose width grows with them.
//!
//! Each power of two of nanoseconds has 64 boxes, so a quantile is off by less than a sixtieth.

use std::time::Duration;

/// Boxes per power of two, as a power of two.
const FINENESS: u32 = 6;
const PER_POWER: u64 = 1 << FINENESS;
/// More than an hour of nanoseconds.
const POWERS: u32 = 42;
const BOXES: usize = ((POWERS - FINENESS + 1) as usize) << FINENESS;

/// How often each latency was seen, about.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram { counts: vec![0; BOXES], total: 0 }
    }

    /// Counts the same latency so many times.
    pub(crate) fn record(&mut self, latency: Duration, times: u64) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[place(nanoseconds)] += times;
        self.total += times;
    }

    /// In microseconds, the latency that this share of all did not exceed; not a number if there are none.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.map_or(f64::NAN, |place| middle(place) / 1e3)
    }
}

/// Where a latency is counted; one that is too long is in the last box.
fn place(nanoseconds: u64) -> usize {
    if nanoseconds < PER_POWER {
        return nanoseconds as usize;
    }
    let shift = nanoseconds.ilog2() - FINENESS;
    let place = (u64::from(shift) << FINENESS) + (nanoseconds >> shift);
    usize::try_from(place).unwrap_or(BOXES).min(BOXES - 1)
}

/// What is in the middle of a box, in nanoseconds.
fn middle(place: usize) -> f64 {
    let (power, within) = (place as u64 >> FINENESS, place as u64 & (PER_POWER - 1));
    if power == 0 {
        return within as f64;
    }
    let width = (1_u64 << (power - 1)) as f64;
    (PER_POWER + within) as f64 * width + width / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_close_to_the_middle_of_its_box() {
        let mut nanoseconds = 1_u64;
        while nanoseconds < 1 << 40 {
            let off = middle(place(nanoseconds)) / nanoseconds as f64;
            assert!((0.98..1.02).contains(&off), "{nanoseconds} {off}");
            nanoseconds += nanoseconds / 7 + 1;
        }
    }

    #[test]
    fn a_quantile_is_the_latency_that_so_many_did_not_exceed() {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_micros(10), 98);
        histogram.record(Duration::from_millis(1), 2);
        let close = |share: f64, expected: f64| (histogram.quantile(share) / expected - 1.0).abs() < 0.02;
        assert!(close(0.5, 10.0) && close(0.98, 10.0) && close(0.99, 1000.0) && close(1.0, 1000.0));
    }

    #[test]
    fn odd_latencies_have_a_box() {
        let mut histogram = Histogram::new();
        assert!(histogram.quantile(0.5).is_nan());
        histogram.record(Duration::MAX, 1);
        histogram.record(Duration::ZERO, 1);
        assert!(histogram.quantile(0.5) == 0.0 && histogram.quantile(1.0) > 3.6e9);
    }
}
