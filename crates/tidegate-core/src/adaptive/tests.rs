use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::MILLISECOND;

const ALL: [fn(std::ops::RangeInclusive<u64>) -> AdaptiveLimit; 3] =
    [AdaptiveLimit::aimd, AdaptiveLimit::vegas, AdaptiveLimit::gradient2];

/// A service whose calls end one after the other, a millisecond apart, with as many in flight as the limit allows.
struct Service {
    estimator: Estimator,
    now: Timestamp,
}

impl Service {
    fn new(adapt: &AdaptiveLimit) -> Service {
        Service { estimator: Estimator::new(adapt), now: Timestamp::EPOCH }
    }

    /// Ends so many calls with this outcome, each of this length in milliseconds. Returns the limit after them.
    fn calls(&mut self, times: u64, milliseconds: u32, outcome: Outcome) -> u64 {
        for _ in 0..times {
            let latency = Ticks::saturating_from(milliseconds * MILLISECOND);
            let in_flight = self.estimator.limit();
            self.now = self.now.saturating_add(Ticks::saturating_from(MILLISECOND));
            self.estimator.observe(Sample { now: self.now, latency, in_flight, outcome });
        }
        self.estimator.limit()
    }
}

#[test]
fn without_a_start_it_is_twenty_or_the_nearest_bound() {
    let starts =
        [1..=1000, 1..=5, 30..=50].map(|bounds| Estimator::new(&AdaptiveLimit::vegas(bounds)).limit());
    assert_eq!(starts, [20, 5, 30]);
    assert_eq!(Estimator::new(&AdaptiveLimit::aimd(4..=10).starting_at(100)).limit(), 10);
}

#[test]
fn from_the_least_it_grows_as_far_as_it_is_used() {
    for adapt in ALL {
        let mut service = Service::new(&adapt(1..=60).starting_at(1));
        assert!(service.calls(3000, 0, Outcome::Done) >= 30, "{:?}", service.estimator);
    }
}

#[test]
fn a_limit_that_is_not_used_is_not_raised() {
    for adapt in ALL {
        let mut estimator = Estimator::new(&adapt(1..=1000).starting_at(100));
        for now in 0..10_000 {
            let (now, latency) = (Timestamp::from_ticks(now), Ticks::ZERO);
            estimator.observe(Sample { now, latency, in_flight: 49, outcome: Outcome::Done });
            assert!(estimator.limit() <= 100);
        }
    }
}

#[test]
fn a_round_is_cut_once_however_many_of_it_are_lost() {
    for adapt in ALL {
        let mut service = Service::new(&adapt(1..=1000).starting_at(100));
        // All of them began before the first cut, which came with the 51st.
        assert_eq!(service.calls(1000, 60_000, Outcome::Overloaded), 33);
    }
}

#[test]
fn one_call_that_is_lost_or_late_cuts_nothing() {
    for adapt in ALL {
        let mut service = Service::new(&adapt(1..=1000).starting_at(20));
        service.calls(18, 10, Outcome::Done);
        service.calls(1, 10_000_000, Outcome::Done);
        assert!(service.calls(1, 10, Outcome::Overloaded) >= 20);
    }
}

#[test]
fn failures_do_not_move_the_limit() {
    for adapt in ALL {
        let mut service = Service::new(&adapt(1..=1000).starting_at(50));
        assert_eq!(service.calls(10_000, 1, Outcome::Failed), 50);
        assert_eq!(service.calls(10_000, 1, Outcome::Ignored), 50);
    }
}

#[test]
#[cfg_attr(miri, ignore = "two hundred thousand calls")]
fn a_service_that_has_become_slower_for_good_is_not_starved() {
    for adapt in [AdaptiveLimit::vegas, AdaptiveLimit::gradient2] {
        let mut service = Service::new(&adapt(1..=40).starting_at(40));
        service.calls(4_000, 10, Outcome::Done);
        assert!(service.calls(100_000, 50, Outcome::Done) >= 20, "{:?}", service.estimator);
    }
}

/// Returns the mean limit over the last half of so many calls, with as many in flight as allowed. One in `one_in` takes
/// 100 ms and the others 1 ms, independent of the number in flight.
fn mean_limit_of_mixed(adapt: &AdaptiveLimit, calls: u64, one_in: u64) -> u64 {
    let mut estimator = Estimator::new(adapt);
    let (mut in_flight, mut now, mut word, mut sum) = (BinaryHeap::new(), 0, 0x9e37_79b9_7f4a_7c15_u64, 0);
    for call in 0..calls {
        while (in_flight.len() as u64) < estimator.limit() {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            let milliseconds = if word % one_in == 0 { 100 } else { 1 };
            let latency = Ticks::saturating_from(milliseconds * MILLISECOND).get();
            in_flight.push(Reverse((now + latency, latency)));
        }
        let count = in_flight.len() as u64;
        let Reverse((ends, latency)) = in_flight.pop().expect("the least is one");
        now = ends;
        let (now, latency) = (Timestamp::from_ticks(now), Ticks::new(latency));
        let limit = estimator.observe(Sample { now, latency, in_flight: count, outcome: Outcome::Done });
        sum += if call >= calls / 2 { limit } else { 0 };
    }
    sum / (calls - calls / 2)
}

/// After a cut the short calls end first: measured alone, they would make all others look like a queue.
#[test]
#[cfg_attr(miri, ignore = "a million calls")]
fn a_mix_of_short_and_long_calls_does_not_look_like_a_queue() {
    for adapt in [AdaptiveLimit::vegas, AdaptiveLimit::gradient2] {
        for one_in in [2, 3, 10] {
            let mean = mean_limit_of_mixed(&adapt(4..=300).starting_at(200), 200_000, one_in);
            assert!(mean >= 200, "{mean} of 300, one in {one_in} long: {:?}", adapt(4..=300));
        }
    }
}

#[test]
#[should_panic(expected = "places 0..=5: the bounds are out of order or out of range")]
fn bounds_without_any_call_in_flight_panic() {
    let _ = AdaptiveLimit::aimd(0..=5);
}

#[cfg(not(miri))]
mod random {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> impl Strategy<Value = Sample> {
        let number = || prop_oneof![0..1000_u64, any::<u64>(), Just(u64::MAX)];
        let outcome = prop_oneof![
            3 => Just(Outcome::Done),
            1 => Just(Outcome::Overloaded),
            1 => Just(Outcome::Failed),
            1 => Just(Outcome::Ignored)
        ];
        (number(), number(), number(), outcome).prop_map(|(now, latency, in_flight, outcome)| Sample {
            now: Timestamp::from_ticks(now),
            latency: Ticks::new(latency),
            in_flight,
            outcome,
        })
    }

    proptest! {
        #[test]
        fn the_limit_stays_within_its_bounds_under_any_samples(
            (min, more, start) in (1..=1000_u64, prop_oneof![0..100_u64, Just((1 << 32) - 1000)], any::<u64>()),
            (tolerated, cut, rest) in (any::<u64>(), any::<u64>(), any::<u64>()),
            samples in prop::collection::vec((sample(), 1..200_usize), 0..60),
        ) {
            for adapt in ALL {
                let adapt = adapt(min..=min + more).starting_at(start).tolerating(tolerated);
                let mut estimator = Estimator::new(&adapt.cutting_to(cut).resting_every(rest % 10));
                for (sample, times) in &samples {
                    for _ in 0..*times {
                        let limit = estimator.observe(*sample);
                        prop_assert!((min..=min + more).contains(&limit));
                        prop_assert_eq!(limit, estimator.limit());
                    }
                }
            }
        }
    }
}
