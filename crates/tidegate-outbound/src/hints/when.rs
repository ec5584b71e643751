//! Times in header fields: seconds from now, a date, or a Unix time.
//!
//! A date of a server is compared with the server's own time, its `Date` field; without one, with the wall clock.
//! Invalid values are ignored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue, header};

/// The smallest number that is a Unix time, not a number of seconds from now: in seconds, September 2001.
const MOMENTS: u64 = 1_000_000_000;
/// The smallest number that is a Unix time in milliseconds: in seconds it would be the year 5138.
const MOMENTS_IN_MILLISECONDS: u64 = 100_000_000_000;

/// The wall clock of the server that sent a response.
#[derive(Clone, Copy)]
pub(super) struct There<'r> {
    headers: &'r HeaderMap,
    wall: fn() -> SystemTime,
}

impl<'r> There<'r> {
    /// Returns the clock of the server that sent these fields; `wall` is read only without a `Date`.
    pub(super) fn new(headers: &'r HeaderMap, wall: fn() -> SystemTime) -> There<'r> {
        There { headers, wall }
    }

    /// Returns the server's time when it sent the response.
    fn now(self) -> SystemTime {
        let date = self.headers.get(header::DATE).and_then(|date| date_of(date.as_bytes()));
        date.unwrap_or_else(|| (self.wall)())
    }

    /// Returns the time from now to this moment on the server; zero if it is over.
    fn until(self, moment: SystemTime) -> Duration {
        moment.duration_since(self.now()).unwrap_or_default()
    }

    /// Returns the value of `Retry-After`: whole seconds, or one of the three forms of a date; the longest, if there
    /// are several.
    pub(super) fn retry_after(self) -> Option<Duration> {
        let span = |value: &HeaderValue| match digits(value.as_bytes()) {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => Some(self.until(date_of(value.as_bytes())?)),
        };
        self.headers.get_all(header::RETRY_AFTER).iter().filter_map(span).max()
    }

    /// Returns the time for which caches have stored the response.
    pub(super) fn age(self) -> Duration {
        let ages = self.headers.get_all(header::AGE).iter().filter_map(|age| digits(age.as_bytes()));
        Duration::from_secs(ages.max().unwrap_or(0))
    }

    /// Parses a reset field: seconds from now, or if large a Unix time in seconds or milliseconds.
    pub(super) fn reset(self, text: &[u8]) -> Option<Duration> {
        let (whole, fraction) = match text.iter().position(|byte| *byte == b'.') {
            Some(point) => (&text[..point], digits(&text[point + 1..])?),
            None => (text, 0),
        };
        let number = digits(whole)?.saturating_add(u64::from(fraction > 0));
        Some(match number {
            0..MOMENTS => Duration::from_secs(number),
            MOMENTS..MOMENTS_IN_MILLISECONDS => self.until(UNIX_EPOCH + Duration::from_secs(number)),
            // A moment that is too late for a date is as good as never.
            _ => match UNIX_EPOCH.checked_add(Duration::from_millis(number)) {
                Some(moment) => self.until(moment),
                None => Duration::MAX,
            },
        })
    }

    /// Returns the values of all lines of a field that `read` accepts.
    pub(super) fn each<T>(
        self,
        name: &header::HeaderName,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> impl Iterator<Item = T> {
        self.headers.get_all(name).iter().filter_map(move |value| read(value.as_bytes()))
    }
}

/// Returns the integer part of a number, which may have a fraction.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    match text.iter().position(|byte| *byte == b'.') {
        Some(point) => digits(&text[point + 1..]).and_then(|_| digits(&text[..point])),
        None => digits(text),
    }
}

/// Parses a number of only digits; a number that is too large becomes the maximum.
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(text.iter().fold(0, add))
}

/// Parses a date in any of the three forms of HTTP.
fn date_of(text: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1994-11-06 08:49:37, the time of the examples in the standard.
    const MOMENT: u64 = 784_111_777;

    fn wall() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(MOMENT - 100)
    }

    fn fields(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn retry_after(value: &str, others: &[(&'static str, &str)]) -> Option<u64> {
        let mut fields = fields(others);
        fields.insert("retry-after", value.parse().unwrap());
        There::new(&fields, wall).retry_after().map(|span| span.as_secs())
    }

    #[test]
    fn a_date_has_three_forms_and_is_relative_to_the_wall_clock_if_there_is_no_other() {
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(retry_after(date, &[]), Some(100), "{date}");
        }
    }

    #[test]
    fn a_date_is_relative_to_the_date_of_its_own_answer() {
        let theirs = [("date", "Sun, 06 Nov 1994 08:49:30 GMT")];
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", &theirs), Some(7));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:20 GMT", &theirs), Some(0), "it is over");
        let nonsense = [("date", "yesterday")];
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", &nonsense), Some(100));
    }

    #[test]
    fn seconds_are_whole_and_not_negative() {
        assert_eq!(retry_after("0", &[]), Some(0));
        assert_eq!(retry_after("120", &[]), Some(120));
        assert_eq!(retry_after("99999999999999999999999", &[]), Some(u64::MAX));
        for nonsense in ["", "-1", "+1", "1.5", "1 ", "soon", "0x10", "Sun, 99 Nov 1994 08:49:37 GMT", "1, 2"]
        {
            assert_eq!(retry_after(nonsense, &[]), None, "{nonsense}");
        }
    }

    #[test]
    fn of_a_field_that_stands_there_twice_the_longest_counts() {
        let mut fields = fields(&[("retry-after", "3")]);
        fields.append("retry-after", "2".parse().unwrap());
        fields.append("retry-after", "soon".parse().unwrap());
        assert_eq!(There::new(&fields, wall).retry_after(), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_fraction_makes_a_whole_number_no_larger() {
        let read = |text: &str| whole(text.as_bytes());
        assert_eq!((read("0.0"), read("7.99"), read("12")), (Some(0), Some(7), Some(12)));
        for nonsense in ["", ".", "1.", ".5", "-1.0", "1.x", "1.2.3"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_reset_is_a_span_or_a_moment() {
        let fields = HeaderMap::new();
        let reset = |text: &str| {
            There::new(&fields, || UNIX_EPOCH + Duration::from_secs(1_900_000_000)).reset(text.as_bytes())
        };
        assert_eq!(reset("30"), Some(Duration::from_secs(30)));
        assert_eq!(reset("0.25"), Some(Duration::from_secs(1)));
        assert_eq!(reset("999999999"), Some(Duration::from_secs(999_999_999)));
        assert_eq!(reset("1000000000"), Some(Duration::ZERO), "that was long ago");
        assert_eq!(reset("1900000045"), Some(Duration::from_secs(45)));
        assert_eq!(reset("1900000044.5"), Some(Duration::from_secs(45)));
        assert_eq!(reset("1900000045500"), Some(Duration::from_millis(45_500)));
        assert!(reset("99999999999999999999").unwrap() > Duration::from_secs(3600));
        for nonsense in ["", ".", "1.", ".5", "-5", "5s", "1e9", "1.2.3"] {
            assert_eq!(reset(nonsense), None, "{nonsense}");
        }
    }
}
