//! A span of time in a time zone, which may recur.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::days::Days;
use super::moment::{Moment, Recurrence};
use super::zone::{end_of_time, has_passed, steady};

/// A span from one moment to another of the same recurrence. It may cross midnight or New Year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    from: Moment,
    to: Moment,
    /// The days on which it begins; all days unless it is daily.
    days: Days,
    zone: TimeZone,
}

impl Window {
    /// Creates a window. `days` restricts a daily window to the days on which it begins; `None` is every day.
    ///
    /// # Errors
    /// The fault and its remedy: ends of different recurrence, a beginning at 24:00, days of a window that is not
    /// daily, or an empty window. A daily window from 22:00 to 06:00 is not empty: it crosses midnight.
    pub(crate) fn new(
        from: Moment,
        to: Moment,
        days: Option<Days>,
        zone: TimeZone,
    ) -> Result<Window, String> {
        if !from.recurrence.is_like(to.recurrence) {
            return Err(format!(
                "goes from {from} ({}) to {to} ({}); write both for every year as in \"11-11T00:00\", \
                 both for once as in \"2026-11-11T00:00\", or both for every day as in \"09:00\"",
                from.recurrence, to.recurrence
            ));
        }
        if from.ends_a_day() {
            return Err("begins at 24:00, which only ends a day; begin at 00:00 of the next day".to_owned());
        }
        if days.is_some() && from.recurrence != Recurrence::Daily {
            return Err(format!(
                "has days, but comes {}; leave days out, or write times such as \"09:00\"",
                from.recurrence
            ));
        }
        if days == Some(Days::NONE) {
            return Err(
                "has no days; name some, as in days = [\"mon\", \"fri\"], or leave days out for every day"
                    .to_owned(),
            );
        }
        match from.recurrence {
            Recurrence::Once(_) if to <= from => {
                Err(format!("ends at {to}, which is not after {from}; write a later end"))
            }
            Recurrence::Daily if to == from => Err(format!(
                "begins and ends at {from}; write two times, or \"00:00\" to \"24:00\" for the whole day"
            )),
            Recurrence::Yearly { .. } if to == from => Err(format!(
                "begins and ends at {from}; write two times, or \"01-01T00:00\" to \"12-31T24:00\" for the whole year"
            )),
            _ => Ok(Window { from, to, days: days.unwrap_or(Days::EVERY), zone }),
        }
    }

    /// Returns true if the window occurs once and ended before this Unix second.
    pub(crate) fn has_ended(&self, now: i64) -> bool {
        let Recurrence::Once(date) = self.from.recurrence else { return false };
        match (self.to.civil(date, 0), Timestamp::from_second(now)) {
            (Some(to), Ok(now)) => has_passed(&self.zone, to, now),
            // The window ends with the calendar, or the clock is beyond it.
            _ => now >= end_of_time(),
        }
    }

    /// Returns true if the window covers now, and a span around now in which the result stays the same.
    ///
    /// Between two clock changes the UTC offset is constant, so edges are compared with the local time. The span ends
    /// at the next clock change, after which the window is evaluated again.
    pub(super) fn look(&self, now: Timestamp) -> (bool, Range<i64>) {
        let shown = self.zone.to_datetime(now);
        let (mut covers, mut span) = (false, steady(&self.zone, now));
        for (from, to) in self.turns().filter_map(|turn| self.occurrence(shown.date(), turn)) {
            covers |= (from..to).contains(&shown);
            for edge in [from, to] {
                let second = now.as_second() + edge.duration_since(shown).as_secs();
                if edge <= shown {
                    span.start = span.start.max(second);
                } else {
                    span.end = span.end.min(second);
                }
            }
        }
        (covers, span)
    }

    /// Returns the occurrences to check: enough that some end before now and some begin after it.
    fn turns(&self) -> RangeInclusive<i16> {
        match self.from.recurrence {
            Recurrence::Daily if self.days != Days::EVERY => -8..=8,
            Recurrence::Daily | Recurrence::Yearly { .. } => -2..=2,
            Recurrence::Once(_) => 0..=0,
        }
    }

