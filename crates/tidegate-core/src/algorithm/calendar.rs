//! Calendar: a counter per hour, day, week, month or year of a time zone's wall clock.
//!
//! ```text
//!   limit 3 per day in New York
//!      x x x - -               x x x                   x = allowed   - = denied
//!   |-----------24 h----------|-----------23 h---------|-----------24 h----------|---> time
//!   00:00                     00:00   02:00 -> 03:00   00:00
//! ```
//!
//! At most `amount` units pass per period. Periods begin when the wall clock of the zone says so, see
//! [`CalendarPeriods`]; so `reset_after` is the exact end, also of a day of 23 hours. Around a boundary up to twice the
//! amount can pass within a short time.
//!
//! It is a [fixed window](super::fixed_window) with other boundaries. So the rule for a clock that steps back is the
//! same: the period in force stays in force until its end, and a period that was spent is not opened again. Only if it
//! ends more than two of the longest periods ahead, the count moves to the first end that is a whole period away;
//! otherwise every caller would wait for the length of the step.
//!
//! The one-word form is that of a fixed window. Periods end at whole seconds, and only one whole second is within a
//! unit before the rounded end, so the form is exact.

use super::fixed_window::{WindowCounter, Windows, most_counted};
use crate::limit::Problem;
use crate::time::{CalendarPeriods, SECOND, Ticks, Timestamp};

/// The numbers of a calendar limit.
#[doc(alias("quota", "billing period"))]
pub type Calendar = WindowCounter<CalendarPeriods>;

impl Calendar {
    pub(crate) const fn new(
        amount: u64,
        periods: CalendarPeriods,
        max_debt: u64,
    ) -> Result<Calendar, Problem> {
        match most_counted(amount, max_debt) {
            Ok(most) => Ok(Calendar { amount, windows: periods, most }),
            Err(problem) => Err(problem),
        }
    }

    /// Returns the most units that pass within a closed interval: the amount in each period that it can touch.
    pub(crate) fn worst_case(&self, span: Ticks) -> u128 {
        u128::from(self.amount) * self.windows.most_within(span)
    }
}

