//! Calendar periods: the hours, days, weeks, months and years of the wall clock of a time zone.
//!
//! A period begins at the first instant at which the zone's clock shows its beginning or a later time:
//!
//! ```text
//!   clock of the zone   23:00      00:00 | 01:00      01:59 | 01:00      01:59 | 02:00
//!   days                ---------->|<----------------------------------------------------
//!   hours               -- 23 ---->|<-- 00 ->|<------------- 01 -------------->|<-- 02 --
//! ```
//!
//! So each period of the calendar begins once. An hour that the clock repeats in autumn is one period of two hours. An
//! hour or a day that the clock skips has no length. A clock that is set back never reopens a period.
//!
//! Times are those of a store: ticks since 2024-01-01T00:00Z.

use super::boot::EPOCH;
use super::{PER_SECOND, Ticks, TimeZone, Timestamp};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The time since 1970 at which a store's time begins, in seconds.
const STORE_EPOCH: i64 = EPOCH.as_secs() as i64;

/// The time since 1970 at which a store's time ends, rounded up to a year, in seconds.
const STORE_END: i64 = STORE_EPOCH + 37 * 366 * DAY;

/// A unit of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarUnit {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A week, from Monday unless set.
    Week,
    /// A month, from the first day unless set.
    Month,
    /// A year, from January 1 unless set.
    Year,
}

impl CalendarUnit {
    /// All units, the shortest first.
    pub const ALL: [CalendarUnit; 5] =
        [CalendarUnit::Hour, CalendarUnit::Day, CalendarUnit::Week, CalendarUnit::Month, CalendarUnit::Year];

    /// Returns the name in the text of a limit.
    pub const fn name(self) -> &'static str {
        match self {
            CalendarUnit::Hour => "hour",
            CalendarUnit::Day => "day",
            CalendarUnit::Week => "week",
            CalendarUnit::Month => "month",
            CalendarUnit::Year => "year",
        }
    }

    /// Returns the least and the largest length in seconds, in a zone whose clock is never set.
    const fn lengths(self) -> [i64; 2] {
        match self {
            CalendarUnit::Hour => [HOUR, HOUR],
            CalendarUnit::Day => [DAY, DAY],
            CalendarUnit::Week => [7 * DAY, 7 * DAY],
            CalendarUnit::Month => [28 * DAY, 31 * DAY],
            CalendarUnit::Year => [365 * DAY, 366 * DAY],
        }
    }

    /// Returns the first day of a period, unless another one is set.
    const fn first_day(self) -> u16 {
        match self {
            CalendarUnit::Hour | CalendarUnit::Day | CalendarUnit::Week => 0,
            CalendarUnit::Month => 1,
            CalendarUnit::Year => in_year(1, 1),
        }
    }
}

/// Returns the number of a first day of a year.
const fn in_year(month: u8, day: u8) -> u16 {
    month as u16 * 32 + day as u16
}

/// The hours, days, weeks, months or years of a time zone.
///
/// ```
/// use tidegate::{CalendarPeriods, CalendarUnit, Timestamp, DAY};
///
/// let months = CalendarPeriods::new(CalendarUnit::Month).from_day_of_month(31).expect("a day of a month");
/// // The time of a store begins with the year 2024.
/// let january = months.period_at(Timestamp::EPOCH).expect("it is representable");
/// assert_eq!(january, Timestamp::EPOCH..Timestamp::after_epoch(30 * DAY));
/// let february = months.period_at(january.end).expect("it is representable");
/// assert_eq!(february.end, Timestamp::after_epoch((31 + 28) * DAY)); // the last day of February
/// ```
#[doc(alias("quota", "billing period"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CalendarPeriods {
    unit: CalendarUnit,
    /// The first day: of a week from 0, Monday; of a month from 1; of a year by [`in_year`]. Zero for hours and days.
    first_day: u16,
    zone: TimeZone,
}

impl CalendarPeriods {
    /// Creates the periods of UTC with the usual first day: weeks from Monday, months from the first, years from
    /// January 1.
    pub const fn new(unit: CalendarUnit) -> CalendarPeriods {
        CalendarPeriods { unit, first_day: unit.first_day(), zone: TimeZone::UTC }
    }

