//! Time as a linear function of a counter, for a twentieth of a second.
//!
//! A line has an end, after which it is not read, and the next line starts at least as high as it ended. So the values
//! of all lines together never go back, whichever line a reader still holds. The error that a line would have after its
//! end does not matter.

use super::{PER_SECOND, Ticks, Timestamp};

/// The validity of a line, in ticks of the system's clock.
pub(super) const SPAN: u64 = PER_SECOND / 20;

/// The fractional bits of a slope. A span with these bits still fits in 64 bits.
const FRACTION: u32 = 32;

/// The time at each value of a counter, from a first value on, for a number of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockSegment {
    since: u64,
    counts: u64,
    base: Timestamp,
    slope: u64,
}

impl ClockSegment {
    /// The line that covers no value.
    pub(super) const NONE: ClockSegment =
        ClockSegment { since: 0, counts: 0, base: Timestamp::EPOCH, slope: 0 };

    /// Creates the line that starts at `from`, which is ahead of the system's clock by `lead`. It rises slightly less
    /// than the slope, so that it has lost its lead by its end; but at least half as much.
    pub(super) fn new(from: Pair, slope: Slope, lead: Ticks) -> ClockSegment {
        let lost = u128::from(slope.0) * u128::from(lead.get().min(SPAN / 2)) / u128::from(SPAN);
        ClockSegment {
            since: from.counter,
            counts: (SPAN << FRACTION) / slope.0,
            base: from.time,
            slope: slope.0 - lost as u64,
        }
    }

    /// Returns the time at this value of the counter, if the line covers it.
    #[inline]
    pub(super) fn at(self, counter: u64) -> Option<Timestamp> {
        let counts = counter.wrapping_sub(self.since);
        (counts < self.counts).then(|| self.after(counts))
    }

    /// Returns the end, if the counter has passed it by less than the length of the line.
    #[inline]
    pub(super) fn just_ended(self, counter: u64) -> Option<Timestamp> {
        let past = counter.wrapping_sub(self.since).wrapping_sub(self.counts);
        (past < self.counts).then(|| self.end())
    }

    /// Returns the end. All times of the line are before it.
    #[inline]
    pub(super) fn end(self) -> Timestamp {
        self.after(self.counts)
    }

    #[inline]
    fn after(self, counts: u64) -> Timestamp {
        // Callers pass at most the counts of the line; these make at most a span, which fits.
        self.base.saturating_add(Ticks::new(counts.wrapping_mul(self.slope) >> FRACTION))
    }

    pub(super) fn to_words(self) -> [u64; 4] {
        [self.since, self.counts, self.base.ticks(), self.slope]
    }

    #[inline]
    pub(super) fn from_words([since, counts, base, slope]: [u64; 4]) -> ClockSegment {
        ClockSegment { since, counts, base: Timestamp::from_ticks(base), slope }
    }
}

/// A value of the counter, and the time at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) counter: u64,
    pub(super) time: Timestamp,
}

/// The time of one count, in ticks with a fraction. It is at least one tick, because no counter makes more than 16
/// counts per nanosecond. A smaller value means that the counter jumped; a line over it would be valid for hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slope(u64);

impl Slope {
    /// Returns the slope between two pairs, or `None` if the counter went back, stood still or was too fast.
    pub(super) fn between(from: Pair, to: Pair) -> Option<Slope> {
        let counts = to.counter.checked_sub(from.counter)?;
        let slope =
            (u128::from(to.time.since(from.time).get()) << FRACTION).checked_div(u128::from(counts))?;
        u64::try_from(slope).ok().filter(|slope| *slope >= 1 << FRACTION).map(Slope)
    }

