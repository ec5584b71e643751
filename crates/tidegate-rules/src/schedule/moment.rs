//! An edge of a window as text: `11-11T00:00` of every year, `2026-11-11T00:00` once, `09:00` of every day.
//!
//! The form of the text decides the recurrence. There is no offset: the time zone belongs to the window, so that both
//! of its ends are in the same one and follow its clock changes.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, ToSpan};

const SECONDS_OF_A_DAY: u32 = 24 * 3600;
/// A leap year, because a yearly date may be a leap day.
const ANY_LEAP_YEAR: i16 = 2000;

/// A local time, once or recurring.
///
/// The order is that within a day or a year. The order of moments with different recurrence has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(super) recurrence: Recurrence,
    /// The second of the day. The end of the day, 24:00, has a value of its own.
    second: u32,
}

impl Moment {
    /// Parses a moment. The error contains the fault and its remedy; the caller prepends the name and the text.
    pub(crate) fn parse(text: &str) -> Result<Moment, String> {
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (Some(date), Some(time)),
            None if text.contains(':') => (None, Some(text)),
            None => (Some(text), None),
        };
        Ok(Moment {
            recurrence: date.map_or(Ok(Recurrence::Daily), recurrence)?,
            second: time.map_or(Ok(0), second_of_day)?,
        })
    }

    /// Returns true for 24:00, which ends a day and begins none.
    pub(super) fn ends_a_day(self) -> bool {
        self.second == SECONDS_OF_A_DAY
    }

    /// Returns the local time of the occurrence `turn` days or years after a date; `None` outside the calendar.
    pub(super) fn civil(self, near: Date, turn: i16) -> Option<DateTime> {
        let date = match self.recurrence {
            Recurrence::Daily => near.checked_add(turn.days()).ok()?,
            Recurrence::Once(date) => date,
            Recurrence::Yearly { month, day } => {
                let year = near.year().checked_add(turn)?;
                match Date::new(year, month, day) {
                    Ok(date) => date,
                    // Only a leap day may be missing from a year. Its whole span is skipped, as clocks skip an hour.
                    Err(_) => return Some(Date::new(year, 3, 1).ok()?.at(0, 0, 0, 0)),
                }
            }
        };
        date.at(0, 0, 0, 0).checked_add(SignedDuration::from_secs(self.second.into())).ok()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.recurrence {
            Recurrence::Daily => {}
            Recurrence::Yearly { month, day } => write!(out, "{month:02}-{day:02}T")?,
            Recurrence::Once(date) => write!(out, "{date}T")?,
        }
        let (hour, minute, second) = (self.second / 3600, self.second / 60 % 60, self.second % 60);
        write!(out, "{hour:02}:{minute:02}")?;
        if second == 0 { Ok(()) } else { write!(out, ":{second:02}") }
    }
}

/// The recurrence of a moment.
///
/// Both ends of a window have the same recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Recurrence {
    Daily,
    Yearly { month: i8, day: i8 },
    Once(Date),
}

impl Recurrence {
    /// Returns true if both recur in the same way. Their dates are not compared.
    pub(super) fn is_like(self, other: Recurrence) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl fmt::Display for Recurrence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Recurrence::Daily => "every day",
            Recurrence::Yearly { .. } => "every year",
            Recurrence::Once(_) => "once",
        })
    }
}

/// Parses `11-11` or `2026-11-11`. A leap day is valid without a year; with one, the year has to have it.
fn recurrence(date: &str) -> Result<Recurrence, String> {
    let parts: Vec<&str> = date.split('-').collect();
    let (year, month, day) = match *parts {
        [month, day] => (None, month, day),
        [year, month, day] => (Some(number(year, 4)?), month, day),
        _ => return Err(unreadable()),
    };
    let (month, day) = (number(month, 2)?, number(day, 2)?);
    let first = Date::new(year.unwrap_or(ANY_LEAP_YEAR), month, 1)
        .map_err(|_| format!("has no month {month:02}; months are 01 to 12"))?;
    let date = first.with().day(day).build().map_err(|_| {
        let of_year = year.map_or(String::new(), |year| format!(" of {year:04}"));
        format!(
            "has no day {day:02}; the days of month {month:02}{of_year} are 01 to {}",
            first.days_in_month()
        )
    })?;
    Ok(if year.is_some() { Recurrence::Once(date) } else { Recurrence::Yearly { month, day } })
}

