//! A span of time, as text: `90s`, `1m30s`, `500ms`.
//!
//! The units are those of limits (`us`, `ms`, `s`, `m`, `h`, `d`, `w`), so a file has one notation for time. A number
//! without a unit is an error, because seconds and milliseconds are mistaken for each other too easily.

use std::time::Duration;

use tidegate_core::attribute::TIME_UNITS;

/// The longest duration. A longer one is probably a typing error.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Parses whole numbers with units, and returns their sum. Fails with a message if it is invalid or longer than a year.
///
/// Parts may be in any order and repeat: `30s1m` is 90 seconds. Spaces are not allowed.
///
/// # Errors
///
/// Returns a message with the fault and a valid spelling, without the place in the file.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use tidegate_support::duration;
///
/// assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
/// assert_eq!(duration("10sec").unwrap_err(), "unknown unit \"sec\"; write \"10s\"");
/// ```
#[doc(alias = "timeout")]
#[doc(alias = "parse")]
pub fn duration(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err("there is nothing here; write something like \"10s\"".to_owned());
    }
    let (mut rest, mut sum) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let (part, after) = part(rest)?;
        sum = sum.saturating_add(part);
        rest = after;
    }
    if sum > LONGEST { Err("longer than a year; write at most \"365d\"".to_owned()) } else { Ok(sum) }
}

/// Parses a duration that is not zero.
///
/// It is for settings where zero has no meaning, such as a timeout.
pub fn positive(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("no time at all; write something like \"10s\"".to_owned()),
        span => Ok(span),
    }
}

/// Parses the first number with its unit, and returns the rest of the text.
fn part(text: &str) -> Result<(Duration, &str), String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let end =
        text[digits..].find(|letter: char| letter.is_ascii_digit()).map_or(text.len(), |at| digits + at);
    let (number, unit, rest) = (&text[..digits], &text[digits..end], &text[end..]);
    if number.is_empty() {
        return Err("a time begins with a whole number; write something like \"10s\"".to_owned());
    }
    if unit.is_empty() {
        return Err(format!("\"{number}\" has no unit; write \"{number}s\" if seconds are meant"));
    }
    let Some((_, micros)) = TIME_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(unknown_unit(number, unit));
    };
    // A number that does not fit in 64 bits is too long in any unit.
    let number = number.parse().unwrap_or(u64::MAX);
    Ok((Duration::from_micros(micros.saturating_mul(number)), rest))
}

/// Returns the message about a unit. Common spellings of other tools get the right one as a suggestion.
fn unknown_unit(number: &str, written: &str) -> String {
    let unit = written.trim();
    if TIME_UNITS.iter().any(|(name, _)| *name == unit) {
        return format!("\"{number}{written}\" has a space; write \"{number}{unit}\"");
    }
    let meant = match unit.to_lowercase().as_str() {
        "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
        "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "m",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "day" | "days" => "d",
        "week" | "weeks" => "w",
        _ => return format!("unknown unit \"{unit}\"; the units are us, ms, s, m, h, d and w"),
    };
    format!("unknown unit \"{unit}\"; write \"{number}{meant}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_numbers_with_units() {
        for (text, ms) in [("500ms", 500), ("10s", 10_000), ("1m30s", 90_000), ("1h", 3_600_000), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(duration("365d"), Ok(LONGEST));
        assert_eq!(duration("1us"), Ok(Duration::from_micros(1)));
    }

    #[test]
    fn an_invalid_duration_is_reported_with_a_remedy() {
        for (text, expected) in [
            ("", "there is nothing here; write something like \"10s\""),
            ("s", "a time begins with a whole number; write something like \"10s\""),
            ("-1s", "a time begins with a whole number; write something like \"10s\""),
            ("10", "\"10\" has no unit; write \"10s\" if seconds are meant"),
            ("1m30", "\"30\" has no unit; write \"30s\" if seconds are meant"),
            ("5min", "unknown unit \"min\"; write \"5m\""),
            ("5 seconds", "unknown unit \"seconds\"; write \"5s\""),
            ("5 s", "\"5 s\" has a space; write \"5s\""),
            ("5y", "unknown unit \"y\"; the units are us, ms, s, m, h, d and w"),
            ("1.5s", "unknown unit \".\"; the units are us, ms, s, m, h, d and w"),
            ("366d", "longer than a year; write at most \"365d\""),
            ("31536000000001us", "longer than a year; write at most \"365d\""),
            ("99999999999999999999us", "longer than a year; write at most \"365d\""),
            ("9999999999w9999999999w", "longer than a year; write at most \"365d\""),
        ] {
            assert_eq!(duration(text), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(positive("0s"), Err("no time at all; write something like \"10s\"".to_owned()));
        assert_eq!(positive("1s"), Ok(Duration::from_secs(1)));
    }
}