    /// Returns the time of so many counts.
    pub(super) fn time_of(self, counts: u64) -> Ticks {
        let ticks = (u128::from(self.0) * u128::from(counts)) >> FRACTION;
        Ticks::new(u64::try_from(ticks).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Pair = Pair { counter: 1000, time: Timestamp::from_ticks(5) };

    /// Returns the slope of a counter of so many counts per second.
    fn slope(frequency: u64) -> Slope {
        let second = Pair { counter: frequency, time: Timestamp::from_ticks(PER_SECOND) };
        Slope::between(Pair { counter: 0, time: Timestamp::EPOCH }, second).expect("a counter that counts")
    }

    #[test]
    fn a_line_holds_for_fifty_milliseconds_from_its_start_on() {
        let line = ClockSegment::new(START, slope(1_000_000), Ticks::ZERO);
        assert_eq!(line.at(999), None);
        assert_eq!(line.at(1000), Some(START.time));
        assert_eq!(line.at(1001), Some(Timestamp::from_ticks(5 + 16_000)));
        assert_eq!(line.at(50_999), Some(Timestamp::from_ticks(5 + SPAN - 16_000)));
        assert_eq!(line.at(51_000), None);
        assert_eq!(line.end(), Timestamp::from_ticks(5 + SPAN));
    }

    #[test]
    fn every_frequency_is_converted_to_the_tick() {
        for frequency in [1_000_000, 24_000_000, 999_999_937, 2_600_000_000, 6_000_000_000] {
            let line = ClockSegment::new(START, slope(frequency), Ticks::ZERO);
            for millisecond in 0..50 {
                let shown = line.at(1000 + frequency * millisecond / 1000).expect("a line of 50 ms");
                let exact = frequency * millisecond / 1000 * 16 * 125_000_000 / (frequency / 8) + 5;
                assert!(shown.ticks().abs_diff(exact) <= 2, "{frequency} {millisecond} {shown:?} {exact}");
            }
        }
    }

    #[test]
    fn a_line_that_is_ahead_has_lost_its_lead_by_its_end() {
        let lead = Ticks::new(SPAN / 10);
        let line = ClockSegment::new(START, slope(1_000_000_000), lead);
        assert_eq!(line.end(), Timestamp::from_ticks(5 + SPAN - SPAN / 10));
        assert_eq!(line.at(1000 + 50_000_000), None);
    }

    #[test]
    fn a_line_far_ahead_rises_half_as_steeply() {
        for lead in [Ticks::new(SPAN / 2), Ticks::new(SPAN), Ticks::MAX] {
            let line = ClockSegment::new(START, slope(1_000_000_000), lead);
            assert_eq!(line.end(), Timestamp::from_ticks(5 + SPAN / 2));
        }
    }

    #[test]
    fn a_line_goes_on_where_its_counter_begins_anew() {
        let line = ClockSegment::new(Pair { counter: u64::MAX, ..START }, slope(1_000_000), Ticks::ZERO);
        assert_eq!(line.at(u64::MAX), Some(START.time));
        assert_eq!(line.at(0), Some(Timestamp::from_ticks(5 + 16_000)));
    }

    #[test]
    fn the_last_line_stops_where_time_ends() {
        let late = Pair { counter: 0, time: Timestamp::from_ticks(u64::MAX - 1) };
        let line = ClockSegment::new(late, slope(1_000_000_000), Ticks::ZERO);
        assert_eq!(line.at(1), Some(Timestamp::LAST));
        assert_eq!(line.end(), Timestamp::LAST);
    }

    #[test]
    fn the_steepest_and_the_flattest_slope_make_lines() {
        let flattest = ClockSegment::new(START, slope(PER_SECOND), Ticks::ZERO);
        assert_eq!(flattest.at(1001), Some(Timestamp::from_ticks(5 + 1)));
        assert_eq!(flattest.end(), Timestamp::from_ticks(5 + SPAN));
        let steepest = Slope(u64::MAX);
        assert_eq!(steepest.time_of(u64::MAX), Ticks::MAX);
        for lead in [Ticks::ZERO, Ticks::MAX] {
            assert_eq!(ClockSegment::new(START, steepest, lead).at(1000), None);
        }
    }

    #[test]
    fn a_counter_that_stands_goes_back_or_races_has_no_slope() {
        let later = |counter, ticks| Pair { counter, time: Timestamp::from_ticks(ticks) };
        assert_eq!(Slope::between(START, START), None);
        assert_eq!(Slope::between(START, later(1000, 6)), None);
        assert_eq!(Slope::between(START, later(999, 6)), None);
        assert_eq!(Slope::between(START, later(1001, 5)), None);
        assert_eq!(Slope::between(START, later(1001, 4)), None);
        assert_eq!(Slope::between(START, later(1001, u64::MAX)), None);
        assert_eq!(Slope::between(START, later(1002, 6)), None);
        assert_eq!(Slope::between(START, later(1002, 7)), Some(Slope(1 << FRACTION)));
    }

    #[test]
    fn no_line_holds_nowhere() {
        assert_eq!(ClockSegment::NONE.at(0), None);
        assert_eq!(ClockSegment::NONE.at(u64::MAX), None);
    }

    #[test]
    fn a_line_comes_back_from_its_words() {
        let line = ClockSegment::new(START, slope(3_000_000), Ticks::new(7));
        assert_eq!(ClockSegment::from_words(line.to_words()), line);
    }
}
