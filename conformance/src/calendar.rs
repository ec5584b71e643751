//! Calendars by walking: the boundaries of periods, found by looking at the clock of a place every quarter of an hour.
//!
//! There is no formula here. Days are counted one after the other from a known Monday, the clock of a place is set on
//! the days that its rule says, and a period begins when the clock shows a later one than ever before.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use tidegate::{CalendarPeriods, CalendarUnit, TimeZone};

/// 2024-01-01T00:00Z since 1970: the epoch of a store, in seconds.
const EPOCH: i64 = 1_704_067_200;
const DAY: i64 = 86_400;
const QUARTER: i64 = 900;
/// The days before the epoch with which the walk begins, so that all units have begun.
const BEFORE: i64 = 370;
/// The days after the epoch that are walked: all that a store can count.
const AFTER: i64 = 38 * 365;
const TICKS: i128 = 16_000_000_000;

/// A place with a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// UTC.
    Utc,
    /// One hour east; two from the last Sunday in March to the last Sunday in October, changed at 01:00Z.
    Berlin,
    /// Five and a half hours east.
    Kolkata,
    /// Ten and a half hours east; eleven from the first Sunday in October to the first Sunday in April, changed at
    /// 02:00 by its own clock.
    LordHowe,
}

/// All places.
pub const PLACES: [Place; 4] = [Place::Utc, Place::Berlin, Place::Kolkata, Place::LordHowe];

/// A day of the walk.
struct Row {
    /// Its beginning in UTC, since 1970.
    at: i64,
    year: i64,
    month: i64,
    day: i64,
    /// 0 for Monday.
    weekday: i64,
    last_of_month: i64,
}

