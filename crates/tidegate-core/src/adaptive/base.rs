//! The latency with little in flight, the reference for the current one.
//!
//! Slow replies can mean that too many calls are in flight, or that the service itself has become slower. Only a
//! measurement with fewer in flight distinguishes the two. So from time to time there is a rest: a round with half of
//! the limit. Its measurement replaces the known value, up or down. Other rounds only lower the known value: slowly,
//! because the shortest of many rounds is an outlier, and only if the difference exceeds the statistical error. So an
//! old measurement expires, and lasting overload does not become the usual latency.
//!
//! Half of the limit may still be too much after the capacity of the service has dropped. This corrects itself. While
//! calls queue, latency is proportional to the number in flight, so a rest measures half of the full latency. That
//! lowers the limit, and a limit that has been halved since the last rest starts the next rest.

use super::round::RoundTally;
use crate::time::Ticks;

/// The rounds until the next rest while the latency is uncertain: at the start, and after a rest that found another
/// one.
const SOON: u64 = 8;

/// The latency with little in flight, and the schedule of its measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    latency: Option<Ticks>,
    every: u64,
    rounds_left: u64,
    pub(super) is_resting: bool,
    /// The limit at the last rest.
    places: u64,
}

impl Base {
    pub(super) fn new(every: u64) -> Base {
        Base { latency: None, every, rounds_left: SOON.min(every), is_resting: false, places: 0 }
    }

    /// Records the measurement of a round. Returns the latency with little in flight, if it is known.
    pub(super) fn learn(&mut self, tally: &RoundTally) -> Option<Ticks> {
        let Some(measured) = tally.latency else { return self.latency };
        let known = self.latency.unwrap_or(measured.usual);
        let next = if self.is_resting {
            self.rest(known, measured.usual, tally.rounds)
        } else if measured.most < known {
            between(known, measured.usual, 8)
        } else {
            known
        };
        self.latency = Some(next);
        self.latency
    }

    /// Returns the mean of two rests. If the service has changed, returns this measurement and schedules another rest
    /// soon.
    ///
    /// A rest that waited for long calls makes the next one later, in proportion to its length.
    fn rest(&mut self, known: Ticks, measured: Ticks, rounds: u64) -> Ticks {
        let is_like = measured.get() / 4 * 3 <= known.get() && known.get() / 4 * 3 <= measured.get();
        self.rounds_left = if is_like { self.every.saturating_mul(rounds) } else { SOON.min(self.every) };
        if is_like { between(known, measured, 2) } else { measured }
    }

    /// Ends a round with this limit in force. Returns true if the next round is a rest.
    pub(super) fn end_round(&mut self, places: u64) -> bool {
        if self.is_resting {
            (self.is_resting, self.places) = (false, places);
            return false;
        }
        self.rounds_left = self.rounds_left.saturating_sub(1);
        self.is_resting = self.rounds_left == 0 || places < self.places / 2;
        self.is_resting
    }
}

/// Returns the value `1 / slowness` of the way from one to the other.
fn between(from: Ticks, to: Ticks, slowness: u64) -> Ticks {
    let mixed =
        (u128::from(from.get()) * u128::from(slowness - 1) + u128::from(to.get())) / u128::from(slowness);
    Ticks::new(u64::try_from(mixed).unwrap_or(u64::MAX))
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::adaptive::mean::Latency;

    fn round(latency: u64) -> RoundTally {
        RoundTally { latency: Some(Latency::exactly(latency)), done: 16, lost: 0, rounds: 1, peak: 16 }
    }

    /// Ends so many rounds of this latency. Returns the base after them.
    fn rounds(base: &mut Base, times: u64, latency: u64) -> u64 {
        for _ in 0..times {
            base.learn(&round(latency));
            base.end_round(100);
        }
        base.latency.map_or(0, Ticks::get)
    }

    #[test]
    fn the_first_round_sets_the_base_and_a_slower_one_does_not_raise_it() {
        let mut base = Base::new(40);
        assert_eq!(base.learn(&RoundTally { latency: None, done: 0, lost: 16, rounds: 1, peak: 16 }), None);
        assert_eq!(rounds(&mut base, 1, 800), 800);
        assert_eq!(rounds(&mut base, 6, 8000), 800, "lasting overload does not become what is usual");
    }

    #[test]
    fn a_faster_round_lowers_it_by_an_eighth_of_the_difference() {
        let mut base = Base::new(40);
        assert_eq!(rounds(&mut base, 1, 800), 800);
        assert_eq!(rounds(&mut base, 1, 400), 750);
    }

    #[test]
    fn it_rests_soon_and_then_every_so_many_rounds() {
        let mut base = Base::new(40);
        let rests: Vec<_> = (1..=100)
            .filter(|_| {
                base.learn(&round(800));
                base.end_round(100)
            })
            .collect();
        // The eighth round is followed by a rest, the ninth; then forty rounds, then a rest.
        assert_eq!(rests, [8, 49, 90]);
    }

    #[test]
    fn a_rest_that_lasted_longer_is_rarer() {
        let mut base = Base::new(40);
        rounds(&mut base, 8, 800);
        base.learn(&RoundTally { rounds: 3, ..round(800) });
        base.end_round(100);
        let next = (1..).find(|_| {
            base.learn(&round(800));
            base.end_round(100)
        });
        assert_eq!(next, Some(120));
    }

    #[test]
    fn a_difference_within_the_standard_error_does_not_lower_it() {
        let mut base = Base::new(40);
        rounds(&mut base, 1, 800);
        let by_chance = Latency { most: Ticks::new(800), ..Latency::exactly(720) };
        assert_eq!(base.learn(&RoundTally { latency: Some(by_chance), ..round(0) }), Some(Ticks::new(800)));
        let surely = Latency { most: Ticks::new(799), ..by_chance };
        assert_eq!(base.learn(&RoundTally { latency: Some(surely), ..round(0) }), Some(Ticks::new(790)));
    }

    #[test]
    fn a_rest_replaces_an_old_base() {
        let mut base = Base::new(40);
        rounds(&mut base, 8, 100);
        assert!(base.is_resting);
        assert_eq!(rounds(&mut base, 1, 130), 115, "what is alike is averaged");
        rounds(&mut base, 40, 1000);
        assert!(base.is_resting);
        assert_eq!(rounds(&mut base, 1, 1000), 1000, "the service has become slower");
        rounds(&mut base, 8, 1000);
        assert!(base.is_resting, "and is looked at again soon");
    }

    #[test]
    fn a_limit_that_was_halved_brings_a_rest() {
        let mut base = Base::new(40);
        rounds(&mut base, 9, 100);
        assert!(!base.end_round(50));
        assert!(base.end_round(49));
    }
}
