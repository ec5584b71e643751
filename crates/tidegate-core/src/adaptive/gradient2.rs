//! Gradient2: the limit follows the ratio of the usual latency to the current one.
//!
//! *Measures* latency. `base` is the latency with little in flight, `now` that of the round, less its statistical
//! error. The gradient is `1.5 · base / now`, at least a half and at most one: up to one and a half times the usual
//! latency does not shrink the limit.
//!
//! *Formula*, once per round: the limit goes half of the way to `limit · gradient + √limit`. The root is the margin by
//! which the limit probes for more capacity; it grows only if at least half of it is used.
//!
//! *Bounds*: the limit settles where `gradient = 1 − 1/√limit`, so latency is somewhat more than one and a half times
//! that with little in flight.
//!
//! *Fails* where one and a half times the usual latency is too late, or where the mix of short and long calls changes
//! by more than that. A constant mix does no harm, but each rest lasts as long as the long calls. In the published
//! algorithm the usual latency is a long average, which under lasting overload becomes the latency of overload and lets
//! the limit grow to its bound. Here only rests raise it.

use super::Relevance;
use super::level::{Level, ONE};
use super::round::RoundTally;
use crate::time::Ticks;

/// Moves a limit after a round, given the latencies with little in flight and now.
pub(super) fn follow(level: &mut Level, base: Ticks, now: Ticks, tally: &RoundTally) -> Relevance {
    let (own, room) = (u128::from(level.parts), u128::from(level.root()) * u128::from(ONE));
    let target = own * u128::from(gradient(base, now)) / u128::from(ONE) + room;
    if target < own {
        level.approach(target);
        return Relevance::Cut;
    }
    if tally.is_near(level.places()) {
        level.approach(target);
    }
    Relevance::Smooth
}

/// Returns one and a half times `base / now`, in 65,536ths, from a half to one.
fn gradient(base: Ticks, now: Ticks) -> u64 {
    let ratio = u128::from(base.get()) * u128::from(ONE) * 3 / (u128::from(now.get().max(1)) * 2);
    u64::try_from(ratio).unwrap_or(ONE).clamp(ONE / 2, ONE)
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::adaptive::AdaptiveLimit;

    /// Returns the next limit after 100, with so much of it used, when the latency is `now` instead of 100.
    fn used(peak: u64, now: u64) -> u64 {
        let mut level = Level::new(&AdaptiveLimit::gradient2(1..=1000).starting_at(100));
        let tally = RoundTally { latency: None, done: 100, lost: 0, rounds: 1, peak };
        follow(&mut level, Ticks::new(100), Ticks::new(now), &tally);
        level.places()
    }

    #[test]
    fn up_to_one_and_a_half_times_the_usual_it_grows_by_half_of_the_root() {
        assert_eq!([used(100, 0), used(100, 100), used(100, 150)], [105, 105, 105]);
    }

    #[test]
    fn it_rests_where_the_gradient_takes_what_the_root_gives() {
        // 1.5 · 100 / 166 = 0.9036; 100 · 0.9036 + 10 = 100.4
        assert_eq!(used(100, 166), 100);
    }

    #[test]
    fn slower_answers_shrink_it_by_a_quarter_of_it_at_most() {
        // 100 · 0.75 + 10 = 85, half of the way
        assert_eq!(used(100, 200), 92);
        // 100 · 0.5 + 10 = 60
        assert_eq!([used(100, 300), used(100, u64::MAX)], [80, 80]);
    }

    #[test]
    fn a_limit_that_is_not_used_does_not_grow_but_shrinks() {
        assert_eq!([used(50, 100), used(49, 100), used(49, 200)], [105, 100, 92]);
    }
}