    /// Returns the same periods in another time zone.
    #[must_use]
    pub const fn in_zone(self, zone: TimeZone) -> CalendarPeriods {
        CalendarPeriods { zone, ..self }
    }

    /// Returns weeks that begin with this day, 0 for Monday to 6. `None` for other units and days.
    pub const fn from_day_of_week(self, day: u8) -> Option<CalendarPeriods> {
        match self.unit {
            CalendarUnit::Week if day < 7 => Some(CalendarPeriods { first_day: day as u16, ..self }),
            _ => None,
        }
    }

    /// Returns months that begin with this day, 1 to 31; in a shorter month with its last day. `None` for other units
    /// and days.
    pub const fn from_day_of_month(self, day: u8) -> Option<CalendarPeriods> {
        match self.unit {
            CalendarUnit::Month if day >= 1 && day <= 31 => {
                Some(CalendarPeriods { first_day: day as u16, ..self })
            }
            _ => None,
        }
    }

    /// Returns years that begin with this day; from February 29 with the 28th in other years. `None` for other units,
    /// and for days that no year has.
    pub const fn from_day_of_year(self, month: u8, day: u8) -> Option<CalendarPeriods> {
        const LEAP_YEAR: i64 = 2024;
        if !matches!(self.unit, CalendarUnit::Year) || month < 1 || month > 12 || day < 1 {
            return None;
        }
        if day as i64 > days_in(LEAP_YEAR, month as i64) {
            return None;
        }
        Some(CalendarPeriods { first_day: in_year(month, day), ..self })
    }

    /// Returns the unit.
    pub const fn unit(&self) -> CalendarUnit {
        self.unit
    }

    /// Returns the time zone.
    pub const fn zone(&self) -> TimeZone {
        self.zone
    }

    /// Returns the month and the day with which a period begins, if it is not the usual one: of a week the day from 0,
    /// Monday; of a month the day. The month is 0 except for years.
    pub(crate) fn set_first_day(&self) -> Option<(u16, u16)> {
        let day = match self.unit {
            CalendarUnit::Year => (self.first_day / 32, self.first_day % 32),
            _ => (0, self.first_day),
        };
        (self.first_day != self.unit.first_day()).then_some(day)
    }

    /// Returns the unit and the first day as one number, and the digest of the zone. They name states.
    pub(crate) const fn pack(&self) -> [u64; 2] {
        [self.unit as u64 | (self.first_day as u64) << 8, self.zone.digest()]
    }

    /// Restores the periods of [`CalendarPeriods::pack`]. Returns `None` for numbers that no periods have.
    pub(crate) fn unpack([numbers, zone]: [u64; 2]) -> Option<CalendarPeriods> {
        let unit = CalendarUnit::ALL.into_iter().find(|unit| *unit as u64 == numbers & 0xff)?;
        let (plain, first_day) = (CalendarPeriods::new(unit), u16::try_from(numbers >> 8).ok()?);
        let day = u8::try_from(first_day % 32).ok()?;
        let periods = match unit {
            CalendarUnit::Hour | CalendarUnit::Day => (first_day == 0).then_some(plain),
            CalendarUnit::Week => plain.from_day_of_week(u8::try_from(first_day).ok()?),
            CalendarUnit::Month => plain.from_day_of_month(u8::try_from(first_day).ok()?),
            CalendarUnit::Year => plain.from_day_of_year(u8::try_from(first_day / 32).ok()?, day),
        };
        periods.map(|periods| periods.in_zone(TimeZone::of_digest(zone)))
    }

    /// Returns the length of the longest period, if the zone's clock is never set.
    pub(crate) const fn nominal(&self) -> Ticks {
        let [_, longest] = self.unit.lengths();
        Ticks::new(longest as u64 * PER_SECOND)
    }

    /// Returns a length that no period exceeds.
    pub fn longest_period(&self) -> Ticks {
        let steps_back = u64::from(self.zone.largest_step_back()) * PER_SECOND;
        self.nominal().saturating_add(Ticks::new(steps_back))
    }