    /// Returns the local times at the edges of the occurrence that begins `turn` days or years from a date. Some are
    /// empty. An occurrence that ends with the calendar ends after all instants.
    fn occurrence(&self, near: Date, turn: i16) -> Option<(DateTime, DateTime)> {
        let from = self.from.civil(near, turn)?;
        if !self.days.contains(from.date().weekday()) {
            return None;
        }
        let to = self.to.civil(near, turn + i16::from(self.to < self.from));
        Some((from, to.unwrap_or(DateTime::MAX)))
    }
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.days != Days::EVERY {
            write!(out, "{} ", self.days)?;
        }
        let zone = self.zone.iana_name().unwrap_or("in a zone without a name");
        write!(out, "{} to {} {zone}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::window;
    use super::*;

    #[test]
    fn a_window_is_shown_as_it_was_written() {
        for text in [
            "11-11T00:00 to 11-12T00:00 Asia/Shanghai",
            "2026-11-11T00:00 to 2026-11-11T24:00 UTC",
            "22:00 to 06:00:30 America/New_York",
        ] {
            assert_eq!(window(text).unwrap().to_string(), text);
        }
        assert_eq!(window("Fri,mon 22:00 to 06:00 utc").unwrap().to_string(), "mon, fri 22:00 to 06:00 UTC");
    }

    #[test]
    fn windows_are_equal_if_they_mean_the_same() {
        let nightly = window("mon,fri 22:00 to 06:00 UTC");
        assert_eq!(nightly, window("fri,mon 22:00:00 to 06:00 UTC"));
        assert_ne!(nightly, window("mon,fri 22:00 to 06:00 Europe/Berlin"));
        assert_ne!(nightly, window("22:00 to 06:00 UTC"));
    }

    #[test]
    fn an_invalid_window_is_rejected_with_a_remedy() {
        let nine_to_five = ["09:00", "17:00"].map(|text| Moment::parse(text).unwrap());
        let no_days = Window::new(nine_to_five[0], nine_to_five[1], Some(Days::default()), TimeZone::UTC);
        assert_eq!(no_days, Err(format!("has no days; {SOME_DAYS}")));
        for (text, problem, remedy) in [
            ("09:00 to 11-11 UTC", "goes from 09:00 (every day) to 11-11T00:00 (every year)", SAME_KIND),
            (
                "11-11 to 2026-11-12 UTC",
                "goes from 11-11T00:00 (every year) to 2026-11-12T00:00 (once)",
                SAME_KIND,
            ),
            ("24:00 to 06:00 UTC", "begins at 24:00, which only ends a day", NEXT_DAY),
            ("11-11T24:00 to 11-13 UTC", "begins at 24:00, which only ends a day", NEXT_DAY),
            ("09:00 to 09:00 UTC", "begins and ends at 09:00", WHOLE_DAY),
            ("11-11 to 11-11T00:00 UTC", "begins and ends at 11-11T00:00", WHOLE_YEAR),
            (
                "2026-11-11 to 2026-11-11 UTC",
                "ends at 2026-11-11T00:00, which is not after 2026-11-11T00:00",
                "write a later end",
            ),
            (
                "2026-11-12 to 2026-11-11T24:00 UTC",
                "ends at 2026-11-11T24:00, which is not after 2026-11-12T00:00",
                "write a later end",
            ),
            ("mon 11-11 to 11-12 UTC", "has days, but comes every year", NO_DAYS),
            ("mon 2026-11-11 to 2026-11-12 UTC", "has days, but comes once", NO_DAYS),
        ] {
            assert_eq!(window(text), Err(format!("{problem}; {remedy}")), "{text}");
        }
    }

    const SAME_KIND: &str = "write both for every year as in \"11-11T00:00\", \
                             both for once as in \"2026-11-11T00:00\", or both for every day as in \"09:00\"";
    const NEXT_DAY: &str = "begin at 00:00 of the next day";
    const WHOLE_DAY: &str = "write two times, or \"00:00\" to \"24:00\" for the whole day";
    const WHOLE_YEAR: &str = "write two times, or \"01-01T00:00\" to \"12-31T24:00\" for the whole year";
    const SOME_DAYS: &str = "name some, as in days = [\"mon\", \"fri\"], or leave days out for every day";
    const NO_DAYS: &str = "leave days out, or write times such as \"09:00\"";
}
