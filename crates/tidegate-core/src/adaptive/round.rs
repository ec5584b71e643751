//! A round: as many calls as may be in flight, evaluated together.
//!
//! By Little's law a round lasts about as long as one call. So a limit changes at most once per round trip, and no
//! single call moves it. After a cut, calls that began before it are ignored: they reflect the limit that was already
//! cut, and would cut it twice.
//!
//! Of the calls that began since then, the short ones end first. Where latency is measured, a round therefore waits
//! until nearly all of the first calls can have ended, and measures from then on. Otherwise a mix of short and long
//! calls would look fast after each cut and slow later.

use super::lengths::Lengths;
use super::mean::{Latency, Mean};
use super::{Outcome, Sample};
use crate::time::{Ticks, Timestamp};

/// The least number of calls in a round; fewer are not significant, even with a lower limit.
const LEAST_CALLS: u64 = 16;

/// The longest wait for long calls, in rounds of short ones.
const LONGEST_WAIT: u64 = 32;

/// The calls that have ended since the round began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// The start of the round. Calls that began before it are ignored.
    since: Timestamp,
    /// The time until which only short calls can have ended; latency is not measured before it.
    waits_until: Option<Timestamp>,
    /// The number of calls that ended during the wait.
    waited: u64,
    done: u64,
    lost: u64,
    mean: Mean,
    peak: u64,
    lengths: Lengths,
    /// The lengths of the previous round.
    known_lengths: Lengths,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundTally {
    /// The latency of the calls; `None` if none was answered.
    pub(super) latency: Option<Latency>,
    pub(super) done: u64,
    pub(super) lost: u64,
    /// The length in rounds, including the wait for long calls.
    pub(super) rounds: u64,
    /// The largest number in flight.
    pub(super) peak: u64,
}

impl Round {
    /// Ignores the calls that began before now, because the limit was cut.
    pub(super) fn forget_before(&mut self, now: Timestamp) {
        *self = Round { since: now, known_lengths: self.lengths(), ..Round::default() };
    }

    /// Ignores the calls that began before now, and measures only when the long calls that begin now can have ended.
    pub(super) fn forget_and_wait(&mut self, now: Timestamp) {
        self.forget_before(now);
        self.waits_until = Some(now.saturating_add(self.known_lengths.of_nearly_all()));
    }

    /// Adds a call. Returns the tally if the call completes a round of this limit.
    pub(super) fn add(&mut self, sample: Sample, limit: u64) -> Option<RoundTally> {
        if sample.now < self.since {
            // The clock was set back: no call began after a time in the future.
            self.forget_before(sample.now);
        }
        if sample.now.saturating_sub(sample.latency) < self.since {
            return None;
        }
        let needed = limit.max(LEAST_CALLS);
        self.end_wait(sample.now, needed);
        match sample.outcome {
            Outcome::Done => self.answered(sample.latency),
            Outcome::Overloaded => self.lost += 1,
            Outcome::Failed | Outcome::Ignored => return None,
        }
        self.peak = self.peak.max(sample.in_flight);
        self.is_over(needed).then(|| self.take())
    }

    fn answered(&mut self, latency: Ticks) {
        self.done += 1;
        if self.waits_until.is_none() {
            self.mean.add(latency);
            self.lengths.add(latency);
        }
    }

    /// Begins to measure, if the wait is over.
    fn end_wait(&mut self, now: Timestamp, needed: u64) {
        let ended = self.done + self.lost;
        if self.waits_until.is_some_and(|until| until <= now || ended >= needed.saturating_mul(LONGEST_WAIT))
        {
            let (since, known_lengths) = (self.since, self.known_lengths);
            *self = Round { since, known_lengths, waited: ended, ..Round::default() };
        }
    }

    fn is_over(&self, needed: u64) -> bool {
        let ended = self.done + self.lost;
        if self.waits_until.is_some() {
            // Losses need no latency measurement.
            return self.lost > needed / 2 && self.lost > ended / 4;
        }
        ended >= needed || self.lost > needed / 2
    }

    fn take(&mut self) -> RoundTally {
        let ended = self.done + self.lost;
        let tally = RoundTally {
            latency: self.mean.latency(),
            done: self.done,
            lost: self.lost,
            rounds: 1 + self.waited / ended.max(1),
            peak: self.peak,
        };
        *self = Round { since: self.since, known_lengths: self.lengths(), ..Round::default() };
        tally
    }

    /// Returns the known lengths of calls.
    fn lengths(&self) -> Lengths {
        if self.lengths.is_empty() { self.known_lengths } else { self.lengths }
    }
}

impl RoundTally {
    /// Returns true if more than this share was lost; a single lost call never suffices.
    pub(super) fn is_lossy(&self, percent: u64) -> bool {
        let all = u128::from(self.done) + u128::from(self.lost);
        self.lost > 1 && u128::from(self.lost) * 100 > all * u128::from(percent)
    }

    /// Returns true if the usual latency was longer than this.
    pub(super) fn is_slow(&self, longest: Ticks) -> bool {
        self.latency.is_some_and(|latency| latency.usual > longest)
    }