impl Windows for CalendarPeriods {
    fn end_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.period_at(now).map(|period| period.end)
    }

    fn whole_end_after(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.end_after(now)?;
        if self.begins_at(now) { Some(end) } else { self.end_after(end) }
    }

    fn begin_of(&self, now: Timestamp) -> Timestamp {
        self.period_at(now).map_or(now, |period| period.start)
    }

    fn longest(&self) -> Ticks {
        self.longest_period()
    }

    fn grain(&self) -> Ticks {
        Ticks::saturating_from(SECOND)
    }

    fn opens_with_hit(&self) -> bool {
        false
    }

    fn pack(&self) -> [u64; 2] {
        CalendarPeriods::pack(self)
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::algorithm::OneWord as _;
    use crate::algorithm::fixed_window::Window;
    use crate::time::{CalendarUnit, TimeZone};
    use crate::{Algorithm, Ask, Cost, DAY, HOUR, Limit, LimitBuilder, Predecessor, State, Verdict};

    fn limit(amount: u64, periods: CalendarPeriods) -> Limit {
        LimitBuilder::calendar(amount, periods).build().expect("a valid limit")
    }

    fn at(since_epoch: std::time::Duration) -> Timestamp {
        Timestamp::after_epoch(since_epoch)
    }

    #[test]
    fn a_period_comes_out_of_its_word_as_it_went_in() {
        let zone = TimeZone::new("Test/Word", -(3 * 3600 + 30 * 60 + 52), []).unwrap();
        for unit in CalendarUnit::ALL {
            let limit = Calendar::new(1000, CalendarPeriods::new(unit).in_zone(zone), 1000).unwrap();
            assert!(limit.fits_word());
            let mut end = Timestamp::EPOCH;
            for _ in 0..30 {
                end = limit.windows.end_after(end).unwrap();
                for count in [0, 1, 2000] {
                    let state = Window { end, count };
                    assert_eq!(limit.state_of_word(limit.word_of(&state)), state);
                }
            }
        }
        assert!(
            !Calendar::new(1 << 23, CalendarPeriods::new(CalendarUnit::Day), 1 << 23).unwrap().fits_word()
        );
    }

    #[test]
    fn a_clock_that_steps_back_keeps_the_period_in_force_and_opens_the_next_once() {
        let limit = limit(3, CalendarPeriods::new(CalendarUnit::Day));
        let mut state = State::default();
        let take = |state: &mut State, now: Timestamp| limit.decide(state, now, Ask::ONE).is_allowed();
        // Ten minutes into the third day everything is spent, then the clock shows the second day.
        let noted = 2 * DAY + HOUR / 6;
        assert!((0..3).all(|_| take(&mut state, at(noted))));
        for back in [HOUR, 12 * HOUR, DAY] {
            let denied = limit.decide(&mut state, at(noted - back), Ask::ONE);
            let expected = Ticks::saturating_from(3 * DAY - (noted - back));
            assert_eq!(denied.verdict_in_ticks(), Verdict::Denied { retry_after: expected });
        }
        assert!(!take(&mut state, at(3 * DAY - HOUR)));
        assert!((0..3).all(|_| take(&mut state, at(3 * DAY))));
        assert!(!take(&mut state, at(3 * DAY)));
    }

    #[test]
    fn a_clock_that_steps_back_far_keeps_the_count_for_a_whole_period() {
        let limit = limit(3, CalendarPeriods::new(CalendarUnit::Day));
        let mut state = State::default();
        let all = Ask::new(Cost::of(3));
        assert!(limit.decide(&mut state, at(30 * DAY + HOUR), all).is_allowed());
        let denied = limit.decide(&mut state, at(2 * DAY + HOUR), all);
        assert_eq!(denied.verdict(), Verdict::Denied { retry_after: 2 * DAY - HOUR });
        assert!(!limit.decide(&mut state, at(4 * DAY - HOUR), all).is_allowed());
        assert!(limit.decide(&mut state, at(4 * DAY), all).is_allowed());
    }

    #[test]
    fn another_zone_or_first_day_carries_the_count_into_the_current_period() {
        let east = TimeZone::new("Test/East", 9 * 3600, []).unwrap();
        let days = CalendarPeriods::new(CalendarUnit::Day);
        let (old, new) = (limit(5, days), limit(5, days.in_zone(east)));
        let (mut state, now) = (State::default(), at(DAY + 10 * HOUR));
        assert!(old.decide(&mut state, now, Ask::new(Cost::of(5))).is_allowed());
        let carried = new.carry(&old, &state, now);
        let denied = new.peek(&carried, now, Ask::ONE);
        assert_eq!(denied.verdict(), Verdict::Denied { retry_after: 5 * HOUR });
        assert_eq!(old.carry(&new, &carried, now + Ticks::saturating_from(6 * HOUR)), State::default());
    }

    #[test]
    fn numbers_restore_the_limit_also_in_a_zone_that_is_not_known() {
        let zone = TimeZone::new("Test/Numbers", 60, []).unwrap();
        let limit =
            limit(5, CalendarPeriods::new(CalendarUnit::Month).from_day_of_month(15).unwrap().in_zone(zone));
        let read = Predecessor::from_numbers(Algorithm::Calendar, limit.numbers(), Timestamp::EPOCH);
        assert_eq!(read, Some(Predecessor::new(&limit, Timestamp::EPOCH)));
        let [amount, first, _, most, rest] = limit.numbers();
        let unknown =
            Predecessor::from_numbers(Algorithm::Calendar, [amount, first, 1, most, rest], Timestamp::EPOCH);
        assert_ne!(unknown.unwrap(), Predecessor::new(&limit, Timestamp::EPOCH));
        for wrong in
            [[5, 9, 0, 10, 0], [5, 1, 0, 4, 0], [5, 1, 0, 10, 1], [5, 1, 0, u64::MAX, 0], [0, 1, 0, 0, 0]]
        {
            assert_eq!(
                Predecessor::from_numbers(Algorithm::Calendar, wrong, Timestamp::EPOCH),
                None,
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn the_last_period_before_the_end_of_time_admits_nothing() {
        let limit = limit(3, CalendarPeriods::new(CalendarUnit::Hour));
        let mut state = State::default();
        let denied = limit.decide(&mut state, Timestamp::LAST, Ask::ONE);
        assert_eq!((denied.verdict_in_ticks(), denied.remaining()), (Verdict::Impossible, 0));
        assert_eq!(limit.peek(&state, Timestamp::LAST, Ask::ONE), denied);
    }
}
