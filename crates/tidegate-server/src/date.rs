//! Formats and parses dates as RFC 3339 text.
//!
//! Dates are whole seconds since 1970 (Unix time) everywhere else in the server. Overrides, schedules and
//! explanations use this text form.

use jiff::Timestamp;

/// Formats seconds since 1970. A number that no calendar date represents is formatted as the number.
///
/// The text is in UTC, as in `2026-11-15T12:00:00Z`.
pub(crate) fn written(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |date| date.to_string())
}

/// Parses a date into seconds since 1970, rounded up. Returns `None` for any other text, also without a time zone.
///
/// Rounding up keeps an end in force until all of it has passed.
pub(crate) fn read(text: &str) -> Option<i64> {
    let date: Timestamp = text.parse().ok()?;
    Some(date.as_second() + i64::from(date.subsec_nanosecond() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        assert_eq!(written(1_794_744_000), "2026-11-15T12:00:00Z");
        for (text, seconds) in [
            ("2026-11-15T12:00:00Z", 1_794_744_000),
            ("2026-11-15T13:00:00+01:00", 1_794_744_000),
            ("2026-11-15T11:59:59.001Z", 1_794_744_000),
            ("1970-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(read(text), Some(seconds), "{text}");
        }
        assert_eq!(written(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn a_date_without_a_zone_and_anything_else_is_none() {
        for text in
            ["", "tomorrow", "2026-11-15", "2026-11-15T12:00:00", "2026-13-15T12:00:00Z", "1794744000"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