    /// Returns the most periods that a closed interval of this length has an instant of, within the time of a store.
    ///
    /// The worst interval begins with the last instant of a period. It costs a walk over the periods of a store's time; for
    /// hours, of those near a change of the zone's clock, because all others have one length.
    pub(crate) fn most_within(&self, span: Ticks) -> u128 {
        if span == Ticks::ZERO {
            return 1;
        }
        let of_one_length = span.get().div_ceil(self.nominal().get()) + 1;
        let near = i64::try_from(span.get().div_ceil(PER_SECOND)).unwrap_or(i64::MAX);
        let whole = STORE_EPOCH..STORE_END;
        let most = if self.unit == CalendarUnit::Hour {
            let changes = self.zone.changes_within(whole);
            let around = |at: i64| {
                let first = at.saturating_sub(near).saturating_sub(2 * HOUR).max(STORE_EPOCH);
                first..at.saturating_add(near).saturating_add(2 * HOUR).min(STORE_END)
            };
            changes.map(|at| self.most_in(around(at), span)).max().unwrap_or(0)
        } else {
            self.most_in(whole, span)
        };
        u128::from(most.max(if self.has_one_length() { of_one_length } else { 2 }))
    }

    /// Returns true if all periods have one length in a zone whose clock is never set.
    fn has_one_length(&self) -> bool {
        let [least, longest] = self.unit.lengths();
        least == longest
    }

    /// Returns the most periods that an interval of this length has an instant of, if it begins in this stretch.
    fn most_in(&self, stretch: std::ops::Range<i64>, span: Ticks) -> u64 {
        let (mut begins, mut at) = (Vec::new(), stretch.start);
        while at < stretch.end {
            let period = self.period_of(at);
            begins.push(period.end);
            at = period.end;
        }
        // The interval has the last tick before a beginning, and all beginnings up to its end.
        let (mut most, mut last) = (1, 0);
        for (first, begin) in begins.iter().enumerate() {
            let is_within = |other: &i64| {
                let ticks = u128::from(other.abs_diff(*begin)) * u128::from(PER_SECOND);
                ticks < u128::from(span.get())
            };
            while begins.get(last).is_some_and(is_within) {
                last += 1;
            }
            most = most.max((last - first) as u64 + 1);
        }
        most
    }

    /// Returns the period of an instant, from its beginning to the beginning of the next, in seconds since 1970.
    pub fn period_of(&self, since_1970: i64) -> std::ops::Range<i64> {
        let mut local = self.start_of(self.zone.local(since_1970));
        let mut begin = self.zone.first_at_or_after(local);
        loop {
            let next = self.next_start(local);
            let end = self.zone.first_at_or_after(next);
            // The zone's clock may have been set back since a later period began.
            if end > since_1970 {
                return begin..end;
            }
            (local, begin) = (next, end);
        }
    }

    /// Returns the period of an instant of a store. `None` if its end is not representable. One that begins before
    /// 2024 begins with the epoch.
    ///
    /// A store with a clock of its own has the epoch that the clock says.
    pub fn period_at(&self, at: Timestamp) -> Option<std::ops::Range<Timestamp>> {
        if !self.zone.is_resolved() {
            // The offsets are unknown, so the period may have begun now.
            return Some(at..at.checked_add(self.nominal())?);
        }
        let seconds = i64::try_from(at.ticks() / PER_SECOND).ok()?;
        let period = self.period_of(STORE_EPOCH.checked_add(seconds)?);
        let [begin, end] = [period.start, period.end]
            .map(|at| u64::try_from(at - STORE_EPOCH).unwrap_or(0).checked_mul(PER_SECOND));
        Some(Timestamp::from_ticks(begin?)..Timestamp::from_ticks(end?))
    }

    /// Returns true if a period begins at exactly this instant of a store.
    pub(crate) fn begins_at(&self, at: Timestamp) -> bool {
        let seconds =
            i64::try_from(at.ticks() / PER_SECOND).map_or(i64::MAX, |seconds| seconds + STORE_EPOCH);
        at.ticks() % PER_SECOND == 0 && self.period_of(seconds).start == seconds
    }