/// Parses `HH:MM` or `HH:MM:SS`, from 00:00 to 24:00. Leap seconds are not accepted.
fn second_of_day(time: &str) -> Result<u32, String> {
    if time.find(['Z', 'z', '+', '-']).is_some_and(|at| at >= "00:00".len()) {
        return Err("names a time zone; leave it out here and write timezone = \"UTC\" beside".to_owned());
    }
    let parts: Vec<&str> = time.split(':').collect();
    let (hour, minute, second) = match *parts {
        [hour, minute] => (number(hour, 2)?, number(minute, 2)?, 0),
        [hour, minute, second] => (number(hour, 2)?, number(minute, 2)?, number(second, 2)?),
        _ => return Err(unreadable()),
    };
    match (hour, minute, second) {
        (24, 0, 0) => Ok(SECONDS_OF_A_DAY),
        (24.., _, _) => {
            Err(format!("has no hour {hour:02}; hours are 00 to 23, and 24:00 is the end of a day"))
        }
        (_, 60.., _) => Err(format!("has no minute {minute:02}; minutes are 00 to 59")),
        (_, _, 60..) => Err(format!("has no second {second:02}; seconds are 00 to 59")),
        _ => Ok(3600 * hour + 60 * minute + second),
    }
}

/// Parses a number with exactly this many digits.
fn number<N: FromStr>(text: &str, digits: usize) -> Result<N, String> {
    if text.len() != digits || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unreadable());
    }
    text.parse().map_err(|_| unreadable())
}

/// Returns the error for text in none of the three forms.
fn unreadable() -> String {
    "is no time of year; write \"11-11T00:00\" for every year, \"2026-11-11T00:00\" for one, \
     \"09:00\" for every day"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_as_it_was_written() {
        for text in [
            "11-11T00:00",
            "02-29T23:59:59",
            "12-31T24:00",
            "2026-11-11T08:30",
            "0000-01-01T00:00:01",
            "9999-12-31T24:00",
            "2028-02-29T00:00",
            "09:00",
            "22:15:30",
            "24:00",
        ] {
            assert_eq!(Moment::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_date_alone_is_its_midnight_and_no_seconds_are_none() {
        for (short, long) in
            [("11-11", "11-11T00:00:00"), ("2026-11-11", "2026-11-11T00:00"), ("24:00:00", "24:00")]
        {
            assert_eq!(Moment::parse(short), Moment::parse(long));
            assert!(Moment::parse(short).is_ok(), "{short}");
        }
    }

    #[test]
    fn a_leap_day_is_the_next_midnight_in_a_year_without_one() {
        for (text, year, expected) in [
            ("02-29T12:00", 2028, "2028-02-29T12:00:00"),
            ("02-29T12:00", 2026, "2026-03-01T00:00:00"),
            ("02-29T24:00", 2028, "2028-03-01T00:00:00"),
            ("02-29T24:00", 2026, "2026-03-01T00:00:00"),
            ("12-31T24:00", 2026, "2027-01-01T00:00:00"),
        ] {
            let civil = Moment::parse(text).unwrap().civil(jiff::civil::date(year, 7, 1), 0).unwrap();
            assert_eq!(civil.to_string(), expected, "{text} in {year}");
        }
    }

    #[test]
    fn a_date_that_does_not_exist_is_rejected_with_the_valid_range() {
        for (text, expected) in [
            ("13-11T00:00", "has no month 13; months are 01 to 12"),
            ("2026-00-11", "has no month 00; months are 01 to 12"),
            ("11-31T00:00", "has no day 31; the days of month 11 are 01 to 30"),
            ("02-30", "has no day 30; the days of month 02 are 01 to 29"),
            ("01-00", "has no day 00; the days of month 01 are 01 to 31"),
            ("2026-02-29", "has no day 29; the days of month 02 of 2026 are 01 to 28"),
            ("25:00", "has no hour 25; hours are 00 to 23, and 24:00 is the end of a day"),
            ("11-11T24:01", "has no hour 24; hours are 00 to 23, and 24:00 is the end of a day"),
            ("24:00:01", "has no hour 24; hours are 00 to 23, and 24:00 is the end of a day"),
            ("09:60", "has no minute 60; minutes are 00 to 59"),
            ("09:00:60", "has no second 60; seconds are 00 to 59"),
        ] {
            assert_eq!(Moment::parse(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_zone_within_a_time_is_rejected_with_the_field_for_it() {
        for text in ["2026-11-11T00:00Z", "11-11T00:00+08:00", "09:00:00-05:00", "09:00z"] {
            let expected = "names a time zone; leave it out here and write timezone = \"UTC\" beside";
            assert_eq!(Moment::parse(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn other_text_is_rejected_with_a_remedy() {
        let expected = "is no time of year; write \"11-11T00:00\" for every year, \"2026-11-11T00:00\" for one, \
                        \"09:00\" for every day";
        for text in [
            "",
            "T",
            "noon",
            "11",
            "9:00",
            "09:0",
            "09",
            "09:00:00:00",
            "09:00:00.5",
            "1-1",
            "11-11T",
            "T09:00",
            "11-11 09:00",
            "11-11t09:00",
            "26-11-11",
            "02026-11-11",
            "-2026-11-11",
            "2026-11-11-11",
            "11/11",
            "+1-11",
            "11-1１",
            "１１-11",
            "11-11T09",
            "mon 09:00",
            " 09:00",
            "09:00\n",
            "11-11TT09:00",
        ] {
            assert_eq!(Moment::parse(text), Err(expected.to_owned()), "{text}");
        }
    }
}