/// Returns one day after the other, from 2022-12-27, a Tuesday.
fn days() -> Vec<Row> {
    let (mut year, mut month, mut day, mut weekday) = (2022, 12, 27, 1);
    let mut rows = Vec::new();
    for count in -BEFORE..AFTER {
        let leap = i64::from(year % 4 == 0);
        let last_of_month = [31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize - 1];
        rows.push(Row { at: EPOCH + count * DAY, year, month, day, weekday, last_of_month });
        (day, weekday) = (day + 1, (weekday + 1) % 7);
        if day > last_of_month {
            (day, month) = (1, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
    rows
}

impl Place {
    /// Returns the name of its time zone.
    pub fn name(self) -> &'static str {
        match self {
            Place::Utc => "UTC",
            Place::Berlin => "Europe/Berlin",
            Place::Kolkata => "Asia/Kolkata",
            Place::LordHowe => "Australia/Lord_Howe",
        }
    }

    /// Returns the place of a time zone.
    pub fn of_name(name: &str) -> Result<Place, String> {
        let found = PLACES.into_iter().find(|place| place.name() == name);
        found.ok_or_else(|| "is no place of the conformance kit".to_owned())
    }

    /// Returns its time zone, with the offsets that the walk has.
    pub fn zone(self) -> TimeZone {
        static ZONES: OnceLock<[TimeZone; PLACES.len()]> = OnceLock::new();
        let make = |place: Place| {
            let (first, changes) = place.offsets(&days());
            let changes = changes.into_iter().map(|(at, offset)| (at, offset as i32));
            TimeZone::new(place.name(), first as i32, changes).expect("offsets of hours")
        };
        ZONES.get_or_init(|| PLACES.map(make))[self as usize]
    }

    /// Returns the first offset, and those from each change on.
    fn offsets(self, rows: &[Row]) -> (i64, Vec<(i64, i64)>) {
        let is_last = |row: &Row| row.weekday == 6 && row.day + 7 > row.last_of_month;
        let is_first = |row: &Row| row.weekday == 6 && row.day <= 7;
        let change = |row: &Row| match (self, row.month) {
            (Place::Berlin, 3) if is_last(row) => Some((row.at + 3600, 7200)),
            (Place::Berlin, 10) if is_last(row) => Some((row.at + 3600, 3600)),
            (Place::LordHowe, 4) if is_first(row) => Some((row.at + 2 * 3600 - 39_600, 37_800)),
            (Place::LordHowe, 10) if is_first(row) => Some((row.at + 2 * 3600 - 37_800, 39_600)),
            _ => None,
        };
        let first = match self {
            Place::Utc => 0,
            Place::Berlin => 3600,
            Place::Kolkata => 19_800,
            Place::LordHowe => 39_600,
        };
        (first, rows.iter().filter_map(change).collect())
    }
}

/// A calendar as it is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Calendar {
    /// 0 for hours to 4 for years.
    pub unit: usize,
    /// The first day: of a week from 0, of a month from 1, of a year of its first month.
    pub first_day: i64,
    /// The place whose clock counts.
    pub place: Place,
}

impl Calendar {
    /// Returns the product's periods.
    pub fn periods(&self) -> CalendarPeriods {
        let periods = CalendarPeriods::new(CalendarUnit::ALL[self.unit]).in_zone(self.place.zone());
        let day = u8::try_from(self.first_day).expect("a day");
        match self.unit {
            2 => periods.from_day_of_week(day),
            3 => periods.from_day_of_month(day),
            4 => periods.from_day_of_year(1, day),
            _ => Some(periods),
        }
        .expect("a day of its unit")
    }

    /// Returns the length of a usual period, in ticks.
    pub fn usual(&self) -> u64 {
        [3600, DAY, 7 * DAY, 31 * DAY, 366 * DAY][self.unit] as u64 * TICKS as u64
    }

    /// Returns a length below which no period is, in ticks. Clocks here are set forward by an hour, or by half an hour.
    pub fn shortest(&self) -> u64 {
        [1800, DAY - 3600, 7 * DAY - 3600, 28 * DAY - 3600, 365 * DAY][self.unit] as u64 * TICKS as u64
    }

    /// Returns a length that no period exceeds, in ticks. Clocks here are set back by an hour at most.
    pub fn longest(&self) -> u64 {
        self.usual() + 3600 * TICKS as u64
    }

    /// Returns the beginnings of its periods. They are walked once in a process.
    pub fn boundaries(&self) -> Boundaries {
        static KNOWN: Mutex<BTreeMap<Calendar, &'static [i64]>> = Mutex::new(BTreeMap::new());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(walked) = known().get(self).copied() {
            return Boundaries(walked);
        }
        let walked: &'static [i64] = Box::leak(self.walk().into_boxed_slice());
        Boundaries(known().entry(*self).or_insert(walked))
    }

    /// Walks through all quarters of an hour, and notes each at which a later period begins than ever before.
    fn walk(&self) -> Vec<i64> {
        let rows = days();
        let (mut offset, changes) = self.place.offsets(&rows);
        let (mut changes, mut boundaries, mut newest) =
            (changes.into_iter().peekable(), Vec::new(), i64::MIN);
        for row in 1..rows.len() - 1 {
            for quarter in 0..DAY / QUARTER {
                let at = rows[row].at + quarter * QUARTER;
                while let Some((_, then)) = changes.next_if(|(change, _)| *change <= at) {
                    offset = then;
                }
                let shown = at + offset;
                // No place here is a day from UTC, so the day that the clock shows is this one or a neighbour.
                let day = match shown {
                    shown if shown < rows[row].at => &rows[row - 1],
                    shown if shown >= rows[row + 1].at => &rows[row + 1],
                    _ => &rows[row],
                };
                let period = self.period_of(day, shown);
                if period > newest {
                    newest = period;
                    boundaries.push(at);
                }
            }
        }
        boundaries
    }

    /// Returns a number that grows from each period to the next.
    fn period_of(&self, day: &Row, shown: i64) -> i64 {
        match self.unit {
            0 => shown / 3600,
            1 => day.at,
            // Days since the first day of the week.
            2 => day.at - (day.weekday + 7 - self.first_day) % 7 * DAY,
            3 => {
                let has_begun = day.day >= self.first_day || day.day == day.last_of_month;
                day.year * 12 + day.month - i64::from(!has_begun)
            }
            _ => day.year - i64::from(day.month == 1 && day.day < self.first_day),
        }
    }
}

/// The beginnings of the periods of a calendar, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Boundaries(&'static [i64]);

impl Boundaries {
    /// Returns the number of the period of an instant, in ticks since the epoch.
    pub fn number_of(self, at: i128) -> usize {
        let seconds = i64::try_from(at.div_euclid(TICKS)).expect("a time of a store") + EPOCH;
        self.0.partition_point(|begin| *begin <= seconds)
    }

    /// Returns the beginnings that a store can count, in ticks since the epoch.
    pub fn in_ticks(self) -> impl Iterator<Item = u64> {
        let ticks = |begin: &i64| u64::try_from(begin - EPOCH).ok()?.checked_mul(TICKS as u64);
        self.0.iter().filter_map(ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_knows_the_calendar() {
        let rows = days();
        let epoch = rows.iter().find(|row| row.at == EPOCH).unwrap();
        assert_eq!((epoch.year, epoch.month, epoch.day, epoch.weekday), (2024, 1, 1, 0));
        let (_, changes) = Place::Berlin.offsets(&rows);
        // 2026-03-29T01:00Z and 2026-10-25T01:00Z.
        assert!(changes.contains(&(1_774_746_000, 7200)) && changes.contains(&(1_792_890_000, 3600)));
        let (_, changes) = Place::LordHowe.offsets(&rows);
        // 2026-04-04T15:00Z and 2026-10-03T15:30Z.
        assert!(changes.contains(&(1_775_314_800, 37_800)) && changes.contains(&(1_791_041_400, 39_600)));
    }
}