    /// Returns the beginning of the period of a local time.
    fn start_of(&self, local: i64) -> i64 {
        let day = local.div_euclid(DAY);
        let first = i64::from(self.first_day);
        match self.unit {
            CalendarUnit::Hour => local.div_euclid(HOUR) * HOUR,
            CalendarUnit::Day => day * DAY,
            // 1970 began on a Thursday.
            CalendarUnit::Week => (day - (day + 3 - first).rem_euclid(7)) * DAY,
            CalendarUnit::Month => {
                let date = Date::of_day(day);
                let start = date.with_day(first);
                if start.day > date.day { date.month_after(-1).with_day(first) } else { start }.to_day() * DAY
            }
            CalendarUnit::Year => {
                let date = Date::of_day(day);
                let start = self.year_from(date.year);
                if start.to_day() > day { self.year_from(date.year - 1) } else { start }.to_day() * DAY
            }
        }
    }

    /// Returns the beginning of the period after the one that begins at this local time.
    fn next_start(&self, start: i64) -> i64 {
        match self.unit {
            CalendarUnit::Hour => start.saturating_add(HOUR),
            CalendarUnit::Day => start.saturating_add(DAY),
            CalendarUnit::Week => start.saturating_add(7 * DAY),
            CalendarUnit::Month => {
                let date = Date::of_day(start.div_euclid(DAY));
                date.month_after(1).with_day(self.first_day.into()).to_day() * DAY
            }
            CalendarUnit::Year => {
                let date = Date::of_day(start.div_euclid(DAY));
                self.year_from(date.year + 1).to_day() * DAY
            }
        }
    }

    /// Returns the date with which the period of this year begins.
    fn year_from(&self, year: i64) -> Date {
        let (month, day) = (i64::from(self.first_day / 32), i64::from(self.first_day % 32));
        Date { year, month, day: 1 }.with_day(day)
    }
}

