//! The cut of a limit after a round with losses, the same for all algorithms.
//!
//! Losses override latency: a service that denies calls or times out is overloaded. A few losses are tolerated, because
//! a latency tail beyond the deadline is lost even with nothing else in flight.

use super::AdaptiveLimit;
use super::level::Level;
use super::round::RoundTally;

/// The least remaining part, in percent, even if all calls were lost: the cause may be unrelated to load.
const LEAST_LEFT: u64 = 33;

/// Cuts the limit to a part of the answered calls if too many were lost. Returns true if it did.
pub(super) fn cut(adapt: &AdaptiveLimit, level: &mut Level, tally: &RoundTally) -> bool {
    if !tally.is_lossy(adapt.lost_percent) && !tally.is_slow(adapt.slow_after) {
        return false;
    }
    let left = adapt.cut_percent * tally.answered_percent() / 100;
    level.scale(left.max(LEAST_LEFT.min(adapt.cut_percent)), 100);
    true
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::adaptive::mean::Latency;

    /// Returns the limit that remains of 100.
    fn left(adapt: AdaptiveLimit, done: u64, lost: u64) -> u64 {
        let adapt = adapt.starting_at(100);
        let mut level = Level::new(&adapt);
        let latency = (done > 0).then_some(Latency::exactly(160_000_000));
        cut(&adapt, &mut level, &RoundTally { latency, done, lost, rounds: 1, peak: 100 });
        level.places()
    }

    fn plain() -> AdaptiveLimit {
        AdaptiveLimit::aimd(1..=1000)
    }

    #[test]
    fn a_tolerated_loss_cuts_nothing_and_neither_does_a_single_one() {
        assert_eq!([left(plain(), 100, 0), left(plain(), 95, 5), left(plain(), 1, 1)], [100, 100, 100]);
        assert_eq!(left(plain().tolerating(20), 80, 20), 100);
    }

    #[test]
    fn the_answered_share_determines_the_remaining_limit() {
        assert_eq!([left(plain(), 94, 6), left(plain(), 50, 50), left(plain(), 0, 16)], [84, 45, 33]);
        assert_eq!(left(plain().cutting_to(50), 90, 10), 45);
        assert_eq!(left(plain().cutting_to(0), 90, 10), 10, "ten percent is the least");
    }

    #[test]
    fn a_round_that_is_usually_slow_is_cut() {
        use crate::MILLISECOND;

        assert_eq!(left(plain().slow_after(9 * MILLISECOND), 100, 0), 90);
        assert_eq!(left(plain().slow_after(10 * MILLISECOND), 100, 0), 100);
    }
}
