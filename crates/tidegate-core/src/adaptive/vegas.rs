//! Vegas: as many calls as keep a few of them queued in the service.
//!
//! *Measures* latency. `base` is the latency with little in flight, `now` that of the round, less its statistical
//! error. By Little's law the number of calls that wait rather than work is `waiting = in flight · (1 − base / now)`.
//!
//! *Formula*, once per round, with `root = √limit`. Up to `root / 2` waiting: `limit + 2 · root`. Below `root`:
//! `limit + root / 2`. Above `2 · root`: down by half of the excess. Between, the limit stays. It grows only if at least
//! half of it is used. TCP Vegas compares with two and four packets; random arrivals vary by the root, and so many calls
//! must wait to keep every worker busy.
//!
//! *Bounds*: between one and two roots wait in the service, whatever its latency and its number of workers.
//!
//! *Fails* where latency is a weak sign of load: replies from a cache beside replies from a disk, in a changing mix. A
//! service that becomes slower by itself looks like a queue until the next rest.

use super::Relevance;
use super::level::Level;
use super::round::RoundTally;
use crate::time::Ticks;

/// Moves a limit after a round, given the latencies with little in flight and now.
pub(super) fn follow(level: &mut Level, base: Ticks, now: Ticks, tally: &RoundTally) -> Relevance {
    let root = level.root();
    let waiting = waiting(level.places().min(tally.peak), base, now);
    if waiting > 2 * root {
        level.lower(((waiting - 2 * root) / 2).max(1));
        return Relevance::Cut;
    }
    if tally.is_near(level.places()) {
        if waiting <= root / 2 {
            level.raise(2 * root);
        } else if waiting < root {
            level.raise((root / 2).max(1));
        }
    }
    Relevance::Smooth
}

/// Returns the number of calls that wait, out of so many in flight.
fn waiting(in_flight: u64, base: Ticks, now: Ticks) -> u64 {
    let longer = now.saturating_sub(base).get();
    let waiting = u128::from(in_flight) * u128::from(longer) / u128::from(now.get().max(1));
    u64::try_from(waiting).unwrap_or(in_flight)
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::adaptive::AdaptiveLimit;

    /// Returns the next limit after 100, with all of it used, when the latency is `now` instead of 100.
    fn after(now: u64) -> u64 {
        used(100, now)
    }

    fn used(peak: u64, now: u64) -> u64 {
        let mut level = Level::new(&AdaptiveLimit::vegas(1..=1000).starting_at(100));
        let tally = RoundTally { latency: None, done: 100, lost: 0, rounds: 1, peak };
        follow(&mut level, Ticks::new(100), Ticks::new(now), &tally);
        level.places()
    }

    #[test]
    fn the_limit_grows_fast_while_hardly_any_call_waits_and_slowly_while_few_do() {
        assert_eq!([after(50), after(100), after(105)], [120, 120, 120], "at most 5 wait");
        assert_eq!([after(107), after(110)], [105, 105], "6 and 9 wait");
    }

    #[test]
    fn between_one_and_two_roots_it_stays() {
        assert_eq!([after(112), after(125)], [100, 100], "10 and 20 wait");
    }

    #[test]
    fn half_of_the_excess_waiting_is_removed() {
        assert_eq!(after(130), 99, "23 wait");
        assert_eq!(after(200), 85, "50 wait");
        assert_eq!(after(u64::MAX), 61, "99 wait");
    }

    #[test]
    fn a_limit_that_is_not_used_does_not_grow() {
        assert_eq!([used(50, 100), used(49, 100)], [120, 100]);
    }
}