    /// Returns the percentage of calls that were answered.
    pub(super) fn answered_percent(&self) -> u64 {
        let all = u128::from(self.done) + u128::from(self.lost);
        let percent = (u128::from(self.done) * 100).checked_div(all).unwrap_or(100);
        u64::try_from(percent).unwrap_or(100)
    }

    /// Returns true if at least half of the limit was used, so that a higher limit may help.
    pub(super) fn is_near(&self, limit: u64) -> bool {
        self.peak.saturating_mul(2) >= limit
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    fn at(now: u64, latency: u64, outcome: Outcome) -> Sample {
        let (now, latency) = (Timestamp::from_ticks(now), Ticks::new(latency));
        Sample { now, latency, in_flight: 7, outcome }
    }

    #[test]
    fn a_round_has_as_many_calls_as_may_be_in_flight_and_at_least_sixteen() {
        for (limit, needed) in [(1, 16), (16, 16), (17, 17), (1000, 1000)] {
            let mut round = Round::default();
            let ended = (1..).find(|_| round.add(at(100, 50, Outcome::Done), limit).is_some());
            assert_eq!(ended, Some(needed));
        }
    }

    #[test]
    fn a_round_of_which_most_is_lost_is_over_early() {
        let mut round = Round::default();
        round.add(at(100, 50, Outcome::Done), 100);
        let tally = (0..51).find_map(|_| round.add(at(100, 50, Outcome::Overloaded), 100)).unwrap();
        assert_eq!((tally.done, tally.lost, tally.peak), (1, 51, 7));
        assert!(tally.is_lossy(97) && !tally.is_lossy(99));
        assert_eq!(tally.answered_percent(), 1);
    }

    #[test]
    fn outcomes_unrelated_to_load_are_not_counted() {
        let mut round = Round::default();
        for outcome in [Outcome::Failed, Outcome::Ignored] {
            assert!((0..100).all(|_| round.add(at(100, 50, outcome), 1).is_none()));
        }
    }

    #[test]
    fn calls_that_began_before_a_cut_are_left_out() {
        let mut round = Round::default();
        round.forget_before(Timestamp::from_ticks(1000));
        assert!((0..100).all(|_| round.add(at(1500, 501, Outcome::Overloaded), 1).is_none()));
        assert!((0..100).any(|_| round.add(at(1500, 500, Outcome::Overloaded), 1).is_some()));
    }

    /// Returns a round that begins at 10,000, after a round in which one call in four took 1000 and the others 10.
    fn waiting() -> Round {
        let mut round = Round::default();
        let lengths = (0..16).map(|call| if call % 4 == 0 { 1000 } else { 10 });
        let tally = lengths.filter_map(|took| round.add(at(9000, took, Outcome::Done), 16)).next();
        assert_eq!(tally.map(|tally| (tally.done, tally.rounds)), Some((16, 1)));
        round.forget_and_wait(Timestamp::from_ticks(10_000));
        round
    }

    #[test]
    fn calls_that_end_before_the_long_ones_can_have_ended_are_not_measured() {
        let mut round = waiting();
        assert!((0..40).all(|_| round.add(at(11_023, 10, Outcome::Done), 16).is_none()));
        let tally = (0..16).find_map(|_| round.add(at(11_024, 1000, Outcome::Done), 16)).unwrap();
        assert_eq!(tally.latency, Some(Latency::exactly(1000)));
        assert_eq!((tally.done, tally.rounds), (16, 3), "40 and 16 are three rounds of 16, rounded down");
    }

    #[test]
    fn it_waits_for_long_calls_no_longer_than_for_32_rounds_of_short_ones() {
        let mut round = waiting();
        let ended = (1..).find(|_| round.add(at(10_010, 10, Outcome::Done), 16).is_some());
        assert_eq!(ended, Some(32 * 16 + 16));
    }

    #[test]
    fn a_usual_loss_during_the_wait_does_not_count_in_the_measurement() {
        let mut round = waiting();
        for _ in 0..20 {
            assert!((0..9).all(|_| round.add(at(10_100, 10, Outcome::Done), 16).is_none()));
            assert!(round.add(at(10_100, 100, Outcome::Overloaded), 16).is_none());
        }
        let tally = (0..16).find_map(|_| round.add(at(11_024, 10, Outcome::Done), 16)).unwrap();
        assert_eq!((tally.done, tally.lost), (16, 0));
    }

    #[test]
    fn a_heavy_loss_ends_the_wait() {
        let mut round = waiting();
        assert!((0..20).all(|_| round.add(at(10_100, 10, Outcome::Done), 16).is_none()));
        let tally = (0..9).find_map(|_| round.add(at(10_100, 100, Outcome::Overloaded), 16)).unwrap();
        assert_eq!((tally.done, tally.lost, tally.latency), (20, 9, None));
    }

    #[test]
    fn a_clock_that_goes_back_does_not_end_all_rounds() {
        let mut round = Round::default();
        round.forget_before(Timestamp::from_ticks(1000));
        assert!((0..100).any(|_| round.add(at(10, 0, Outcome::Done), 1).is_some()));
    }
}