/// A date of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    /// Returns the date of a day since 1970. Years are counted from March, so that a leap day is the last of a year.
    fn of_day(day: i64) -> Date {
        let since_march = day + 719_468;
        let (era, of_era) = (since_march.div_euclid(146_097), since_march.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        Date {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
        }
    }

    /// Returns the day since 1970.
    fn to_day(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let from_march = (self.month + 9) % 12;
        let of_year = (153 * from_march + 2) / 5 + self.day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    /// Returns this day of the same month, or the last day of a shorter month.
    fn with_day(self, day: i64) -> Date {
        Date { day: day.min(days_in(self.year, self.month)), ..self }
    }

    /// Returns the first day of the month so many months later.
    fn month_after(self, months: i64) -> Date {
        let month = self.year * 12 + self.month - 1 + months;
        Date { year: month.div_euclid(12), month: month.rem_euclid(12) + 1, day: 1 }
    }
}

/// Returns the number of days of a month.
const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    fn day_of(year: i64, month: i64, day: i64) -> i64 {
        Date { year, month, day }.to_day()
    }

    #[test]
    fn dates_are_those_of_the_gregorian_calendar() {
        let mut date = Date { year: 1, month: 1, day: 1 };
        assert_eq!(day_of(1970, 1, 1), 0);
        assert_eq!(day_of(2024, 1, 1) * DAY, STORE_EPOCH);
        for day in date.to_day()..day_of(2405, 1, 1) {
            assert_eq!(Date::of_day(day), date);
            assert_eq!(date.to_day(), day);
            date = if date.day < days_in(date.year, date.month) {
                Date { day: date.day + 1, ..date }
            } else {
                date.month_after(1)
            };
        }
        assert_eq!(date, Date { year: 2405, month: 1, day: 1 });
    }

    #[test]
    fn the_most_periods_of_an_interval_are_those_of_a_walk_over_all_intervals() {
        // Summer time of a year, and a clock that is set by half an hour.
        let changes = [(90 * DAY + 7200, 3600), (300 * DAY + 3600, 0), (400 * DAY, 1800), (500 * DAY, 0)];
        let changes = changes.map(|(at, offset)| (STORE_EPOCH + at, offset));
        let zone = TimeZone::new("Test/Most", 0, changes).unwrap();
        for unit in CalendarUnit::ALL {
            let periods = CalendarPeriods::new(unit).in_zone(zone);
            let mut begins = vec![STORE_EPOCH];
            while begins.last().is_some_and(|last| *last < STORE_EPOCH + 1000 * DAY) {
                begins.push(periods.period_of(begins[begins.len() - 1]).end);
            }
            for span in
                [0, 1, 1800, 3599, 3600, 3601, 23 * 3600, 86400, 90000, 28 * 86400, 31 * 86400, 366 * 86400]
            {
                // The beginnings after the last tick before one, up to the end of the interval, and the period before.
                let begun_by = |tick: u64| {
                    begins.partition_point(|at| (*at - STORE_EPOCH) as u64 * PER_SECOND <= tick) as u128
                };
                let most_of = |ticks: u64| {
                    let touched = |begin: &i64| {
                        let from = (begin - STORE_EPOCH) as u64 * PER_SECOND - 1;
                        begun_by(from + ticks) - begun_by(from) + 1
                    };
                    begins[1..].iter().map(touched).max().unwrap()
                };
                for ticks in [span as u64 * PER_SECOND, span as u64 * PER_SECOND + 1] {
                    assert_eq!(periods.most_within(Ticks::new(ticks)), most_of(ticks), "{unit:?} {ticks}");
                }
            }
        }
    }

    #[test]
    fn periods_follow_each_other_without_a_gap() {
        let zone = TimeZone::new(
            "Test/Odd",
            5 * 3600 + 1800,
            [
                (STORE_EPOCH + 40 * DAY, 4 * 3600),
                (STORE_EPOCH + 300 * DAY, 8 * 3600),
                (STORE_EPOCH + 301 * DAY, 5 * 3600),
            ],
        );
        let zone = zone.unwrap();
        for unit in CalendarUnit::ALL {
            for periods in [CalendarPeriods::new(unit), CalendarPeriods::new(unit).in_zone(zone)] {
                let mut period = periods.period_of(STORE_EPOCH - 30 * DAY);
                while period.end < STORE_EPOCH + 800 * DAY {
                    assert!(period.start < period.end);
                    let length = Ticks::new((period.end - period.start).unsigned_abs() * PER_SECOND);
                    assert!(length <= periods.longest_period(), "{periods:?} {period:?}");
                    for inside in [period.start, (period.start + period.end) / 2, period.end - 1] {
                        assert_eq!(periods.period_of(inside), period, "{periods:?}");
                    }
                    period = periods.period_of(period.end);
                }
            }
        }
    }

    #[test]
    fn a_repeated_hour_is_one_period_and_a_skipped_one_has_no_length() {
        // Two hours east of UTC until 01:00Z, as in Berlin in autumn; then forward again a day later.
        let (back, forward) = (HOUR, DAY + HOUR);
        let zone = TimeZone::new("Test/Autumn", 7200, [(back, 3600), (forward, 7200)]).unwrap();
        let hours = CalendarPeriods::new(CalendarUnit::Hour).in_zone(zone);
        assert_eq!(hours.period_of(back - 1), 0..2 * HOUR);
        assert_eq!(hours.period_of(back), 0..2 * HOUR);
        assert_eq!(hours.period_of(2 * HOUR), 2 * HOUR..3 * HOUR);
        assert_eq!(hours.period_of(forward - 1).end, forward);
        assert_eq!(hours.period_of(forward), forward..forward + HOUR);
        let days = CalendarPeriods::new(CalendarUnit::Day).in_zone(zone);
        assert_eq!(days.period_of(0), -2 * HOUR..23 * HOUR);
        assert_eq!(days.period_of(23 * HOUR), 23 * HOUR..DAY + 22 * HOUR);
    }

    #[test]
    fn a_first_day_beyond_a_short_month_is_its_last_day() {
        let months = CalendarPeriods::new(CalendarUnit::Month).from_day_of_month(31).unwrap();
        let starts: Vec<i64> = std::iter::successors(Some(day_of(2023, 12, 31)), |day| {
            Some(months.period_of(day * DAY).end / DAY)
        })
        .take(5)
        .collect();
        let expected = [(2023, 12, 31), (2024, 1, 31), (2024, 2, 29), (2024, 3, 31), (2024, 4, 30)];
        assert_eq!(starts, expected.map(|(year, month, day)| day_of(year, month, day)));
        let years = CalendarPeriods::new(CalendarUnit::Year).from_day_of_year(2, 29).unwrap();
        assert_eq!(
            years.period_of(day_of(2024, 2, 29) * DAY),
            day_of(2024, 2, 29) * DAY..day_of(2025, 2, 28) * DAY
        );
        assert_eq!(years.period_of(day_of(2024, 2, 28) * DAY).start, day_of(2023, 2, 28) * DAY);
    }

    #[test]
    fn a_first_day_belongs_to_its_unit() {
        for unit in CalendarUnit::ALL {
            let periods = CalendarPeriods::new(unit);
            let set =
                [periods.from_day_of_week(6), periods.from_day_of_month(31), periods.from_day_of_year(4, 6)];
            let expected =
                [CalendarUnit::Week, CalendarUnit::Month, CalendarUnit::Year].map(|other| other == unit);
            assert_eq!(set.map(|periods| periods.is_some()), expected, "{unit:?}");
        }
        let [_, _, week, month, year] = CalendarUnit::ALL.map(CalendarPeriods::new);
        assert_eq!(week.from_day_of_week(7), None);
        assert_eq!([0, 32].map(|day| month.from_day_of_month(day)), [None; 2]);
        let impossible = [(0, 1), (13, 1), (4, 31), (2, 30), (1, 0), (1, 32)];
        assert_eq!(impossible.map(|(month, day)| year.from_day_of_year(month, day)), [None; 6]);
    }

    #[test]
    fn packed_periods_are_restored_and_others_rejected() {
        let zone = TimeZone::new("Test/Packed", 60, []).unwrap();
        let [hour, day, week, month, year] =
            CalendarUnit::ALL.map(|unit| CalendarPeriods::new(unit).in_zone(zone));
        let set = [
            Some(hour),
            Some(day),
            week.from_day_of_week(6),
            month.from_day_of_month(15),
            year.from_day_of_year(12, 31),
        ];
        for periods in set.into_iter().flatten() {
            assert_eq!(CalendarPeriods::unpack(periods.pack()), Some(periods));
        }
        for numbers in
            [5, 1 << 8, 1 | 1 << 8, 2 | 7 << 8, 3, 3 | 32 << 8, 4, 4 | (13 * 32 + 1) << 8, u64::MAX]
        {
            assert_eq!(CalendarPeriods::unpack([numbers, 0]), None, "{numbers:#x}");
        }
    }

    #[test]
    fn a_period_of_a_store_is_bounded_by_its_time() {
        let years = CalendarPeriods::new(CalendarUnit::Year);
        let first = years.from_day_of_year(7, 1).unwrap().period_at(Timestamp::EPOCH).unwrap();
        assert_eq!(first, Timestamp::EPOCH..Timestamp::from_ticks(182 * 86_400 * PER_SECOND));
        assert_eq!(years.period_at(Timestamp::LAST), None);
        // One that began before the epoch is cut there, and does not begin there.
        assert!(
            years.begins_at(Timestamp::EPOCH)
                && years.begins_at(Timestamp::from_ticks(366 * 86_400 * PER_SECOND))
        );
        assert!(!years.from_day_of_year(7, 1).unwrap().begins_at(Timestamp::EPOCH));
        assert!(!years.begins_at(Timestamp::from_ticks(1)));
        let unknown = years.in_zone(TimeZone::of_digest(9));
        let now = Timestamp::from_ticks(77);
        assert_eq!(unknown.period_at(now), Some(now..now.saturating_add(years.nominal())));
    }
}
