//! A histogram of call lengths by powers of two, for the time after which nearly all concurrent calls have ended.
//!
//! 64 counters hold any number of calls, and the time is at most twice too long.

use crate::time::Ticks;

/// The inverse of the share of calls that may take longer.
const ONE_IN: u64 = 32;

/// The number of calls from each power of two up to the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths([u32; 64]);

impl Default for Lengths {
    fn default() -> Lengths {
        Lengths([0; 64])
    }
}

impl Lengths {
    /// Counts a call. A counter that is full keeps its value.
    pub(super) fn add(&mut self, latency: Ticks) {
        let slot = &mut self.0[latency.get().max(1).ilog2() as usize];
        *slot = slot.saturating_add(1);
    }

    /// Returns true if no call was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|calls| *calls == 0)
    }

    /// Returns a time within which all but a few calls ended, rounded up to a power of two. A single call is always a
    /// few.
    pub(super) fn of_nearly_all(&self) -> Ticks {
        let all: u64 = self.0.iter().map(|calls| u64::from(*calls)).sum();
        let few = (all / ONE_IN).max(1);
        let mut longer = 0;
        for (power, calls) in (1..=64).rev().zip(self.0.iter().rev()) {
            longer += u64::from(*calls);
            if longer > few {
                return Ticks::new(1_u64.checked_shl(power).unwrap_or(u64::MAX));
            }
        }
        Ticks::ZERO
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    fn of(calls: &[(u32, u64)]) -> u64 {
        let mut lengths = Lengths::default();
        for (times, latency) in calls {
            (0..*times).for_each(|_| lengths.add(Ticks::new(*latency)));
        }
        lengths.of_nearly_all().get()
    }

    #[test]
    fn nearly_all_is_all_but_one_in_thirty_two() {
        assert_eq!(of(&[(50, 1000), (50, 100_000)]), 1 << 17);
        assert_eq!(of(&[(310, 1000), (10, 100_000)]), 1024);
        assert_eq!(of(&[(309, 1000), (11, 100_000)]), 1 << 17);
    }

    #[test]
    fn a_single_call_gives_no_estimate_of_the_length() {
        assert_eq!(of(&[(15, 1000), (1, u64::MAX)]), 1024);
        assert_eq!(of(&[(14, 1000), (2, u64::MAX)]), u64::MAX);
        assert_eq!([of(&[]), of(&[(1, 1000)]), of(&[(2, 0)])], [0, 0, 2]);
    }
}
